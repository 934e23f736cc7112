// Cuts a pooling into slices, each of which is widened, summed and divided in the cache.
#include "cpu/slices.h"

#include <algorithm>

#include "core/copy.h"
#include "core/parallel.h"
#include "cpu/block.h"
#include "cpu/machine.h"
#include "cpu/quotients.h"
#include "cpu/scratch.h"
#include "plan/portions.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t slice_bytes = 384 << 10;      // that wait in a core's own cache, about,
constexpr std::int64_t most_waiting = 2048 << 10;    // and at the most, where single rows are long
constexpr std::int64_t read_bytes = 1024 << 10;      // of cells: more would leave threads without work
constexpr std::int64_t behind = 128;                 // bytes that kernels may read and write behind what there is
constexpr std::int64_t most_repeated = 1024;         // outputs of planes that have a table of divisors
constexpr std::int64_t least_period = 64;            // lanes of a table that repeats
constexpr std::int64_t serial_bytes = 128 << 10;     // less than this is not worth waking a thread
constexpr std::int64_t turned_planes = least_woven;  // slices hold multiples of it where planes are turned

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }

class Slices {
 public:
  Slices(const Plan::Impl& plan, const Layout& layout, const Operands& operands, bool stream, bool alone)
      : plan_(plan),
        sums_(*plan.sums),
        layout_(layout),
        operands_(operands),
        stream_(stream),
        widened_(sums_.type != plan.type),
        last_(static_cast<std::size_t>(layout.depth - 1)) {
    if (layout.outer_count > 0) planes_ = layout.outer[static_cast<std::size_t>(layout.outer_count - 1)];
    if (suits()) find_pieces(alone);
  }

  bool applies() const { return tops_.count > 0; }
  std::int64_t tasks() const { return outers_ * groups_ * tops_.count; }

  void run(std::int64_t task, const PoolPlanes& pool) const {
    static thread_local Scratch memory;
    const Scratch::Mark mark = memory.mark();
    const Slice slice = begin(task);
    Operands operands = operands_;
    Layout layout = layout_;
    layout.outer_count = 1;
    layout.outer[0] = planes_;
    layout.outer[0].extent = slice.planes;
    layout.axes[0] = slice.top;
    layout.levels[0].extent = slice.top.out;
    const auto* x = static_cast<const std::byte*>(operands_.x.data) + slice.origin.x * bytes_of(plan_.type);
    auto* y = static_cast<std::byte*>(operands_.y.data) + slice.origin.y * bytes_of(plan_.output_type);
    operands.x.data = x;
    if (widened_) {
      std::byte* cells = memory.take(dense(layout, false) * bytes_of(sums_.type) + behind);
      operands.x.data = cells;
      widen_cells(slice, layout, x, cells);
    }
    std::byte* sums = memory.take(dense(layout, true) * bytes_of(sums_.output_type) + behind);
    operands.y.data = sums;
    pool(sums_, layout, operands);
    divide(slice, layout, {sums_.output_type, plan_.output_type}, sums, y, false, memory);
    if (stream_) Emitter::flush();
    memory.release(mark);
  }

  /// Only the second half of it, for elements that lie as y does.
  void divide(std::int64_t task, const View& from) const {
    static thread_local Scratch memory;
    const Scratch::Mark mark = memory.mark();
    const Slice slice = begin(task);
    Layout layout = layout_;
    layout.axes[0] = slice.top;
    const auto* elements = static_cast<const std::byte*>(from.data) + slice.origin.y * bytes_of(from.type);
    auto* y = static_cast<std::byte*>(operands_.y.data) + slice.origin.y * bytes_of(operands_.y.type);
    divide(slice, layout, {from.type, operands_.y.type}, elements, y, true, memory);
    if (stream_) Emitter::flush();
    memory.release(mark);
  }

 private:
  /// Some planes, or some rows of one: from output `first` of the outermost level on.
  struct Slice {
    Origin origin;
    std::int64_t planes, first;
    Axis top;
  };

  // Cells of window o along a level: the real ones, or all but a ceil overhang.
  double count(std::size_t l, std::int64_t o) const {
    const Axis& axis = layout_.axes[l];
    const bool clipped = plan_.pooling.divisor.rule() == Divisor::Rule::clipped;
    return static_cast<double>(clipped ? axis.clipped(o) : axis.span(o).count);
  }

  // Whether outputs lie side by side along lines.
  bool suits() const {
    const Loop& inner = layout_.inner;
    return (inner.extent == 1 || inner.y == 1) && layout_.levels[last_].y == inner.extent;
  }

