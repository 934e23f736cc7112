// Relations in Python: which input rows feed which output rows.
#include <string>

#include "arguments.h"
#include "operation.h"
#include "sparse.h"

namespace cenote::python {
namespace {

/// The object itself, to keep alive what looks into it.
using Self = nb::handle_t<Relation>;

using ArrayOf = const Array& (Relation::*)() const;

/// A property that looks into an array of the relation.
template <ArrayOf get>
Any look(Self self) {
  return to_numpy((nb::cast<const Relation&>(self).*get)(), self);
}

Any group(Self self) {
  const Array* rows = nb::cast<const Relation&>(self).group();
  return rows ? to_numpy(*rows, self) : nb::none();
}

nb::typed<nb::tuple, nb::any, nb::ellipsis> kernel_tuple(const Relation& relation) {
  const Kernel kernel = relation.kernel();
  nb::list lists;
  for (const PerAxis* part : {&kernel.size, &kernel.stride, &kernel.padding, &kernel.dilation}) {
    nb::list numbers;
    for (const std::int64_t number : part->values()) numbers.append(number);
    lists.append(nb::tuple(numbers));
  }
  return nb::tuple(lists);
}

std::string shown_relation(const Relation& relation) {
  return "Relation(inputs=" + std::to_string(relation.inputs()) + ", outputs=" + std::to_string(relation.outputs()) +
         ", edges=" + std::to_string(relation.edges()) + ", volume=" + std::to_string(relation.volume()) +
         (relation.transposed() ? ", transposed=True)" : ")");
}

/// Input rows, batches and the saved arrays, as load_relation takes them back.
Pair reduce(const Relation& relation) {
  RelationArrays saved = relation.save();
  return nb::make_tuple(nb::module_::import_("cenote.sparse").attr("_load_relation"),
                        nb::make_tuple(to_numpy(Array(relation.input()->array())), relation.input()->batch_size(),
                                       to_numpy(std::move(saved.in_row)), to_numpy(std::move(saved.out_row)),
                                       to_numpy(std::move(saved.kernel_id)), to_numpy(std::move(saved.coords)),
                                       to_numpy(std::move(saved.kernel)), to_numpy(std::move(saved.facts))));
}

Relation load(nb::handle coords, nb::handle batch_size, nb::handle in_row, nb::handle out_row, nb::handle kernel_id,
              nb::handle outputs, nb::handle kernel, nb::handle facts) {
  const char* who = "Relation";
  const Input rows(who, "coords", coords);
  const auto array = [&](const char* what, nb::handle object) { return Array(Input(who, what, object).view()); };
  const auto input = Coordinates::make(rows, {.batch_size = integer(who, "batch_size", batch_size)});
  return Relation::load(input, {.in_row = array("in_row", in_row),
                                .out_row = array("out_row", out_row),
                                .kernel_id = array("kernel_id", kernel_id),
                                .coords = array("outputs", outputs),
                                .kernel = array("kernel", kernel),
                                .facts = array("facts", facts)});
}

}  // namespace

std::shared_ptr<const Coordinates> coordinates_of(std::string_view who, std::string_view what, nb::handle object) {
  if (nb::isinstance<PythonSparse>(object)) return nb::cast<const PythonSparse&>(object).tensor.coordinates();
  const Input rows(who, what, object);
  return without_gil([&] { return Coordinates::make(rows); });
}

std::shared_ptr<const Coordinates> optional_coordinates(std::string_view who, nb::handle targets) {
  return targets.is_none() ? nullptr : coordinates_of(who, "targets", targets);
}

Kernel kernel_of(std::string_view who, nb::handle size, nb::handle stride, nb::handle padding, nb::handle dilation) {
  return {.size = per_axis(who, "kernel_size", size),
          .stride = per_axis(who, "stride", stride),
          .padding = per_axis(who, "padding", padding),
          .dilation = per_axis(who, "dilation", dilation)};
}

RelateOptions relate_options(std::string_view who, nb::handle policy, nb::handle extent, nb::handle targets,
                             nb::handle order, nb::handle engine) {
  RelateOptions options;
  options.policy =
      choice<Policy>(who, "policy", policy,
                     {{"lattice", Policy::lattice}, {"dense", Policy::dense}, {"minkowski", Policy::minkowski}});
  if (!extent.is_none()) options.extent = integers(who, "extent", extent);
  options.targets = optional_coordinates(who, targets);
  if (!order.is_none())
    options.order = choice<Order>(who, "order", order, {{"first_seen", Order::first_seen}, {"sorted", Order::sorted}});
  options.engine =
      choice<Engine>(who, "engine", engine,
                     {{"automatic", Engine::automatic}, {"sorted", Engine::sorted}, {"hashed", Engine::hashed}});
  return options;
}

void bind_relation(nb::module_& m) {
  nb::class_<Relation>(m, "Relation",
                       "Which input rows feed which output rows: built once, reusable, inspectable, picklable.")
      .def_prop_ro("in_row", &look<&Relation::in_row>)
      .def_prop_ro("out_row", &look<&Relation::out_row>)
      .def_prop_ro("kernel_id", &look<&Relation::kernel_id>)
      .def_prop_ro("row_offsets", &look<&Relation::row_offsets>)
      .def_prop_ro("input_offsets", &look<&Relation::input_offsets>)
      .def_prop_ro("input_edges", &look<&Relation::input_edges>)
      .def_prop_ro("group", &group, "Where every input feeds at most one output: that output's row or -1.")
      .def_prop_ro("coords",
                   [](Self self) { return Any(to_numpy(Array(nb::cast<const Relation&>(self).output()->array()))); })
      .def_prop_ro("kernel", &kernel_tuple, "Size, stride, padding and dilation, each per axis.")
      .def_prop_ro("inputs", &Relation::inputs)
      .def_prop_ro("outputs", &Relation::outputs)
      .def_prop_ro("edges", &Relation::edges)
      .def_prop_ro("volume", &Relation::volume)
      .def_prop_ro("transposed", &Relation::transposed)
      .def_prop_ro("contiguous", &Relation::contiguous)
      .def("explain", &Relation::explain, "The route by which it was built, and why.")
      .def("__repr__", &shown_relation)
      .def("__reduce__", &reduce);
  m.def("load_relation", &load);
  m.def("relate", [](nb::handle x, nb::handle size, nb::handle stride, nb::handle padding, nb::handle dilation,
                     nb::handle policy, nb::handle extent, nb::handle targets, nb::handle order, nb::handle engine) {
    const Kernel kernel = kernel_of("relate", size, stride, padding, dilation);
    const RelateOptions options = relate_options("relate", policy, extent, targets, order, engine);
    const auto coords = coordinates_of("relate", "x", x);
    return without_gil([&] { return coords->relation(kernel, options); });
  });
  m.def("relate_transposed", [](nb::handle x, nb::handle size, nb::handle stride, nb::handle padding,
                                nb::handle dilation, nb::handle targets) {
    const char* who = "relate_transposed";
    const Kernel kernel = kernel_of(who, size, stride, padding, dilation);
    const auto onto = optional_coordinates(who, targets);
    const auto coords = coordinates_of(who, "x", x);
    return without_gil([&] { return relate_transposed(coords, kernel, onto); });
  });
}

}  // namespace cenote::python
