// Sparse tensors as .npy arrays: one with the columns batch, coordinates and features, or one of each kind.
#pragma once

#include <optional>
#include <string>

#include <cenote/sparse.h>

namespace cenote::cli {

/// Where the rows of a tensor are read from.
struct RowSource {
  std::string path;
  /// Of one array: how many columns after the first are coordinates. Of two: the file of the coordinates.
  std::optional<int> dimension{};
  std::optional<std::string> coords{};
  /// The type of the features, where it must be said.
  std::optional<Type> type{};
};

/// Coordinates as i32 or i64, and features of a floating-point type.
struct SparseRows {
  Array coords, feats;
  /// The type of the features in the file; integers are read as f64.
  Type type;
};

/// Throws std::invalid_argument naming row and value of a coordinate that is not whole, and for shapes and types that
/// are not those of sparse tensors; FileError for files that are none.
SparseRows read_rows(const RowSource& source);

/// The features of a result in the type that a file of them has. For integers max, min and sum stay integers, and
/// other reducers are f64. Throws std::invalid_argument for a result that does not fit.
Array stored_features(const SparseTensor& y, Reducer reducer, Type input);

/// Coordinates and features in one array of the features' type; throws std::invalid_argument for a coordinate that the
/// type does not hold.
Array joined(const Array& coords, const Array& feats);

}  // namespace cenote::cli
