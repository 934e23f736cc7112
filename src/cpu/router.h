// The loops between outputs, their offsets and the cells that those name.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <cenote/array.h>

#include "core/parallel.h"
#include "plan/impl.h"

namespace cenote::cpu {

constexpr std::int64_t largest_table = 1024;  // offsets that are looked up

using Places = std::array<std::int64_t, max_rank>;

/// One axis of a routing: a kept one has as many cells as outputs and no window.
struct RouteAxis {
  std::int64_t outputs = 1, output_step = 0, offset_step = 0, cell_step = 0;
};

/// Of numbers below 2^48: a half keeps the quotient clear of whole numbers, so that it is exact, and sooner there than
/// a division.
constexpr std::int64_t most_quick = std::int64_t{1} << 48;
inline std::int64_t floor_of(std::int64_t number, double inverse) noexcept {
  return static_cast<std::int64_t>((static_cast<double>(number) + 0.5) * inverse);
}

/// How far each offset lies from the first tap of its window: looked up, or counted where windows are large.
class Distances {
 public:
  Distances() = default;
  Distances(std::span<const Axis> axes, const Places& steps, std::int64_t taps)
      : depth_(axes.size()), tabled_(taps <= largest_table) {
    for (std::size_t l = 0; l < depth_; ++l)
      levels_[l] = {1 / static_cast<double>(axes[l].size), axes[l].size, axes[l].dilation * steps[l]};
    for (std::int64_t offset = 0; tabled_ && offset < taps; ++offset)
      table_[static_cast<std::size_t>(offset)] = count(offset);
  }
  std::int64_t operator[](std::int64_t offset) const {
    return tabled_ ? table_[static_cast<std::size_t>(offset)] : count(offset);
  }

  /// All of them, or null where they are counted.
  const std::int64_t* table() const { return tabled_ ? table_.data() : nullptr; }

 private:
  struct Level {
    double inverse;
    std::int64_t size, step;
  };
  std::int64_t count(std::int64_t offset) const {
    std::int64_t sum = 0;
    for (std::size_t l = depth_; l-- > 0;) {
      const std::int64_t rest = floor_of(offset, levels_[l].inverse);
      sum += (offset - rest * levels_[l].size) * levels_[l].step;
      offset = rest;
    }
    return sum;
  }

  std::size_t depth_ = 0;
  bool tabled_ = false;
  std::array<Level, max_rank> levels_;
  std::array<std::int64_t, largest_table> table_;
};

/// The loops of a routing between an array of outputs and one of cells.
class Router {
 public:
  Router(const Plan::Impl& plan, const View& offsets, const View& outputs, const View& cells)
      : depth_(plan.geometry.axes.size()) {
    std::copy(plan.geometry.axes.begin(), plan.geometry.axes.end(), axes_.begin());
    const Extents& pooled = plan.geometry.pooled;
    for (int i = 0, level = 0; i < cells.rank(); ++i) {
      const RouteAxis axis{plan.geometry.kept_shape[i], outputs.data ? outputs.strides[i] : 0,
                           offsets.data ? offsets.strides[i] : 0, cells.data ? cells.strides[i] : 0};
      if (level < pooled.size() && pooled[level] == i)
        levels_[static_cast<std::size_t>(level++)] = axis;
      else
        kept_[kept_count_++] = axis;
    }
    // The innermost kept axis is walked inside the windows: channels that lie side by side.
    if (kept_count_ > 0 && pooled[pooled.size() - 1] < cells.rank() - 1) lanes_ = kept_[--kept_count_];
    for (std::size_t i = 0; i < kept_count_; ++i) slices_ *= kept_[i].outputs;
    // How far apart windows lie does not matter where there is but one.
    for (Axis& axis : std::span(axes_.data(), depth_))
      if (axis.out == 1 && !axis.irregular() && axis.dilation == 1) axis.stride = std::max(axis.stride, axis.size);
    while (merge_last()) --depth_;
    bool regular = true;
    taps_ = 1;
    for (std::size_t l = 0; l < depth_; ++l) {
      const Axis& axis = axes_[l];
      full_[l] = axis.dilation == 1 && axis.out > 0 && axis.span(0).count > 0 && axis.span(axis.out - 1).count > 0;
      regular = regular && !axis.adaptive;
      taps_ = regular && !__builtin_mul_overflow(taps_, axis.size, &taps_) ? taps_ : INT64_MAX;
    }
    same_ = regular && taps_ < most_quick;
    first_bin_.fill(most_bins);
    for (std::size_t l = 0, bins = 0; l < depth_; ++l) {
      const std::int64_t out = axes_[l].out;
      if (!axes_[l].adaptive || out > static_cast<std::int64_t>(most_bins - bins)) continue;
      first_bin_[l] = bins;
      for (std::int64_t o = 0; o < out; ++o) bins_[bins++] = find_bin(l, o);
    }
  }

