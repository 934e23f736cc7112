// Derivatives cell by cell: what a cell gets from the few windows that hold it.
#pragma once

#include <cstdint>

#include <cenote/types.h>

namespace cenote::cpu {

/// Outputs whose windows may hold the cells under way, side by side; where one cell of a window gets it all, with the
/// offsets that name it.
struct Giver {
  const void* gy;
  const std::uint8_t* offsets;
  std::int64_t offset;  // what an offset must be, less the tap along the line
};

/// Cells of a line whose numbers leave the same rest when divided by the stride are held by windows at the same
/// distances: `taps` of them, the last one `ahead` outputs after the cell's number divided by the stride. There the
/// cell is tap `phase`.
struct Phase {
  std::int64_t taps, ahead, phase;
};

/// One line of cells, or the lanes of one cell: the sum of gy over the givers, in their order. Results are lanes, and
/// are overrun by less than `stride` packs.
struct Collect {
  const Giver* givers;
  std::int64_t count;
  std::int64_t len;  // cells of the line, or lanes
  void* dst;
  // Lines only, along an axis with dilation 1:
  const Phase* phases;  // one for each of
  std::int64_t stride, out;
};

/// Finds the function for elements of a floating-point type and the SIMD target in use.
using CollectFunction = void (*)(const Collect&);
CollectFunction collect_function(Type type, bool lines, bool offsets) noexcept;

}  // namespace cenote::cpu
