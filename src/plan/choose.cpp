// The choice of algorithm: which passes, and how wide the tiles that keep their intermediates in cache.
#include "plan/choose.h"

#include <algorithm>

namespace cenote {
namespace {

constexpr std::int64_t ring_budget = 256 * 1024;  // bytes of one thread's rings: a part of a common L2
// From this many cells on sweeping is faster, as measured in f32; a stride makes direct folding cheaper by as much.
constexpr std::int64_t shortest_swept_line = 9, shortest_swept_rows = 9, shortest_weighed_line = 4;
// Along lines, cells that lie so far apart are fetched one by one, unless windows are so long that lanes run along
// each; up to a few outputs that nobody wants cost less.
constexpr std::int64_t least_picked = 5, most_picked = 11, most_dropped = 3, least_outputs = 16;
constexpr std::int64_t most_few = 4;     // channels that would leave most lanes empty
constexpr std::int64_t least_tile = 64;  // narrower tiles would re-read too much of their halo

std::int64_t saturating_product(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace

bool Algorithm::sweeps(const Axis& axis, bool innermost) const noexcept {
  // Windows of more than twice the axis are mostly padding.
  if (sweep == Sweep::never || axis.irregular() || axis.size < 2 || (axis.size - 1) / 2 > axis.n / axis.dilation)
    return false;
  if (sweep == Sweep::always) return true;
  if (innermost && axis.size <= most_picked &&
      (few_beside ||
       (along_lines && axis.stride >= least_picked && (axis.out >= least_outputs || axis.n == axis.out * axis.stride))))
    return axis.size >= axis.stride / most_dropped;
  return axis.size / (innermost ? shortest_line : shortest_swept_rows) >= axis.stride;
}

std::int64_t ring_rows(const Axis& axis, std::int64_t outputs) noexcept {
  if (axis.transposed)
    return std::min(axis.n,
                    saturating_product((axis.size - 1) / axis.stride + 1, axis.dilation) + outputs / axis.stride + 2);
  if (axis.adaptive) return std::min(axis.n, saturating_product(axis.size + 1, outputs));
  const std::int64_t extent = (axis.size - 1) * axis.dilation + 1;
  const std::int64_t more = saturating_product(outputs - 1, axis.stride);
  return std::max<std::int64_t>(1, std::min(axis.n, more > INT64_MAX - extent ? INT64_MAX : more + extent));
}

Algorithm choose(const Geometry& geometry, const Extents& shape, std::int64_t state_bytes, bool weighs) {
  const auto depth = static_cast<int>(geometry.axes.size());
  const int last = static_cast<int>(geometry.pooled[depth - 1]);
  const bool contiguous = last == shape.size() - 1;
  Algorithm result;
  result.shortest_line = weighs ? shortest_weighed_line : shortest_swept_line;
  result.along_lines = contiguous;
  std::int64_t beside = 1;
  for (int i = last + 1; i < shape.size(); ++i) beside = saturating_product(beside, shape[i]);
  result.few_beside = !contiguous && beside <= most_few;
  result.name = contiguous ? "lines" : "rows";
  result.reason = contiguous ? "the innermost pooled axis is contiguous, so lanes run along outputs"
                             : "a kept axis is contiguous, so lanes run along it";
  for (int i = 0; i < depth; ++i) {
    if (!result.sweeps(geometry.axes[static_cast<std::size_t>(i)], i == depth - 1)) continue;
    result.reason += "; long windows are swept, so that their cost hardly grows with them";
    break;
  }
  if (depth == 1) {
    result.scratch = 64 * 1024;
    return result;
  }
  result.name += "+rows";
  // Bytes in all rings for each output of the innermost axis.
  std::int64_t per_output = 0, plane = contiguous ? 1 : std::min<std::int64_t>(shape[shape.size() - 1], 1024);
  for (int i = depth - 2; i >= 0; --i) {
    const Axis& axis = geometry.axes[static_cast<std::size_t>(i)];
    per_output += saturating_product(saturating_product(ring_rows(axis, 1), plane), state_bytes);
    plane = saturating_product(plane, std::max<std::int64_t>(axis.out, 1));
  }
  const std::int64_t out = geometry.axes.back().out;
  const std::int64_t fits = std::max(least_tile, ring_budget / std::max<std::int64_t>(per_output, 1));
  result.tile = std::min(out, fits);
  result.scratch = saturating_product(per_output, result.tile);
  // Planes that are swept keep the rows of two windows.
  if (depth == 2 && result.sweeps(geometry.axes[0], false)) result.scratch = saturating_product(result.scratch, 2);
  result.reason += result.scratch <= 4 * ring_budget ? "; reduced rows wait in a ring that fits the cache"
                                                     : "; the ring of reduced rows exceeds the cache";
  return result;
}

}  // namespace cenote
