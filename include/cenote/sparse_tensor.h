// Sparse tensors: features on the points of a lattice.
#pragma once

#include <cstdint>
#include <memory>

#include <cenote/array.h>
#include <cenote/coordinates.h>
#include <cenote/extents.h>

namespace cenote {

/// How duplicate rows become one.
enum class Merge : std::uint8_t { sum, mean, max, min, first };

/// Rows of features at lattice points. Cheap to copy: coordinates and features are shared and immutable.
class SparseTensor {
 public:
  /// Copies coords (N, 1 + D) of i32 or i64 and feats (N, C) of f16, bf16, f32 or f64. `stride` says how many cells of
  /// the finest lattice one step is; it is only carried along. Throws std::invalid_argument as Coordinates::make does.
  SparseTensor(const View& coords, const View& feats, const CoordinateOptions& options = {}, const PerAxis& stride = 1);
  /// Features for the rows of given coordinates.
  SparseTensor(std::shared_ptr<const Coordinates> coordinates, Array feats, const PerAxis& stride = 1);
  /// Rows that may repeat, merged: see coalesce().
  static SparseTensor coalesced(const View& coords, const View& feats, Merge merge,
                                const CoordinateOptions& options = {}, const PerAxis& stride = 1);
  /// The cells of an array (batch, channels, n1 … nD) with a channel that is not `fill`, in row-major order.
  static SparseTensor from_dense(const View& dense, double fill = 0);

  int dimension() const noexcept { return coordinates_->dimension(); }
  std::int64_t rows() const noexcept { return coordinates_->rows(); }
  /// The rows that count, which are all: capacity is left out when a tensor is made.
  std::int64_t active_rows() const noexcept { return rows(); }
  std::int64_t channels() const noexcept { return feats_->shape()[1]; }
  std::int64_t batch_size() const noexcept { return coordinates_->batch_size(); }
  const std::vector<std::int64_t>& batch_counts() const { return coordinates_->batch_counts(); }
  Type type() const noexcept { return feats_->type(); }
  const Extents& stride() const noexcept { return stride_; }
  const std::shared_ptr<const Coordinates>& coordinates() const noexcept { return coordinates_; }
  const Array& coords() const { return coordinates_->array(); }
  const Array& feats() const noexcept { return *feats_; }

  /// The same rows with other features, (rows, any number of channels).
  SparseTensor with_feats(Array feats) const { return SparseTensor(coordinates_, std::move(feats), stride_); }
  /// Rows of equal coordinates as one, in first-seen order. Sums and means are taken in row order, halves in f32 with
  /// one rounding; maximum and minimum of numbers and NaN are NaN. Itself where rows are known to differ.
  SparseTensor coalesce(Merge merge) const;
  /// The array (batch_size, channels, extent), `fill` where there is no row. Throws std::invalid_argument naming a row
  /// that lies outside the extent.
  Array to_dense(const Extents& extent, double fill = 0) const;
  /// The same rows in Morton order, and known to be. coordinates()->morton_order() is the permutation.
  SparseTensor sorted() const;
  /// The rows of one batch, in their order, as a tensor with that batch alone, numbered 0.
  SparseTensor batch(std::int64_t b) const;

 private:
  std::shared_ptr<const Coordinates> coordinates_;
  std::shared_ptr<const Array> feats_;
  Extents stride_;
};

}  // namespace cenote
