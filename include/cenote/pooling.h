// The pooling functions: each allocates its result. For repeated calls, or for memory of your own, see plan.h.
#pragma once

#include <cenote/array.h>
#include <cenote/plan.h>
#include <cenote/reducers.h>
#include <cenote/window.h>

namespace cenote {

/// Values and where they came from.
struct Pooled {
  Array values;
  Array indices;
};

/// Any pooling, described by a value; the functions below are short forms of it. No indices.
Array pool(const View& x, const Pooling& pooling);
/// Max or min with indices, of the kind that `pooling.indices` names (plane if it names none).
Pooled pool_with_indices(const View& x, const Pooling& pooling);

/// The largest element of each window; NaN wins, and of equal values the first.
Array max_pool(const View& x, const Window& window);
/// The smallest element of each window; NaN wins, and of equal values the first.
Array min_pool(const View& x, const Window& window);
/// The sum of each window; integers wrap in their own type unless `dtype` is wider.
Array sum_pool(const View& x, const Window& window, std::optional<Type> dtype = std::nullopt);
/// The sum of each window divided by `divisor`; integers give f32.
Array avg_pool(const View& x, const Window& window, Divisor divisor = Divisor::Rule::window);
/// log(sum(exp(beta*x))) / beta of each window, without overflow.
Array smooth_max_pool(const View& x, const Window& window, double beta, SmoothPadding pad = SmoothPadding::zero);
/// sum(abs(x)^p)^(1/p) of each window, without overflow; p = infinity is the largest absolute value.
Array lp_pool(const View& x, const Window& window, double p);

/// Max and min with the place of each winner.
Pooled max_pool_with_indices(const View& x, const Window& window, IndexKind kind = IndexKind::plane);
Pooled min_pool_with_indices(const View& x, const Window& window, IndexKind kind = IndexKind::plane);

/// Pooling into a given output size.
Array adaptive_max_pool(const View& x, const Adaptive& region);
Array adaptive_avg_pool(const View& x, const Adaptive& region);

/// Pooling over whole axes.
Array global_max_pool(const View& x, const Global& region = {});
Array global_min_pool(const View& x, const Global& region = {});
Array global_sum_pool(const View& x, const Global& region = {}, std::optional<Type> dtype = std::nullopt);
Array global_avg_pool(const View& x, const Global& region = {});

/// Which axes max_unpool treats as pooled: those after the first two, or between first and last, or the last `rank`.
struct Plane {
  std::optional<int> rank{};
  bool channels_last = false;
  std::optional<Extents> axes{};
};

/// Writes each value of y at its plane index into zeros of `shape`; of several, the last in row-major order stays.
/// Indices are i64 and checked before anything is written.
Array max_unpool(const View& y, const View& indices, const Extents& shape, const Plane& plane = {});

}  // namespace cenote
