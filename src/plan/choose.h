// The choice of algorithm, with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cenote/types.h>

#include "plan/geometry.h"

namespace cenote {

/// Whether long windows are swept, in a number of steps that hardly grows with them, or folded cell by cell.
enum class Sweep { automatic, never, always };

/// Bytes of as many planes as are turned at a time, in each cell, at the least and at most; of all of their cells, if
/// there may be fewer planes; and of those of the fewest.
inline constexpr std::int64_t least_woven = 64, most_woven = 256, woven_bytes = 256 << 10, largest_woven = 1024 << 10;

/// Bytes of the planes of a volume that wait to be joined, about.
inline constexpr std::int64_t waiting_bytes = 512 << 10;

/// Whether several planes are turned, so that lanes run across them, or each is made by itself.
enum class Weave { automatic, never, always };

/// How planes are made where that is neither by rows nor across many of them: as one line of cells each, where they are
/// small and windows short, or with the rows of short windows joined first.
enum class Form { plain, flat, rows_first };

/// When windows are swept.
struct SweepRules {
  Sweep sweep = Sweep::automatic;
  /// Whether the innermost axis is contiguous, or next to it: windows far apart, or of few channels, are then better
  /// made at every place and picked.
  bool along_lines = false, few_beside = false;
  /// How many times its stride a window along rows of lanes holds before it is swept.
  double least_beside = 0;
  /// Whether states along lines are single numbers.
  bool plain_lines = false;
  /// Cells from which on windows along the innermost axis are swept, a stride aside.
  std::int64_t shortest_line = 0;

  /// Whether windows along an axis are swept; `innermost` is the axis that is reduced first.
  bool sweeps(const Axis& axis, bool innermost) const noexcept;
  /// Whether windows along a line are so short, and so far apart, that each is folded in lanes of its own.
  bool has_lanes(const Axis& axis) const noexcept;
};

/// Whether windows at every place of planes are so long both ways that one kernel sweeps lines and what is across them,
/// where states are single numbers: measured from these sizes on, in planes of any width.
inline bool sweeps_planes(const Axis& across, const Axis& line) noexcept {
  constexpr std::int64_t least_rows = 3, least_columns = 6;
  return is_dense(across) && is_dense(line) && across.size >= least_rows && line.size >= least_columns;
}

/// How a pooling is carried out on a row-major array.
struct Algorithm : SweepRules {
  std::string name;    // "lines", "lines+rows", "rows", …
  std::string reason;  // half a sentence, and in it
  std::string swept;   // which windows are swept; empty where none are
  /// Outputs of the innermost pooled axis that are worked on at once when rows are kept in a ring; 0: all of them.
  std::int64_t tile = 0;
  /// Working memory per thread, about.
  std::int64_t scratch = 0;
  Weave weave = Weave::automatic;
  bool small = false;  // lines are so short that lanes are better used across planes
  Form form = Form::plain;
  bool joins_rows = false;    // the rows of windows may be joined first
  bool joins_planes = false;  // of volumes, planes may be pooled first, and then joined,
  bool by_planes = false;     // and are
  bool by_sums = false;       // powers of cells are summed, a portion of the array at a time
  bool past_caches = false;   // outputs are written past the caches, even if they are few
  bool weaves() const noexcept { return weave == Weave::automatic ? small : weave == Weave::always; }
};

/// What passes read and carry.
struct States {
  std::int64_t bytes = 0;       // of what one output carries between passes,
  std::int64_t cell_bytes = 0;  // and of a cell
  bool weighs = false;          // every cell has a weight, so that states are dear to make and to join
  bool places = false;          // the places of cells are wanted
  bool alike = false;           // all outputs are divided by the same number, or none is
  bool by_planes = false;       // those of planes may be joined afterwards
};

/// Never depends on the number of threads.
Algorithm choose(const Geometry& geometry, const Extents& shape, const States& states);

/// Rows of an axis that must be at hand at once to make `outputs` of them.
std::int64_t ring_rows(const Axis& axis, std::int64_t outputs) noexcept;

}  // namespace cenote
