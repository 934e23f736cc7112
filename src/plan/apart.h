// Which windows along lines are short and far apart, so that each is given lanes of its own.
#pragma once

#include <cstdint>
#include <vector>

#include <cenote/window.h>

namespace cenote {

// From this stride on, up to one whose products cannot overflow, and of so many cells at most.
inline constexpr std::int64_t least_apart_stride = 5, most_apart_stride = std::int64_t{1} << 40, most_apart_cells = 16;

inline bool lie_apart(const Axis& axis) noexcept {
  return !axis.irregular() && axis.dilation == 1 && axis.stride >= least_apart_stride &&
         axis.stride <= most_apart_stride && axis.size <= most_apart_cells;
}

/// Rows of windows, and cells along lines where these lie less than five apart, up to which each window is joined cell
/// by cell where rows are joined first. Longer ones are made of blocks if they overlap.
inline constexpr std::int64_t most_rows_first = 8;
/// Blocks of as many cells as lie between windows that a window holds; 0 where it is not made of them.
inline std::int64_t blocks_across(const Axis& across) noexcept {
  return across.size <= most_rows_first || across.size <= across.stride ? 0 : across.size / across.stride;
}
inline std::int64_t blocks_along(const Axis& line) noexcept {
  const std::int64_t few = line.stride < least_apart_stride ? most_rows_first : most_apart_cells;
  return line.size <= few || line.size <= line.stride ? 0 : line.size / line.stride;
}
inline constexpr std::int64_t most_blocks = 16;
/// Whether windows over two axes can be made after the rows of each have been joined.
inline bool joins_rows_first(const Axis& across, const Axis& line) noexcept {
  // So many keep sums within their bound, and blocks in the cache.
  constexpr std::int64_t longest = 8192, most_block = 8, most_cells = 512;
  const auto regular = [](const Axis& axis, std::int64_t few) {
    return !axis.irregular() && axis.low < axis.size && axis.n > 0 && (axis.dilation == 1 || axis.dilation < axis.n) &&
           axis.size <= most_cells && (axis.size <= few || axis.dilation == 1);
  };
  // At every place a sweep is faster.
  const auto few_blocks = [](std::int64_t blocks, std::int64_t stride, std::int64_t most) {
    return blocks == 0 || (blocks <= most_blocks && stride > 1 && stride <= most);
  };
  return regular(across, most_rows_first) && regular(line, most_rows_first) &&
         few_blocks(blocks_across(across), across.stride, most_block) &&
         few_blocks(blocks_along(line), line.stride, most_cells) && (line.dilation == 1 || line.stride == 1) &&
         line.n <= longest && line.stride <= most_cells && line.out <= longest / line.stride + 1;
}

/// The same where a kept axis is contiguous: rows of columns are one line, however few lanes a column has.
inline bool joins_columns(const Axis& across, const Axis& line) noexcept {
  for (const Axis& axis : {across, line})
    if (axis.irregular() || axis.dilation > 1 || axis.size > most_rows_first) return false;
  return true;
}

/// Planes of a window up to which those of a volume may be pooled each by itself.
inline constexpr std::int64_t most_joined_planes = 32;
/// Whether windows are such that they may be: none is empty, covers an axis or leaves gaps between its cells. Where
/// `places` of cells are wanted, bytes must number them.
inline bool joins_planes(const std::vector<Axis>& axes, bool places) noexcept {
  if (axes.size() < 3 || (places && axes.size() > 3)) return false;
  if (axes[0].size < 2 || axes[0].size > most_joined_planes) return false;
  std::int64_t taps = 1;
  for (const Axis& axis : axes) {
    if (axis.irregular() || axis.dilation > 1 || axis.out < 2) return false;
    if (axis.span(0).count == 0 || axis.span(axis.out - 1).count == 0) return false;
    if (places && (__builtin_mul_overflow(taps, axis.size, &taps) || taps > 256)) return false;
  }
  return true;
}

}  // namespace cenote
