// Rows of cells in the order of their addresses, each made of the rows of outputs that reach it.
#include "cpu/collector.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/emit.h"
#include "cpu/machine.h"
#include "cpu/scratch.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t task_bytes = 256 << 10;  // what one task should write at least

/// Where gy ends, if it has no gaps and offsets lie as it does; null elsewhere.
const std::byte* end_of(const View& gy, const View& offsets) {
  if (offsets.data && offsets.strides != gy.strides) return nullptr;
  std::int64_t last = 0;
  for (int i = 0; i < gy.rank(); ++i) {
    if (gy.strides[i] < 0 || gy.shape[i] == 0) return nullptr;
    last += (gy.shape[i] - 1) * gy.strides[i];
  }
  if (last + 1 != element_count(gy.shape)) return nullptr;
  return static_cast<const std::byte*>(gy.data) + (last + 1) * static_cast<std::int64_t>(size_of(gy.type));
}

// Whether the taps along the last level are better told apart after the rows of windows are joined: where that takes
// few steps, fewer than asking every window, and rows are long enough to be worth their beginnings and ends.
bool crosses(const Router& router, const View& offsets) {
  const std::size_t last = router.depth() - 1;
  const Axis& axis = router.axis(last);
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const std::int64_t inner = lanes.outputs, lanes_of_row = axis.n * inner;
  std::int64_t rows = 1;
  for (std::size_t l = 0; l < last; ++l)
    rows *= std::min(most_windows + 1, (router.axis(l).size - 1) / router.axis(l).stride + 1);
  const std::int64_t steps = rows + axis.size;
  return offsets.data && axis.stride == 1 && rows * axis.size > steps && steps <= most_crossed &&
         steps * steps <= 3 * lanes_of_row && std::max(lanes_of_row, axis.out * inner) <= Crossing::most &&
         level.output_step == inner && level.offset_step == inner && level.cell_step == inner;
}

// Whether a row of cells, each a few channels, is better made as one line: channels alone would leave packs empty.
bool is_narrow(const Router& router, const View& offsets, Type type) {
  const std::size_t last = router.depth() - 1;
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const std::int64_t inner = lanes.outputs, stride = router.axis(last).stride;
  // What winners are given is added up in the same order on every target, so that choice is the same there, too.
  constexpr std::int64_t least_pack = 16;
  const std::int64_t lane = std::max<std::int64_t>(4, static_cast<std::int64_t>(size_of(type)));
  const bool fits = offsets.data ? inner * lane <= least_pack : inner < collecting(type, true, true).pack;
  return inner > 1 && fits && router.axis(last).dilation == 1 && stride <= most_phases &&
         stride * inner <= most_period && level.output_step == inner && level.cell_step == inner &&
         (level.offset_step == inner || !offsets.data);
}

}  // namespace

bool Collector::applies(const Router& router, const View& offsets, const View& gy, const MutableView& gx) {
  if ((offsets.data && offsets.type != Type::u8) || gy.type != gx.type) return false;
  std::int64_t windows = 1;
  for (std::size_t l = 0; l < router.depth(); ++l) {
    const Axis& axis = router.axis(l);
    // Neighbouring cells of a dilated axis ask neighbouring windows only where those lie one cell apart.
    if (axis.adaptive || (axis.dilation > 1 && (axis.stride > 1 || axis.dilation > axis.n / axis.size))) return false;
    windows *= std::min(most_windows + 1, (axis.size - 1) / axis.stride + 1);
  }
  const std::size_t last = router.depth() - 1;
  const bool lines = router.lanes().outputs == 1;
  const RouteAxis& inner = lines ? router.level(last) : router.lanes();
  const bool touching = inner.output_step == 1 && (inner.offset_step == 1 || !offsets.data) && inner.cell_step == 1;
  if (touching && crosses(router, offsets)) return true;
  // Sums have passes instead.
  const std::int64_t most = lines || !offsets.data ? most_on_lines : most_windows;
  return touching && windows <= most && (!lines || !offsets.data || router.axis(last).stride <= most_phases);
}

