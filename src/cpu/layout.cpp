// Finds the loops of a pooling: which axis the lanes run along, which axes merge.
#include "cpu/layout.h"

#include <algorithm>

namespace cenote::cpu {
namespace {

// Steps of a winner's number along each axis of the input.
Extents places(const Plan::Impl& plan) {
  const Extents& pooled = plan.geometry.pooled;
  const IndexKind kind = plan.pooling.indices.value_or(IndexKind::plane);
  Extents shape = plan.shape, result = Extents::filled(shape.size(), 0);
  if (kind == IndexKind::tensor) return row_major_strides(shape);
  if (kind == IndexKind::tensor_column) {
    // Column-major over the plane: the pooled axes trade places.
    const int depth = pooled.size();
    for (int i = 0; i < depth; ++i)
      shape[static_cast<int>(pooled[i])] = plan.shape[static_cast<int>(pooled[depth - 1 - i])];
    const Extents strides = row_major_strides(shape);
    result = strides;
    for (int i = 0; i < depth; ++i)
      result[static_cast<int>(pooled[i])] = strides[static_cast<int>(pooled[depth - 1 - i])];
    return result;
  }
  std::int64_t step = 1;
  for (int i = pooled.size() - 1; i >= 0; --i) {
    result[static_cast<int>(pooled[i])] = step;
    step *= std::max<std::int64_t>(plan.shape[static_cast<int>(pooled[i])], 1);
  }
  return result;
}

// Whether `a` outside `b` is one loop of a.extent * b.extent steps.
bool joins(const Loop& a, const Loop& b) {
  const std::int64_t n = b.extent;
  return a.x == b.x * n && a.y == b.y * n && a.beside == b.beside * n && a.place == b.place * n;
}

void push_kept(Layout& layout, const Loop& loop) {
  if (loop.extent == 1) return;
  if (layout.outer_count > 0) {
    Loop& before = layout.outer[static_cast<std::size_t>(layout.outer_count - 1)];
    if (joins(before, loop)) {
      before = Loop{before.extent * loop.extent, loop.x, loop.y, loop.beside, loop.place};
      return;
    }
  }
  layout.outer[static_cast<std::size_t>(layout.outer_count++)] = loop;
}

void push_level(Layout& layout, const Axis& axis, const Loop& loop, bool may_merge) {
  if (may_merge && layout.depth > 0) {
    const auto last = static_cast<std::size_t>(layout.depth - 1);
    Loop& outside = layout.levels[last];
    const auto one = merged(layout.axes[last], axis);
    if (one && outside.x == loop.x * axis.n && outside.place == loop.place * axis.n) {
      layout.axes[last] = *one;
      outside.x = loop.x;
      outside.place = loop.place;
      return;
    }
  }
  layout.levels[static_cast<std::size_t>(layout.depth)] = loop;
  layout.axes[static_cast<std::size_t>(layout.depth++)] = axis;
}

// The kept loop to run lanes along: steps of 1 in x, unless the innermost pooled axis has them already.
void pick_inner(Layout& layout) {
  const Loop& last = layout.levels[static_cast<std::size_t>(layout.depth - 1)];
  if (last.x == 1 && layout.axes[static_cast<std::size_t>(layout.depth - 1)].n > 1) return;
  int best = -1;
  for (int i = 0; i < layout.outer_count; ++i)
    if (layout.outer[static_cast<std::size_t>(i)].x == 1) best = i;
  if (best < 0) return;
  layout.inner = layout.outer[static_cast<std::size_t>(best)];
  for (int i = best; i + 1 < layout.outer_count; ++i)
    layout.outer[static_cast<std::size_t>(i)] = layout.outer[static_cast<std::size_t>(i + 1)];
  --layout.outer_count;
}

}  // namespace

Layout make_layout(const Plan::Impl& plan, const View& x, const MutableView& y, const View& beside) {
  Layout layout;
  const bool winner = plan.role == Role::winner;
  const Extents place = winner ? places(plan) : Extents::filled(x.rank(), 0);
  for (int i = 0, level = 0; i < x.rank(); ++i) {
    const bool pooled = level < plan.geometry.pooled.size() && plan.geometry.pooled[level] == i;
    Loop loop{plan.geometry.kept_shape[i], x.strides[i], y.strides[i], beside.data ? beside.strides[i] : 0, place[i]};
    if (pooled)
      push_level(layout, plan.geometry.axes[static_cast<std::size_t>(level++)], loop,
                 plan.role == Role::value || winner);
    else
      push_kept(layout, loop);
  }
  pick_inner(layout);
  if (layout.depth == 1) {
    Loop rows;
    if (layout.outer_count > 0) rows = layout.outer[static_cast<std::size_t>(--layout.outer_count)];
    layout.levels[1] = layout.levels[0];
    layout.axes[1] = layout.axes[0];
    layout.levels[0] = rows;
    layout.axes[0] = Axis{rows.extent, 1, 1, 1, 0, 0, rows.extent, false};
    layout.depth = 2;
    layout.kept_top = true;
  }
  return layout;
}

}  // namespace cenote::cpu
