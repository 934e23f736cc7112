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

 private:
  static constexpr std::int64_t most_phases = 16;  // larger strides leave most cells alone
  class Rows;

  const Router& router_;
  const View& offsets_;
  const View& gy_;
  const MutableView& gx_;
  bool lines_;                                 // lanes run along the last level; then its
  std::array<Phase, most_phases> phases_{};    //
  std::size_t levels_;                         // that are walked cell by cell: all, or all but the last
  std::array<std::int64_t, max_rank> taps_{};  // what one step of a tap counts in an offset
  double divisor_;
  std::int64_t row_ = 0;   // cells, or lanes, that are made at once
  std::int64_t rows_ = 1;  // of one slice
};

}  // namespace cenote::cpu
