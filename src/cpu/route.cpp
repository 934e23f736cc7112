// Moves elements between outputs and their winners, which offsets name. Every cell of gx has one owner, so that sums
// need no atomics and come out the same for any number of threads.
#include "cpu/route.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/copy.h"
#include "core/parallel.h"
#include "core/reject.h"
#include "cpu/scratch.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t block_bytes = 256 << 10;  // sums of one block: a part of L2
constexpr std::int64_t largest_table = 1024;     // offsets that are looked up
constexpr std::int64_t task_elements = 1 << 14;  // what one task should touch at least

template <class Visit>
void visit_offset_type(Type type, const Visit& visit) {
  switch (type) {
    case Type::u8: return visit(std::uint8_t{});
    case Type::u16: return visit(std::uint16_t{});
    case Type::i32: return visit(std::int32_t{});
    default: return visit(std::int64_t{});
  }
}

using Places = std::array<std::int64_t, max_rank>;

/// One axis of a routing: a kept one has as many cells as outputs and no window.
struct RouteAxis {
  std::int64_t outputs = 1, output_step = 0, offset_step = 0, cell_step = 0;
};

/// The loops of a routing between an array of outputs and one of cells.
class Router {
 public:
  Router(const Plan::Impl& plan, const View& offsets, const View& outputs, const View& cells)
      : plan_(plan), axes_(plan.geometry.axes) {
    const Extents& pooled = plan.geometry.pooled;
    for (int i = 0, level = 0; i < cells.rank(); ++i) {
      const RouteAxis axis{plan.geometry.kept_shape[i], outputs.data ? outputs.strides[i] : 0, offsets.strides[i],
                           cells.data ? cells.strides[i] : 0};
      if (level < pooled.size() && pooled[level] == i)
        levels_[static_cast<std::size_t>(level++)] = axis;
      else
        kept_[kept_count_++] = axis;
    }
    // The innermost kept axis is walked inside the windows: channels that lie side by side.
    if (kept_count_ > 0 && pooled[pooled.size() - 1] < cells.rank() - 1) lanes_ = kept_[--kept_count_];
    for (std::size_t i = 0; i < kept_count_; ++i) slices_ *= kept_[i].outputs;
    bool regular = true;
    taps_ = 1;
    for (const Axis& axis : axes_) {
      regular = regular && !axis.adaptive;
      taps_ = regular && !__builtin_mul_overflow(taps_, axis.size, &taps_) ? taps_ : INT64_MAX;
    }
    tabled_ = regular && taps_ <= largest_table;
  }

  std::size_t depth() const { return axes_.size(); }
  std::int64_t slices() const { return slices_; }
  const RouteAxis& lanes() const { return lanes_; }
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

  /// How far each offset lies from the first tap of its window, when a step along level l is steps[l]. False where that
  /// depends on the window or is too much to keep.
  bool find_distances(const Places& steps, std::array<std::int64_t, largest_table>& distances) const {
    for (std::int64_t offset = 0; tabled_ && offset < taps_; ++offset) {
      std::int64_t rest = offset, sum = 0;
      for (std::size_t l = depth(); l-- > 0; rest /= axes_[l].size)
        sum += rest % axes_[l].size * axes_[l].dilation * steps[l];
      distances[static_cast<std::size_t>(offset)] = sum;
    }
    return tabled_;
  }

