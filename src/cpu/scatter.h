// Gradients of small planes, output by output, or cell by cell.
#pragma once

#include <array>
#include <cstdint>

#include <cenote/extents.h>
#include <cenote/types.h>

namespace cenote::cpu {

/// Planes without gaps, one after the other, whose offsets are bytes.
struct Scatter {
  const std::uint8_t* offsets;
  const void* gy;
  void* gx;
  std::int64_t outputs, cells;
  const std::int32_t* starts;  // of the windows: the cell of tap 0, which may lie in the padding
  bool apart;                  // no cell lies in two of them
  /// A winner lies as many cells behind tap 0 as its offset says, and so many more for every `taps` of it.
  struct Level {
    std::int32_t taps, more;
  };
  int levels;
  std::array<Level, max_rank> level;
};

/// gx = what each cell wins, in the order of outputs. For f32 and f64, and the SIMD target in use.
void scatter(Type type, const Scatter& call) noexcept;

/// Planes without gaps, one after the other, with a window of few taps around every cell.
struct Dense {
  static constexpr std::int64_t most_taps = 12;
  const std::uint8_t* offsets;
  const void* gy;
  void* gx;
  std::int64_t begin, end, total;  // the cells that are wanted, and all that there are
  int taps;
  std::array<std::int32_t, most_taps> shift;  // how far behind its window's number the cell of each tap lies; ascending
  bool stream;                                // past the caches
};

/// The same, where every cell asks the windows that might be won by it: an offset that names a cell names the same one
/// wherever rows end.
void gather(Type type, const Dense& call) noexcept;

}  // namespace cenote::cpu
