// Rows of a block wait in rings, are merged and finished.
#include "cpu/block.h"

#include <cmath>
#include <limits>

#include "reduce/reducers.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t least_swept = 4096;         // lanes of a sweep that are kept until they are emitted, as long as
constexpr std::int64_t most_swept = 8192;          // work is repeated less then, and the most of them
constexpr std::int64_t read_together = 4096;       // bytes that are read before the rows that they make are merged
constexpr std::int64_t hopeful_bytes = 256 << 10;  // of cells that may turn out not to be tame

}  // namespace

Origin Block::enter(std::int64_t number) {
  const Layout& layout = run_.layout;
  const std::int64_t top = number % run_.tops.count, tile = number / run_.tops.count % run_.tiles.count;
  const std::int64_t piece = number / run_.tops.count / run_.tiles.count % run_.inner.count;
  std::int64_t outer = number / run_.tops.count / run_.tiles.count / run_.inner.count;
  Origin origin;
  for (int i = layout.outer_count - 1; i >= 0; --i) {
    const Loop& loop = layout.outer[static_cast<std::size_t>(i)];
    origin.add(loop, outer % loop.extent);
    outer /= loop.extent;
  }
  origin.add(layout.inner, run_.inner.begin(piece));
  len_ = run_.inner.end(piece) - run_.inner.begin(piece);
  if (layout.inner.extent == 1) len_ = 1;
  tile_begin_ = run_.tiles.begin(tile);
  tile_end_ = run_.tiles.end(tile);
  begin_ = run_.tops.begin(top);
  end_ = run_.tops.end(top);
  beside_ = origin.beside;
  y_ = origin.y;
  place_ = origin.place;
  params_ = run_.plan.params;
  kernels_ = &run_.kernels;
  staged_ = run_.staged;
  return origin;
}

std::int64_t Block::operator()(std::int64_t number, std::int64_t most) {
  const Origin origin = enter(number);
  if (len_ <= 0 || tile_begin_ >= tile_end_ || begin_ >= end_) return 1;
  if (run_.way == PlaneWay::none && !run_.hopeful) {
    by_passes(origin);
    return 1;
  }
  Loop beside;
  if (run_.layout.outer_count > 0) beside = run_.layout.outer[static_cast<std::size_t>(run_.layout.outer_count - 1)];
  const bool whole = run_.tops.count == 1 && run_.tiles.count == 1 && run_.inner.count == 1;
  std::int64_t count = whole ? std::min(most, beside.extent - number % beside.extent) : 1;
  if (run_.way != PlaneWay::none) {
    planes(origin, count, beside);
    return count;
  }
  // What is made in vain should be little.
  const std::int64_t plane = std::max<std::int64_t>(axis(0).n * axis(1).n * len_ * run_.read_bytes, 1);
  count = std::clamp<std::int64_t>(hopeful_bytes / plane, 1, count);
  if (!tame_planes(origin, count, beside))
    for (std::int64_t i = 0; i < count; ++i) by_passes(enter(number + i));
  return count;
}

void Block::by_passes(const Origin& origin) {
  const std::byte* x = run_.x + origin.x * run_.read_bytes;
  if (!run_.direct) tame(x, begin_, end_);
  prepare();
  emit_ = run_.emitter.block(origin, len_, tile_begin_, tile_end_, row_lens_[0]);
  emit_.use(params_);
  run_.direct ? batch(x) : top_level(x);
}

void Block::prepare() {
  scratch_.reset();
  nan_ = false;
  row_lens_[static_cast<std::size_t>(last_)] = len_;
  std::int64_t width = tile_end_ - tile_begin_;
  for (int l = last_ - 1; l >= 0; --l) {
    row_lens_[static_cast<std::size_t>(l)] = row_lens_[static_cast<std::size_t>(l + 1)] * width;
    width = run_.layout.axes[static_cast<std::size_t>(l)].out;
  }
  for (int l = 0; l < last_ && !run_.direct; ++l) make_ring(l);
  make_work();
  stage_lanes_ = std::max(stage_bytes / run_.lane_bytes, len_);
  // Neighbouring sweeps repeat a window's length of work.
  if (work_)
    stage_lanes_ = std::clamp(std::max(work_lanes_, least_swept), stage_lanes_,
                              std::max({stage_lanes_, most_swept, swept_together_ * len_}));
  stage_ = scratch_.take(run_.kernels.parts * stage_plane() * run_.lane_bytes);
  if (!run_.fused_inside) return;
  inside_ = planes_of_two_levels(nullptr);
  inside_.end = inside_.across->out;
  inside_.count = 1;
  inside_.out_row = row_lens_[static_cast<std::size_t>(last_ - 1)];
  if (run_.plan.role == Role::winner) number_inside();
}

