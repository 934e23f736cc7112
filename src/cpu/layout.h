// How an array of any rank and strides becomes loops: outer axes, pooled axes, and one axis along the lanes.
#pragma once

#include <array>
#include <cstdint>

#include <cenote/array.h>

#include "plan/impl.h"

namespace cenote::cpu {

/// One loop: its extent, and how far a step moves in x, y and the array beside y (indices, or the cells of a
/// cotangent); `place` is the step of a winner's number.
struct Loop {
  std::int64_t extent = 1, x = 0, y = 0, beside = 0, place = 0;
};

/// Axes in the order they are walked. `levels` are the pooled axes, innermost last; when only one axis is pooled, a
/// kept axis stands before it as a level whose windows are single cells.
struct Layout {
  std::array<Loop, max_rank> outer{};
  int outer_count = 0;
  std::array<Loop, max_rank> levels{};
  std::array<Axis, max_rank> axes{};
  int depth = 0;
  bool kept_top = false;  // the outermost level is such a kept axis
  Loop inner;             // extent 1: the lanes run along the innermost level
};

Layout make_layout(const Plan::Impl& plan, const View& x, const MutableView& y, const View& beside);

}  // namespace cenote::cpu
