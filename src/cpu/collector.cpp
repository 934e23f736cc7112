// Rows of cells in the order of their addresses, each made of the rows of outputs that reach it.
#include "cpu/collector.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/cache.h"
#include "cpu/emit.h"
#include "cpu/scratch.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t most_windows = 12;   // that hold one cell: more are sent sooner than asked
constexpr std::int64_t stage_bytes = 4096;  // sums on their way out: a part of L1
/// The last window that begins at or before a cell, and the cell's tap in it, which may be past its end.
struct Place {
  std::int64_t cell, window, tap;
  static Place of(const Axis& axis, std::int64_t cell) {
    const std::int64_t place = cell + axis.low, window = place / axis.stride - (place % axis.stride < 0);
    return {cell, window, place - window * axis.stride};
  }
  void advance(const Axis& axis) {
    ++cell;
    if (++tap == axis.stride) {
      tap = 0;
      ++window;
    }
  }
};

constexpr std::int64_t task_bytes = 256 << 10;  // what one task should write at least

}  // namespace

bool Collector::applies(const Router& router, const View& offsets, const View& gy, const MutableView& gx) {
  if ((offsets.data && offsets.type != Type::u8) || gy.type != gx.type) return false;
  std::int64_t windows = 1;
  for (std::size_t l = 0; l < router.depth(); ++l) {
    const Axis& axis = router.axis(l);
    if (axis.adaptive || axis.dilation > 1) return false;
    windows *= std::min(most_windows + 1, (axis.size - 1) / axis.stride + 1);
  }
  const std::size_t last = router.depth() - 1;
  const bool lines = router.lanes().outputs == 1;
  const RouteAxis& inner = lines ? router.level(last) : router.lanes();
  const bool touching = inner.output_step == 1 && (inner.offset_step == 1 || !offsets.data) && inner.cell_step == 1;
  return windows <= most_windows && touching && (!lines || router.axis(last).stride <= most_phases);
}

Collector::Collector(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor)
    : router_(router), offsets_(offsets), gy_(gy), gx_(gx), lines_(router.lanes().outputs == 1), divisor_(divisor) {
  const std::size_t last = router.depth() - 1;
  levels_ = lines_ ? last : last + 1;
  row_ = lines_ ? router.axis(last).n : router.lanes().outputs;
  std::int64_t taps = 1;
  for (std::size_t l = router.depth(); l-- > 0; taps *= router.axis(l).size) {
    taps_[l] = taps;
    if (l < levels_) rows_ *= router.axis(l).n;
  }
  const Axis& axis = router.axis(last);
  for (std::int64_t cell = 0; lines_ && cell < axis.stride; ++cell) {
    const Place place = Place::of(axis, cell);
    const std::int64_t windows = place.tap < axis.size ? (axis.size - 1 - place.tap) / axis.stride + 1 : 0;
    phases_[static_cast<std::size_t>(cell)] = {windows, place.window, place.tap};
  }
}

/// Some neighbouring rows of cells.
class Collector::Rows {
 public:
  Rows(const Collector& all, bool stream)
      : all_(all),
        collect_(collect_function(all.gx_.type, all.lines_, all.offsets_.data != nullptr)),
        finish_(kernels(all.gx_.type, all.divisor_ == 1 ? Reducer::sum : Reducer::avg, Role::value).finish),
        lane_bytes_(all.gx_.type == Type::f64 ? 8 : 4),
        bytes_(static_cast<std::int64_t>(size_of(all.gx_.type))),
        stream_(stream) {
    const std::int64_t stride = all.lines_ ? all.router_.axis(all.router_.depth() - 1).stride : 1;
    room_ = std::max(stage_bytes / lane_bytes_, all.row_);
    stage_ = Scratch::of_this_thread().take((room_ + (stride + 1) * 64) * lane_bytes_);
  }

  void operator()(std::int64_t begin, std::int64_t end) {
    const Axis& axis = all_.router_.axis(all_.router_.depth() - 1);
    start(begin);
    for (std::int64_t row = begin; row < end; ++row) {
      const Stand& stand = stands_[all_.levels_];
      if (staged_ > 0 && (stand.cell != to_ + staged_ || staged_ + all_.row_ > room_)) flush();
      if (staged_ == 0) to_ = stand.cell;
      collect_({stand.givers.data(), stand.count, all_.row_, stage_ + staged_ * lane_bytes_, all_.phases_.data(),
                axis.stride, axis.out});
      staged_ += all_.row_;
      if (row + 1 < end) advance();
    }
    flush();
  }

