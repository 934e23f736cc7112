// SparseTensor in Python.
#include <string>
#include <vector>

#include <nanobind/stl/vector.h>

#include "arguments.h"
#include "operation.h"
#include "sparse.h"

namespace cenote::python {
namespace {

/// The object itself, to keep alive what looks into it.
using Self = nb::handle_t<PythonSparse>;

const char* const who = "SparseTensor";

const char* const document = R"(Features on the points of a lattice.

``coords`` has rows of a batch number and 1 to 6 lattice coordinates, int32 or int64; ``feats`` has one row of channels
for each. ``stride`` says how many cells of the finest lattice one step is. Only the first ``active_rows`` rows count.
``batch_counts`` are checked against the rows, ``batch_size`` declares more batches than there are rows of. Duplicate
rows are an error, unless ``assume_unique`` skips the search for them; ``SparseTensor.coalesced`` merges them.

>>> import numpy as np
>>> from cenote.sparse import SparseTensor
>>> SparseTensor(np.array([[0, 0, 0, 0], [0, 1, 0, 0]]), np.ones((2, 8), np.float32))
SparseTensor(rows=2, channels=8, dimension=3, stride=(1, 1, 1), batch_size=1, dtype=f32)
)";

Merge merge_of(nb::handle merge) {
  return choice<Merge>(
      "coalesce", "merge", merge,
      {{"sum", Merge::sum}, {"mean", Merge::mean}, {"max", Merge::max}, {"min", Merge::min}, {"first", Merge::first}});
}

PythonSparse make(nb::handle coords, nb::handle feats, nb::handle stride, nb::handle batch_counts,
                  nb::handle batch_size, nb::handle active_rows, nb::handle assume_unique, nb::handle merge) {
  const CoordinateOptions options = coordinate_options(who, batch_counts, batch_size, active_rows, assume_unique);
  const PerAxis steps = per_axis(who, "stride", stride);
  const Input rows(who, "coords", coords), values(who, "feats", feats);
  if (!merge.is_none()) {
    const Merge how = merge_of(merge);
    return {without_gil([&] { return SparseTensor::coalesced(rows, values, how, options, steps); }), values.kind()};
  }
  return {without_gil([&] { return SparseTensor(rows, values, options, steps); }), values.kind()};
}

nb::typed<nb::tuple, int, nb::ellipsis> tuple_of(const auto& values) {
  nb::list items;
  for (const std::int64_t value : values) items.append(value);
  return nb::tuple(items);
}

/// NumPy's arrays look into the tensor's memory; arrays of other kinds are copies, since some of them could write.
Any features(Self self) {
  const auto& x = nb::cast<const PythonSparse&>(self);
  return x.kind.is_numpy() ? to_numpy(x.tensor.feats(), self) : x.kind.wrap(Array(x.tensor.feats()));
}

Any coords(Self self) { return to_numpy(nb::cast<const PythonSparse&>(self).tensor.coords(), self); }

PythonSparse with_feats(const PythonSparse& x, nb::handle feats) {
  const Input values(who, "feats", feats, x.tensor.type());
  return {x.tensor.with_feats(Array(values.view())), values.kind()};
}

std::string shown_tensor(const PythonSparse& x) {
  const SparseTensor& t = x.tensor;
  return "SparseTensor(rows=" + std::to_string(t.rows()) + ", channels=" + std::to_string(t.channels()) +
         ", dimension=" + std::to_string(t.dimension()) + ", stride=" + to_string(t.stride()) +
         ", batch_size=" + std::to_string(t.batch_size()) + ", dtype=" + std::string(name(t.type())) + ")";
}

}  // namespace

CoordinateOptions coordinate_options(std::string_view by, nb::handle batch_counts, nb::handle batch_size,
                                     nb::handle active_rows, nb::handle assume_unique) {
  CoordinateOptions options;
  if (!batch_counts.is_none()) {
    const Input counts(by, "batch_counts", batch_counts, Type::i64);
    if (counts.view().rank() != 1 || !is_integer(counts.view().type))
      reject(by, "batch_counts: must be a sequence of integers, one per batch");
    options.batch_counts.emplace();
    for (nb::handle count : to_numpy(counts.view(), batch_counts).attr("tolist")())
      options.batch_counts->push_back(integer(by, "batch_counts", count));
  }
  if (!batch_size.is_none()) options.batch_size = integer(by, "batch_size", batch_size);
  if (!active_rows.is_none()) options.active_rows = integer(by, "active_rows", active_rows);
  options.assume_unique = flag(by, "assume_unique", assume_unique);
  return options;
}