void Block::make_ring(int l) {
  const Axis& axis = run_.layout.axes[static_cast<std::size_t>(l)];
  const std::int64_t row = row_lens_[static_cast<std::size_t>(l)];
  Ring& ring = rings_[static_cast<std::size_t>(l)];
  const std::int64_t outputs = l == 0 ? end_ - begin_ : axis.out;
  ring.outputs = std::clamp<std::int64_t>(stage_bytes / (row * run_.lane_bytes), 1, std::max<std::int64_t>(outputs, 1));
  const std::int64_t source = std::max<std::int64_t>(1, this->axis(last_).n * len_ * run_.read_bytes);
  ring.together =
      std::clamp<std::int64_t>(read_together / source / std::min(axis.stride, read_together), 1, ring.outputs);
  ring.capacity = ring_rows(axis, ring.together);
  // Where no row outlives its chunk, every chunk starts at slot 0: rows may touch without the end of one that is
  // written late running over another, and a batch of lines can be one long line.
  ring.carries = axis.irregular() || axis.stride < (axis.size - 1) * axis.dilation + 1;
  ring.stride = ring.carries ? (row / slack_lanes() + 2) * slack_lanes() : row;
  ring.origin = 0;
  ring.plane = ring.capacity * ring.stride + slack_lanes();
  ring.base = scratch_.take(run_.kernels.parts * ring.plane * run_.lane_bytes);
  ring.held = reinterpret_cast<std::int64_t*>(scratch_.take(ring.capacity * 8));
  ring.phases = 0;
  if (!ring.carries || !run_.rules.sweeps(axis, false)) return;
  const bool grouped = run_.plan.role != Role::winner && !(run_.plan.role == Role::value && run_.plan.traits.picks);
  ring.phases = axis.dilation;
  ring.sweeps = reinterpret_cast<RowSweep*>(scratch_.take(ring.phases * static_cast<std::int64_t>(sizeof(RowSweep))));
  for (std::int64_t phase = 0; phase < ring.phases; ++phase) {
    std::byte* sums = scratch_.take(RowSweep::lanes(row, run_.kernels.parts) * run_.lane_bytes);
    new (ring.sweeps + phase)
        RowSweep(*kernels_, params_, axis, row, run_.lane_bytes, run_.emitter.id_scale(l), grouped, nan_, phase, sums);
  }
}

Block::Range Block::range_of_cells(const std::byte* x, std::int64_t begin, std::int64_t end, Look look) {
  Range result;
  looked_at_ = 0;
  const auto widen = [&](const std::byte* cells, std::int64_t n) {
    looked_at_ += n;
    if (n > 0) look(cells, n, result.low, result.high);
  };
  const auto walk = [&](const auto& self, int l, const std::byte* cells) -> void {
    const auto [first, last] = l == 0       ? std::pair(begin, end)
                               : l == last_ ? std::pair(tile_begin_, tile_end_)
                                            : std::pair(std::int64_t{0}, axis(l).out);
    const auto [from, to] = reach(axis(l), first, last);
    const bool lines = loop(last_).x == len_;
    if (l == last_ && lines) return widen(cells + from * len_ * run_.read_bytes, (to - from) * len_);
    const std::int64_t line = axis(last_).n * len_;
    if (l + 1 == last_ && lines && loop(l).x == line &&
        reach(axis(last_), tile_begin_, tile_end_) == std::pair(std::int64_t{0}, axis(last_).n))
      return widen(cells + from * line * run_.read_bytes, (to - from) * line);
    for (std::int64_t p = from; p < to; ++p) {
      const std::byte* at = cells + p * loop(l).x * run_.read_bytes;
      l == last_ ? widen(at, len_) : self(self, l + 1, at);
    }
  };
  walk(walk, 0, x);
  return result;
}

