// The module cenote._core: its parts, and how exceptions of the library reach Python.
#define CENOTE_IMPORT_NUMPY
#include "numpy.h"

#include <exception>
#include <string>

#include <cenote/device.h>
#include <cenote/error.h>
#include <cenote/reducers.h>
#include <cenote/version.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "arguments.h"
#include "operation.h"
#include "sparse.h"

namespace cenote::python {
namespace {

// std::invalid_argument is a ValueError by nanobind's own rules.
void bind_errors(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Unsupported& unsupported) {
      PyErr_SetString(PyExc_NotImplementedError, unsupported.what());
    } catch (const FileError& file) {
      PyErr_SetString(PyExc_OSError, file.what());
    }
  });
  nb::exception<InvalidBackprop>(m, "InvalidBackprop", PyExc_RuntimeError);
}

void bind_device(nb::module_& m) {
  m.def("threads", &threads);
  m.def(
      "set_threads",
      [](nb::handle count) {
        const std::int64_t value = integer("set_threads", "count", count);
        if (value < 0 || value > 1'000'000) reject("set_threads", "count = ", value, ": must be from 0 to 1000000");
        set_threads(static_cast<int>(value));
      },
      nb::arg("count"));
  m.def("simd_targets", &simd_targets);
  m.def("simd_target", &simd_target);
  m.def("set_simd_target", [](const std::string& name) { set_simd_target(name); });
  m.def("version", &version);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Bindings of the C++ library; use the functions of the package cenote instead.";
  if (PyArray_ImportNumPyAPI() < 0) nb::raise_python_error();
  // A program and the Python function of a node in it may refer to each other: that lasts until the end, and is no
  // news.
  nb::set_leak_warnings(false);
  bind_errors(m);
  bind_device(m);
  nb::enum_<Reducer> reducers(m, "Reducer");
  for (const Reducer reducer : all_reducers) reducers.value(std::string(name(reducer)).c_str(), reducer);
  bind_derivatives(m);
  bind_dense(m);
  bind_plan(m);
  bind_tensor(m);
  bind_graph(m);
  bind_sparse_tensor(m);
  bind_relation(m);
  bind_sparse_pool(m);
}

}  // namespace cenote::python
