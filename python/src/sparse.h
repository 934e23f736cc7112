// Sparse tensors of Python: one of the library's, and which kind of array its features came as.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include <cenote/sparse.h>
#include <nanobind/nanobind.h>

#include "arrays.h"

namespace cenote::python {

struct PythonSparse {
  SparseTensor tensor;
  Kind kind;
};

/// A pooling of the rows of one tensor. The result is a tensor like `frame` but for its features, or an array.
struct RowOperation {
  RowPooling rows;
  std::optional<SparseTensor> frame;

  Any result(Array y, const Kind& kind) const;
  Pair jvp(const PythonSparse& x, nb::handle dx) const;
  Pair vjp(const PythonSparse& x) const;
  Any hvp(const PythonSparse& x, nb::handle gy, nb::handle v) const;
};

/// The coordinates of a SparseTensor, or of an array of rows (batch, then lattice coordinates).
std::shared_ptr<const Coordinates> coordinates_of(std::string_view who, std::string_view what, nb::handle object);
/// The same, or nullptr for None.
std::shared_ptr<const Coordinates> optional_coordinates(std::string_view who, nb::handle targets);
Kernel kernel_of(std::string_view who, nb::handle size, nb::handle stride, nb::handle padding, nb::handle dilation);
RelateOptions relate_options(std::string_view who, nb::handle policy, nb::handle extent, nb::handle targets,
                             nb::handle order, nb::handle engine);
CoordinateOptions coordinate_options(std::string_view who, nb::handle batch_counts, nb::handle batch_size,
                                     nb::handle active_rows, nb::handle assume_unique);

void bind_sparse_tensor(nb::module_& m);
void bind_relation(nb::module_& m);
void bind_sparse_pool(nb::module_& m);

}  // namespace cenote::python