bool Block::range_beside(std::int64_t begin, std::int64_t end, Look look, Range& range) const {
  const auto bytes = static_cast<std::int64_t>(size_of(run_.plan.output_type));
  const bool together = loop(last_).beside == len_;
  if (run_.layout.inner.extent == 1 ? !together : run_.layout.inner.beside != 1) return false;
  const auto walk = [&](const auto& self, int l, std::int64_t at) -> void {
    const auto [first, last] = l == 0       ? std::pair(begin, end)
                               : l == last_ ? std::pair(tile_begin_, tile_end_)
                                            : std::pair(std::int64_t{0}, axis(l).out);
    const bool run = l == last_ && together;
    for (std::int64_t o = first; o < last; o += run ? last - first : 1) {
      const std::int64_t place = at + o * loop(l).beside;
      if (l == last_)
        look(run_.emitter.cells() + place * bytes, run ? (last - first) * len_ : len_, range.low, range.high);
      else
        self(self, l + 1, place);
    }
  };
  walk(walk, 0, beside_);
  return true;
}

Params Block::tamed_windows(const std::byte* x, std::int64_t begin, std::int64_t end) {
  const Plan::Impl& plan = run_.plan;
  const Reducer reducer = plan.pooling.reducer;
  const auto look = [](Type type, Reducer as) { return kernels(type, as, Role::value).range; };
  Range cells, windows = range_of_cells(x, begin, end, look(plan.lane_type, reducer));
  const double sign = plan.params.beta > 0 ? 1 : -1;
  if (!range_beside(begin, end, look(plan.output_type, reducer), cells)) return plan.params;
  // The cell that stands for a window has changed its sign where beta is negative.
  cells.include(sign * windows.low);
  cells.include(sign * windows.high);
  if (std::isnan(windows.high)) cells.high = windows.high;
  const Params tamed = tamed_cells(cells);
  if (!tamed.tame) return tamed;
  // What the windows are given must bear to be moved from the least cell to the greatest without losing a digit.
  const Range given = range_of_cells(x + run_.x_plane * run_.read_bytes, begin, end, look(plan.lane_type, Reducer::lp));
  const double spread = (cells.high - cells.low) * std::fabs(plan.params.beta) * 1.45 + 2;
  const bool wide = plan.lane_type == Type::f64;
  const bool fits =
      given.low >= std::exp2(spread - (wide ? 1020 : 124)) && given.high <= std::exp2((wide ? 980 : 90) - spread);
  return fits ? tamed : plan.params;
}

Params Block::tamed_cells(const Range& range) const {
  const Plan::Impl& plan = run_.plan;
  const auto tamed = [&](auto lane) {
    using N = decltype(lane);
    const auto of = [&](auto make) { return make(plan.params, static_cast<N>(range.low), static_cast<N>(range.high)); };
    return plan.pooling.reducer == Reducer::lp ? of(scalar::Lp::tamed<N>) : of(scalar::SmoothMax::tamed<N>);
  };
  return plan.lane_type == Type::f64 ? tamed(double{}) : tamed(float{});
}

void Block::tame(const std::byte* x, std::int64_t begin, std::int64_t end) {
  const Plan::Impl& plan = run_.plan;
  const bool windows = plan.role == Role::cotangent && run_.kernels.powers;
  if ((!run_.kernels.range && !windows) || run_.staged || !plan.params.crowded) return;
  // Of the others no sum is tame.
  if (plan.pooling.reducer == Reducer::lp && (plan.role != Role::value || (plan.params.p != 1 && plan.params.p != 2)))
    return;
  if (windows) {
    // Staging windows that lie apart, phase by phase, would take longer than joining them.
    for (const Axis& each : plan.geometry.axes)
      if (each.stride > 1) return;
    params_ = tamed_windows(x, begin, end);
  } else {
    Range range = range_of_cells(x, begin, end, run_.kernels.range);
    if (!plan.count) {
      // Padded cells are zeros, and many of them like one that is larger.
      double taps = 1;
      for (const Axis& each : plan.geometry.axes) taps *= static_cast<double>(each.size);
      range.include(0);
      range.include(std::log(taps) / plan.params.beta);
    }
    params_ = tamed_cells(range);
  }
  params_.near = params_.near && plan.role == Role::value;
  // The states that weights hang on hold a cell beside its sum.
  staged_ = params_.tame && plan.role != Role::states;
  kernels_ = staged_ ? &run_.sums : &run_.kernels;
}

