// Which windows along lines are short and far apart, so that each is given lanes of its own.
#pragma once

#include <cstdint>

#include <cenote/window.h>

namespace cenote {

// From this stride on, up to one whose products cannot overflow, and of so many cells at most.
inline constexpr std::int64_t least_apart_stride = 5, most_apart_stride = std::int64_t{1} << 40, most_apart_cells = 16;

inline bool lie_apart(const Axis& axis) noexcept {
  return !axis.irregular() && axis.dilation == 1 && axis.stride >= least_apart_stride &&
         axis.stride <= most_apart_stride && axis.size <= most_apart_cells;
}

/// Whether windows over two axes share no cells, and are so short that those of a row become lanes of their own after
/// the rows of each have been joined.
inline bool lie_in_tiles(const Axis& across, const Axis& line) noexcept {
  constexpr std::int64_t least_stride = 3, most_rows = 8, longest = 8192;
  const auto tiles = [](const Axis& axis) {
    return !axis.irregular() && axis.dilation == 1 && axis.size <= axis.stride && axis.low < axis.size && axis.n > 0;
  };
  return tiles(across) && tiles(line) && across.size <= most_rows && line.stride >= least_stride &&
         line.stride <= most_apart_cells && line.n <= longest && line.out <= longest / line.stride + 1;
}

}  // namespace cenote
