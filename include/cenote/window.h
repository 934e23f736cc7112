// Where windows lie: what a caller asks for (Window, Adaptive, Global) and one pooled axis, resolved (Axis).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cenote/extents.h>

namespace cenote {

/// Padding: a rule, one number for every side, or a list with one entry per pooled axis.
class Padding {
 public:
  enum class Rule { valid, same, same_lower, explicit_sides };
  /// The padding of one axis; one integer means both sides.
  struct Sides {
    std::int64_t low = 0, high = 0;
    Sides() = default;
    Sides(std::int64_t both) : low(both), high(both) {}
    Sides(std::int64_t low, std::int64_t high) : low(low), high(high) {}
    friend bool operator==(const Sides&, const Sides&) = default;
  };

  Padding() = default;
  Padding(Rule rule) : rule_(rule) {}
  Padding(std::int64_t every) : rule_(Rule::explicit_sides), every_(true), sides_{Sides(every)} {}
  Padding(std::initializer_list<Sides> sides) : rule_(Rule::explicit_sides), sides_(sides) {}
  explicit Padding(std::vector<Sides> sides) : rule_(Rule::explicit_sides), sides_(std::move(sides)) {}

  Rule rule() const noexcept { return rule_; }
  /// True when one integer was given for all sides.
  bool is_scalar() const noexcept { return every_; }
  std::span<const Sides> sides() const noexcept { return sides_; }
  friend bool operator==(const Padding&, const Padding&) = default;

 private:
  Rule rule_ = Rule::valid;
  bool every_ = false;
  std::vector<Sides> sides_;
};

/// No padding: windows lie inside the array.
inline const Padding valid{Padding::Rule::valid};
/// ceil(n / stride) outputs; an odd cell of padding goes to the high side.
inline const Padding same{Padding::Rule::same};
/// As `same`, with the odd cell on the low side.
inline const Padding same_lower{Padding::Rule::same_lower};

/// A sliding window. The pooled axes are the last ones (with channels_last: those before the last), or `axes`.
struct Window {
  /// Extent per pooled axis; its length is the pooled rank. One integer needs `axes`.
  PerAxis size = Extents{};
  PerAxis stride = 1;
  PerAxis dilation = 1;
  Padding padding{};
  /// One more window where a remainder is left.
  bool ceil = false;
  /// A remainder is an error.
  bool exact = false;
  /// A window that does not fit gives an axis of size 0 instead of an error.
  bool allow_empty = false;
  bool channels_last = false;
  /// Pooled axes by number, increasing; negative ones count from the end. Excludes channels_last.
  std::optional<Extents> axes{};
};

/// Windows chosen so that the output has a given size: bin i covers [floor(i*n/out), ceil((i+1)*n/out)).
struct Adaptive {
  /// Output extent per pooled axis; nullopt keeps the axis as it is.
  std::vector<std::optional<std::int64_t>> output{};
  bool channels_last = false;
  std::optional<Extents> axes{};
};

/// One window over all of every pooled axis: those after the first two, or between first and last, or the last `rank`.
struct Global {
  std::optional<int> rank{};
  bool channels_last = false;
  std::optional<Extents> axes{};
  /// Keep pooled axes with size 1.
  bool keepdims = true;
};

/// One pooled axis, resolved and checked: the window of output o covers positions o*stride - low + j*dilation, j <
/// size. A transposed axis goes the other way: its outputs are the cells of such an axis, its positions that axis's
/// outputs, and an output covers the positions whose windows hold it.
struct Axis {
  /// The real cells of one window: `count` positions from `first`, `tap` being the number of the first.
  struct Span {
    std::int64_t first = 0, count = 0, tap = 0;
  };

  std::int64_t n = 0, size = 1, stride = 1, dilation = 1, low = 0, high = 0, out = 0;
  bool adaptive = false;
  bool transposed = false;

  /// Whether neighbouring windows may differ in more than their place.
  bool irregular() const noexcept { return adaptive || transposed; }
  /// Between the cells of a window.
  std::int64_t step() const noexcept { return transposed ? transposed_step() : adaptive ? 1 : dilation; }
  /// The axis that goes the other way.
  Axis transpose() const noexcept;

  /// The real cells of window o, 0 <= o < out.
  Span span(std::int64_t o) const noexcept {
    if (transposed) return transposed_span(o);
    if (adaptive) {
      __extension__ using Wide = __int128;
      const auto wide = [&](std::int64_t i, std::int64_t extra) {
        return static_cast<std::int64_t>((static_cast<Wide>(i) * n + extra) / out);
      };
      const std::int64_t first = wide(o, 0);
      return {first, wide(o + 1, out - 1) - first, 0};
    }
    const std::int64_t start = o * stride - low;
    const std::int64_t skip = start < 0 ? steps(-start - 1) + 1 : 0;
    const std::int64_t stop = n <= start ? 0 : steps(n - start - 1) + 1;
    const std::int64_t last = stop < size ? stop : size;
    return skip < last ? Span{start + skip * dilation, last - skip, skip} : Span{0, 0, 0};
  }
  /// Taps of window o inside the padded extent: all but those of a ceil overhang.
  std::int64_t clipped(std::int64_t o) const noexcept {
    if (irregular()) return span(o).count;
    const std::int64_t room = steps(n + high - (o * stride - low) - 1) + 1;
    return room < size ? room : size;
  }
  /// Where a cell stands among windows that are `stride` apart: the last one that begins at or before it, its tap
  /// there, and how many windows would hold it if there were no borders; they are the last one and those before it.
  struct Place {
    std::int64_t window = 0, tap = 0, count = 0;
  };
  /// Precondition: neither adaptive nor dilated.
  Place place(std::int64_t cell) const noexcept {
    const std::int64_t at = cell + low, window = at / stride - (at % stride < 0), tap = at - window * stride;
    return {window, tap, tap < size ? (size - 1 - tap) / stride + 1 : 0};
  }
  /// Outputs [first, second) whose windows hold only real cells.
  std::pair<std::int64_t, std::int64_t> interior() const noexcept;
  friend bool operator==(const Axis&, const Axis&) = default;

 private:
  std::int64_t transposed_step() const noexcept;
  Span transposed_span(std::int64_t o) const noexcept;
  // Division is slow, and dilation is rare: a compiler that is not told so divides by 1.
  std::int64_t steps(std::int64_t distance) const noexcept {
    if (dilation == 1) [[likely]]
      return distance;
    return distance / dilation;
  }
};

}  // namespace cenote