  /// The first tap of window o along level l; it may lie in the padding.
  std::int64_t start(std::size_t l, std::int64_t o) const {
    return axes_[l].adaptive ? axes_[l].span(o).first : o * axes_[l].stride - axes_[l].low;
  }
  /// How far an offset of the window at `o` lies from that window's first tap.
  std::int64_t distance(const Places& o, std::int64_t offset, const Places& steps) const {
    std::int64_t sum = 0;
    for (std::size_t l = depth(); l-- > 0;) {
      const std::int64_t width = axes_[l].adaptive ? axes_[l].span(o[l]).count : axes_[l].size;
      sum += offset % width * axes_[l].step() * steps[l];
      offset /= width;
    }
    return sum;
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
  bool empty(std::size_t l, std::int64_t o) const { return axes_[l].span(o).count == 0; }

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
  const Plan::Impl& plan_;
  const std::vector<Axis>& axes_;
  std::array<RouteAxis, max_rank> kept_{}, levels_{};
  std::size_t kept_count_ = 0;
  RouteAxis lanes_;
  std::int64_t slices_ = 1, taps_ = 1;
  bool tabled_ = false;
};

// Tasks of about equal size over [0, n), each of `work` elements.
template <class Body>
void in_tasks(std::int64_t n, std::int64_t work, const Body& body) {
  const std::int64_t together = std::max<std::int64_t>(1, task_elements / std::max<std::int64_t>(work, 1));
  parallel_for((n + together - 1) / together, [&](std::int64_t task) {
    for (std::int64_t i = task * together; i < std::min(n, (task + 1) * together); ++i) body(i);
  });
}

std::int64_t outputs_of_slice(const Router& router) {
  std::int64_t n = router.lanes().outputs;
  for (std::size_t l = 0; l < router.depth(); ++l) n *= router.axis(l).out;
  return n;
}

/// Cells of one block, summed in the lane type A.
template <class A>
class Sums {
 public:
  Sums(const Router& router, const Plan::Impl& plan, const View& offsets, const View& gy, const MutableView& gx)
      : router_(router), plan_(plan), offsets_(offsets), gy_(gy), gx_(gx) {
    std::int64_t step = router.lanes().outputs;
    for (std::size_t l = router.depth(); l-- > 0; step *= router.axis(l).n) steps_[l] = step;
    row_ = step / std::max<std::int64_t>(router.axis(0).n, 1);
    tabled_ = router.find_distances(steps_, distances_);
    transposed_ = router.axis(0).transpose();
    const std::int64_t n = router.axis(0).n, wanted = (4 * thread_limit() + router.slices() - 1) / router.slices();
    const std::int64_t most =
        std::max<std::int64_t>(1, block_bytes / static_cast<std::int64_t>(sizeof(A)) / std::max<std::int64_t>(row_, 1));
    length_ = std::clamp<std::int64_t>(std::min(most, (n + wanted - 1) / wanted), 1, std::max<std::int64_t>(n, 1));
    blocks_ = (n + length_ - 1) / length_;
  }

  void run() const {
    if (row_ == 0 || router_.axis(0).n == 0) return;
    in_tasks(router_.slices() * blocks_, length_ * row_, [&](std::int64_t i) { block(i / blocks_, i % blocks_); });
  }

 private:
  void block(std::int64_t slice, std::int64_t number) const {
    const std::int64_t begin = number * length_, end = std::min(router_.axis(0).n, begin + length_);
    const RouteAxis at = router_.slice(slice);
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    const std::int64_t size = (end - begin) * row_;
    A* sums = reinterpret_cast<A*>(scratch.take(size * static_cast<std::int64_t>(sizeof(A))));
    std::fill(sums, sums + size, A{0});
    // Outputs of the outermost level that reach these cells.
    std::int64_t from = router_.axis(0).out, to = 0;
    for (std::int64_t cell = begin; cell < end; ++cell) {
      const Axis::Span span = transposed_.span(cell);
      if (span.count == 0) continue;
      from = std::min(from, span.first);
      to = std::max(to, span.first + (span.count - 1) * transposed_.step() + 1);
    }
    visit_offset_type(offsets_.type, [&]<class Offset>(Offset) {
      router_.rows(from, to, at, true, [&](const Places& o, const RouteAxis& row) {
        add_row<Offset>(o, row, begin * row_, size, from, to, sums);
      });
    });
    write(begin, end, at.cell_step, sums);
    scratch.release(mark);
  }

