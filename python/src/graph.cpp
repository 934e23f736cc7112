// Graphs in Python: a builder, its variables, programs, and nodes that callers define.
#include <cenote/graph.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/vector.h>

#include "arguments.h"
#include "arrays.h"
#include "operation.h"

namespace cenote::python {
namespace {

using graph::Builder;
using graph::Program;
using graph::Var;

nb::typed<nb::tuple, int, nb::ellipsis> shape_tuple(const Extents& shape) {
  nb::list items;
  for (const std::int64_t extent : shape) items.append(extent);
  return nb::tuple(items);
}

nb::tuple signature_tuple(const Signature& signature) {
  return nb::make_tuple(shape_tuple(signature.shape), numpy_dtype(signature.type));
}

Var var_of(std::string_view who, const std::string& what, nb::handle x) {
  if (!nb::isinstance<Var>(x))
    reject_type(who, what, " = ", shown(x), ": must be a Var; Builder.constant makes one of an array");
  return nb::cast<Var>(x);
}

std::vector<Var> vars_of(std::string_view who, const std::string& what, nb::handle list) {
  if (!is_sequence(list)) reject_type(who, what, " = ", shown(list), ": must be a list of Vars");
  std::vector<Var> result;
  for (nb::handle item : list) result.push_back(var_of(who, what + "[" + std::to_string(result.size()) + "]", item));
  return result;
}

/// The functions of a caller's node. Programs may outlive the GIL's hold on them, so it is taken to let them go.
struct Functions {
  nb::object shape, forward, jvp, vjp;
  std::string name;
  ~Functions() {
    nb::gil_scoped_acquire acquire;
    shape.reset(), forward.reset(), jvp.reset(), vjp.reset();
  }
};

/// Copies, since a caller may keep what it is given; None for the places of integers and bool among derivatives.
nb::list arrays_of(std::span<const View> views) {
  nb::list result;
  for (const View& view : views)
    result.append(view.data == nullptr && element_count(view.shape) != 0 ? nb::none() : to_numpy(Array(view)));
  return result;
}

/// Writes what a caller's function returned, one array or a sequence of them, into the graph's.
void store(const Functions& node, const char* what, nb::handle returned, std::span<const MutableView> outputs) {
  nb::object items = nb::borrow(returned);
  if (!nb::isinstance<nb::tuple>(returned) && !nb::isinstance<nb::list>(returned)) items = nb::make_tuple(returned);
  if (nb::len(items) != outputs.size())
    reject(node.name, what, " returned ", nb::len(items), " arrays: must be ", outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const MutableView& to = outputs[i];
    if (to.data == nullptr) continue;
    const Input from(node.name, what, items[i], to.type);
    if (from.view().type != to.type || from.view().shape != to.shape)
      reject(node.name, what, " returned ", name(from.view().type), " ", to_string(from.view().shape), " as number ", i,
             ": must be ", name(to.type), " ", to_string(to.shape));
    const Array copy(from.view());
    if (copy.bytes() > 0) std::memcpy(to.data, copy.data(), copy.bytes());
  }
}

std::vector<Signature> signatures(const Functions& node, std::span<const Signature> inputs) {
  nb::gil_scoped_acquire acquire;
  if (node.shape.is_none()) {
    if (inputs.empty()) reject(node.name, "without inputs: shape must be given");
    return {inputs[0]};
  }
  nb::list given;
  for (const Signature& input : inputs) given.append(signature_tuple(input));
  const nb::object returned = node.shape(*given);
  const auto read = [&](nb::handle pair) {
    if (!nb::isinstance<nb::tuple>(pair) || nb::len(pair) != 2)
      reject(node.name, "shape returned ", shown(pair), ": must be (shape, dtype), or a list of such pairs");
    return Signature{parse_dtype(node.name, pair[1]), integers(node.name, "shape", pair[0])};
  };
  if (!nb::isinstance<nb::list>(returned)) return {read(returned)};
  std::vector<Signature> result;
  for (nb::handle pair : returned) result.push_back(read(pair));
  return result;
}

graph::UserNode user_node(const std::string& label, nb::handle shape, nb::handle forward, nb::handle jvp,
                          nb::handle vjp) {
  const auto check = [&](const char* what, nb::handle function, bool needed) {
    if (!PyCallable_Check(function.ptr()) && (needed || !function.is_none()))
      reject_type(label, what, " = ", shown(function), ": must be a function", needed ? "" : " or None");
  };
  check("forward", forward, true), check("shape", shape, false), check("jvp", jvp, false), check("vjp", vjp, false);
  auto node = std::make_shared<Functions>();
  node->shape = nb::borrow(shape), node->forward = nb::borrow(forward), node->jvp = nb::borrow(jvp),
  node->vjp = nb::borrow(vjp);
  node->name = label;
  graph::UserNode result;
  result.name = node->name;
  result.shape = [node](std::span<const Signature> inputs) { return signatures(*node, inputs); };
  result.forward = [node](std::span<const View> inputs, std::span<const MutableView> outputs) {
    nb::gil_scoped_acquire acquire;
    store(*node, "forward", node->forward(*arrays_of(inputs)), outputs);
  };
  if (!node->jvp.is_none())
    result.jvp = [node](std::span<const View> inputs, std::span<const View>, std::span<const View> tangents,
                        std::span<const MutableView> to) {
      nb::gil_scoped_acquire acquire;
      store(*node, "jvp", node->jvp(arrays_of(inputs), arrays_of(tangents)), to);
    };
  if (!node->vjp.is_none())
    result.vjp = [node](std::span<const View> inputs, std::span<const View>, std::span<const View> cotangents,
                        std::span<const MutableView> to) {
      nb::gil_scoped_acquire acquire;
      store(*node, "vjp", node->vjp(arrays_of(inputs), arrays_of(cotangents)), to);
    };
  return result;
}

void check_count(std::string_view who, const char* what, nb::handle list, std::size_t expected) {
  if (!is_sequence(list)) reject_type(who, what, " = ", shown(list), ": must be a list of arrays");
  if (nb::len(list) != expected) reject(who, nb::len(list), " ", what, ": must be ", expected);
}

/// The array arguments of a run, alive as long as this is.
struct Arguments {
  std::vector<Input> inputs;
  std::vector<View> views;