void Block::batch(const std::byte* x) {
  const std::int64_t stride = axis(0).stride * loop(0).x;
  const std::int64_t row = row_lens_[0], width = std::max<std::int64_t>(1, stage_lanes_ / len_);
  const std::int64_t together = std::max<std::int64_t>(1, stage_lanes_ / row);
  for (std::int64_t r = begin_; r < end_; r += together) {
    const std::int64_t stop = std::min(end_, r + together);
    tame(x, r, stop);
    emit_.use(params_);
    for (std::int64_t o = tile_begin_; o < tile_end_; o += width) {
      const std::int64_t until = std::min(tile_end_, o + width);
      first_pass(x + r * stride * run_.read_bytes, stop - r, stride, o, until, stage_, (until - o) * len_,
                 stage_plane());
      emit_(r, stop, (o - tile_begin_) * len_, (until - tile_begin_) * len_, stage_, stage_plane());
    }
  }
}

void Block::top_level(const std::byte* x) {
  Ring& ring = rings_[0];
  const std::int64_t row = row_lens_[0], width = std::max<std::int64_t>(1, stage_lanes_ / len_) * len_;
  ring.clear();
  if (run_.deep) {
    const Axis& deep = axis(0);
    Planes call = planes_at(x, begin_, begin_ * deep.stride);
    call.count = end_ - begin_;
    call.step = deep.stride * loop(0).x;
    call.out_plane = loop(0).y;
    call.depth = deep.size;
    call.depth_step = loop(0).x;
    return run_.kernels.planes(call);
  }
  for (std::int64_t o = begin_; o < end_; o += ring.outputs) {
    const std::int64_t stop = std::min(end_, o + ring.outputs);
    if (row * (stop - o) <= stage_lanes_ && !run_.ends_with_planes) {
      // Reading goes on between merges: memory would idle while many rows are merged at once.
      for (std::int64_t i = o; i < stop; i += ring.together) {
        const std::int64_t until = std::min(stop, i + ring.together);
        fill(0, x, i, until);
        merge(0, i, until, 0, row, stage_ + (i - o) * row * run_.lane_bytes, row, stage_plane());
      }
      emit_(o, stop, 0, row, stage_, stage_plane());
      continue;
    }
    for (std::int64_t i = o; i < stop; ++i) {
      if (end_with_plane(x, i)) continue;
      fill(0, x, i, i + 1);
      for (std::int64_t c = 0; c < row; c += width) {
        const std::int64_t until = std::min(row, c + width);
        merge(0, i, i + 1, c, until, stage_, until - c, stage_plane());
        emit_(i, i + 1, c, until, stage_, stage_plane());
      }
    }
  }
}

Planes Block::planes_at(const std::byte* x, std::int64_t o, std::int64_t p) const {
  Planes call = inside_;
  call.line.src = x + p * loop(0).x * run_.read_bytes;
  const std::int64_t y = y_ + o * loop(0).y + tile_begin_ * loop(last_).y;
  call.out = run_.emitter.straight(
      static_cast<std::byte*>(call.ring) + run_.kernels.parts * call.line.dst_plane * run_.lane_bytes, y);
  call.out_row = loop(last_ - 1).y;
  call.finish = run_.emitter.finisher();
  call.direct = run_.plan.output_type == run_.plan.type;
  call.divisor = run_.plan.traits.counts == Counts::divisor ? call.out.count : 0;
  return call;
}

bool Block::end_with_plane(const std::byte* x, std::int64_t o) {
  const Axis& a = axis(0);
  Ring& ring = rings_[0];
  const auto [from, to] = reach(a, o, o + 1);
  if (!run_.ends_with_planes || from == to || (ring.carries && ring.reached >= to)) return false;
  fill(0, x, o, o + 1, 1);
  const auto row = [&](std::int64_t p) { return ring.base + ring.slot(p) * ring.stride * run_.lane_bytes; };
  Planes call = planes_at(x, o, to - 1);
  for (std::int64_t p = from; p + 1 < to; ++p) call.before[call.joins++] = row(p);
  if (ring.carries) {
    call.keep = row(to - 1);
    ring.held[ring.slot(to - 1)] = to - 1;
    ring.reached = to;
  }
  call.direct = call.direct && call.joins == 0 && !call.keep;
  run_.kernels.planes(call);
  return true;
}

void Block::level(int l, const std::byte* x, std::byte* dst, std::int64_t plane) {
  if (run_.fused_inside && l + 1 == last_) {
    inside_.line.src = x;
    inside_.out.dst = dst;
    run_.kernels.planes(inside_);
    return run_.plan.role == Role::winner ? widen_numbers(dst + plane * run_.lane_bytes) : void();
  }
  Ring& ring = rings_[static_cast<std::size_t>(l)];
  const std::int64_t row = row_lens_[static_cast<std::size_t>(l)];
  ring.clear();
  for (std::int64_t o = 0; o < axis(l).out; o += ring.together) {
    const std::int64_t stop = std::min(axis(l).out, o + ring.together);
    fill(l, x, o, stop);
    merge(l, o, stop, 0, row, dst + o * row * run_.lane_bytes, row, plane);
  }
}

