// gx by asking: every cell looks at the few windows that hold it.
#pragma once

#include <vector>

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

 private:
  /// A window that holds a cell, and the cell's tap in it.
  struct Hit {
    std::int64_t output, tap;
  };
  /// The windows that hold each cell of one level: those of cell i are hits[first[i]] up to hits[first[i + 1]].
  struct Level {
    std::vector<std::int64_t> first;
    std::vector<Hit> hits;
    std::int64_t taps;  // one step of a tap counts so much in an offset
  };
  class Rows;

  const Router& router_;
  const View& offsets_;
  const View& gy_;
  const MutableView& gx_;
  std::vector<Level> levels_;  // those that are walked cell by cell: all, or all but the last
  std::vector<Phase> phases_;  // of the last level, if
  bool lines_;                 // lanes run along it
  double divisor_;
  std::int64_t row_ = 0;   // cells, or lanes, that are made at once
  std::int64_t rows_ = 1;  // of one slice
};

}  // namespace cenote::cpu
