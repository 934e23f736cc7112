// Plans, which are checked once and run many times, and problems as text.
#include <optional>
#include <string>

#include <cenote/plan.h>
#include <cenote/problem.h>
#include <nanobind/stl/string.h>

#include "arguments.h"
#include "arrays.h"
#include "operation.h"

namespace cenote::python {
namespace {

nb::typed<nb::tuple, int, nb::ellipsis> tuple_of(const Extents& extents) {
  nb::list items;
  for (const std::int64_t extent : extents) items.append(extent);
  return nb::typed<nb::tuple, int, nb::ellipsis>(nb::tuple(items));
}

/// Runs `compute(y)` into `out`, or into a new array of the kind of x.
template <class F>
Any into(const Input& x, nb::handle out, Type type, const Extents& shape, F&& compute) {
  if (!out.is_none()) {
    const Output given("plan", "out", out, type, shape);
    without_gil([&] { compute(given.view()); });
    return given.object();
  }
  Array y(type, shape);
  without_gil([&] { compute(MutableView(y)); });
  return x.kind().wrap(std::move(y));
}

Any run_plan(const Plan& plan, nb::handle x, nb::handle out) {
  const Input input("plan", "x", x, plan.input_type());
  if (!plan.index_type())
    return into(input, out, plan.output_type(), plan.output_shape(), [&](const MutableView& y) { plan.run(input, y); });
  if (!out.is_none()) reject("plan", "out: not with indices");
  Array y(plan.output_type(), plan.output_shape()), indices(*plan.index_type(), plan.output_shape());
  without_gil([&] { plan.run(input, y, indices); });
  return nb::make_tuple(input.kind().wrap(std::move(y)), input.kind().wrap(std::move(indices)));
}

Any plan_jvp(const Plan& plan, nb::handle x, nb::handle dx, nb::handle out) {
  const Input at("jvp", "x", x, plan.input_type()), along("jvp", "dx", dx, plan.input_type());
  return into(at, out, plan.output_type(), plan.output_shape(),
              [&](const MutableView& dy) { plan.jvp(at, along, dy); });
}

Any plan_vjp(const Plan& plan, nb::handle x, nb::handle gy, nb::handle out) {
  const Input at("vjp", "x", x, plan.input_type()), cotangent("vjp", "gy", gy, plan.output_type());
  return into(at, out, plan.input_type(), plan.input_shape(),
              [&](const MutableView& gx) { plan.vjp(at, cotangent, gx); });
}

Any plan_hvp(const Plan& plan, nb::handle x, nb::handle gy, nb::handle v, nb::handle out) {
  const Input at("hvp", "x", x, plan.input_type()), cotangent("hvp", "gy", gy, plan.output_type());
  const Input along("hvp", "v", v, plan.input_type());
  return into(at, out, plan.input_type(), plan.input_shape(),
              [&](const MutableView& hx) { plan.hvp(at, cotangent, along, hx); });
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan",
                   "A pooling of arrays of one type and shape, checked once. Call it with an array to run it.")
      .def("__call__", &run_plan, nb::arg("x"), nb::arg("out") = nb::none())
      .def("jvp", &plan_jvp, nb::arg("x"), nb::arg("dx"), nb::arg("out") = nb::none())
      .def("vjp", &plan_vjp, nb::arg("x"), nb::arg("gy"), nb::arg("out") = nb::none())
      .def("hvp", &plan_hvp, nb::arg("x"), nb::arg("gy"), nb::arg("v"), nb::arg("out") = nb::none())
      .def("explain", &Plan::explain, "The algorithm and why it was chosen, in one line.")
      .def_prop_ro("input_shape", [](const Plan& plan) { return tuple_of(plan.input_shape()); })
      .def_prop_ro("output_shape", [](const Plan& plan) { return tuple_of(plan.output_shape()); })
      .def_prop_ro("input_dtype", [](const Plan& plan) { return Any(numpy_dtype(plan.input_type())); })
      .def_prop_ro("output_dtype", [](const Plan& plan) { return Any(numpy_dtype(plan.output_type())); })
      .def_prop_ro("bytes", &Plan::bytes, "Bytes that must be moved at least: input, output and indices.")
      .def("__repr__", [](const Plan& plan) { return "<cenote.Plan " + plan.explain() + ">"; });
  m.def("plan_problem", [](nb::handle problem) {
    if (!PyUnicode_Check(problem.ptr()))
      reject_type("problem", "problem = ", shown(problem),
                  ": must be text, such as \"max f32 32x64x112x112 k3 s2 p1\"");
    return parse_problem(nb::cast<std::string>(problem)).plan();
  });
  m.def("plan_operation", [](const PoolingOperation& operation, nb::handle shape, nb::handle dtype) {
    return plan(operation.pooling, parse_dtype("plan", dtype), integers("plan", "shape", shape));
  });
}

}  // namespace cenote::python