  void find_pieces(bool alone) {
    const Axis& top = layout_.axes[0];
    std::int64_t cells = layout_.inner.extent, outputs = cells;  // of a row of the outermost level
    for (std::size_t l = 1; l <= last_; ++l) cells *= layout_.axes[l].n, outputs *= layout_.axes[l].out;
    const std::int64_t cell = widened_ ? bytes_of(sums_.type) : 0, output = bytes_of(sums_.output_type);
    const auto waiting = [&](std::int64_t in, std::int64_t out) { return in * cells * cell + out * outputs * output; };
    const std::int64_t whole = std::max<std::int64_t>(1, waiting(top.n, top.out));
    const std::int64_t read = std::max<std::int64_t>(1, top.n * cells * bytes_of(plan_.type));
    std::int64_t rows = top.out, most = 1, least = 1;  // planes
    if (whole <= slice_bytes) {
      most = std::min(slice_bytes / whole, read_bytes / read + 1);
      if (sums_.algorithm.weaves()) least = turned_planes, most = ceil_div(most, least) * least;
    } else if (!top.irregular()) {
      const std::int64_t one = std::max<std::int64_t>(1, waiting(std::min(top.stride, top.n), 1));
      rows = std::max(slice_bytes / one, least_part(top));
    }
    // Rows of one slice, all of which the next may begin with.
    const std::int64_t reached =
        std::min(top.n, (std::min(rows, top.out) - 1) * top.stride + (top.size - 1) * top.dilation + 1);
    if (rows < top.out && waiting(reached, rows) > most_waiting) return;
    if (rows >= top.out && whole > most_waiting) return;
    tops_ = Pieces::of(top.out, rows);
    for (int i = 0; i + 1 < layout_.outer_count; ++i) outers_ *= layout_.outer[static_cast<std::size_t>(i)].extent;
    // So many that every thread has some.
    const std::int64_t wanted = alone ? 1 : ceil_div(4 * std::int64_t{thread_limit()}, outers_ * tops_.count);
    length_ = std::clamp<std::int64_t>(planes_.extent / wanted / least * least, least, most);
    length_ = std::min(length_, planes_.extent);
    groups_ = std::max<std::int64_t>(1, planes_.extent / length_);
  }

  Slice begin(std::int64_t task) const {
    const std::int64_t piece = task % tops_.count, group = task / tops_.count % groups_;
    std::int64_t outer = task / tops_.count / groups_;
    Slice slice{};
    for (int i = layout_.outer_count - 2; i >= 0; --i) {
      const Loop& loop = layout_.outer[static_cast<std::size_t>(i)];
      slice.origin.add(loop, outer % loop.extent);
      outer /= loop.extent;
    }
    slice.origin.add(planes_, group * length_);
    // The last one takes what is left, so that none has only few.
    slice.planes = group + 1 == groups_ ? planes_.extent - group * length_ : length_;
    slice.top = layout_.axes[0];
    if (tops_.count == 1) return slice;
    const Loop& top = layout_.levels[0];
    std::int64_t from = 0;
    const std::int64_t first = tops_.begin(piece);
    slice.top = part_of(layout_.axes[0], first, tops_.end(piece), from);
    slice.origin.x += from * top.x;
    slice.origin.y += first * top.y;
    slice.first = first;
    return slice;
  }

  // Lets the cells, or the outputs, of a slice lie side by side, and says how many there are.
  static std::int64_t dense(Layout& layout, bool outputs) {
    const auto put = [&](Loop& loop, std::int64_t step) { (outputs ? loop.y : loop.x) = step; };
    std::int64_t step = layout.inner.extent;
    put(layout.inner, 1);
    for (auto l = static_cast<std::size_t>(layout.depth); l-- > 0;) {
      put(layout.levels[l], step);
      step *= outputs ? layout.axes[l].out : layout.axes[l].n;
    }
    put(layout.outer[0], step);
    return step * layout.outer[0].extent;
  }

