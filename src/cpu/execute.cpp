// Walks a pooling block by block: rows are reduced along the innermost axis, wait in rings, are merged and finished.
#include "cpu/execute.h"

#include <algorithm>
#include <cstring>

#include "core/copy.h"
#include "core/parallel.h"
#include "cpu/cache.h"
#include "cpu/emit.h"
#include "cpu/interleave.h"
#include "cpu/row_sweep.h"
#include "cpu/scratch.h"
#include "reduce/reducers.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t stage_bytes = 4096;        // states on their way out: a small part of L1
constexpr std::int64_t serial_bytes = 128 << 10;  // less than this is not worth waking a thread
constexpr std::int64_t task_bytes = 256 << 10;    // what one task should move at least
constexpr std::int64_t most_lanes = 1024;         // along the inner axis at a time
constexpr std::int64_t most_folded = 8;           // rows that a kernel folds as it reads them
constexpr std::int64_t most_swept = 8192;         // lanes of a sweep that are kept until they are emitted
constexpr std::int64_t read_together = 4096;      // bytes that are read before the rows that they make are merged
constexpr std::int64_t most_phases = 16;          // larger strides leave most cells alone
constexpr std::int64_t least_line = 16;           // outputs that fill a pack by themselves
constexpr std::int64_t least_row = 64;            // bytes of a row that fills one
constexpr std::int64_t most_small = 2048;         // cells of a small plane
constexpr std::int64_t least_small = 16;          // cells of a window in it that is worth a sweep
constexpr std::int64_t tile_lanes = 8192;         // of rows that lie side by side: shorter runs of memory are slow