  std::size_t depth() const { return depth_; }
  std::int64_t slices() const { return slices_; }
  const RouteAxis& lanes() const { return lanes_; }
  /// The innermost kept axis that slices run along; one step of one, where there is none.
  RouteAxis kept() const { return kept_count_ > 0 ? kept_[kept_count_ - 1] : RouteAxis(); }
  const RouteAxis& level(std::size_t l) const { return levels_[l]; }
  const Axis& axis(std::size_t l) const { return axes_[l]; }

  /// Where slice number i begins in outputs, offsets and cells.
  RouteAxis slice(std::int64_t i) const {
    RouteAxis at;
    for (std::size_t k = kept_count_; k-- > 0;) {
      const RouteAxis& axis = kept_[k];
      const std::int64_t step = i % axis.outputs;
      i /= axis.outputs;
      at.output_step += step * axis.output_step;
      at.offset_step += step * axis.offset_step;
      at.cell_step += step * axis.cell_step;
    }
    return at;
  }

  /// All kept axes as one, if they follow each other everywhere.
  std::optional<RouteAxis> planes() const {
    RouteAxis all;
    for (std::size_t k = kept_count_; k-- > 0;) {
      const RouteAxis& axis = kept_[k];
      if (axis.outputs == 1) continue;
      if (all.outputs == 1)
        all = axis;
      else if (axis.output_step == all.outputs * all.output_step && axis.offset_step == all.outputs * all.offset_step &&
               axis.cell_step == all.outputs * all.cell_step)
        all.outputs *= axis.outputs;
      else
        return std::nullopt;
    }
    return all;
  }
  /// The same windows on so many planes whose cells, and whose outputs, lie side by side.
  Router turned(std::int64_t planes) const {
    Router result = *this;
    result.kept_count_ = 0;
    result.slices_ = 1;
    result.lanes_ = {planes, 1, 1, 1};
    std::int64_t outputs = planes, cells = planes;
    for (std::size_t l = depth(); l-- > 0; outputs *= axes_[l].out, cells *= axes_[l].n)
      result.levels_[l] = {axes_[l].out, outputs, outputs, cells};
    return result;
  }

  /// The same windows as those of one line, where each covers a plane and planes follow each other.
  Router as_line() const {
    Router result = *this;
    const auto all = planes();
    if (!all || depth() != 1 || lanes_.outputs > 1 || all->cell_step != axes_[0].n * levels_[0].cell_step)
      return result;
    const auto line = merged(Axis{all->outputs, 1, 1, 1, 0, 0, all->outputs}, axes_[0]);
    if (!line) return result;
    result.axes_[0] = *line;
    result.levels_[0] = {all->outputs, all->output_step, all->offset_step, levels_[0].cell_step};
    result.kept_count_ = 0;
    result.slices_ = 1;
    return result;
  }

  /// Distances when a step along level l is steps[l]. False where they depend on the window.
  bool find_distances(const Places& steps, Distances& distances) const {
    if (same_) distances = Distances(std::span(axes_.data(), depth_), steps, taps_);
    return same_;
  }

  /// Whether no cell lies in two windows, and those have so many taps.
  bool apart(std::int64_t least_taps) const {
    for (std::size_t l = 0; l < depth_; ++l) {
      const Axis& axis = axes_[l];
      if (axis.irregular() || (axis.out > 1 && axis.size - 1 > (axis.stride - 1) / axis.dilation)) return false;
    }
    return taps_ >= least_taps;
  }