  Arguments(std::string_view who, const char* what, nb::handle list, const std::vector<Signature>& expected) {
    check_count(who, what, list, expected.size());
    std::size_t i = 0;
    for (nb::handle item : list) {
      inputs.emplace_back(who, std::string(what) + "[" + std::to_string(i) + "]", item, expected[i].type);
      views.push_back(inputs.back().view());
      ++i;
    }
  }
  Kind kind() const { return inputs.empty() ? Kind() : inputs[0].kind(); }
};

/// Derivatives, where None is zero.
struct Directions {
  std::vector<Input> inputs;
  std::vector<std::optional<View>> views;

  Directions(std::string_view who, const char* what, nb::handle list, const std::vector<Signature>& expected) {
    check_count(who, what, list, expected.size());
    inputs.reserve(expected.size());
    std::size_t i = 0;
    for (nb::handle item : list) {
      const Type type = expected[i].type;
      if (!item.is_none()) inputs.emplace_back(who, std::string(what) + "[" + std::to_string(i) + "]", item, type);
      views.push_back(item.is_none() ? std::nullopt : std::optional(inputs.back().view()));
      ++i;
    }
  }
};

nb::list listed(std::vector<Array> arrays, const Kind& kind) {
  nb::list result;
  for (Array& array : arrays) result.append(kind.wrap(std::move(array)));
  return result;
}
nb::list listed(std::vector<std::optional<Array>> arrays, const Kind& kind) {
  nb::list result;
  for (std::optional<Array>& array : arrays) result.append(array ? kind.wrap(std::move(*array)) : nb::none());
  return result;
}

Any run_forward(const Program& program, nb::handle inputs) {
  const Arguments arguments("forward", "inputs", inputs, program.inputs());
  return listed(without_gil([&] { return program.forward(arguments.views); }), arguments.kind());
}

Pair run_jvp(const Program& program, nb::handle inputs, nb::handle tangents) {
  const Arguments arguments("jvp", "inputs", inputs, program.inputs());
  const Directions along("jvp", "tangents", tangents, program.inputs());
  auto result = without_gil([&] { return program.jvp(arguments.views, along.views); });
  return nb::make_tuple(listed(std::move(result.outputs), arguments.kind()),
                        listed(std::move(result.tangents), arguments.kind()));
}

Pair run_vjp(const Program& program, nb::handle inputs, nb::handle cotangents) {
  const Arguments arguments("vjp", "inputs", inputs, program.inputs());
  const Directions back("vjp", "cotangents", cotangents, program.outputs());
  auto result = without_gil([&] { return program.vjp(arguments.views, back.views); });
  return nb::make_tuple(listed(std::move(result.outputs), arguments.kind()),
                        listed(std::move(result.cotangents), arguments.kind()));
}

Any signatures_of(const std::vector<Signature>& signatures) {
  nb::list result;
  for (const Signature& signature : signatures) result.append(signature_tuple(signature));
  return nb::tuple(result);
}

template <Var (*f)(const Var&, const Var&)>
Var var_binary(const Var& a, const Var& b) {
  return f(a, b);
}

}  // namespace

Any pool_var(std::string_view who, const Var& x, const Pooling& pooling, nb::handle out, nb::handle constant) {
  if (!out.is_none()) reject(who, "out: a Var is not written into");
  if (!constant.is_none()) reject_type(who, "constant: only a cenote.Tensor takes it");
  if (!pooling.indices) return nb::cast(graph::pool(x, pooling));
  graph::Pooled pooled = graph::pool_with_indices(x, pooling);
  return nb::make_tuple(std::move(pooled.values), std::move(pooled.indices));
}

void bind_graph(nb::module_& m) {
  nb::class_<Var>(m, "Var", "A value of a graph, with a known shape and type.")
      .def_prop_ro("shape", [](const Var& x) { return shape_tuple(x.shape()); })
      .def_prop_ro("dtype", [](const Var& x) { return Any(numpy_dtype(x.type())); })
      .def("__add__", &var_binary<&graph::add>, nb::is_operator())
      .def("__sub__", &var_binary<&graph::sub>, nb::is_operator())
      .def("__mul__", &var_binary<&graph::mul>, nb::is_operator())
      .def("__truediv__", &var_binary<&graph::div>, nb::is_operator())
      .def("__neg__", &graph::neg)
      .def("__repr__",
           [](const Var& x) { return "Var(" + std::string(name(x.type())) + ", " + to_string(x.shape()) + ")"; });
  m.def("var_add", &graph::add);
  m.def("var_sub", &graph::sub);
  m.def("var_mul", &graph::mul);
  m.def("var_div", &graph::div);
  m.def("var_neg", &graph::neg);
  m.def("var_exp", &graph::exp);
  m.def("var_log", &graph::log);
  m.def("var_relu", &graph::relu);
  m.def("var_detach", &graph::detach);
  m.def("var_sum", &graph::sum);
  m.def("var_mean", &graph::mean);
  m.def("var_scale", &graph::scale);
  m.def("var_reshape",
        [](const Var& x, nb::handle shape) { return graph::reshape(x, extents_of("reshape", "shape", shape)); });
  m.def("var_gather", [](nb::handle x, nb::handle indices, nb::handle rank, nb::handle channels_last, nb::handle axes) {
    const char* who = "gather";
    return graph::gather(var_of(who, "x", x), var_of(who, "indices", indices),
                         plane_of(who, rank, channels_last, axes));
  });
  m.def("var_max_unpool", [](const Var& y, nb::handle indices, nb::handle shape, nb::handle rank,
                             nb::handle channels_last, nb::handle axes) {
    const char* who = "max_unpool";
    return graph::max_unpool(y, var_of(who, "indices", indices), integers(who, "shape", shape),
                             plane_of(who, rank, channels_last, axes));
  });
  nb::class_<Program>(m, "Program", "A compiled graph: immutable, and safe to run from several threads.")
      .def("forward", &run_forward, nb::arg("inputs"), "The outputs.")
      .def("jvp", &run_jvp, nb::arg("inputs"), nb::arg("tangents"), "The outputs and their tangents; None is zero.")
      .def("vjp", &run_vjp, nb::arg("inputs"), nb::arg("cotangents"), "The outputs and the cotangents of the inputs.")
      .def_prop_ro("inputs", [](const Program& program) { return signatures_of(program.inputs()); })
      .def_prop_ro("outputs", [](const Program& program) { return signatures_of(program.outputs()); })
      .def_prop_ro("node_count", &Program::node_count)
      .def_prop_ro("buffer_count", &Program::buffer_count)
      .def_prop_ro("workspace_bytes", &Program::workspace_bytes)
      .def("jvp_program", &Program::jvp_program)
      .def("vjp_program", &Program::vjp_program)
      .def("dot", &Program::dot, "The graph for Graphviz.")
      .def("__repr__", &Program::describe);
  nb::class_<Builder>(m, "Builder", "Appends nodes, and checks types and shapes as they come.")
      .def(nb::init<>())
      .def(
          "input",
          [](Builder& builder, nb::handle shape, nb::handle dtype, const std::string& label) {
            return builder.input(parse_dtype("input", dtype), integers("input", "shape", shape), label);
          },
          nb::arg("shape"), nb::arg("dtype") = "f32", nb::arg("name") = "", "An input of the program.")
      .def(
          "constant",
          [](Builder& builder, nb::handle array) { return builder.constant(Input("constant", "array", array).view()); },
          nb::arg("array"), "A fixed array, copied; its derivative is zero.")
      .def("add_node",
           [](Builder& builder, const std::string& label, nb::handle shape, nb::handle forward, nb::handle jvp,
              nb::handle vjp, nb::handle inputs) {
             return builder.call(user_node(label, shape, forward, jvp, vjp), vars_of(label, "inputs", inputs));
           })
      .def(
          "compile",
          [](const Builder& builder, nb::handle outputs) {
            return builder.compile(vars_of("compile", "outputs", outputs));
          },
          nb::arg("outputs"), "A program for these outputs.",
          nb::sig("def compile(self, outputs: typing.Sequence[Var]) -> Program"));
  m.def("var_call", [](const Var& x, const std::string& label, nb::handle shape, nb::handle forward, nb::handle jvp,
                       nb::handle vjp) { return graph::call(user_node(label, shape, forward, jvp, vjp), x); });
  m.def("tensor_call", [](const Tensor& x, const std::string& label, nb::handle shape, nb::handle forward,
                          nb::handle vjp, nb::handle constant) {
    const graph::UserNode node = user_node(label, shape, forward, nb::none(), vjp);
    const auto is_constant = optional_flag(label, "constant", constant);
    return without_gil([&] { return call(node, x, is_constant); });
  });
}

}  // namespace cenote::python
