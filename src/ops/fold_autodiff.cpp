// The compiled part of a fold's derivatives: checks, conversions, and how reverse mode is cut into tasks.
#include <cenote/fold_autodiff.h>

#include <algorithm>
#include <utility>

#include <cenote/device.h>

#include "core/reject.h"
#include "core/views.h"

namespace cenote::detail {
namespace {

constexpr const char* who = "custom_pool";

// Enough lanes to fill vectors, as long as what a task holds stays in cache.
constexpr std::int64_t most_lanes = 32, most_numbers = 1 << 16;
// Tasks to aim for when there are few positions of the kept axes, and what is too little work for a task.
constexpr std::int64_t wanted_tasks = 64;
constexpr double least_work = 2e4;

// Rows from the first to the last of the longest window.
std::int64_t reach(const Axis& axis) {
  if (axis.adaptive) return std::min(axis.n / axis.out + 2, axis.n);
  return std::min((axis.size - 1) * axis.dilation + 1, axis.n);
}

// Cells of all windows together, at most.
double cells(const Axis& axis) {
  const std::int64_t longest = axis.adaptive ? reach(axis) : std::min(axis.size, axis.n);
  return static_cast<double>(axis.out) * static_cast<double>(longest);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a > 0 ? (a - 1) / b + 1 : 0; }

}  // namespace

void check_differentiable(const View& x) {
  if (!is_float(x.type)) reject(who, "x has type ", name(x.type), ": only f16, bf16, f32 and f64 have derivatives");
}

void check_direction(const char* what, const View& view, Type type, const Extents& shape) {
  if (view.type != type) reject(who, what, " has type ", name(view.type), ": must be ", name(type));
  if (view.shape != shape) reject(who, what, " has shape ", view.shape, ": must be ", shape);
  check_memory(who, what, view);
}

Array to_numbers(const View& elements) {
  Array packed(elements);
  const Conversion* convert = conversion(elements.type);
  if (!convert) return packed;
  Array numbers(Type::f32, elements.shape);
  parallel_parts(packed.size(), copied_at_once, [&](std::int64_t begin, std::int64_t end) {
    const auto* from = static_cast<const std::byte*>(packed.data()) + begin * convert->bytes;
    convert->read(static_cast<float*>(numbers.data()) + begin, from, 1, end - begin);
  });
  return numbers;
}

Array from_numbers(Array numbers, Type type) {
  const Conversion* convert = conversion(type);
  if (!convert) return numbers;
  Array elements(type, numbers.shape());
  parallel_parts(numbers.size(), copied_at_once, [&](std::int64_t begin, std::int64_t end) {
    auto* to = static_cast<std::byte*>(elements.data()) + begin * convert->bytes;
    convert->write(to, 1, static_cast<const float*>(numbers.data()) + begin, end - begin);
  });
  return elements;
}

Cover cover(const Axis& axis, std::int64_t begin, std::int64_t end) noexcept {
  Cover result;
  if (axis.adaptive) {
    __extension__ using Wide = __int128;
    result.first = static_cast<std::int64_t>(static_cast<Wide>(begin) * axis.out / axis.n);
    result.last = static_cast<std::int64_t>((static_cast<Wide>(end) * axis.out + axis.n - 1) / axis.n);
  } else {
    result.first = divide_up(begin + axis.low - (axis.size - 1) * axis.dilation, axis.stride);
    result.last = std::min(divide_up(end + axis.low, axis.stride), axis.out);
  }
  if (result.first >= result.last) return {};
  if (axis.adaptive) {
    const Axis::Span last = axis.span(result.last - 1);
    result.low = axis.span(result.first).first;
    result.high = last.first + last.count;
  } else {
    const std::int64_t start = result.first * axis.stride - axis.low;
    const std::int64_t stop = (result.last - 1) * axis.stride - axis.low + (axis.size - 1) * axis.dilation + 1;
    result.low = std::clamp<std::int64_t>(start, 0, axis.n);
    result.high = std::clamp<std::int64_t>(stop, 0, axis.n);
  }
  return result;
}

PullbackPlan plan_pullback(FoldSpace space) {
  choose_gathered_lanes(space);
  std::int64_t inner = 1;
  for (std::size_t i = 1; i < space.pooled.size(); ++i) inner *= space.pooled[i].n;
  const Axis& outer = space.pooled[0].window;
  space.block = std::min(space.lanes.n, most_lanes);
  while (space.block > 1 && outer.n * inner * space.block > most_numbers) space.block /= 2;

  PullbackPlan plan;
  std::int64_t positions = (space.lanes.n + space.block - 1) / space.block;
  double work = static_cast<double>(space.block);
  for (const FoldAxis& axis : space.kept) positions *= axis.n;
  for (const FoldAxis& axis : space.pooled) work *= cells(axis.window);
  // A window that is cut costs one more call per cell and cut, so cuts are no closer than a quarter of it.
  plan.rows = outer.n;
  if (threads() > 1 && positions < wanted_tasks && work > least_work) {
    const std::int64_t parts = (wanted_tasks + positions - 1) / positions;
    plan.rows = std::max(divide_up(outer.n, parts), divide_up(reach(outer), 4));
    work /= static_cast<double>(divide_up(outer.n, plan.rows));
  }
  plan.tasks_at_once = static_cast<std::int64_t>(std::max(1.0, least_work / std::max(work, 1.0)));

  plan.gathered = space.block > 1 && space.lanes.x_stride != 1;
  plan.strides = Extents::filled(static_cast<int>(space.pooled.size()), 1);
  std::int64_t stride = space.block;
  for (int i = plan.strides.size() - 1; i >= 0; --i) {
    const FoldAxis& axis = space.pooled[static_cast<std::size_t>(i)];
    plan.strides[i] = plan.gathered ? stride : axis.x_stride;
    stride *= axis.n;
  }
  plan.space = std::move(space);
  return plan;
}

}  // namespace cenote::detail
