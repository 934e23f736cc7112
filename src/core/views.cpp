// Checks of the memory that a caller hands in.
#include "core/views.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/checked.h"
#include "core/reject.h"

namespace cenote {
namespace {

bool is_empty(const View& view) {
  return std::any_of(view.shape.begin(), view.shape.end(), [](std::int64_t n) { return n == 0; });
}

// First and last byte that a view may touch.
std::pair<std::uintptr_t, std::uintptr_t> reach(const View& view) {
  const auto bytes = static_cast<std::int64_t>(size_of(view.type));
  std::int64_t low = 0, high = bytes;
  for (int i = 0; i < view.rank(); ++i) {
    const std::int64_t distance = (view.shape[i] - 1) * view.strides[i] * bytes;
    (distance < 0 ? low : high) += distance;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  return {start + static_cast<std::uintptr_t>(low), start + static_cast<std::uintptr_t>(high)};
}

}  // namespace

void check_memory(std::string_view who, std::string_view what, const View& view) {
  if (view.strides.size() != view.rank())
    reject(who, what, " has ", view.strides.size(), " strides: must have one per axis, ", view.rank());
  if (is_empty(view)) return;
  if (view.data == nullptr) reject(who, what, " has no data: must not be null");
  const auto bytes = static_cast<std::int64_t>(size_of(view.type));
  if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.type) != 0)
    reject(who, what, " is misaligned: its address must be a multiple of the ", bytes, " bytes of ", name(view.type));
  Checked extent = bytes;
  for (int i = 0; i < view.rank(); ++i) {
    if (view.shape[i] <= 1) continue;
    const Checked step = Checked(view.strides[i]) * Checked(bytes);
    extent = extent + Checked(view.shape[i] - 1) * (step.value() < 0 ? Checked(0) - step : step);
  }
  if (!extent.ok()) reject(who, what, " has strides ", view.strides, ": the array must fit the address space");
}

// Sorted by size, every stride must step over all that lies inside it.
void check_writable(std::string_view who, std::string_view what, const MutableView& view) {
  if (is_empty(view)) return;
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> steps;
  int count = 0;
  for (int i = 0; i < view.rank(); ++i) {
    const std::int64_t stride = view.strides[i];
    if (view.shape[i] > 1) steps[static_cast<std::size_t>(count++)] = {stride < 0 ? -stride : stride, view.shape[i]};
  }
  std::sort(steps.begin(), steps.begin() + count);
  std::int64_t inside = 0;
  for (int i = 0; i < count; ++i) {
    const auto [step, extent] = steps[static_cast<std::size_t>(i)];
    if (step <= inside) reject(who, what, " has strides ", view.strides, ": no two elements may share memory");
    inside += step * (extent - 1);
  }
}

bool overlap(const View& a, const View& b) {
  if (is_empty(a) || is_empty(b)) return false;
  const auto [a_low, a_high] = reach(a);
  const auto [b_low, b_high] = reach(b);
  return a_low < b_high && b_low < a_high;
}

}  // namespace cenote