void Block::fill(int l, const std::byte* x, std::int64_t begin, std::int64_t end, std::int64_t but) {
  const Axis& a = axis(l);
  Ring& ring = rings_[static_cast<std::size_t>(l)];
  if (!ring.carries) ring.origin = std::clamp<std::int64_t>(begin * a.stride - a.low, 0, a.n);
  const auto [from, all] = reach(a, begin, end);
  const std::int64_t to = all - but;
  if (from >= to) return;
  // Only where windows begin in order: those of a dilated transposed axis do not.
  if (ring.carries && !a.irregular()) ring.approach(from);
  if (a.irregular()) return make(l, x, from, to);
  if (a.dilation == 1 && a.stride <= a.size) {
    // Windows come in order: looking at every row of each would cost as much as long windows do.
    const std::int64_t missing = ring.carries ? std::max(from, ring.reached) : from;
    ring.reached = std::max(ring.reached, to);
    return missing < to ? make(l, x, missing, to) : void();
  }
  for (std::int64_t o = begin; o < end; ++o) {
    const Axis::Span span = a.span(o);
    if (a.dilation == 1)
      make(l, x, span.first, span.first + span.count - but);
    else
      for (std::int64_t j = 0; j < span.count; ++j)
        make(l, x, span.first + j * a.dilation, span.first + j * a.dilation + 1);
  }
}

void Block::make(int l, const std::byte* x, std::int64_t from, std::int64_t to) {
  Ring& ring = rings_[static_cast<std::size_t>(l)];
  const std::int64_t step = loop(l).x * run_.read_bytes;
  for (std::int64_t p = from; p < to;) {
    const std::int64_t slot = ring.slot(p), most = std::min(to - p, ring.capacity - slot);
    std::int64_t stop = p + most;
    if (ring.carries) {
      std::int64_t missing = 0;
      while (missing < most && ring.held[slot + missing] != p + missing) {
        ring.held[slot + missing] = p + missing;
        ++missing;
      }
      stop = p + missing;
    }
    std::byte* dst = ring.base + slot * ring.stride * run_.lane_bytes;
    if (stop == p)
      ++stop;
    else if (l + 1 == last_) {
      first_pass(x + p * step, stop - p, loop(l).x, tile_begin_, tile_end_, dst, ring.stride, ring.plane);
      // Joining rows of long windows takes so long that memory would idle.
      if (ring.phases > 0) expect(x + stop * step);
    } else {
      for (std::int64_t i = p; i < stop; ++i)
        level(l + 1, x + i * step, dst + (i - p) * ring.stride * run_.lane_bytes, ring.plane);
    }
    p = stop;
  }
}

void Block::expect(const std::byte* row) const {
  const Axis& line = axis(last_);
  const auto [from, to] = reach(line, tile_begin_, tile_end_);
  if (loop(last_).x != len_) return;
  for (std::int64_t i = from * len_ * run_.read_bytes; i < to * len_ * run_.read_bytes; i += 64)
    __builtin_prefetch(row + i, 0, 2);
}

void Block::merge(int l, std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to, std::byte* dst,
                  std::int64_t dst_step, std::int64_t dst_plane) {
  Ring& ring = rings_[static_cast<std::size_t>(l)];
  const auto fold = [&](std::int64_t first, std::int64_t last, std::byte* target) {
    kernels_->merge(Pass{&axis(l), first, last, ring.base + from * run_.lane_bytes, ring.stride, ring.capacity,
                         ring.origin, ring.plane, to - from, target, dst_step, dst_plane, 1, 0, 0,
                         run_.emitter.id_scale(l), params_});
  };
  if (ring.phases == 0) return fold(begin, end, dst);
  for (std::int64_t o = begin; o < end; ++o) {
    std::byte* target = dst + (o - begin) * dst_step * run_.lane_bytes;
    const std::int64_t phase = (o * axis(l).stride - axis(l).low) % ring.phases;
    RowSweep& sweep = ring.sweeps[phase < 0 ? phase + ring.phases : phase];
    if (from == 0) sweep.advance(ring, o);
    if (!sweep.write(from, to, target, dst_plane)) fold(o, o + 1, target);
  }
}

}  // namespace cenote::cpu
