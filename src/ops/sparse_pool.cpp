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
Extents stride_after(const SparseTensor& x, const Relation& relation) {
  const Extents step = relation.kernel().stride.values();
  Extents result = x.stride();
  for (int a = 0; a < result.size(); ++a) {
    if (relation.transposed()) {
      result[a] /= step[a];
      continue;
    }
    const Checked product = Checked(result[a]) * Checked(step[a]);
    if (!product.ok())
      reject("pool", "stride[", a, "] = ", step[a], ": times the tensor's own, ", result[a], ", it must fit 64 bits");
    result[a] = product.value();
  }
  return result;
}

void check_divisible(const char* who, const SparseTensor& x, const PerAxis& by) {
  const Extents step = per_axis(by, x.dimension());
  for (int a = 0; a < std::min(step.size(), x.dimension()); ++a)
    if (step[a] > 0 && x.stride()[a] % step[a] != 0)
      reject(who, "stride[", a, "] = ", step[a], ": must divide the tensor's own stride, ", x.stride()[a]);
}

/// Rejects a relation between other rows: the same coordinates are wanted, or equal ones.
void check_relation(const SparseTensor& x, const Relation& relation) {
  const auto& own = x.coordinates();
  const auto& other = relation.input();
  if (own == other) return;
  const auto differ = [&](const char* how) { reject("pool", "a relation of other coordinates: ", how); };
  if (own->dimension() != other->dimension()) differ("their dimension must be that of x");
  if (own->rows() != other->rows()) differ("they must have as many rows as x");
  const sparse::Rows a = own->impl().view(), b = other->impl().view();
  for (std::int64_t i = 0; i < a.count; ++i)
    for (int column = 0; column < a.columns; ++column)
      if (a.at(i, column) != b.at(i, column))
        reject("pool", "a relation of other coordinates: row ", i, " is ", sparse::row_text(b, i), " there and ",
               sparse::row_text(a, i), " in x");
}

SparseTensor made(const SparseTensor& x, const Relation& relation, Array feats) {
  return SparseTensor(relation.output(), std::move(feats), stride_after(x, relation));
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
  return made(x, relation, RowPooling(relation, reduction)(x.feats()));
}

SparsePooledRows pool_with_rows(const SparseTensor& x, const SparsePooling& pooling) {
  const Relation relation = x.coordinates()->relation(pooling.kernel, pooling.options);
  PooledRows pooled = RowPooling(relation, pooling.reduction).with_rows(x.feats());
  return {made(x, relation, std::move(pooled.values)), std::move(pooled.rows)};
}

SparseTensor pool_transpose(const SparseTensor& x, const Kernel& kernel,
                            const std::shared_ptr<const Coordinates>& targets) {
  const auto relation = relate_transposed(x.coordinates(), kernel, targets);
  check_divisible("pool_transpose", x, kernel.stride);
  return made(x, relation, RowPooling(relation, {.reducer = Reducer::avg})(x.feats()));
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
  check_divisible("upsample", x, s);
  const Relation relation = relate_transposed(x.coordinates(), {size, s, padding, 1}, targets);
  return made(x, relation, RowPooling::multilinear(relation)(x.feats()));
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
