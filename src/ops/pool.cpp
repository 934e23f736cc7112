// Pooling, from request to result: plan, check the arrays, launch. The forty lines to read first.
#include <cenote/pooling.h>

#include <algorithm>
#include <cstdint>

#include <cenote/fold.h>

#include "core/parallel.h"
#include "core/reject.h"
#include "core/views.h"
#include "cpu/execute.h"
#include "ops/arrays.h"
#include "plan/impl.h"

namespace cenote {

void check_view(const std::string& who, const char* what, const View& view, Type type, const Extents& shape) {
  if (view.type != type) reject(who, what, " has type ", name(view.type), ": must be ", name(type));
  if (view.shape != shape) reject(who, what, " has shape ", view.shape, ": must be ", shape);
  check_memory(who, what, view);
}

namespace {

void run_checked(const Plan::Impl& plan, const View& x, const MutableView& y, const MutableView* indices) {
  const std::string& who = plan.who;
  check_view(who, "x", x, plan.type, plan.shape);
  check_view(who, "y", y, plan.output_type, plan.geometry.output_shape);
  check_writable(who, "y", y);
  if (overlap(x, y)) reject(who, "x and y overlap in memory: they must not");
  if (indices) {
    if (!plan.index_type) reject(who, "indices: the plan was made without them");
    check_view(who, "indices", *indices, *plan.index_type, plan.geometry.output_shape);
    check_writable(who, "indices", *indices);
    if (overlap(x, *indices) || overlap(y, *indices)) reject(who, "indices overlap x or y in memory: they must not");
  } else if (plan.index_type) {
    reject(who, "indices: the plan asks for them, so run needs a third array");
  }
  cpu::execute(plan, {.x = x,
                      .y = with_all_axes(y, plan.geometry),
                      .indices = indices ? with_all_axes(*indices, plan.geometry) : MutableView()});
}

}  // namespace

void Plan::run(const View& x, const MutableView& y) const { run_checked(*impl_, x, y, nullptr); }

void Plan::run(const View& x, const MutableView& y, const MutableView& indices) const {
  run_checked(*impl_, x, y, &indices);
}

Array pool(const View& x, const Pooling& pooling) {
  if (pooling.indices) reject("pool", "indices: pool_with_indices returns them");
  const Plan made = plan(pooling, x.type, x.shape);
  Array y(made.output_type(), made.output_shape());
  made.run(x, y);
  return y;
}

Pooled pool_with_indices(const View& x, const Pooling& pooling) {
  Pooling request = pooling;
  if (!request.indices) request.indices = IndexKind::plane;
  const Plan made = plan(request, x.type, x.shape);
  Pooled result{Array(made.output_type(), made.output_shape()), Array(*made.index_type(), made.output_shape())};
  made.run(x, result.values, result.indices);
  return result;
}

Array max_pool(const View& x, const Window& window) { return pool(x, {.reducer = Reducer::max, .region = window}); }
Array min_pool(const View& x, const Window& window) { return pool(x, {.reducer = Reducer::min, .region = window}); }
Array sum_pool(const View& x, const Window& window, std::optional<Type> dtype) {
  return pool(x, {.reducer = Reducer::sum, .region = window, .dtype = dtype});
}
Array avg_pool(const View& x, const Window& window, Divisor divisor) {
  return pool(x, {.reducer = Reducer::avg, .region = window, .divisor = divisor});
}
Array smooth_max_pool(const View& x, const Window& window, double beta, SmoothPadding pad) {
  return pool(x, {.reducer = Reducer::smooth_max, .region = window, .beta = beta, .pad = pad});
}
Array lp_pool(const View& x, const Window& window, double p) {
  return pool(x, {.reducer = Reducer::lp, .region = window, .p = p});
}

Pooled max_pool_with_indices(const View& x, const Window& window, IndexKind kind) {
  return pool_with_indices(x, {.reducer = Reducer::max, .region = window, .indices = kind});
}
Pooled min_pool_with_indices(const View& x, const Window& window, IndexKind kind) {
  return pool_with_indices(x, {.reducer = Reducer::min, .region = window, .indices = kind});
}

Array adaptive_max_pool(const View& x, const Adaptive& region) {
  return pool(x, {.reducer = Reducer::max, .region = region});
}
Array adaptive_avg_pool(const View& x, const Adaptive& region) {
  return pool(x, {.reducer = Reducer::avg, .region = region});
}

Array global_max_pool(const View& x, const Global& region) {
  return pool(x, {.reducer = Reducer::max, .region = region});
}
Array global_min_pool(const View& x, const Global& region) {
  return pool(x, {.reducer = Reducer::min, .region = region});
}
Array global_sum_pool(const View& x, const Global& region, std::optional<Type> dtype) {
  return pool(x, {.reducer = Reducer::sum, .region = region, .dtype = dtype});
}
Array global_avg_pool(const View& x, const Global& region) {
  return pool(x, {.reducer = Reducer::avg, .region = region});
}

namespace detail {

Geometry fold_geometry(const char* who, const std::variant<Window, Adaptive, Global>& region, const Extents& shape) {
  cenote::Geometry geometry = resolve(who, region, shape);
  return {geometry.output_shape, geometry.pooled, std::move(geometry.axes)};
}

void parallel_for(std::int64_t n, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  const std::int64_t step = std::max<std::int64_t>(grain, 1);
  cenote::parallel_for(n / step + (n % step != 0),
                       [&](std::int64_t i) { body(context, i * step, std::min(n, (i + 1) * step)); });
}

}  // namespace detail
}  // namespace cenote
