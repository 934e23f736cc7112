// What the functions of the module make of their array argument: run it, describe it, or record it.
#pragma once

#include <string_view>
#include <type_traits>

#include <cenote/graph.h>
#include <cenote/plan.h>
#include <cenote/tensor.h>
#include <nanobind/nanobind.h>

#include "arrays.h"

namespace nanobind::detail {
/// Arguments that are taken as they come may be None.
template <>
struct has_arg_defaults<handle> : std::true_type {};
}  // namespace nanobind::detail

namespace cenote::python {

namespace nb = nanobind;

/// Stands for the array while jvp, vjp and hvp ask a function what it does: the function returns an operation.
struct Probe {
  nb::object value;
};

/// A dense pooling as an operation, to be differentiated or planned.
struct PoolingOperation {
  Pooling pooling;
  Pair jvp(nb::handle x, nb::handle dx) const;
  Pair vjp(nb::handle x) const;
  Any hvp(nb::handle x, nb::handle gy, nb::handle v) const;
};

/// Pools x, which is an array, a Probe, a Tensor or a Var of a graph.
Any apply(std::string_view who, nb::handle x, const Pooling& pooling, nb::handle out, nb::handle constant);

/// The same for a Tensor and for a Var.
Any pool_tensor(std::string_view who, const Tensor& x, Pooling pooling, nb::handle out, nb::handle constant);
Any pool_var(std::string_view who, const graph::Var& x, const Pooling& pooling, nb::handle out, nb::handle constant);

// Each part of the module.
void bind_dense(nb::module_& m);
void bind_derivatives(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_graph(nb::module_& m);

}  // namespace cenote::python