/// The positions that outputs [begin, end) of an axis reach.
std::pair<std::int64_t, std::int64_t> reach(const Axis& axis, std::int64_t begin, std::int64_t end) {
  if (!axis.irregular()) {
    const std::int64_t from = std::clamp<std::int64_t>(begin * axis.stride - axis.low, 0, axis.n);
    const std::int64_t to = (end - 1) * axis.stride - axis.low + (axis.size - 1) * axis.dilation + 1;
    return {from, std::clamp<std::int64_t>(to, from, axis.n)};
  }
  std::int64_t from = axis.n, to = 0;
  for (std::int64_t o = begin; o < end; ++o) {
    const Axis::Span span = axis.span(o);
    if (span.count == 0) continue;
    from = std::min(from, span.first);
    to = std::max(to, span.first + (span.count - 1) * axis.step() + 1);
  }
  return {std::min(from, to), to};
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// Whether every stride-th output of a transposed axis is the output of a regular one.
bool has_phases(const Axis& axis) { return axis.transposed && axis.dilation == 1 && axis.stride <= most_phases; }

/// The axis of outputs first, first + stride, … of one that has phases. It has no cells where windows leave gaps.
Axis phase_of(const Axis& axis, std::int64_t first) {
  const std::int64_t place = first + axis.low;
  const std::int64_t ahead = place / axis.stride - (place % axis.stride < 0), phase = place - ahead * axis.stride;
  const std::int64_t size = phase < axis.size ? (axis.size - 1 - phase) / axis.stride + 1 : 0;
  Axis result{axis.n, size, 1, 1, size - 1 - ahead, 0, ceil_div(axis.out - first, axis.stride)};
  if (size == 0) result.n = 0, result.size = 1;
  return result;
}

/// Whether windows are few whole rows that no other window shares.
bool folds(const Axis& axis) {
  return !axis.irregular() && axis.size <= most_folded && axis.low == 0 &&
         (axis.size - 1) * axis.dilation < axis.stride &&
         axis.interior() == std::pair<std::int64_t, std::int64_t>(0, axis.out);
}

/// Lanes of a row of a small plane with the padding that its windows reach, in whole packs; and rows of it.
std::int64_t small_width(const Axis& line, std::int64_t pack) {
  return ceil_div(line.out + line.size - 1, pack) * pack;
}
std::int64_t small_height(const Axis& across) { return across.out + across.size - 1; }

/// Equal pieces of [0, n), none longer than `most`.
struct Pieces {
  std::int64_t n = 0, count = 0, length = 0;
  static Pieces of(std::int64_t n, std::int64_t most) {
    const std::int64_t count = std::max<std::int64_t>(1, ceil_div(n, std::max<std::int64_t>(most, 1)));
    return {n, count, ceil_div(n, count)};
  }
  std::int64_t begin(std::int64_t i) const { return std::min(n, i * length); }
  std::int64_t end(std::int64_t i) const { return std::min(n, (i + 1) * length); }
};

/// Rows of states of one level, made for some outputs at a time.
struct Ring : RowsOfStates {
  std::int64_t outputs = 1;      // that are emitted together, and
  std::int64_t together = 1;     // those whose rows are there at the same time
  std::int64_t* held = nullptr;  // the position in each slot
  bool carries = false;          // rows outlive the chunk of outputs they were made for
  RowSweep sweep{};              // active where windows are long

  void clear() {
    if (carries) std::fill(held, held + capacity, std::int64_t{-1});
    origin = 0;
    sweep.clear();
  }
};

/// One run of a plan: what all blocks share.
struct Run {
  const Plan::Impl& plan;
  Layout layout;
  const std::byte* x;
  Kernels kernels;
  Emitter emitter;
  std::int64_t lane_bytes, read_bytes, x_plane;
  bool staged;                // x must be converted or gathered before the kernels can read it
  bool direct;                // the outermost level's few rows are folded as they are read, without a ring
  bool fused = false;         // one kernel makes whole planes,
  bool small = false;         // which are small,
  bool joined = false;        // or whose rows are one line
  bool fused_inside = false;  // the same of the two innermost levels of several
  Pieces inner, tiles, tops;
  std::int64_t outers = 1;
};

/// One block: an outer index, a piece of the inner axis, of the outermost and of the innermost level.
class Block {
 public:
  Block(const Run& run, Scratch& scratch) : run_(run), scratch_(scratch), last_(run.layout.depth - 1) {}

  /// Makes block `number`, and as many of the following as go with it, at most `most` in all; says how many.
  std::int64_t operator()(std::int64_t number, std::int64_t most) {
    const Layout& layout = run_.layout;
    const std::int64_t top = number % run_.tops.count, tile = number / run_.tops.count % run_.tiles.count;
    const std::int64_t piece = number / run_.tops.count / run_.tiles.count % run_.inner.count;
    std::int64_t outer = number / run_.tops.count / run_.tiles.count / run_.inner.count;
    Origin origin;
    const std::int64_t last_outer = layout.outer_count > 0 ? outer : 0;
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
    if (len_ <= 0 || tile_begin_ >= tile_end_ || begin_ >= end_) return 1;
    const std::byte* x = run_.x + origin.x * run_.read_bytes;
    params_ = run_.plan.params;
    if (run_.fused) {
      Loop beside;
      if (layout.outer_count > 0) beside = layout.outer[static_cast<std::size_t>(layout.outer_count - 1)];
      const bool whole = run_.tops.count == 1 && run_.tiles.count == 1;
      const std::int64_t count = whole ? std::min(most, beside.extent - last_outer % beside.extent) : 1;
      planes(x, origin.y, count, beside);
      return count;
    }
    if (!run_.direct) tame(x, begin_, end_);
    prepare();
    emit_ = run_.emitter.block(origin, len_, tile_begin_, tile_end_, row_lens_[0]);
    emit_.use(params_);
    run_.direct ? batch(x) : top_level(x);
    return 1;
  }

 private:
  // This block of `count` planes, which lie as the loop says, by one call.
  void planes(const std::byte* x, std::int64_t y, std::int64_t count, const Loop& beside) {
    scratch_.reset();
    make_work();
    Planes call = planes_of_two_levels(x);
    const std::int64_t first = y + begin_ * loop(0).y + tile_begin_ * loop(1).y;
    call.begin = begin_;
    call.end = end_;
    call.count = count;
    call.step = beside.x;
    call.out = run_.emitter.straight(scratch_.take(run_.kernels.parts * call.line.dst_plane * run_.lane_bytes), first);
    call.out_row = loop(0).y;
    call.out_plane = beside.y;
    call.finish = run_.emitter.finisher();
    call.number = run_.emitter.numberer();
    call.indices = run_.emitter.straight_indices(first);
    run_.kernels.planes(call);
  }

  // The two innermost levels of one plane; where it goes is up to the caller.
  Planes planes_of_two_levels(const std::byte* x) {
    const Axis &across = axis(last_ - 1), &along = axis(last_);
    Planes call{};
    call.line = first_pass_of(x, 1, loop(last_ - 1).x, tile_begin_, tile_end_, nullptr, 0, 0);
    call.across = &across;
    call.folded = run_.direct || (run_.fused_inside && !work_ && folds(across) && along.out >= least_line);
    call.line.fold = call.folded ? across.size : 1;
    call.line.fold_step = across.dilation * loop(last_ - 1).x;
    call.small = run_.small;
    call.out_size = static_cast<std::int64_t>(size_of(run_.plan.output_type));
    call.index_size = static_cast<std::int64_t>(size_of(run_.plan.index_type.value_or(Type::u8)));
    // Neighbouring sweeps repeat a window's length of work.
    call.piece = work_      ? std::clamp<std::int64_t>(along.size / 256, 1, 4) * plane_piece
                 : len_ > 1 ? std::max<std::int64_t>(1, plane_piece / len_) * len_
                            : plane_piece;
    std::int64_t rows = ((tile_end_ - tile_begin_) * len_ + 160) * 2 * across.size;
    if (run_.small) {
      call.piece = small_width(along, slack_lanes());
      const std::int64_t plane = small_height(across) * call.piece;
      rows = 3 * (plane + small_plane_slack);
      work_lanes_ = 24 * slack_lanes() + plane;
      work_ = scratch_.take(sweep_rows * work_lanes_ * run_.lane_bytes);
    } else if (run_.joined) {
      joined_ = along;
      joined_.n *= across.n;
      joined_.out *= across.n;
      rows = joined_.out + 160;
      call.joined = along.out;
      call.line.axis = &joined_;
      call.line.end = joined_.out;
    }
    call.line.work = work_;
    call.line.work_lanes = work_lanes_;
    call.line.dst_plane = std::max(rows, plane_stage(call.piece));
    call.line.by_window = true;
    call.line.fold_id_scale = along.size;
    call.line.nan = &nan_;
    call.ring = scratch_.take(run_.kernels.parts * call.line.dst_plane * run_.lane_bytes);
    return call;
  }

  // Lengths of rows and the memory of rings, for this block's tile.
  void prepare() {
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
    if (work_) stage_lanes_ = std::clamp(work_lanes_, stage_lanes_, std::max(stage_lanes_, most_swept));
    stage_ = scratch_.take(run_.kernels.parts * stage_plane() * run_.lane_bytes);
    if (!run_.fused_inside) return;
    inside_ = planes_of_two_levels(nullptr);
    inside_.end = inside_.across->out;
    inside_.count = 1;
    inside_.out_row = row_lens_[static_cast<std::size_t>(last_ - 1)];
  }

  void make_ring(int l) {
    const Axis& axis = run_.layout.axes[static_cast<std::size_t>(l)];
    const std::int64_t row = row_lens_[static_cast<std::size_t>(l)];
    Ring& ring = rings_[static_cast<std::size_t>(l)];
    const std::int64_t outputs = l == 0 ? end_ - begin_ : axis.out;
    ring.outputs =
        std::clamp<std::int64_t>(stage_bytes / (row * run_.lane_bytes), 1, std::max<std::int64_t>(outputs, 1));
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
    if (!ring.carries || !run_.plan.algorithm.sweeps(axis, false)) return;
    std::byte* sums = scratch_.take(RowSweep::lanes(row, run_.kernels.parts) * run_.lane_bytes);
    const bool grouped = run_.plan.role != Role::winner && !(run_.plan.role == Role::value && run_.plan.traits.picks);
    ring.sweep =
        RowSweep(run_.kernels, params_, axis, row, run_.lane_bytes, run_.emitter.id_scale(l), grouped, nan_, sums);
  }

  // Memory for sweeps along the innermost level: of a few windows at a time.
  void make_work() {
    const Axis& axis = run_.layout.axes[static_cast<std::size_t>(last_)];
    const bool side_by_side = run_.layout.inner.extent == 1 || loop(last_).x == len_ || run_.staged;
    work_ = nullptr;
    const bool folds = run_.direct && run_.layout.axes[0].size > 1;
    const bool phases = run_.layout.inner.extent == 1 && has_phases(axis);
    const Axis along = phases ? phase_of(axis, 0) : axis;
    if (folds || !side_by_side || !run_.plan.algorithm.sweeps(along, true)) return;
    const std::int64_t reach = along.size * along.dilation * len_;
    work_lanes_ = 12 * slack_lanes() + len_ + reach + std::max<std::int64_t>(2048, 2 * reach);
    work_ = scratch_.take(sweep_rows * run_.kernels.parts * work_lanes_ * run_.lane_bytes);
  }

  std::int64_t slack_lanes() const { return 64 / run_.lane_bytes; }
  std::int64_t stage_plane() const { return stage_lanes_ + slack_lanes(); }

  const Loop& loop(int l) const { return run_.layout.levels[static_cast<std::size_t>(l)]; }
  const Axis& axis(int l) const { return run_.layout.axes[static_cast<std::size_t>(l)]; }

  // Looks whether the cells of some outputs of the outermost level are tame.
  void tame(const std::byte* x, std::int64_t begin, std::int64_t end) {
    if (!run_.kernels.range || run_.staged) return;
    double low = std::numeric_limits<double>::infinity(), high = -low;
    const auto widen = [&](const auto& self, int l, const std::byte* cells) -> void {
      const auto [first, last] = l == 0       ? std::pair(begin, end)
                                 : l == last_ ? std::pair(tile_begin_, tile_end_)
                                              : std::pair(std::int64_t{0}, axis(l).out);
      const auto [from, to] = reach(axis(l), first, last);
      if (l == last_ && loop(l).x == len_)
        return from < to ? run_.kernels.range(cells + from * len_ * run_.read_bytes, (to - from) * len_, low, high)
                         : void();
      for (std::int64_t p = from; p < to; ++p) {
        const std::byte* at = cells + p * loop(l).x * run_.read_bytes;
        l == last_ ? run_.kernels.range(at, len_, low, high) : self(self, l + 1, at);
      }
    };
    widen(widen, 0, x);
    const auto tamed = [&](auto lane) {
      using N = decltype(lane);
      return scalar::SmoothMax::tamed(run_.plan.params, static_cast<N>(low), static_cast<N>(high));
    };
    params_ = run_.plan.lane_type == Type::f64 ? tamed(double{}) : tamed(float{});
  }

  // Both levels at once: reduced straight into the stage, several rows at a time where they are short.
  void batch(const std::byte* x) {
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

  void top_level(const std::byte* x) {
    Ring& ring = rings_[0];
    const std::int64_t row = row_lens_[0], width = std::max<std::int64_t>(1, stage_lanes_ / len_) * len_;
    ring.clear();
    for (std::int64_t o = begin_; o < end_; o += ring.outputs) {
      const std::int64_t stop = std::min(end_, o + ring.outputs);
      if (row * (stop - o) <= stage_lanes_) {
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
        fill(0, x, i, i + 1);
        for (std::int64_t c = 0; c < row; c += width) {
          const std::int64_t until = std::min(row, c + width);
          merge(0, i, i + 1, c, until, stage_, until - c, stage_plane());
          emit_(i, i + 1, c, until, stage_, stage_plane());
        }
      }
    }
  }

  // All outputs of level l and those inside it, for one position of the levels outside.
  void level(int l, const std::byte* x, std::byte* dst, std::int64_t plane) {
    if (run_.fused_inside && l + 1 == last_) {
      inside_.line.src = x;
      inside_.out.dst = dst;
      return run_.kernels.planes(inside_);
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

  // Makes the rows of level l that outputs [begin, end) need and that the ring does not hold.
  void fill(int l, const std::byte* x, std::int64_t begin, std::int64_t end) {
    const Axis& a = axis(l);
    Ring& ring = rings_[static_cast<std::size_t>(l)];
    if (!ring.carries) ring.origin = std::clamp<std::int64_t>(begin * a.stride - a.low, 0, a.n);
    const auto [from, to] = reach(a, begin, end);
    if (from == to) return;
    // Only where windows begin in order: those of a dilated transposed axis do not.
    if (ring.carries && !a.irregular()) ring.approach(from);
    if (a.irregular()) return make(l, x, from, to);
    if (a.dilation == 1 && a.stride <= a.size) return make(l, x, from, to);
    for (std::int64_t o = begin; o < end; ++o) {
      const Axis::Span span = a.span(o);
      if (a.dilation == 1)
        make(l, x, span.first, span.first + span.count);
      else
        for (std::int64_t j = 0; j < span.count; ++j)
          make(l, x, span.first + j * a.dilation, span.first + j * a.dilation + 1);
    }
  }

  // Makes the rows of positions [from, to) that are not there, as many at a time as lie side by side in the ring.
  void make(int l, const std::byte* x, std::int64_t from, std::int64_t to) {
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
      else if (l + 1 == last_)
        first_pass(x + p * step, stop - p, loop(l).x, tile_begin_, tile_end_, dst, ring.stride, ring.plane);
      else
        for (std::int64_t i = p; i < stop; ++i)
          level(l + 1, x + i * step, dst + (i - p) * ring.stride * run_.lane_bytes, ring.plane);
      p = stop;
    }
  }

  // Outputs [begin, end) of level l, lanes [from, to) of each. A sweep goes from output to output, all lanes of one
  // before the next.
  void merge(int l, std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to, std::byte* dst,
             std::int64_t dst_step, std::int64_t dst_plane) {
    Ring& ring = rings_[static_cast<std::size_t>(l)];
    const auto fold = [&](std::int64_t first, std::int64_t last, std::byte* target) {
      run_.kernels.merge(Pass{&axis(l), first, last, ring.base + from * run_.lane_bytes, ring.stride, ring.capacity,
                              ring.origin, ring.plane, to - from, target, dst_step, dst_plane, 1, 0, 0,
                              run_.emitter.id_scale(l), params_});
    };
    if (!ring.sweep.active()) return fold(begin, end, dst);
    for (std::int64_t o = begin; o < end; ++o) {
      std::byte* target = dst + (o - begin) * dst_step * run_.lane_bytes;
      if (from == 0) ring.sweep.advance(ring, o);
      if (!ring.sweep.write(from, to, target, dst_plane)) fold(o, o + 1, target);
    }
  }

  // Outputs [begin, end) of the innermost level for a batch of rows.
  Pass first_pass_of(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin, std::int64_t end,
                     std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) const {
    Pass pass{&axis(last_), begin, end,       x,    loop(last_).x, 0,       0, run_.x_plane, len_,
              dst,          len_,  dst_plane, rows, x_row,         dst_row, 1, params_};
    if (run_.direct) {
      pass.fold = axis(0).size;
      pass.fold_step = axis(0).dilation * loop(0).x;
      pass.fold_id_scale = run_.emitter.id_scale(0);
    }
    return pass;
  }
  void first_pass(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin, std::int64_t end,
                  std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) {
    const Axis& axis = this->axis(last_);
    Pass pass = first_pass_of(x, rows, x_row, begin, end, dst, dst_row, dst_plane);
    if (run_.staged) return staged_pass(pass);
    const bool lines = run_.layout.inner.extent == 1;
    // Windows that tile a contiguous line exactly do not notice where one row ends and the next begins.
    if (lines && rows > 1 && pass.fold == 1 && !axis.irregular() && x_row == axis.n && dst_row == axis.out &&
        begin == 0 && end == axis.out && axis.low == 0 && axis.n == axis.out * axis.stride &&
        (axis.size - 1) * axis.dilation < axis.stride) {
      Axis joined = axis;
      joined.n *= rows;
      joined.out *= rows;
      pass.axis = &joined;
      pass.end = joined.out;
      pass.rows = 1;
      return launch(pass);
    }
    launch(pass);
  }

  void launch(Pass& pass) {
    const bool lines = run_.layout.inner.extent == 1;
    if (lines && has_phases(*pass.axis)) return launch_phases(pass);
    pass.work = work_;
    pass.work_lanes = work_lanes_;
    pass.nan = &nan_;
    if (work_ && pass.axis->size > 1) return run_.kernels.sweep(pass);
    lines ? run_.kernels.lines(pass) : run_.kernels.rows(pass);
  }

  // Outputs that lie a stride apart are those of a regular axis: phase by phase, and then woven together.
  void launch_phases(const Pass& pass) {
    const Axis& axis = *pass.axis;
    const std::int64_t stride = axis.stride, outputs = pass.end - pass.begin;
    const std::int64_t apart = ceil_div(outputs, stride) + 2 * slack_lanes();
    const std::int64_t row_lanes = run_.kernels.parts * stride * apart;
    const auto mark = scratch_.mark();
    std::byte* phases = scratch_.take(pass.rows * row_lanes * run_.lane_bytes);
    std::byte* woven = scratch_.take((outputs + 2 * stride * slack_lanes()) * run_.lane_bytes);
    for (std::int64_t k = 0; k < std::min(stride, outputs); ++k) {
      const Axis phase = phase_of(axis, pass.begin + k);
      Pass part = pass;
      part.axis = &phase;
      part.begin = 0;
      part.end = ceil_div(outputs - k, stride);
      part.dst = phases + k * apart * run_.lane_bytes;
      part.dst_plane = stride * apart;
      part.dst_row = row_lanes;
      launch(part);
    }
    for (std::int64_t row = 0; row < pass.rows; ++row)
      for (std::int64_t k = 0; k < run_.kernels.parts; ++k) {
        std::byte* dst =
            static_cast<std::byte*>(pass.dst) + (row * pass.dst_row + k * pass.dst_plane) * run_.lane_bytes;
        interleave(run_.lane_bytes, phases + (row * row_lanes + k * stride * apart) * run_.lane_bytes, apart, stride,
                   outputs, woven);
        std::memcpy(dst, woven, static_cast<std::size_t>(outputs * run_.lane_bytes));
      }
    scratch_.release(mark);
  }

  // As above, after bringing the cells together in the lane type, some outputs at a time.
  void staged_pass(Pass pass) {
    const Axis axis = *pass.axis;
    const std::byte* x = static_cast<const std::byte*>(pass.src);
    auto* dst = static_cast<std::byte*>(pass.dst);
    const std::int64_t apart = axis.irregular() ? 1 : axis.stride;
    const std::int64_t together = axis.adaptive
                                      ? pass.end - pass.begin
                                      : std::max<std::int64_t>(1, stage_bytes * 4 / run_.lane_bytes / len_ / apart);
    for (std::int64_t row = 0; row < pass.rows; ++row)
      for (std::int64_t o = pass.begin; o < pass.end; o += together) {
        const std::int64_t stop = std::min(pass.end, o + together);
        auto [from, to] = reach(axis, o, stop);
        // One more cell, for kernels that read in pairs: which windows reach over the end must not depend on the cut.
        if (!axis.irregular()) to = std::min(axis.n, to + 1);
        Axis shifted = axis;
        Pass part = pass;
        if (has_phases(axis) && run_.layout.inner.extent == 1) {
          shifted.low -= from * axis.stride;
          shifted.n = to - from;
        } else if (axis.irregular()) {
          part.origin = from;
        } else {
          shifted.low += from;
          shifted.n = to - from;
        }
        const auto mark = scratch_.mark();
        part.axis = &shifted;
        part.begin = o;
        part.end = stop;
        gather(x + (row * pass.src_row + from * pass.step) * run_.read_bytes, to - from, part);
        part.dst = dst + (row * pass.dst_row + (o - pass.begin) * len_) * run_.lane_bytes;
        part.rows = 1;
        launch(part);
        scratch_.release(mark);
      }
  }

  // Cells at `count` positions, converted to the lane type, side by side, each of their numbers in a plane.
  void gather(const std::byte* x, std::int64_t count, Pass& pass) {
    const std::int64_t plane = count * len_ + slack_lanes(), planes = run_.x_plane != 0 ? 2 : 1;
    std::byte* cells = scratch_.take(planes * plane * run_.lane_bytes);
    const Type from = run_.plan.type, to = run_.plan.lane_type;
    const std::int64_t step = pass.step;
    pass.src = cells;
    pass.src_plane = plane;
    pass.step = len_;
    for (std::int64_t k = 0; k < planes; ++k, cells += plane * run_.lane_bytes, x += run_.x_plane * run_.read_bytes) {
      if (run_.layout.inner.extent == 1)
        convert_line(to, cells, from, x, step, count);
      else
        for (std::int64_t i = 0; i < count; ++i)
          convert_line(to, cells + i * len_ * run_.lane_bytes, from, x + i * step * run_.read_bytes,
                       run_.layout.inner.x, len_);
    }
  }

  const Run& run_;
  Scratch& scratch_;
  int last_;
  std::int64_t len_ = 1, begin_ = 0, end_ = 0, tile_begin_ = 0, tile_end_ = 0, stage_lanes_ = 0;
  std::array<std::int64_t, max_rank> row_lens_{};  // lanes of one row of each level
  std::array<Ring, max_rank> rings_{};
  Params params_;
  std::byte* stage_ = nullptr;
  std::byte* work_ = nullptr;
  std::int64_t work_lanes_ = 0;
  bool nan_ = false;  // some cell of this block may be NaN
  Planes inside_{};   // where one kernel makes the planes of the two innermost levels
  Axis joined_{};     // all rows of a plane
  Emitter::Block emit_;
};

bool reads_directly(Type from, Type lane) { return from == lane || (is_half(from) && lane == Type::f32); }

// Whether the few rows of a window that no other shares are folded as they are read.
bool folds_directly(const Algorithm& algorithm, const Layout& layout, bool staged) {
  if (!folds(layout.axes[0]) || layout.depth != 2) return false;
  const bool narrow = layout.inner.extent == 1 && layout.axes[1].out < least_line;
  return layout.axes[0].size == 1 || (!staged && !narrow && !algorithm.sweeps(layout.axes[1], true));
}

// Whether windows lie at every place of planes that stay in L1, and are long enough for a sweep to pay.
bool is_small(const Run& run) {
  const Layout& layout = run.layout;
  const Axis &across = layout.axes[0], &line = layout.axes[1];
  const auto dense = [](const Axis& axis) { return !axis.irregular() && axis.stride == 1 && axis.dilation == 1; };
  const Sweep sweep = run.plan.algorithm.sweep;
  return run.kernels.planes && run.plan.role == Role::value && !run.staged && layout.depth == 2 &&
         layout.inner.extent == 1 && run.emitter.is_straight() && dense(across) && dense(line) && line.size > 1 &&
         across.size > 1 && sweep != Sweep::never && across.size < most_small && line.size < most_small &&
         across.out < most_small && line.out < most_small &&
         small_height(across) * small_width(line, 64 / run.lane_bytes) <= most_small && across.low < across.size &&
         line.low < line.size && across.n > 0 && line.n > 0 &&
         (sweep == Sweep::always || across.size * line.size >= least_small);
}

// Whether one kernel can make the planes of the two innermost levels: short windows over rows of lines.
bool makes_planes(const Run& run) {
  const Layout& layout = run.layout;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const Axis &across = layout.axes[last - 1], &line = layout.axes[last];
  const Algorithm& algorithm = run.plan.algorithm;
  if (!run.kernels.planes || run.staged || across.irregular() || line.irregular() || across.dilation > 1 ||
      across.size > most_folded || algorithm.sweeps(across, false))
    return false;
  if (layout.inner.extent == 1) return line.size <= most_folded || algorithm.sweeps(line, true);
  return layout.inner.extent * run.lane_bytes >= least_row && layout.inner.extent <= most_lanes && line.dilation == 1 &&
         line.size <= most_folded && !algorithm.sweeps(line, true);
}

// Whether rows are so short that all those of a plane are better made as one line: windows tile each exactly.
bool joins_rows(const Run& run) {
  const Axis &across = run.layout.axes[0], &line = run.layout.axes[1];
  return !run.direct && run.layout.inner.extent == 1 && line.out < least_line && line.low == 0 &&
         line.n == line.out * line.stride && (line.size - 1) * line.dilation < line.stride &&
         run.layout.levels[0].x == line.n && across.n < most_small && across.n * line.n <= most_small;
}

// Cuts the work so that every thread has some, without ever changing a bit of the result.
void cut(Run& run) {
  const Layout& layout = run.layout;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const Axis &top = layout.axes[0], &tail = layout.axes[last];
  for (int i = 0; i < layout.outer_count; ++i) run.outers *= layout.outer[static_cast<std::size_t>(i)].extent;
  run.inner = Pieces::of(layout.inner.extent, most_lanes);
  run.tiles = Pieces::of(tail.out, run.direct || run.small || run.joined || run.plan.algorithm.tile == 0
                                       ? tail.out
                                       : run.plan.algorithm.tile);
  if (run.fused && !run.direct && layout.inner.extent > 1)
    run.tiles = Pieces::of(tail.out, std::max<std::int64_t>(1, tile_lanes / layout.inner.extent));
  run.tops = Pieces::of(top.out, top.out);
  if (run.small || run.joined) return;
  const std::int64_t wanted = run.plan.bytes < serial_bytes ? 1 : 4 * std::int64_t{thread_limit()};
  const auto have = [&] { return run.outers * run.inner.count * run.tiles.count * run.tops.count; };
  const auto split = [&](const Axis& axis) {
    const std::int64_t pieces = std::min(ceil_div(wanted, have()), ceil_div(run.plan.bytes, task_bytes));
    // A piece should be several windows long, or neighbours would repeat most of each other's work.
    const std::int64_t overlap = axis.irregular() ? 1 : (axis.size - 1) * axis.dilation / axis.stride;
    return Pieces::of(axis.out, std::max(ceil_div(axis.out, pieces), 4 * overlap));
  };
  if (have() < wanted) run.tops = split(top);
  if (have() < wanted && run.direct) run.tiles = split(tail);
}

}  // namespace

void execute(const Plan::Impl& plan, const Operands& operands) {
  if (element_count(operands.y.shape) == 0) return;
  const Reducer reducer = plan.divides_late ? Reducer::sum : plan.pooling.reducer;
  const View beside = plan.role == Role::cotangent ? operands.cells : View(operands.indices);
  Layout layout = make_layout(plan, operands.x, operands.y, beside);
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const bool lines = layout.inner.extent == 1;
  const bool contiguous = lines ? layout.levels[last].x == 1 : layout.inner.x == 1;
  // Lanes that gather read whole lanes, so that halves are widened before.
  const bool scattered = lines && is_half(plan.type) && layout.axes[last].irregular() && !has_phases(layout.axes[last]);
  const bool staged = !contiguous || scattered || !reads_directly(plan.type, plan.lane_type) ||
                      !kernels(plan.type, reducer, plan.role).lines;
  const Type read = staged ? plan.lane_type : plan.type;
  const bool stream = plan.bytes > last_level_cache();
  Run run{plan,
          layout,
          static_cast<const std::byte*>(operands.x.data),
          kernels(read, reducer, plan.role),
          Emitter(plan, layout, operands, reducer, stream),
          static_cast<std::int64_t>(size_of(plan.lane_type)),
          static_cast<std::int64_t>(size_of(plan.type)),
          operands.x_plane,
          staged,
          folds_directly(plan.algorithm, layout, staged),
          false,
          false,
          false,
          false,
          {},
          {},
          {},
          1};
  run.kernels.merge = kernels(plan.lane_type, reducer, plan.role).merge;
  run.kernels.join = kernels(plan.lane_type, reducer, plan.role).join;
  run.small = is_small(run);
  run.fused = run.small || (layout.depth == 2 && run.emitter.is_straight() && makes_planes(run));
  run.fused_inside = layout.depth > 2 && plan.role == Role::value && makes_planes(run);
  run.joined = run.fused && !run.small && joins_rows(run);
  cut(run);
  const std::int64_t blocks = run.outers * run.inner.count * run.tiles.count * run.tops.count;
  const std::int64_t together =
      plan.bytes < serial_bytes
          ? blocks
          : std::max<std::int64_t>(1, blocks / std::max<std::int64_t>(1, plan.bytes / task_bytes));
  parallel_for(ceil_div(blocks, together), [&](std::int64_t task) {
    Block block(run, Scratch::of_this_thread());
    const std::int64_t end = std::min(blocks, (task + 1) * together);
    for (std::int64_t i = task * together; i < end;) i += block(i, end - i);
    if (stream) run.emitter.flush();
    Scratch::of_this_thread().trim();
  });
}

}  // namespace cenote::cpu
