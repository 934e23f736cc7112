// Where the windows of a request lie on an array of a given shape.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <cenote/window.h>

namespace cenote {

using Region = std::variant<Window, Adaptive, Global>;

/// A region resolved for one shape. kept_shape has size 1 on dropped axes; output_shape lacks them.
struct Geometry {
  Extents pooled;
  std::vector<Axis> axes;
  Extents kept_shape;
  Extents output_shape;
};

/// The most cells of one window along an axis that can be real.
inline std::int64_t real_cells(const Axis& axis) noexcept {
  const std::int64_t within = axis.n > 0 ? (axis.n - 1) / axis.dilation + 1 : 1;
  return axis.size < within ? axis.size : within;
}

/// Cells from one end of an axis to the other, as far apart as those of a window, or one more.
inline std::int64_t cells_across(const Axis& axis) noexcept { return axis.n / axis.dilation + 1; }

/// Whether windows are mostly padding: more than twice as long as the axis.
inline bool overhangs(const Axis& axis) noexcept { return (axis.size - 1) / 2 >= cells_across(axis); }

/// Whether windows that share no cells lie side by side on an axis, without padding and without a rest.
inline bool tiles_exactly(const Axis& axis) noexcept {
  return !axis.irregular() && axis.dilation == 1 && axis.low == 0 && axis.size <= axis.stride &&
         axis.n % axis.stride == 0 && axis.n / axis.stride == axis.out;
}

/// Whether windows lie at every place of an axis, none of them mostly beside it.
inline bool is_dense(const Axis& axis) noexcept {
  return !axis.irregular() && axis.stride == 1 && axis.dilation == 1 && axis.size > 1 && axis.low < axis.size &&
         axis.n > 0 && axis.out - axis.low <= axis.n && !overhangs(axis);
}

/// Two axes as one, where a single window covers the inner one and elements follow each other: nothing where it does
/// not, or where numbers would be too large.
std::optional<Axis> merged(const Axis& outer, const Axis& inner) noexcept;

/// Checks a region against a shape; `who` stands in the errors.
Geometry resolve(std::string_view who, const Region& region, const Extents& shape);

/// The pooled axes that a choice of rank, layout or numbers names, for an array of `rank` axes.
Extents plane_axes(std::string_view who, int rank, const std::optional<int>& pooled_rank, bool channels_last,
                   const std::optional<Extents>& axes);

}  // namespace cenote