  // Calls visit(places, at) for each step of the levels before `depth`: `at` is where that lies in x, or in y.
  template <class Visit>
  void each(const Slice& slice, const Layout& layout, std::size_t depth, bool outputs, const Visit& visit) const {
    const auto step = [&](const Loop& loop) { return outputs ? loop.y : loop.x; };
    const auto extent = [&](const Axis& axis) { return outputs ? axis.out : axis.n; };
    for (std::size_t l = 0; l < depth; ++l)
      if (extent(layout.axes[l]) == 0) return;
    for (std::int64_t p = 0; p < slice.planes; ++p) {
      std::array<std::int64_t, max_rank> places{};
      std::int64_t at = p * step(planes_);
      for (std::size_t l = depth + 1; l > 0;) {
        visit(places, at);
        for (l = depth; l > 0; --l) {
          at += step(layout_.levels[l - 1]);
          if (++places[l - 1] < extent(layout.axes[l - 1])) break;
          at -= places[l - 1] * step(layout_.levels[l - 1]);
          places[l - 1] = 0;
        }
      }
    }
  }

  void widen_cells(const Slice& slice, const Layout& layout, const std::byte* x, std::byte* cells) const {
    // Lanes that lie side by side, as many levels as follow each other.
    const bool lines = layout.inner.extent == 1;
    const std::int64_t apart = lines ? layout_.levels[last_].x : layout_.inner.x;
    std::int64_t n = lines ? layout.axes[last_].n : layout.inner.extent;
    std::size_t depth = lines ? last_ : last_ + 1;
    for (; depth > 0 && layout_.levels[depth - 1].x == n * apart; --depth) n *= layout.axes[depth - 1].n;
    if (n == 0) return;
    each(slice, layout, depth, false, [&](const auto&, std::int64_t at) {
      const std::byte* from = x + at * bytes_of(plan_.type);
      if (apart == 1)
        widen(sums_.type, cells, plan_.type, from, n);
      else
        convert_line(sums_.type, cells, plan_.type, from, apart, n);
      cells += n * bytes_of(sums_.type);
    });
  }

  // Sums, which lie side by side or as y does, into what they are there.
  void divide(const Slice& slice, const Layout& layout, Quotients call, const std::byte* sums, std::byte* y, bool alike,
              Scratch& memory) const {
    // Divisors repeat from row to row, or from plane to plane where those are small.
    std::size_t top = last_;
    std::int64_t unit = layout_.inner.extent * layout.axes[last_].out, plane = unit;
    bool follows = true;
    for (std::size_t l = last_; l-- > 0; plane *= layout.axes[l].out) follows = follows && layout_.levels[l].y == plane;
    if (follows && (plan_.count || plane <= most_repeated)) top = 0, unit = plane;
    call.in_doubles = plan_.in_doubles;
    call.stream = stream_;
    Table table(*this, slice, layout, top, unit, call, memory);
    // So many units, the first of which belongs at place `at` of y; what lies side by side at once.
    const auto units = [&](std::int64_t at, std::int64_t number, std::int64_t apart, double factor) {
      table.fill(factor);
      const std::int64_t together = apart == unit ? number : 1;
      call.count = together * unit;
      for (std::int64_t i = 0; i < number; i += together, at += apart) {
        call.cells = sums + (alike ? at * bytes_of(call.from) : 0);
        call.dst = y + at * bytes_of(call.to);
        cpu::divide(call);
        if (!alike) sums += call.count * bytes_of(call.from);
      }
    };
    if (top == 0) return units(0, slice.planes, planes_.y, 1);
    // Along this level units have the same divisors wherever windows lie inside.
    const std::size_t run = top - 1;
    const std::int64_t first = run == 0 ? slice.first : 0, end = first + layout.axes[run].out;
    const std::int64_t apart = layout_.levels[run].y;
    const auto [inside, outside] = layout_.axes[run].interior();
    each(slice, layout, run, true, [&](const auto& places, std::int64_t at) {
      double outer = 1;
      for (std::size_t l = 0; l < run && !plan_.count; ++l) outer *= count(l, places[l] + (l == 0 ? slice.first : 0));
      for (std::int64_t o = first, next = o; o < end; o = next) {
        next = plan_.count ? end : o >= inside && o < outside ? std::min(outside, end) : o + 1;
        units(at + (o - first) * apart, next - o, apart, plan_.count ? 1 : outer * count(run, o));
      }
    });
  }

  /// The divisors of rows, or of planes: two tables, since borders come again and again.
  class Table {
   public:
    Table(const Slices& slices, const Slice& slice, const Layout& layout, std::size_t top, std::int64_t unit,
          Quotients& call, Scratch& memory)
        : slices_(slices), slice_(slice), layout_(layout), top_(top), unit_(unit), call_(call) {
      call.period = unit * ceil_div(least_period, unit);
      if (slices.plan_.count) return;
      for (auto& one : tables_) one = memory.take((call.period + divisor_slack) * 8);
    }
    /// Those of windows that have `factor` times as many cells as along the table alone.
    void fill(double factor) {
      const bool wide = call_.in_doubles || call_.to == Type::f64;
      if (const auto& count = slices_.plan_.count) {
        call_.same = *count;
        return;
      }
      if (factors_[now_] != factor && factors_[now_ = 1 - now_] != factor) {
        factors_[now_] = factor;
        wide ? fill<double>(factor) : fill<float>(factor);
      }
      call_.divisors = tables_[now_];
      call_.same = same_[now_];
    }