Collector::Collector(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor)
    : router_(router),
      offsets_(offsets),
      gy_(gy),
      gx_(gx),
      lines_(router.lanes().outputs == 1 || crosses(router, offsets) || is_narrow(router, offsets, gx.type)),
      crosses_(crosses(router, offsets)),
      divisor_(divisor) {
  const std::size_t last = router.depth() - 1;
  const Axis& axis = router.axis(last);
  for (std::int64_t cell = 0; lines_ && cell < std::min(axis.stride, most_phases); ++cell) {
    const Axis::Place place = phases_[static_cast<std::size_t>(cell)] = axis.place(cell);
    if (place.count == 0) continue;
    const std::int64_t first = place.window - (place.count - 1) * axis.dilation;
    const std::int64_t stop = std::max(first_ + reach_, place.window + 1);
    first_ = reach_ == 0 ? first : std::min(first_, first);
    reach_ = axis.dilation > 1 ? place.count : (reach_ == 0 ? place.window + 1 : stop) - first_;
  }
  row_ = (lines_ ? axis.n : 1) * router.lanes().outputs;
  depth_ = lines_ ? last : last + 1;
  // Without offsets taps are not counted: there may be too many.
  std::int64_t taps = !offsets.data ? 0 : lines_ ? axis.size : 1;
  for (std::size_t l = depth_; l-- > 0; taps *= router.axis(l).size)
    levels_[l] = {router.axis(l), router.level(l), taps};
  slices_ = router.slices();
  if (depth_ == 0) {
    // The innermost kept axis is walked instead: windows of one cell each.
    const RouteAxis kept = router.kept();
    levels_[depth_++] = {Axis{kept.outputs, 1, 1, 1, 0, 0, kept.outputs}, kept, 0};
    slices_ /= kept.outputs;
  }
  for (std::size_t l = 0; l < depth_; ++l) rows_ *= levels_[l].axis.n;
}

/// Some neighbouring rows of cells.
class Collector::Rows {
 public:
  Rows(const Collector& all, bool stream)
      : all_(all),
        functions_(collecting(all.gx_.type, all.lines_, all.offsets_.data != nullptr)),
        bytes_(static_cast<std::int64_t>(size_of(all.gx_.type))),
        stage_{Scratch::of_this_thread().take(Stage::lanes * (all.gx_.type == Type::f64 ? 8 : 4)), all.divisor_,
               stream},
        gy_end_(end_of(all.gy_, all.offsets_)) {
    if (!all.crosses_) return;
    // Packs may be read past the last lane.
    const Axis& line = all.router_.axis(all.router_.depth() - 1);
    const std::int64_t inner = all.router_.lanes().outputs, first = all.first_ * inner, pack = 16;
    const std::int64_t out = line.out * inner, halo = (all.reach_ - 1) * line.dilation * inner;
    crossing_.lead = std::max<std::int64_t>(0, -first);
    crossing_.pitch = crossing_.lead + std::max(out, all.row_ + first + halo) / pack * pack + 2 * pack;
    const std::int64_t count =
        crossing_.pitch * std::max<std::int64_t>(1, Stage::room / std::max<std::int64_t>(1, all.row_));
    crossing_.sums = Scratch::of_this_thread().take(count * (all.gx_.type == Type::f64 ? 8 : 4));
    crossing_.taps = reinterpret_cast<std::uint8_t*>(Scratch::of_this_thread().take(count));
    std::fill_n(crossing_.taps, count, std::uint8_t{255});  // outside there is no winner
  }

