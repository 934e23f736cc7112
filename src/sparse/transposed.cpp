// relate_transposed(): the search of a pooling with its ends exchanged.
#include <numeric>
#include <vector>

#include "core/reject.h"
#include "sparse/neighbours.h"
#include "sparse/relation.h"
#include "sparse/support.h"

namespace cenote {
namespace sparse {
namespace {

constexpr std::string_view who = "relate_transposed";

/// Numbers rows in the order in which they occur among `rows`; -1 for those that do not.
Buffer<std::int32_t> number_by_occurrence(std::span<const std::int32_t> rows, std::int64_t count) {
  Buffer<std::int32_t> number(count);
  std::fill(number.begin(), number.end(), -1);
  std::int32_t next = 0;
  for (const std::int32_t row : rows)
    if (number[row] < 0) number[row] = next++;
  return number;
}

std::shared_ptr<const Coordinates> renumbered(const Coordinates& coords, const Buffer<std::int32_t>& number) {
  Buffer<std::int32_t> order(coords.rows());
  for (std::int64_t i = 0; i < order.size(); ++i) order[number[i]] = static_cast<std::int32_t>(i);
  return made_coordinates(take_rows(coords.array(), order.data(), order.size()), coords.impl().range,
                          coords.batch_size());
}

/// Exchanges the ends of edges found from `points` to `inputs`, and sorts them by (point, kernel id).
void exchange(Relation::Impl& relation, const Found& found) {
  const std::int64_t count = found.edges.in_row.size();
  Array offsets(Type::i64, {relation.outputs + 1});
  Edges edges{Array(Type::i32, {count}), Array(Type::i32, {count})};
  Buffer<std::int64_t> order(count);
  const std::int32_t* point = found.edges.in_row.values<std::int32_t>().data();
  const std::int32_t* id = found.edges.kernel_id.values<std::int32_t>().data();
  const std::int64_t* start = found.row_offsets.values<std::int64_t>().data();
  std::int64_t* out = offsets.values<std::int64_t>().data();
  group_positions(point, count, relation.outputs, out, order.data());
  Buffer<std::int32_t> input(count);
  for (std::int64_t i = 0; i < relation.inputs; ++i)
    std::fill(input.data() + start[i], input.data() + start[i + 1], static_cast<std::int32_t>(i));
  std::int32_t* in_row = edges.in_row.values<std::int32_t>().data();
  std::int32_t* kernel_id = edges.kernel_id.values<std::int32_t>().data();
  for_chunks(Chunks::of(relation.outputs), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      std::sort(order.data() + out[o], order.data() + out[o + 1],
                [&](std::int64_t a, std::int64_t b) { return id[a] < id[b]; });
      for (std::int64_t e = out[o]; e < out[o + 1]; ++e) in_row[e] = input[order[e]], kernel_id[e] = id[order[e]];
    }
  });
  relation.edge_count = count;
  relation.row_offsets_.set(std::move(offsets));
  relation.edges_.set(std::move(edges));
}

}  // namespace
}  // namespace sparse

using namespace sparse;

Relation relate_transposed(const std::shared_ptr<const Coordinates>& coords, const Kernel& kernel,
                           const std::shared_ptr<const Coordinates>& targets, Engine engine) {
  if (!coords) reject(who, "coords is null: coordinates are needed");
  if (targets && targets->dimension() != coords->dimension())
    reject(who, "targets of dimension ", targets->dimension(), ": must be that of the coordinates, ",
           coords->dimension());
  auto impl = std::make_shared<Relation::Impl>();
  impl->shape = check_kernel(who, kernel, coords->dimension());
  for (Tap& tap : impl->shape.axis) tap.first = 0;
  const Engine used = engine == Engine::automatic ? Engine::sorted : engine;
  impl->transposed = true;
  impl->inputs = coords->rows();
  // Inputs look for their points: point = input * stride + j * dilation - padding is the place of a tap.
  std::shared_ptr<const Coordinates> points = targets ? targets : reached_support(who, coords->impl(), impl->shape);
  Found found = find_neighbours(who, points->impl(), coords->impl(), impl->shape, used);
  if (!targets) {
    const auto rows = found.edges.in_row.values<std::int32_t>();
    const Buffer<std::int32_t> number = number_by_occurrence(rows, points->rows());
    points = renumbered(*points, number);
    for (std::int32_t& row : rows) row = number[row];
  }
  impl->outputs = points->rows();
  impl->output = std::move(points);
  exchange(*impl, found);
  impl->route = used == Engine::sorted ? "sorted" : "hashed";
  impl->reason = "inputs search their points, which are windows of the transposed kernel";
  return Relation(coords, std::move(impl));
}

}  // namespace cenote