   private:
    // A window without cells has the sum 0, and 0 is its average.
    static double whole(double divisor) { return divisor > 0 ? divisor : 1; }
    template <class A>
    void fill(double factor) {
      A* const table = reinterpret_cast<A*>(tables_[now_]);
      const std::int64_t lanes = layout_.inner.extent, last = static_cast<std::int64_t>(slices_.last_);
      // Most windows of a row lie inside, and have as many cells.
      const auto [inside, outside] = layout_.axes[slices_.last_].interior();
      call_.first = call_.last = 0;
      if (top_ == slices_.last_ && (outside - inside) * lanes >= least_period) {
        call_.first = inside * lanes;
        call_.last = outside * lanes;
        same_[now_] = whole(factor * slices_.count(slices_.last_, inside));
      }
      const std::int64_t skipped = call_.first + divisor_slack, until = call_.last - divisor_slack;
      std::int64_t at = 0;
      const auto level = [&](const auto& self, std::int64_t l, double outer) -> void {
        const std::int64_t extent = layout_.axes[static_cast<std::size_t>(l)].out;
        const std::int64_t first = l == 0 ? slice_.first : 0;
        for (std::int64_t o = 0; o < extent; ++o) {
          if (l == last && at >= skipped && at < until - lanes) {
            const std::int64_t over = (until - at) / lanes;
            at += over * lanes;
            o += over - 1;
            continue;
          }
          const double divisor = outer * slices_.count(static_cast<std::size_t>(l), first + o);
          if (l < last) {
            self(self, l + 1, divisor);
          } else {
            std::fill_n(table + at, lanes, static_cast<A>(whole(divisor)));
            at += lanes;
          }
        }
      };
      level(level, static_cast<std::int64_t>(top_), factor);
      for (std::int64_t i = unit_; i < call_.period + divisor_slack; ++i) table[i] = table[i - unit_];
    }

    const Slices& slices_;
    const Slice& slice_;
    const Layout& layout_;
    const std::size_t top_;
    const std::int64_t unit_;
    Quotients& call_;
    std::array<std::byte*, 2> tables_{};
    std::array<double, 2> factors_{-1, -1}, same_{};
    std::size_t now_ = 0;
  };

  const Plan::Impl& plan_;
  const Plan::Impl& sums_;
  const Layout& layout_;
  const Operands& operands_;
  const bool stream_, widened_;
  const std::size_t last_;
  Loop planes_;                                        // of which slices hold several
  std::int64_t outers_ = 1, groups_ = 1, length_ = 1;  // and how many
  Pieces tops_;                                        // of the outputs of the outermost level
};

}  // namespace

namespace {

template <class Run>
void each_task(const Slices& slices, bool alone, const Run& run) {
  if (!alone) return parallel_for(slices.tasks(), run);
  for (std::int64_t task = 0; task < slices.tasks(); ++task) run(task);
}

}  // namespace

bool pool_slices(const Plan::Impl& plan, const Layout& layout, const Operands& operands, bool stream, bool alone,
                 const PoolPlanes& pool) {
  const Slices slices(plan, layout, operands, stream, alone);
  if (!slices.applies()) return false;
  each_task(slices, alone, [&](std::int64_t task) { slices.run(task, pool); });
  return true;
}

bool divide_outputs(const Plan::Impl& plan, const View& x, const View& gy, const MutableView& quotients) {
  if (!plan.sums || gy.strides != quotients.strides || element_count(gy.shape) == 0) return false;
  const std::int64_t bytes = element_count(gy.shape) * (bytes_of(gy.type) + bytes_of(quotients.type));
  const Operands operands{.x = x, .y = quotients};
  const Layout layout = make_layout(plan, x, quotients, View());
  const bool alone = bytes < serial_bytes;
  const Slices slices(plan, layout, operands, bytes > last_level_cache(), alone);
  if (!slices.applies()) return false;
  each_task(slices, alone, [&](std::int64_t task) { slices.divide(task, gy); });
  return true;
}

}  // namespace cenote::cpu
