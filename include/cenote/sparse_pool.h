// Poolings of sparse tensors, local and global, and the way back up; with mlx-lattice's names for three dimensions.
#pragma once

#include <cenote/array.h>
#include <cenote/row_pooling.h>
#include <cenote/sparse_tensor.h>

namespace cenote {

/// A local pooling in any lattice dimension: where windows lie, and what becomes of the rows in them.
struct SparsePooling {
  Reduction reduction{};
  Kernel kernel{};
  RelateOptions options{};
};

/// The relation of a pooling, kept with the coordinates of x, and the reduction over it.
RowPooling row_pooling(const SparseTensor& x, const SparsePooling& pooling);

/// Pools a sparse tensor. The result's stride is x.stride * kernel.stride, and its batches are those of x.
SparseTensor pool(const SparseTensor& x, const SparsePooling& pooling);
/// Over a relation of the coordinates of x, or of equal ones.
SparseTensor pool(const SparseTensor& x, const Relation& relation, const Reduction& reduction);

/// A pooled tensor and, for each of its features, the row of x that it came from: i32, -1 where there is none.
struct SparsePooledRows {
  SparseTensor values;
  Array rows;
};
/// max or min, with the rows that won.
SparsePooledRows pool_with_rows(const SparseTensor& x, const SparsePooling& pooling);

/// The average of the rows that reach each point: row c reaches c * stride + j * dilation - padding, j in 0..size-1 per
/// axis. Points are first seen by (row, j), or `targets`, which are 0 where nothing reaches them. The result's stride
/// is x.stride / kernel.stride, which must be whole.
SparseTensor pool_transpose(const SparseTensor& x, const Kernel& kernel,
                            const std::shared_ptr<const Coordinates>& targets = nullptr);
/// Multilinear upsampling by `scale`: row c reaches the points within scale - 1 of c * scale per axis, with a weight
/// that falls linearly; a point is the weighted mean of what reaches it. Points and stride as in pool_transpose.
SparseTensor upsample(const SparseTensor& x, const PerAxis& scale,
                      const std::shared_ptr<const Coordinates>& targets = nullptr);

/// One row per batch, (batches, C). An empty batch is 0 for sum, avg and lp; for the others it is an error, or with
/// Empty::identity an infinity.
Array global_pool(const SparseTensor& x, const Reduction& reduction);
Array global_sum_pool(const SparseTensor& x);
Array global_avg_pool(const SparseTensor& x);
Array global_max_pool(const SparseTensor& x);
Array global_min_pool(const SparseTensor& x);

// mlx-lattice's functions and modules for three dimensions. A module is the options of its function, with operator().

struct Pool3d {
  Reducer mode = Reducer::sum;
  PerAxis kernel_size = 2;
  PerAxis stride = 2;
  PerAxis padding = 0;
  PerAxis dilation = 1;
  SparseTensor operator()(const SparseTensor& x) const;
};

/// A Pool3d whose mode is its type.
template <Reducer Mode>
struct ModePool3d {
  PerAxis kernel_size = 2;
  PerAxis stride = 2;
  PerAxis padding = 0;
  PerAxis dilation = 1;
  SparseTensor operator()(const SparseTensor& x) const {
    return Pool3d{Mode, kernel_size, stride, padding, dilation}(x);
  }
};
using SumPool3d = ModePool3d<Reducer::sum>;
using AvgPool3d = ModePool3d<Reducer::avg>;
using MaxPool3d = ModePool3d<Reducer::max>;

inline SparseTensor pool3d(const SparseTensor& x, const Pool3d& options = {}) { return options(x); }
inline SparseTensor sum_pool3d(const SparseTensor& x, const SumPool3d& options = {}) { return options(x); }
inline SparseTensor avg_pool3d(const SparseTensor& x, const AvgPool3d& options = {}) { return options(x); }
inline SparseTensor max_pool3d(const SparseTensor& x, const MaxPool3d& options = {}) { return options(x); }

struct GlobalSumPool {
  Array operator()(const SparseTensor& x) const { return global_sum_pool(x); }
};
struct GlobalAvgPool {
  Array operator()(const SparseTensor& x) const { return global_avg_pool(x); }
};
struct GlobalMaxPool {
  Array operator()(const SparseTensor& x) const { return global_max_pool(x); }
};

}  // namespace cenote