  // One row of outputs; with a single level the row is the part of it that reaches the block.
  template <class Offset>
  void add_row(const Places& outer, const RouteAxis& row, std::int64_t shift, std::int64_t size, std::int64_t from,
               std::int64_t to, A* sums) const {
    const std::size_t last = router_.depth() - 1;
    const RouteAxis &level = router_.level(last), &lanes = router_.lanes();
    const Axis& axis = router_.axis(last);
    Places o = outer;
    std::int64_t base = -shift;
    for (std::size_t l = 0; l < last; ++l) base += router_.start(l, o[l]) * steps_[l];
    const auto [inside, outside] = axis.interior();
    const std::int64_t first = last == 0 ? from : 0, stop = last == 0 ? to : axis.out;
    std::array<A, 256> values;
    for (o[last] = first; o[last] < stop;) {
      const std::int64_t begin = o[last];
      const bool single = lanes.outputs > 1;
      const std::int64_t count = single ? 1 : std::min<std::int64_t>(256, stop - begin);
      const auto* offsets = static_cast<const Offset*>(offsets_.data) + row.offset_step + begin * level.offset_step;
      if (!single) {
        read(row.output_step + begin * level.output_step, level.output_step, count, values.data());
        for (std::int64_t i = 0; i < count; ++i, ++o[last]) {
          const std::int64_t w = o[last];
          if ((w < inside || w >= outside) && router_.empty(last, w)) continue;
          add(base + router_.start(last, w) * steps_[last] + far(o, offsets[i * level.offset_step]), size,
              values[static_cast<std::size_t>(i)], sums);
        }
        continue;
      }
      if (!router_.empty(last, begin)) {
        const std::int64_t window = base + router_.start(last, begin) * steps_[last];
        for (std::int64_t c = 0; c < lanes.outputs; c += 256) {
          const std::int64_t n = std::min<std::int64_t>(256, lanes.outputs - c);
          read(row.output_step + begin * level.output_step + c * lanes.output_step, lanes.output_step, n,
               values.data());
          for (std::int64_t i = 0; i < n; ++i)
            add(window + c + i + far(o, offsets[(c + i) * lanes.offset_step]), size,
                values[static_cast<std::size_t>(i)], sums);
        }
      }
      ++o[last];
    }
  }

  // Cells of other blocks are theirs to add.
  static void add(std::int64_t cell, std::int64_t size, A value, A* sums) {
    if (static_cast<std::uint64_t>(cell) < static_cast<std::uint64_t>(size)) sums[cell] += value;
  }
  std::int64_t far(const Places& o, std::int64_t offset) const {
    return tabled_ ? distances_[static_cast<std::size_t>(offset)] : router_.distance(o, offset, steps_);
  }
  void read(std::int64_t at, std::int64_t step, std::int64_t n, A* values) const {
    convert_line(type_of<A>, values, gy_.type,
                 static_cast<const std::byte*>(gy_.data) + at * static_cast<std::int64_t>(size_of(gy_.type)), step, n);
  }

  // The cells [begin, end) of the outermost level, to where they belong in gx.
  void write(std::int64_t begin, std::int64_t end, std::int64_t slice, const A* sums) const {
    const std::size_t depth = router_.depth(), last = depth - 1;
    const RouteAxis& lanes = router_.lanes();
    const bool by_lanes = lanes.outputs > 1;
    const std::int64_t n = by_lanes ? lanes.outputs : last == 0 ? end - begin : router_.axis(last).n;
    const std::int64_t step = by_lanes ? lanes.cell_step : router_.level(last).cell_step;
    const auto bytes = static_cast<std::int64_t>(size_of(gx_.type));
    const std::size_t loops = by_lanes ? depth : last;
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    std::byte* narrow = scratch.take(n * 8);
    Places cell{};
    cell[0] = begin;
    const std::int64_t lines = n > 0 ? (end - begin) * row_ / n : 0;
    for (std::int64_t line = 0; line < lines; ++line, sums += n) {
      std::int64_t at = slice;
      // A single level without lanes is one line, and begins where the block does.
      for (std::size_t l = 0; l < std::max<std::size_t>(loops, 1); ++l) at += cell[l] * router_.level(l).cell_step;
      const void* values = sums;
      if (gx_.type != type_of<A>) {
        narrow_line(gx_.type, narrow, type_of<A>, sums, n);
        values = narrow;
      }
      scatter_line(gx_.type, static_cast<std::byte*>(gx_.data) + at * bytes, step, values, n);
      std::size_t l = loops;
      while (l-- > 0 && ++cell[l] == router_.axis(l).n && l > 0) cell[l] = 0;
    }
    scratch.release(mark);
  }

  const Router& router_;
  const Plan::Impl& plan_;
  const View& offsets_;
  const View& gy_;
  const MutableView& gx_;
  Places steps_{};
  std::int64_t row_ = 0, length_ = 1, blocks_ = 1;
  std::array<std::int64_t, largest_table> distances_;
  bool tabled_ = false;
  Axis transposed_;
};

}  // namespace

