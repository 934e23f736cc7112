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

}  // namespace cenote
