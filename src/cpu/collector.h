// gx by asking: every cell looks at the few windows that hold it.
#pragma once

#include <array>

#include "cpu/collect.h"
#include "cpu/router.h"

namespace cenote::cpu {

/// Gives gy to the winners, or without offsets to all cells, where few windows hold a cell and elements lie side by
/// side. Sums are divided by `divisor`.
class Collector {
 public:
  static bool applies(const Router& router, const View& offsets, const View& gy, const MutableView& gx);

  Collector(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor = 1);
  void run() const;
  /// The same on this thread, into memory that stays in the cache.
  void run_here() const;

 private:
  class Rows;
  /// A level whose cells are walked one by one, and what one step of a tap counts in an offset.
  struct Level {
    Axis axis;
    RouteAxis steps;
    std::int64_t scale = 0;
  };

  const Router& router_;
  const View& offsets_;
  const View& gy_;
  const MutableView& gx_;
  bool lines_;                                     // lanes run along the last level; then its
  std::array<Axis::Place, most_phases> phases_{};  //
  std::int64_t first_ = 0, reach_ = 0;             // and the outputs that the first cells ask
  bool crosses_;                                   // such a line is made in two steps, of all lanes of its cells
  std::array<Level, max_rank> levels_{};           // all, or all but the last
  std::size_t depth_ = 0;                          //
  double divisor_;
  std::int64_t slices_ = 1;
  std::int64_t row_ = 0;   // cells, or lanes, that are made at once
  std::int64_t rows_ = 1;  // of one slice
};

}  // namespace cenote::cpu