void check_offsets(const Plan::Impl& plan, const View& offsets) {
  View none;
  none.shape = plan.shape;
  const Router router(plan, offsets, View(), none);
  std::int64_t taps = 1;
  for (const Axis& axis : plan.geometry.axes) taps = axis.adaptive ? 0 : taps * axis.size;
  const std::size_t last = router.depth() - 1;
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const auto [inside, outside] = router.axis(last).interior();
  const auto check = [&]<class Offset>(const Places& outer, const RouteAxis& row, bool interior, Offset) {
    Places o = outer;
    for (o[last] = 0; o[last] < router.axis(last).out; ++o[last]) {
      const bool whole = interior && o[last] >= inside && o[last] < outside && taps > 0;
      if (!whole && router.empty(last, o[last])) continue;
      const auto* p = static_cast<const Offset*>(offsets.data) + row.offset_step + o[last] * level.offset_step;
      for (std::int64_t c = 0; c < lanes.outputs; ++c, p += lanes.offset_step) {
        const auto offset = static_cast<std::int64_t>(*p);
        if (offset < 0 || (whole ? offset >= taps : !router.real(o, offset)))
          reject(plan.who, "offsets hold ", offset, " for a window of ",
                 taps > 0 ? std::to_string(taps) + " cells" : std::string("an adaptive bin"),
                 ": it must name a real cell of its window");
      }
    }
  };
  in_tasks(router.slices(), outputs_of_slice(router), [&](std::int64_t i) {
    visit_offset_type(offsets.type, [&](auto type) {
      router.rows(0, router.axis(0).out, router.slice(i), true, [&](const Places& o, const RouteAxis& row) {
        bool interior = true;
        for (std::size_t l = 0; l < last; ++l) {
          const auto [begin, end] = router.axis(l).interior();
          interior = interior && o[l] >= begin && o[l] < end;
        }
        check(o, row, interior, type);
      });
    });
  });
}

void fetch(const Plan::Impl& plan, const View& offsets, const View& dx, const MutableView& dy) {
  const Router router(plan, offsets, dy, dx);
  const std::size_t last = router.depth() - 1;
  Places steps{};
  for (std::size_t l = 0; l <= last; ++l) steps[l] = router.level(l).cell_step;
  std::array<std::int64_t, largest_table> distances;
  const bool tabled = router.find_distances(steps, distances);
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const auto copy = [&]<class Bits, class Offset>(std::int64_t slice, Bits, Offset) {
    const RouteAxis at = router.slice(slice);
    router.rows(0, router.axis(0).out, at, false, [&](const Places& outer, const RouteAxis& row) {
      Places o = outer;
      std::int64_t base = at.cell_step;
      bool none = false;
      for (std::size_t l = 0; l < last; ++l) {
        base += router.start(l, o[l]) * steps[l];
        none = none || router.empty(l, o[l]);
      }
      for (o[last] = 0; o[last] < router.axis(last).out; ++o[last]) {
        const bool empty = none || router.empty(last, o[last]);
        const std::int64_t window = base + router.start(last, o[last]) * steps[last];
        const auto* from = static_cast<const Offset*>(offsets.data) + row.offset_step + o[last] * level.offset_step;
        Bits* to = static_cast<Bits*>(dy.data) + row.output_step + o[last] * level.output_step;
        for (std::int64_t c = 0; c < lanes.outputs; ++c) {
          const auto offset = static_cast<std::int64_t>(from[c * lanes.offset_step]);
          const std::int64_t far = empty    ? 0
                                   : tabled ? distances[static_cast<std::size_t>(offset)]
                                            : router.distance(o, offset, steps);
          to[c * lanes.output_step] =
              empty ? Bits{0} : static_cast<const Bits*>(dx.data)[window + c * lanes.cell_step + far];
        }
      }
    });
  };
  in_tasks(router.slices(), outputs_of_slice(router), [&](std::int64_t i) {
    visit_offset_type(offsets.type, [&](auto offset) {
      switch (size_of(dx.type)) {
        case 2: return copy(i, std::uint16_t{}, offset);
        case 4: return copy(i, std::uint32_t{}, offset);
        default: return copy(i, std::uint64_t{}, offset);
      }
    });
  });
}

void send(const Plan::Impl& plan, const View& offsets, const View& gy, const MutableView& gx) {
  if (element_count(gx.shape) == 0) return;
  const Router router(plan, offsets, gy, gx);
  if (gx.type == Type::f64)
    Sums<double>(router, plan, offsets, gy, gx).run();
  else
    Sums<float>(router, plan, offsets, gy, gx).run();
}

}  // namespace cenote::cpu