 private:
  /// What the levels so far have in common: where their cells begin in gx, and the outputs that reach them.
  struct Stand {
    std::int64_t cell = 0, count = 0;
    std::array<Giver, most_windows> givers{};
  };

  void start(std::int64_t row) {
    slice_ = row / all_.rows_;
    row %= all_.rows_;
    for (std::size_t l = all_.levels_; l-- > 0;) {
      const Axis& axis = all_.router_.axis(l);
      places_[l] = Place::of(axis, row % axis.n);
      row /= axis.n;
    }
    enter_slice();
  }
  void advance() {
    for (std::size_t l = all_.levels_; l-- > 0;) {
      const Axis& axis = all_.router_.axis(l);
      places_[l].advance(axis);
      if (places_[l].cell < axis.n) return enter(l);
      places_[l] = Place::of(axis, 0);
    }
    ++slice_;
    enter_slice();
  }
  void enter_slice() {
    const RouteAxis at = all_.router_.slice(slice_);
    stands_[0].cell = at.cell_step;
    stands_[0].count = 1;
    stands_[0].givers[0] = {
        static_cast<const std::byte*>(all_.gy_.data) + at.output_step * bytes_,
        all_.offsets_.data ? static_cast<const std::uint8_t*>(all_.offsets_.data) + at.offset_step : nullptr, 0};
    enter(0);
  }
  // Finds the outputs anew from level l on: every window of it beside every one of those outside.
  void enter(std::size_t l) {
    for (; l < all_.levels_; ++l) {
      const Axis& axis = all_.router_.axis(l);
      const RouteAxis& steps = all_.router_.level(l);
      const Place& place = places_[l];
      const Stand& from = stands_[l];
      Stand& to = stands_[l + 1];
      to.cell = from.cell + place.cell * steps.cell_step;
      to.count = 0;
      std::int64_t first = 0;
      while (place.tap + (first + 1) * axis.stride < axis.size) ++first;
      for (std::int64_t g = 0; g < from.count; ++g) {
        const Giver& giver = from.givers[static_cast<std::size_t>(g)];
        for (std::int64_t back = first; back >= 0; --back) {
          const std::int64_t output = place.window - back, tap = place.tap + back * axis.stride;
          if (output < 0 || output >= axis.out || tap >= axis.size) continue;
          to.givers[static_cast<std::size_t>(to.count++)] = {
              static_cast<const std::byte*>(giver.gy) + output * steps.output_step * bytes_,
              giver.offsets ? giver.offsets + output * steps.offset_step : nullptr, giver.offset + tap * all_.taps_[l]};
        }
      }
    }
  }

  void flush() {
    if (staged_ == 0) return;
    finish_({stage_,
             0,
             staged_,
             nullptr,
             all_.divisor_,
             static_cast<std::byte*>(all_.gx_.data) + to_ * bytes_,
             nullptr,
             stream_,
             {}});
    staged_ = 0;
  }

  const Collector& all_;
  CollectFunction collect_;
  void (*finish_)(const Finish&);
  std::int64_t lane_bytes_, bytes_, room_ = 0, staged_ = 0, to_ = 0, slice_ = 0;
  std::byte* stage_ = nullptr;
  bool stream_;
  std::array<Place, max_rank> places_{};
  std::array<Stand, max_rank + 1> stands_{};
};

void Collector::run() const {
  const std::int64_t rows = router_.slices() * rows_, bytes = static_cast<std::int64_t>(size_of(gx_.type));
  const bool stream = rows * row_ * bytes > last_level_cache();
  const std::int64_t together = std::max<std::int64_t>(1, task_bytes / std::max<std::int64_t>(row_ * bytes, 1));
  parallel_for((rows + together - 1) / together, [&](std::int64_t task) {
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    Rows(*this, stream)(task * together, std::min(rows, (task + 1) * together));
    if (stream) Emitter::flush();
    scratch.release(mark);
  });
}

}  // namespace cenote::cpu