void bind_sparse_tensor(nb::module_& m) {
  nb::class_<PythonSparse>(m, "SparseTensor", document)
      .def(
          "__init__",
          [](PythonSparse* self, nb::handle coords, nb::handle feats, nb::handle stride, nb::handle batch_counts,
             nb::handle batch_size, nb::handle active_rows, nb::handle assume_unique) {
            new (self) PythonSparse(
                make(coords, feats, stride, batch_counts, batch_size, active_rows, assume_unique, nb::none()));
          },
          nb::arg("coords"), nb::arg("feats"), nb::kw_only(), nb::arg("stride") = 1,
          nb::arg("batch_counts") = nb::none(), nb::arg("batch_size") = nb::none(), nb::arg("active_rows") = nb::none(),
          nb::arg("assume_unique") = false)
      .def_static("coalesced", &make, nb::arg("coords"), nb::arg("feats"), nb::kw_only(), nb::arg("stride") = 1,
                  nb::arg("batch_counts") = nb::none(), nb::arg("batch_size") = nb::none(),
                  nb::arg("active_rows") = nb::none(), nb::arg("assume_unique") = false, nb::arg("merge") = "sum",
                  "Rows that may repeat, merged: sum, mean, max, min or first.")
      .def_static(
          "from_dense",
          [](nb::handle dense, double fill) {
            const Input cells("from_dense", "dense", dense);
            return PythonSparse{without_gil([&] { return SparseTensor::from_dense(cells, fill); }), cells.kind()};
          },
          nb::arg("dense"), nb::arg("fill") = 0.0,
          "The cells of an array (batch, channels, …) with a channel that is not `fill`, in row-major order.")
      .def_prop_ro("coords", &coords, "Rows of batch and lattice coordinates; a read-only array.")
      .def_prop_ro("feats", &features, "The features, (rows, channels).")
      .def_prop_ro("stride", [](const PythonSparse& x) { return tuple_of(x.tensor.stride()); })
      .def_prop_ro("batch_counts", [](const PythonSparse& x) { return tuple_of(x.tensor.batch_counts()); })
      .def_prop_ro("batch_size", [](const PythonSparse& x) { return x.tensor.batch_size(); })
      .def_prop_ro("active_rows", [](const PythonSparse& x) { return x.tensor.active_rows(); })
      .def_prop_ro("rows", [](const PythonSparse& x) { return x.tensor.rows(); })
      .def_prop_ro("channels", [](const PythonSparse& x) { return x.tensor.channels(); })
      .def_prop_ro("dimension", [](const PythonSparse& x) { return x.tensor.dimension(); })
      .def_prop_ro("dtype", [](const PythonSparse& x) { return Any(numpy_dtype(x.tensor.type())); })
      .def_prop_ro("kept_relations",
                   [](const PythonSparse& x) { return nb::cast(x.tensor.coordinates()->kept_relations()); })
      .def("with_feats", &with_feats, nb::arg("feats"), "The same rows with other features.")
      .def(
          "coalesce",
          [](const PythonSparse& x, nb::handle merge) {
            return PythonSparse{x.tensor.coalesce(merge_of(merge)), x.kind};
          },
          nb::arg("merge") = "sum", "Rows of equal coordinates as one: sum, mean, max, min or first.")
      .def(
          "to_dense",
          [](const PythonSparse& x, nb::handle extent, double fill) {
            const Extents extents = integers("to_dense", "extent", extent);
            return Any(x.kind.wrap(without_gil([&] { return x.tensor.to_dense(extents, fill); })));
          },
          nb::arg("extent"), nb::arg("fill") = 0.0, "The array (batch_size, channels, *extent).")
      .def(
          "sorted",
          [](const PythonSparse& x) {
            return PythonSparse{without_gil([&] { return x.tensor.sorted(); }), x.kind};
          },
          "The same rows in Morton order.")
      .def(
          "batch",
          [](const PythonSparse& x, nb::handle b) {
            return PythonSparse{x.tensor.batch(integer("batch", "b", b)), x.kind};
          },
          nb::arg("b"), "The rows of one batch, numbered 0.")
      .def("__len__", [](const PythonSparse& x) { return x.tensor.rows(); })
      .def("__repr__", &shown_tensor)
      .def("__reduce__", [](Self self) -> Pair {
        const auto& x = nb::cast<const PythonSparse&>(self);
        const nb::object rebuild = nb::module_::import_("cenote.sparse").attr("_load_tensor");
        return nb::make_tuple(rebuild, nb::make_tuple(coords(self), features(self), tuple_of(x.tensor.stride()),
                                                      nb::none(), x.tensor.batch_size(), nb::none(),
                                                      !x.tensor.coordinates()->known_unique(), nb::none()));
      });
  m.def("sparse_tensor", &make);
}

}  // namespace cenote::python
