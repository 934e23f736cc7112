// Poolings of sparse tensors: a relation kept with their coordinates, and a row pooling over it.
#include <cenote/sparse_pool.h>

#include <cstring>

#include "core/checked.h"
#include "core/reject.h"
#include "sparse/relation.h"

namespace cenote {
namespace {

Extents per_axis(const PerAxis& values, int dimension) {
  return values.is_scalar() ? Extents::filled(dimension, values.values()[0]) : values.values();
}

/// The stride of what a relation makes of x.
Extents stride_after(const char* who, const SparseTensor& x, const Relation& relation) {
  const Extents step = relation.kernel().stride.values();
  Extents result = x.stride();
  for (int a = 0; a < result.size(); ++a) {
    if (relation.transposed()) {
      if (result[a] % step[a] != 0)
        reject(who, "stride[", a, "] = ", step[a], ": must divide the tensor's own stride, ", result[a]);
      result[a] /= step[a];
      continue;
    }
    const Checked product = Checked(result[a]) * Checked(step[a]);
    if (!product.ok())
      reject(who, "stride[", a, "] = ", step[a], ": times the tensor's own, ", result[a], ", it must fit 64 bits");
    result[a] = product.value();
  }
  return result;
}

/// Rejects a relation between other rows: the same coordinates are wanted, or equal ones.
void check_relation(const SparseTensor& x, const Relation& relation) {
  const auto& own = x.coordinates();
  const auto& other = relation.input();
  if (own == other) return;
  if (own->dimension() != other->dimension() || own->rows() != other->rows())
    reject("pool", "a relation of ", other->rows(), " rows of dimension ", other->dimension(),
           ": must be of those of x, ", own->rows(), " rows of dimension ", own->dimension());
  const sparse::Rows a = own->impl().view(), b = other->impl().view();
  for (std::int64_t i = 0; i < a.count; ++i)
    for (int column = 0; column < a.columns; ++column)
      if (a.at(i, column) != b.at(i, column))
        reject("pool", "a relation of other coordinates: row ", i, " is ", sparse::row_text(b, i), " there and ",
               sparse::row_text(a, i), " in x");
}

}  // namespace

RowPooling row_pooling(const SparseTensor& x, const SparsePooling& pooling) {
  return RowPooling(x.coordinates()->relation(pooling.kernel, pooling.options), pooling.reduction);
}

SparseTensor pool(const SparseTensor& x, const SparsePooling& pooling) {
  return pool(x, x.coordinates()->relation(pooling.kernel, pooling.options), pooling.reduction);
}

SparseTensor pool(const SparseTensor& x, const Relation& relation, const Reduction& reduction) {
  check_relation(x, relation);
  const Extents stride = stride_after("pool", x, relation);
  return SparseTensor(relation.output(), RowPooling(relation, reduction)(x.feats()), stride);
}

SparsePooledRows pool_with_rows(const SparseTensor& x, const SparsePooling& pooling) {
  const Relation relation = x.coordinates()->relation(pooling.kernel, pooling.options);
  const Extents stride = stride_after("pool", x, relation);
  PooledRows pooled = RowPooling(relation, pooling.reduction).with_rows(x.feats());
  return {SparseTensor(relation.output(), std::move(pooled.values), stride), std::move(pooled.rows)};
}

SparseTensor pool_transpose(const SparseTensor& x, const Kernel& kernel,
                            const std::shared_ptr<const Coordinates>& targets) {
  const Relation relation = relate_transposed(x.coordinates(), kernel, targets);
  const Extents stride = stride_after("pool_transpose", x, relation);
  return SparseTensor(relation.output(), RowPooling(relation, {.reducer = Reducer::avg})(x.feats()), stride);
}

SparseTensor upsample(const SparseTensor& x, const PerAxis& scale, const std::shared_ptr<const Coordinates>& targets) {
  const Extents s = per_axis(scale, x.dimension());
  if (s.size() != x.dimension())
    reject("upsample", "scale ", s, ": must be one number, or one per lattice axis, ", x.dimension());
  Extents size = s, padding = s;
  for (int a = 0; a < s.size(); ++a) {
    if (s[a] < 1 || s[a] > INT32_MAX) reject("upsample", "scale[", a, "] = ", s[a], ": must be from 1 to ", INT32_MAX);
    size[a] = 2 * s[a] - 1;
    padding[a] = s[a] - 1;
  }
  const Relation relation = relate_transposed(x.coordinates(), {size, s, padding, 1}, targets);
  const Extents stride = stride_after("upsample", x, relation);
  return SparseTensor(relation.output(), RowPooling::multilinear(relation)(x.feats()), stride);
}

Array global_pool(const SparseTensor& x, const Reduction& reduction) {
  return RowPooling::global(x.coordinates(), reduction)(x.feats());
}
Array global_sum_pool(const SparseTensor& x) { return global_pool(x, {.reducer = Reducer::sum}); }
Array global_avg_pool(const SparseTensor& x) { return global_pool(x, {.reducer = Reducer::avg}); }
Array global_max_pool(const SparseTensor& x) { return global_pool(x, {.reducer = Reducer::max}); }
Array global_min_pool(const SparseTensor& x) { return global_pool(x, {.reducer = Reducer::min}); }

SparseTensor Pool3d::operator()(const SparseTensor& x) const {
  if (x.dimension() != 3)
    reject(std::string(name(mode)) + "_pool3d", "x of lattice dimension ", x.dimension(),
           ": must be 3; pool takes any dimension");
  return pool(x, {.reduction = {.reducer = mode}, .kernel = {kernel_size, stride, padding, dilation}});
}

}  // namespace cenote
