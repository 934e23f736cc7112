// Rows of cells in the order of their addresses, each made of the rows of outputs that reach it.
#include "cpu/collector.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/cache.h"
#include "cpu/emit.h"
#include "cpu/scratch.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t most_windows = 12;       // that hold one cell: more are sent sooner than asked
constexpr std::int64_t stage_bytes = 4096;      // sums on their way out: a part of L1
constexpr std::int64_t task_bytes = 256 << 10;  // what one task should write at least

}  // namespace

bool Collector::applies(const Router& router, const View& offsets, const View& gy, const MutableView& gx) {
  if ((offsets.data && offsets.type != Type::u8) || gy.type != gx.type) return false;
  std::int64_t windows = 1;
  for (std::size_t l = 0; l < router.depth(); ++l) {
    const Axis& axis = router.axis(l);
    if (axis.adaptive) return false;
    windows *= std::min(most_windows + 1, (axis.size - 1) / axis.stride + 1);
  }
  const std::size_t last = router.depth() - 1;
  const bool lines = router.lanes().outputs == 1;
  const RouteAxis& inner = lines ? router.level(last) : router.lanes();
  const bool touching = inner.output_step == 1 && (inner.offset_step == 1 || !offsets.data) && inner.cell_step == 1;
  return windows <= most_windows && touching && (!lines || router.axis(last).dilation == 1);
}

Collector::Collector(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor)
    : router_(router), offsets_(offsets), gy_(gy), gx_(gx), lines_(router.lanes().outputs == 1), divisor_(divisor) {
  const std::size_t last = router.depth() - 1;
  row_ = lines_ ? router.axis(last).n : router.lanes().outputs;
  std::int64_t taps = 1;
  for (std::size_t l = router.depth(); l-- > 0; taps *= router.axis(l).size) {
    const Axis& axis = router.axis(l);
    if (lines_ && l == last) {
      for (std::int64_t cell = 0; cell < axis.stride; ++cell) {
        const std::int64_t place = cell + axis.low;
        const std::int64_t ahead = place / axis.stride - (place % axis.stride < 0), phase = place - ahead * axis.stride;
        phases_.push_back({phase < axis.size ? (axis.size - 1 - phase) / axis.stride + 1 : 0, ahead, phase});
      }
      continue;
    }
    const Axis back = axis.transpose();
    Level level{{0}, {}, taps};
    for (std::int64_t cell = 0; cell < axis.n; ++cell) {
      const Axis::Span span = back.span(cell);
      for (std::int64_t i = 0; i < span.count; ++i) {
        const std::int64_t output = span.first + i * back.step();
        level.hits.push_back({output, (cell + axis.low - output * axis.stride) / axis.dilation});
      }
      level.first.push_back(static_cast<std::int64_t>(level.hits.size()));
    }
    rows_ *= axis.n;
    levels_.insert(levels_.begin(), std::move(level));
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
      const Stand& stand = stands_[all_.levels_.size()];
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

  std::int64_t extent(std::size_t l) const { return static_cast<std::int64_t>(all_.levels_[l].first.size()) - 1; }
  void start(std::int64_t row) {
    slice_ = row / all_.rows_;
    row %= all_.rows_;
    for (std::size_t l = all_.levels_.size(); l-- > 0; row /= extent(l)) cell_[l] = row % extent(l);
    enter_slice();
  }
  void advance() {
    std::size_t l = all_.levels_.size();
    while (l-- > 0) {
      if (++cell_[l] < extent(l)) return enter(l);
      cell_[l] = 0;
    }
    ++slice_;
    enter_slice();
  }
  void enter_slice() {
    const RouteAxis at = all_.router_.slice(slice_);
    stands_[0].cell = at.cell_step;
    stands_[0].count = 1;
    stands_[0].givers[0] = {static_cast<const std::byte*>(all_.gy_.data) + at.output_step * bytes_,
                            static_cast<const std::uint8_t*>(all_.offsets_.data) + at.offset_step, 0};
    enter(0);
  }
  // Finds the outputs anew from level l on: every window of it beside every one of those outside.
  void enter(std::size_t l) {
    for (; l < all_.levels_.size(); ++l) {
      const Level& level = all_.levels_[l];
      const RouteAxis& steps = all_.router_.level(l);
      const Stand& from = stands_[l];
      Stand& to = stands_[l + 1];
      const auto i = static_cast<std::size_t>(cell_[l]);
      to.cell = from.cell + cell_[l] * steps.cell_step;
      to.count = 0;
      for (std::int64_t g = 0; g < from.count; ++g) {
        const Giver& giver = from.givers[static_cast<std::size_t>(g)];
        for (std::int64_t h = level.first[i]; h < level.first[i + 1]; ++h) {
          const Hit& hit = level.hits[static_cast<std::size_t>(h)];
          to.givers[static_cast<std::size_t>(to.count++)] = {
              static_cast<const std::byte*>(giver.gy) + hit.output * steps.output_step * bytes_,
              giver.offsets + hit.output * steps.offset_step, giver.offset + hit.tap * level.taps};
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
  std::array<std::int64_t, max_rank> cell_{};
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
