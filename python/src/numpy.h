// NumPy's C interface; one file of the module imports it, the others share it.
#pragma once

#include <nanobind/nanobind.h>

#define PY_ARRAY_UNIQUE_SYMBOL cenote_numpy
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#ifndef CENOTE_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
