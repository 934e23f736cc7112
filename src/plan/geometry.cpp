// Resolves windows: which axes are pooled, padding and sizes, all in checked 64-bit arithmetic.
#include "plan/geometry.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <cenote/array.h>
#include "core/checked.h"

#include "core/reject.h"

namespace cenote {
namespace {

constexpr int most_pooled = 8;

Extents consecutive(int first, int count) {
  Extents axes;
  for (int i = 0; i < count; ++i) axes.push_back(first + i);
  return axes;
}

void check_pooled_rank(std::string_view who, std::int64_t count, int rank) {
  if (rank == 0) reject(who, "array of rank 0: it must have at least one axis, which is pooled");
  if (count < 1 || count > most_pooled || count > rank)
    reject(who, "window axes = ", count, ": must be from 1 to ", std::min(most_pooled, rank), " for an array of rank ",
           rank);
}

Extents named_axes(std::string_view who, const Extents& axes, int rank) {
  if (axes.size() == 0) reject(who, "axes = (): must name at least one axis");
  check_pooled_rank(who, axes.size(), rank);
  Extents result = axes;
  for (int i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank)
      reject(who, "axes[", i, "] = ", axes[i], ": must be from ", -rank, " to ", rank - 1);
    result[i] = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (i > 0 && result[i] <= result[i - 1]) reject(who, "axes = ", axes, ": must be distinct and increasing");
  }
  return result;
}

// The pooled axes of a window or an adaptive region whose lists have `count` entries.
Extents listed_axes(std::string_view who, int count, bool channels_last, const std::optional<Extents>& axes, int rank) {
  if (axes && channels_last) reject(who, "axes and channels_last: at most one of them may be given");
  if (axes) {
    const Extents result = named_axes(who, *axes, rank);
    if (result.size() != count) reject(who, "axes = ", *axes, ": must have ", count, " entries, one per window axis");
    return result;
  }
  check_pooled_rank(who, count, rank);
  if (channels_last && count + 1 > rank)
    reject(who, "window axes = ", count, " with channels_last: must be from 1 to ", rank - 1, " for an array of rank ",
           rank, ", one axis of which holds the channels");
  return consecutive(rank - count - (channels_last ? 1 : 0), count);
}

// One value per axis, each at least 1.
Extents positive(std::string_view who, std::string_view what, const PerAxis& given, int count) {
  const Extents& values = given.values();
  if (!given.is_scalar() && values.size() != count)
    reject(who, what, " = ", values, ": must have ", count, " entries, one per pooled axis, or be one integer");
  for (int i = 0; i < values.size(); ++i) {
    if (values[i] >= 1) continue;
    if (given.is_scalar()) reject(who, what, " = ", values[i], ": every ", what, " extent must be at least 1");
    reject(who, what, "[", i, "] = ", values[i], ": every ", what, " extent must be at least 1");
  }
  return given.is_scalar() ? Extents::filled(count, values[0]) : values;
}

std::string show(std::span<const Padding::Sides> sides) {
  std::string text;
  for (const auto& side : sides)
    text += (text.empty() ? "((" : ", (") + std::to_string(side.low) + ", " + std::to_string(side.high) + ")";
  return text.empty() ? "()" : text + ")";
}

std::vector<Padding::Sides> sides_of(std::string_view who, const Padding& padding, int count) {
  std::vector<Padding::Sides> sides(static_cast<std::size_t>(count));
  if (padding.rule() != Padding::Rule::explicit_sides) return sides;
  const auto given = padding.sides();
  if (padding.is_scalar()) {
    if (given[0].low < 0) reject(who, "padding = ", given[0].low, ": must be at least 0");
    std::fill(sides.begin(), sides.end(), given[0]);
    return sides;
  }
  if (given.size() != sides.size())
    reject(who, "padding = ", show(given), " has ", given.size(), " entries: must have ", count,
           ", one per pooled axis, each an integer or a (low, high) pair; for one axis ((low, high),)");
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (given[i].low < 0 || given[i].high < 0)
      reject(who, "padding[", i, "] = (", given[i].low, ", ", given[i].high, "): must be at least 0");
  std::copy(given.begin(), given.end(), sides.begin());
  return sides;
}

std::int64_t fitting(std::string_view who, int axis, std::string_view what, Checked value) {
  if (!value.ok()) reject(who, what, " of axis ", axis, ": must fit 64 bits");
  return value.value();
}

// Sizes of one axis whose n, size, stride, dilation, low and high are set.
void size_axis(std::string_view who, int number, const Window& window, Axis& axis) {
  const bool same_rule =
      window.padding.rule() == Padding::Rule::same || window.padding.rule() == Padding::Rule::same_lower;
  const std::int64_t extent = fitting(who, number, "window extent (size-1)*dilation+1",
                                      (Checked(axis.size) - Checked(1)) * Checked(axis.dilation) + Checked(1));
  if (same_rule) {
    axis.out = axis.n / axis.stride + (axis.n % axis.stride != 0);
    if (axis.out == 0) return;
    const std::int64_t total =
        fitting(who, number, "padding",
                (Checked(axis.out) - Checked(1)) * Checked(axis.stride) + Checked(extent) - Checked(axis.n));
    const std::int64_t padding = std::max<std::int64_t>(total, 0), less = padding / 2;
    const bool lower = window.padding.rule() == Padding::Rule::same_lower;
    axis.low = lower ? padding - less : less;
    axis.high = padding - axis.low;
    fitting(who, number, "padded extent", Checked(axis.n) + Checked(padding));
    return;
  }
  const std::int64_t padded =
      fitting(who, number, "padded extent", Checked(axis.n) + Checked(axis.low) + Checked(axis.high));
  if (padded < extent) {
    if (!window.allow_empty)
      reject(who, "window of extent ", extent, " does not fit axis ", number, " of ", axis.n, " cells and padding (",
             axis.low, ", ", axis.high, "): the padded extent must be at least the window's, or allow_empty be set");
    axis.out = 0;
    return;
  }
  const std::int64_t remainder = (padded - extent) % axis.stride;
  axis.out = (padded - extent) / axis.stride + 1;
  if (window.exact && remainder != 0)
    reject(who, "stride ", axis.stride, " leaves ", remainder, " cells of axis ", number, " (", axis.n,
           ") over: with exact set the windows must tile the axis");
  const Checked next = Checked(axis.out) * Checked(axis.stride);
  if (window.ceil && remainder != 0 && next.ok() && next.value() < axis.n + axis.low) {
    ++axis.out;
    fitting(who, number, "last window", next + Checked(extent));
  }
}

Geometry resolve_window(std::string_view who, const Window& window, const Extents& shape) {
  if (window.size.is_scalar() && !window.axes)
    reject(who, "window = ", window.size.values()[0],
           ": one integer needs axes; otherwise give a list with one extent per pooled axis");
  const int count = window.size.is_scalar() ? window.axes->size() : window.size.values().size();
  if (count == 0) reject(who, "window = (): must have at least one extent");
  Geometry geometry;
  geometry.pooled = listed_axes(who, count, window.channels_last, window.axes, shape.size());
  const Extents size = positive(who, "window", window.size, count);
  const Extents stride = positive(who, "stride", window.stride, count);
  const Extents dilation = positive(who, "dilation", window.dilation, count);
  const auto sides = sides_of(who, window.padding, count);
  const bool tiling =
      window.padding.rule() == Padding::Rule::valid || window.padding.rule() == Padding::Rule::explicit_sides;
  if (window.exact && !tiling) reject(who, "exact with padding same: must not be combined");
  if (window.exact && window.ceil) reject(who, "exact with ceil: must not be combined");
  for (int i = 0; i < count; ++i) {
    const auto side = sides[static_cast<std::size_t>(i)];
    Axis axis{
        shape[static_cast<int>(geometry.pooled[i])], size[i], stride[i], dilation[i], side.low, side.high, 0, false};
    size_axis(who, static_cast<int>(geometry.pooled[i]), window, axis);
    geometry.axes.push_back(axis);
  }
  return geometry;
}

Geometry resolve_adaptive(std::string_view who, const Adaptive& region, const Extents& shape) {
  const auto count = static_cast<int>(std::min<std::size_t>(region.output.size(), max_rank));
  if (count == 0) reject(who, "output = (): must have one entry per pooled axis");
  Geometry geometry;
  geometry.pooled = listed_axes(who, count, region.channels_last, region.axes, shape.size());
  for (int i = 0; i < count; ++i) {
    const std::int64_t n = shape[static_cast<int>(geometry.pooled[i])];
    const std::int64_t out = region.output[static_cast<std::size_t>(i)].value_or(n);
    if (region.output[static_cast<std::size_t>(i)] && out < 1)
      reject(who, "output[", i, "] = ", out, ": every output extent must be at least 1");
    if (out == n || (n > 0 && n % out == 0)) {
      const std::int64_t size = out == n ? 1 : n / out;
      geometry.axes.push_back(Axis{n, size, size, 1, 0, 0, out, false});
      continue;
    }
    fitting(who, static_cast<int>(geometry.pooled[i]), "bins", Checked(n) + Checked(out));
    const std::int64_t largest = (n - std::gcd(n, out) + out - 1) / out + 1;
    geometry.axes.push_back(Axis{n, std::max<std::int64_t>(largest, 1), 1, 1, 0, 0, out, true});
  }
  return geometry;
}

Geometry resolve_global(std::string_view who, const Global& region, const Extents& shape) {
  Geometry geometry;
  geometry.pooled = plane_axes(who, shape.size(), region.rank, region.channels_last, region.axes);
  for (const std::int64_t axis : geometry.pooled) {
    const std::int64_t n = shape[static_cast<int>(axis)], size = std::max<std::int64_t>(n, 1);
    geometry.axes.push_back(Axis{n, size, size, 1, 0, 0, 1, false});
  }
  return geometry;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> Axis::interior() const noexcept {
  if (irregular() || out == 0) return {0, 0};
  const std::int64_t begin = low <= 0 ? 0 : low / stride + (low % stride != 0);
  const std::int64_t room = n + low - ((size - 1) * dilation + 1);
  const std::int64_t end = room < 0 ? 0 : std::min(out, room / stride + 1);
  return begin < end ? std::pair{begin, end} : std::pair<std::int64_t, std::int64_t>{0, 0};
}

Axis Axis::transpose() const noexcept {
  Axis result = *this;
  result.n = out;
  result.out = n;
  // Bins of an adaptive axis, and windows one step apart, are of the same kind seen from the other side.
  if (adaptive) {
    result.size = n > 0 ? out / n + (out % n != 0) + 1 : 1;
  } else if (stride == 1) {
    result.low = (size - 1) * dilation - low;
    result.high = (size - 1) * dilation - high;
  } else {
    result.transposed = !transposed;
  }
  return result;
}

std::int64_t Axis::transposed_step() const noexcept { return dilation / std::gcd(stride, dilation); }

namespace {

// The least t >= 0 with t*a = b modulo m; a and m have no common divisor.
std::int64_t first_multiple(std::int64_t a, std::int64_t b, std::int64_t m) {
  __extension__ using Wide = __int128;
  std::int64_t inverse = 0, next = 1, rest = m, divisor = a % m;
  while (divisor != 0) {
    const std::int64_t quotient = rest / divisor;
    std::tie(inverse, next) = std::pair(next, inverse - quotient * next);
    std::tie(rest, divisor) = std::pair(divisor, rest - quotient * divisor);
  }
  const std::int64_t positive = inverse < 0 ? inverse + m : inverse;
  return static_cast<std::int64_t>(static_cast<Wide>(positive) * (b % m) % m);
}

}  // namespace

// Positions p with p*stride + t*dilation = o + low for a tap t < size: taps lie stride/gcd apart, positions
// dilation/gcd.
Axis::Span Axis::transposed_span(std::int64_t o) const noexcept {
  const std::int64_t place = o + low, reach = (size - 1) * dilation;
  const std::int64_t least = place <= reach ? 0 : (place - reach - 1) / stride + 1;
  std::int64_t most = place / stride, step = 1;
  if (dilation > 1) {
    const std::int64_t common = std::gcd(stride, dilation);
    step = dilation / common;
    if (place % common != 0) return {};
    const std::int64_t tap = first_multiple(dilation / common, place / common, stride / common);
    if (tap >= size || tap > place / dilation) return {};
    most = (place - tap * dilation) / stride;
  }
  if (most >= n) most -= ((most - n) / step + 1) * step;
  if (most < least) return {};
  const std::int64_t count = (most - least) / step + 1;
  return {most - (count - 1) * step, count, 0};
}

Extents plane_axes(std::string_view who, int rank, const std::optional<int>& pooled_rank, bool channels_last,
                   const std::optional<Extents>& axes) {
  if (axes && (channels_last || pooled_rank)) reject(who, "axes and rank or channels_last: must not be combined");
  if (axes) return named_axes(who, *axes, rank);
  const int edge = channels_last ? 1 : 0;
  if (pooled_rank) {
    check_pooled_rank(who, *pooled_rank, rank - edge);
    return consecutive(rank - edge - *pooled_rank, *pooled_rank);
  }
  if (rank < 3) reject(who, "array of rank ", rank, ": without rank or axes it must have at least 3 axes");
  check_pooled_rank(who, rank - 2, rank);
  return consecutive(channels_last ? 1 : 2, rank - 2);
}

std::optional<Axis> merged(const Axis& outer, const Axis& inner) noexcept {
  const bool covered = !inner.irregular() && inner.out == 1 && inner.size == inner.n && inner.low == 0 &&
                       inner.high == 0 && inner.dilation == 1;
  // Windows seen from a cell may begin behind the first.
  if (!covered || outer.irregular() || outer.dilation != 1 || outer.low < 0 || outer.high < 0) return std::nullopt;
  std::int64_t bound = outer.n;
  for (const std::int64_t more : {outer.size, outer.stride, outer.low, outer.high})
    if (__builtin_add_overflow(bound, more, &bound)) return std::nullopt;
  const std::int64_t n = inner.n;
  if (__builtin_mul_overflow(bound, n, &bound)) return std::nullopt;
  return Axis{outer.n * n, outer.size * n, outer.stride * n, 1, outer.low * n, outer.high * n, outer.out};
}

Geometry resolve(std::string_view who, const Region& region, const Extents& shape) {
  element_count(shape);
  Geometry geometry;
  bool keepdims = true;
  if (const auto* window = std::get_if<Window>(&region)) {
    geometry = resolve_window(who, *window, shape);
  } else if (const auto* adaptive = std::get_if<Adaptive>(&region)) {
    geometry = resolve_adaptive(who, *adaptive, shape);
  } else {
    geometry = resolve_global(who, std::get<Global>(region), shape);
    keepdims = std::get<Global>(region).keepdims;
  }
  geometry.kept_shape = shape;
  for (int i = 0; i < geometry.pooled.size(); ++i)
    geometry.kept_shape[static_cast<int>(geometry.pooled[i])] = geometry.axes[static_cast<std::size_t>(i)].out;
  for (int i = 0; i < shape.size(); ++i)
    if (keepdims || std::find(geometry.pooled.begin(), geometry.pooled.end(), i) == geometry.pooled.end())
      geometry.output_shape.push_back(geometry.kept_shape[i]);
  return geometry;
}

}  // namespace cenote
