// Derivatives cell by cell: what a cell gets from the few windows that hold it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cenote/types.h>
#include <cenote/window.h>

namespace cenote::cpu {

constexpr std::int64_t most_windows = 16;   // that hold one cell: more are sent sooner than asked;
constexpr std::int64_t most_on_lines = 12;  // on lines, and of sums, fewer
constexpr std::int64_t most_crossed = 18;   // steps of a line that is crossed, see below
constexpr std::int64_t most_phases = 16;    // larger strides leave most cells alone
constexpr std::int64_t most_period = 64;    // lanes from window to window, where a few channels lie in one line

/// Outputs whose windows may hold the cells under way; where one cell of a window gets it all, with the offsets that
/// name it.
struct Giver {
  const void* gy;
  const std::uint8_t* offsets;
  std::int64_t offset;  // what an offset must be, less the taps along the levels to come
};

/// Sums on their way out, in L1: lanes [begin, end) belong to the elements of the same numbers from `to` on. A unit of
/// them is a line of the cache, and `to` is aligned so that the units of both coincide.
struct Stage {
  static constexpr std::int64_t room = 1024;       // lanes that are made before they are written
  static constexpr std::int64_t lanes = 2 * room;  // with what may be overrun
  void* memory;
  double divisor;
  bool stream;
  std::byte* to = nullptr;
  std::int64_t begin = 0, end = 0;
};

/// Memory for what crossed lines are made of: of each output the sum over the rows of windows whose winner lies in the
/// row of cells under way, and the winner's tap along it.
struct Crossing {
  static constexpr std::int64_t most = 1 << 15;  // lanes of a row
  std::int64_t lead, pitch;                      // lanes in front of the first output; from row to row
  void* sums;
  std::uint8_t* taps;  // 255 outside
};

/// Neighbouring rows of cells: for each the sum of gy over the windows that hold it, in row-major order, or where lines
/// are crossed column by column. All distances count elements.
struct Collect {
  const Giver* givers;  // of the levels outside
  std::int64_t count;   //
  // The level whose cells are rows; of axes that are dilated, here and below, windows lie one cell apart.
  Axis axis;
  std::int64_t begin, end;
  std::int64_t gy_step, offset_step, cell_step, scale;
  void* cells;  // row 0
  // One row: cells of a line that the next level runs along, or lanes that no window reaches across.
  std::int64_t len;
  const Axis::Place* phases;       // lines only: the places of the first cells, as many as the stride
  std::int64_t size, stride, out;  //
  // And the outputs that these cells ask, so far apart
  std::int64_t first, reach, dilation;
  const void* gy_end;  // of the whole array; where it goes on behind a row, so do offsets
  // Lines of windows one cell apart may be crossed: rows are joined before the taps along them are told apart.
  std::int64_t inner;  // lanes of one cell of the line
  Crossing* crossing;  // or null
  Stage* stage;
};

/// The functions for elements of a floating-point type and the SIMD target in use.
struct Collecting {
  void (*rows)(const Collect&);
  void (*flush)(Stage&);  // what is left, at the end
  std::int64_t pack;      // lanes
};
Collecting collecting(Type type, bool lines, bool offsets) noexcept;

}  // namespace cenote::cpu
