// Derivatives of dense poolings: jvp, vjp and hvp of an operation, and pullbacks that are operations themselves.
#include <cenote/autodiff.h>

#include "arguments.h"
#include "arrays.h"
#include "operation.h"

namespace cenote::python {
namespace {

/// A pullback that remembers which kind of array it came from.
struct PythonPullback {
  Pullback pullback;
  Type type;
  Kind kind;

  Any call(nb::handle gy) const {
    const Input cotangent("pullback", "gy", gy, type);
    return kind.wrap(without_gil([&] { return pullback(cotangent); }));
  }
  Pair jvp(nb::handle gy, nb::handle dgy, nb::handle dx) const {
    const Input at("jvp", "gy", gy, type), along("jvp", "dgy", dgy, type), tangent("jvp", "dx", dx, type);
    auto result = without_gil([&] { return cenote::jvp(pullback, at, tangent, along); });
    return nb::make_tuple(kind.wrap(std::move(result.gx)), kind.wrap(std::move(result.dgx)));
  }
};

struct PythonSecondPullback {
  SecondPullback pullback;
  Type type;
  Kind kind;

  Pair call(nb::handle h) const {
    const Input cotangent("pullback", "h", h, type);
    Cotangents result = without_gil([&] { return pullback(cotangent); });
    return nb::make_tuple(kind.wrap(std::move(result.x)), kind.wrap(std::move(result.gy)));
  }
};

Pair second_vjp(const PythonPullback& first, nb::handle gy) {
  const Input at("vjp", "gy", gy, first.type);
  auto result = without_gil([&] { return cenote::vjp(first.pullback, at); });
  return nb::make_tuple(first.kind.wrap(std::move(result.gx)),
                        PythonSecondPullback{std::move(result.pullback), first.type, first.kind});
}

/// An operator on what stands for an array says what is wanted, where Python would name a class that nobody knows.
template <class Class>
void refuse_operators(Class& held, const char* message) {
  for (const char* name : {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
                           "__rtruediv__", "__pow__", "__rpow__", "__matmul__", "__rmatmul__", "__getitem__"})
    held.def(name, [message](nb::handle, nb::handle) -> Any { throw nb::type_error(message); });
  for (const char* name : {"__neg__", "__abs__"})
    held.def(name, [message](nb::handle) -> Any { throw nb::type_error(message); });
}

void check_no_indices(std::string_view who, const Pooling& pooling) {
  if (pooling.indices) reject(who, "return_indices: indices have no derivative; leave it out");
}

}  // namespace

Pair PoolingOperation::jvp(nb::handle x, nb::handle dx) const {
  check_no_indices("jvp", pooling);
  const Input at("jvp", "x", x), along("jvp", "dx", dx, at.view().type);
  Linearized result = without_gil([&] { return cenote::jvp(pooling, at, along); });
  return nb::make_tuple(at.kind().wrap(std::move(result.y)), at.kind().wrap(std::move(result.dy)));
}

Pair PoolingOperation::vjp(nb::handle x) const {
  check_no_indices("vjp", pooling);
  const Input at("vjp", "x", x);
  Differentiated result = without_gil([&] { return cenote::vjp(pooling, at); });
  const Type type = result.y.type();
  return nb::make_tuple(at.kind().wrap(std::move(result.y)),
                        PythonPullback{std::move(result.pullback), type, at.kind()});
}

Any PoolingOperation::hvp(nb::handle x, nb::handle gy, nb::handle v) const {
  check_no_indices("hvp", pooling);
  const Input at("hvp", "x", x), cotangent("hvp", "gy", gy, at.view().type), along("hvp", "v", v, at.view().type);
  return at.kind().wrap(without_gil([&] { return cenote::hvp(pooling, at, cotangent, along); }));
}

void bind_derivatives(nb::module_& m) {
  nb::class_<Probe> probes(m, "Probe");
  probes.def(nb::init<nb::object>())
      .def_ro("value", &Probe::value)
      .def("__getattr__", [](const Probe& probe, nb::str name) { return Any(probe.value.attr(name)); });
  refuse_operators(probes,
                   "[fn] x is used before the pooling: must be given to one function of cenote as it is; "
                   "cenote.Tensor and cenote.graph differentiate more");
  nb::class_<PoolingOperation> operations(m, "PoolingOperation");
  refuse_operators(operations,
                   "[fn] the result of the pooling is used: must be returned as it is; cenote.Tensor and "
                   "cenote.graph differentiate more");
  operations.def("jvp", &PoolingOperation::jvp)
      .def("vjp", &PoolingOperation::vjp)
      .def("hvp", &PoolingOperation::hvp)
      .def("beta_derivative", [](const PoolingOperation& operation, nb::handle x) {
        const Input at("beta_derivative", "x", x);
        return at.kind().wrap(without_gil([&] { return beta_derivative(operation.pooling, at); }));
      });
  nb::class_<PythonPullback>(m, "Pullback", "Takes cotangents of a result back to the x it was made at.")
      .def("__call__", &PythonPullback::call, nb::arg("gy"))
      .def("jvp", &PythonPullback::jvp, nb::arg("gy"), nb::arg("dgy"), nb::arg("dx"))
      .def("vjp", &second_vjp, nb::arg("gy"));
  nb::class_<PythonSecondPullback>(m, "SecondPullback",
                                   "Takes cotangents of a pulled back gx back to the x and the gy that it came from.")
      .def("__call__", &PythonSecondPullback::call, nb::arg("h"));
}

}  // namespace cenote::python