  void operator()(std::int64_t begin, std::int64_t end) {
    const std::size_t last = all_.depth_ - 1;
    const Level& level = all_.levels_[last];
    const Axis& line = all_.router_.axis(all_.router_.depth() - 1);
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t first = row % level.axis.n, stop = std::min(level.axis.n, first + end - row);
      enter(row);
      const Stand& stand = stands_[last];
      functions_.rows({stand.givers.data(),
                       stand.count,
                       level.axis,
                       first,
                       stop,
                       level.steps.output_step,
                       level.steps.offset_step,
                       level.steps.cell_step,
                       level.scale,
                       static_cast<std::byte*>(all_.gx_.data) + stand.cell * bytes_,
                       all_.row_,
                       all_.phases_.data(),
                       line.size,
                       line.stride,
                       line.out,
                       all_.first_,
                       all_.reach_,
                       line.dilation,
                       gy_end_,
                       all_.router_.lanes().outputs,
                       all_.crosses_ ? &crossing_ : nullptr,
                       &stage_});
      row += stop - first;
    }
    functions_.flush(stage_);
  }

 private:
  /// What the levels so far have in common: where their cells begin in gx, and the outputs that reach them.
  struct Stand {
    std::int64_t cell = 0, count = 0;
    std::array<Giver, most_windows> givers;
  };

  // Finds the outputs that reach a row, of all levels but the last: every window of one beside every one of those
  // outside.
  void enter(std::int64_t row) {
    const std::size_t last = all_.depth_ - 1;
    const std::int64_t slice = row / all_.rows_;
    std::int64_t inside = row % all_.rows_ / all_.levels_[last].axis.n;
    std::array<std::int64_t, max_rank> cells;
    for (std::size_t l = last; l-- > 0; inside /= all_.levels_[l].axis.n) cells[l] = inside % all_.levels_[l].axis.n;
    const RouteAxis at = all_.router_.slice(slice * (all_.router_.slices() / all_.slices_));
    stands_[0].cell = at.cell_step;
    stands_[0].count = 1;
    stands_[0].givers[0] = {
        static_cast<const std::byte*>(all_.gy_.data) + at.output_step * bytes_,
        all_.offsets_.data ? static_cast<const std::uint8_t*>(all_.offsets_.data) + at.offset_step : nullptr, 0};
    for (std::size_t l = 0; l < last; ++l) {
      const Level& level = all_.levels_[l];
      const Axis::Place place = level.axis.place(cells[l]);
      const Stand& from = stands_[l];
      Stand& to = stands_[l + 1];
      to.cell = from.cell + cells[l] * level.steps.cell_step;
      to.count = 0;
      for (std::int64_t g = 0; g < from.count; ++g) {
        const Giver& giver = from.givers[static_cast<std::size_t>(g)];
        for (std::int64_t back = place.count; back-- > 0;) {
          const std::int64_t output = place.window - back * level.axis.dilation,
                             tap = place.tap + back * level.axis.stride;
          if (output < 0 || output >= level.axis.out) continue;
          to.givers[static_cast<std::size_t>(to.count++)] = {
              static_cast<const std::byte*>(giver.gy) + output * level.steps.output_step * bytes_,
              giver.offsets ? giver.offsets + output * level.steps.offset_step : nullptr,
              giver.offset + tap * level.scale};
        }
      }
    }
  }

  const Collector& all_;
  Collecting functions_;
  std::int64_t bytes_;
  Stage stage_;
  const std::byte* gy_end_;
  Crossing crossing_{};
  std::array<Stand, max_rank> stands_;
};

void Collector::run() const {
  const std::int64_t rows = slices_ * rows_, bytes = static_cast<std::int64_t>(size_of(gx_.type));
  const std::int64_t given = element_count(gy_.shape) * (bytes + (offsets_.data ? 1 : 0));
  const bool stream = rows * row_ * bytes + given > last_level_cache();
  const std::int64_t together = std::max<std::int64_t>(1, task_bytes / std::max<std::int64_t>(row_ * bytes, 1));
  parallel_for((rows + together - 1) / together, [&](std::int64_t task) {
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    Rows(*this, stream)(task * together, std::min(rows, (task + 1) * together));
    if (stream) Emitter::flush();
    scratch.release(mark);
  });
}

void Collector::run_here() const {
  Scratch& scratch = Scratch::of_this_thread();
  const auto mark = scratch.mark();
  Rows(*this, false)(0, slices_ * rows_);
  scratch.release(mark);
}

}  // namespace cenote::cpu