  /// The first tap of window o along level l; it may lie in the padding.
  std::int64_t start(std::size_t l, std::int64_t o) const {
    return axes_[l].adaptive ? bin(l, o).first : o * axes_[l].stride - axes_[l].low;
  }
  /// How far an offset of the window at `o` lies from that window's first tap.
  std::int64_t distance(const Places& o, std::int64_t offset, const Places& steps) const {
    std::int64_t sum = 0;
    for (std::size_t l = depth(); l-- > 1;) {
      std::int64_t width = axes_[l].size, rest;
      if (axes_[l].adaptive) {
        const Bin some = bin(l, o[l]);
        width = some.width;
        rest = offset < most_quick ? floor_of(offset, some.inverse) : offset / width;
      } else {
        rest = offset / width;
      }
      sum += (offset - rest * width) * axes_[l].step() * steps[l];
      offset = rest;
    }
    return sum + offset * axes_[0].step() * steps[0];
  }
  /// Whether an offset names a real cell of the window at `o`.
  bool real(const Places& o, std::int64_t offset) const {
    for (std::size_t l = depth(); l-- > 0;) {
      const Axis::Span span = axes_[l].span(o[l]);
      const std::int64_t width = axes_[l].adaptive ? span.count : axes_[l].size, tap = offset % width;
      if (tap < span.tap || tap >= span.tap + span.count) return false;
      offset /= width;
    }
    return offset == 0;
  }
  /// Whether all windows along level l have a real cell.
  bool full(std::size_t l) const { return full_[l]; }
  /// Whether window o along level l has no real cell.
  bool empty(std::size_t l, std::int64_t o) const { return !full_[l] && axes_[l].span(o).count == 0; }

  /// Calls visit(o, at) for every row of outputs with o[0] in [begin, end): all levels but the last are fixed in o, and
  /// `at` is where the row begins, in outputs and offsets. Rows without a real cell are left out if `skip`.
  template <class Visit>
  void rows(std::int64_t begin, std::int64_t end, const RouteAxis& slice, bool skip, const Visit& visit) const {
    Places o{};
    const std::size_t last = depth() - 1;
    if (last == 0) return visit(o, slice);
    for (std::size_t l = 1; l < last; ++l)
      if (axes_[l].out == 0) return;
    for (o[0] = begin; o[0] < end;) {
      RouteAxis at = slice;
      bool none = false;
      for (std::size_t l = 0; l < last; ++l) {
        at.output_step += o[l] * levels_[l].output_step;
        at.offset_step += o[l] * levels_[l].offset_step;
        none = none || empty(l, o[l]);
      }
      if (!none || !skip) visit(o, at);
      std::size_t l = last;
      while (l-- > 0 && ++o[l] == axes_[l].out && l > 0) o[l] = 0;
    }
  }

 private:
  /// A window of an adaptive level. Bins take long to find, so some are kept.
  struct Bin {
    double inverse;  // of the width
    std::int64_t first, width;
  };
  static constexpr std::size_t most_bins = 128;
  Bin find_bin(std::size_t l, std::int64_t o) const {
    const Axis::Span span = axes_[l].span(o);
    return {1 / static_cast<double>(span.count), span.first, span.count};
  }
  Bin bin(std::size_t l, std::int64_t o) const {
    return first_bin_[l] < most_bins ? bins_[first_bin_[l] + static_cast<std::size_t>(o)] : find_bin(l, o);
  }

  // Where one window covers the last level, it and the one outside it are one: offsets count taps in that order.
  bool merge_last() {
    if (depth_ < 2) return false;
    const std::size_t last = depth_ - 1;
    const auto one = merged(axes_[last - 1], axes_[last]);
    if (!one || levels_[last - 1].cell_step != levels_[last].cell_step * axes_[last].n) return false;
    axes_[last - 1] = *one;
    levels_[last - 1].cell_step = levels_[last].cell_step;
    return true;
  }

  std::array<Axis, max_rank> axes_{};
  std::size_t depth_;
  std::array<RouteAxis, max_rank> kept_{}, levels_{};
  std::size_t kept_count_ = 0;
  RouteAxis lanes_;
  std::array<bool, max_rank> full_{};  // every window has a real cell
  std::int64_t slices_ = 1, taps_ = 1;
  bool same_ = false;                            // windows are alike
  std::array<std::size_t, max_rank> first_bin_;  // of a level, or `most_bins` where none are kept
  std::array<Bin, most_bins> bins_;              //
};

constexpr std::int64_t task_elements = 1 << 14;  // what one task should touch at least

/// Tasks of about equal size over [0, n), each of `work` elements.
template <class Body>
void in_tasks(std::int64_t n, std::int64_t work, const Body& body) {
  const std::int64_t together = std::max<std::int64_t>(1, task_elements / std::max<std::int64_t>(work, 1));
  parallel_for((n + together - 1) / together, [&](std::int64_t task) {
    for (std::int64_t i = task * together; i < std::min(n, (task + 1) * together); ++i) body(i);
  });
}

inline std::int64_t outputs_of_slice(const Router& router) {
  std::int64_t n = router.lanes().outputs;
  for (std::size_t l = 0; l < router.depth(); ++l) n *= router.axis(l).out;
  return n;
}

}  // namespace cenote::cpu
