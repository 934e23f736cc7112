// Which rows a sparse pooling reduces, by the oracle, which looks up every tap of every output.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.h"
#include "reference/sparse.h"

namespace cenote::demo {
namespace {

std::vector<reference::Row> rows_of(const SparseTensor& x) {
  const auto columns = static_cast<std::size_t>(1 + x.dimension());
  const auto values = x.coords().values<std::int32_t>();
  std::vector<reference::Row> rows;
  for (std::size_t i = 0; i < values.size(); i += columns)
    rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                      values.begin() + static_cast<std::ptrdiff_t>(i + columns));
  return rows;
}

}  // namespace

Verdict check(const SparseTensor& x, const SparsePooling& pooling, const SparseTensor& y) {
  const auto per_axis = [&](const PerAxis& values) {
    if (values.is_scalar())
      return std::vector<std::int64_t>(static_cast<std::size_t>(x.dimension()), values.values()[0]);
    return std::vector<std::int64_t>(values.values().begin(), values.values().end());
  };
  const Kernel& kernel = pooling.kernel;
  const reference::SparseRelation relation = reference::sparse_relation(
      {.inputs = rows_of(x),
       .kernel = {per_axis(kernel.size), per_axis(kernel.stride), per_axis(kernel.padding), per_axis(kernel.dilation)},
       .policy = static_cast<reference::SparsePolicy>(pooling.options.policy)});
  if (rows_of(y) != relation.outputs) return {.ok = false};
  std::vector<std::vector<std::int64_t>> inputs(relation.outputs.size());
  for (const reference::SparseEdge& edge : relation.edges)
    inputs[static_cast<std::size_t>(edge.out_row)].push_back(edge.in_row);
  return check_rows(pooling.reduction, x.feats(), y.feats(), inputs);
}

}  // namespace cenote::demo
