// The innermost level of a block: whole planes, lines and rows, in phases, staged where they must be.
#include "cpu/block.h"

#include <cstring>
#include <numeric>

#include "core/copy.h"
#include "cpu/machine.h"
#include "cpu/transpose.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t numbered = 8192;      // offsets that wait to become indices
constexpr std::int64_t joined_lanes = 1024;  // of rows that wait where those of several planes are one line

}  // namespace

void Block::planes(const Origin& origin, std::int64_t count, const Loop& beside) {
  scratch_.reset();
  make_work();
  Planes call = planes_of_two_levels(run_.x + origin.x * run_.read_bytes);
  const std::int64_t first = origin.y + begin_ * loop(0).y + tile_begin_ * loop(1).y;
  call.begin = begin_;
  call.end = end_;
  call.count = count;
  call.step = beside.x;
  call.out = run_.emitter.straight(
      static_cast<std::byte*>(call.ring) + run_.kernels.parts * call.line.dst_plane * run_.lane_bytes, first);
  call.out.src_plane = call.line.dst_plane;
  call.out_row = loop(0).y;
  call.out_plane = beside.y;
  call.finish = run_.emitter.finisher();
  const bool averages = run_.plan.traits.counts == Counts::divisor;
  call.direct = run_.plan.output_type == run_.plan.type;
  call.divisor = averages ? call.out.count : 0;
  call.number = run_.emitter.numberer();
  call.indices = run_.emitter.straight_indices(first);
  if (run_.emitter.numbering()) return number_planes(call, beside);
  if (params_.tame) {
    call.out.params = params_;
    call.finish = run_.emitter.tame_finisher();
  }
  join_tiles(call, params_.tame ? run_.kernels.tame_planes : run_.kernels.planes);
}

void Block::join_tiles(Planes call, void (*make)(const Planes&)) {
  const Axis &across = *call.across, &along = axis(last_);
  const bool joined = call.way == PlaneWay::joined;
  if (!(joined || call.way == PlaneWay::rows) || !tiles_exactly(across) || call.begin > 0 || call.end < across.out ||
      call.step != across.n * call.line.src_row || call.out_plane != across.out * call.out_row)
    return make(call);
  const std::int64_t most = joined ? joined_lanes / std::max<std::int64_t>(across.n * along.out, 1) : call.count;
  Axis all = across;
  call.across = &all;
  for (std::int64_t left = call.count, planes; left > 0; left -= planes * call.count) {
    planes = std::clamp<std::int64_t>(most, 1, left);
    all.n = planes * across.n;
    all.out = call.end = planes * across.out;
    call.count = left / planes;
    call.step = all.n * call.line.src_row;
    call.out_plane = all.out * call.out_row;
    if (joined) {
      joined_.n = all.n * along.n;
      joined_.out = call.line.end = all.n * along.out;
    }
    make(call);
    call.line.src = static_cast<const std::byte*>(call.line.src) + call.count * call.step * run_.read_bytes;
    call.out.dst = static_cast<std::byte*>(call.out.dst) + call.count * call.out_plane * call.out_size;
    if (call.indices)
      call.indices = static_cast<std::byte*>(call.indices) + call.count * call.out_plane * call.index_size;
  }
}

bool Block::tame_planes(const Origin& origin, std::int64_t count, const Loop& beside) {
  nan_ = false;
  params_.tame = true;
  params_.origin = 0;
  planes(origin, count, beside);
  return !nan_;
}

void Block::number_planes(const Planes& all, const Loop& beside) {
  const Numbering& numbering = *run_.emitter.numbering();
  const std::int64_t offset_bytes = static_cast<std::int64_t>(size_of(numbering.type()));
  const std::int64_t rows =
      std::clamp<std::int64_t>(numbered / std::max<std::int64_t>(all.out_row, 1), 1, end_ - begin_);
  const std::int64_t row = (tile_end_ - tile_begin_) * len_, one = (rows - 1) * all.out_row + row;
  // Several planes at a time where they follow each other.
  const std::int64_t planes = rows == end_ - begin_ && all.out_row == row && all.out_plane == one
                                  ? std::max<std::int64_t>(1, numbered / one)
                                  : 1;
  const bool stream = run_.emitter.streams();
  Planes call = all;
  call.index_size = offset_bytes;
  call.indices = scratch_.take((std::min(planes, all.count) * one + 64) * offset_bytes);
  // Kernels would write offsets past the caches as well.
  call.out.stream = false;
  for (std::int64_t p = 0; p < all.count; p += planes) {
    call.count = std::min(planes, all.count - p);
    for (std::int64_t o = begin_; o < end_; o += rows) {
      const std::int64_t at = p * all.out_plane + (o - begin_) * all.out_row;
      call.begin = o;
      call.end = std::min(end_, o + rows);
      call.line.src = static_cast<const std::byte*>(all.line.src) + p * all.step * run_.read_bytes;
      call.out.dst = static_cast<std::byte*>(all.out.dst) + at * all.out_size;
      run_.kernels.planes(call);
      for (std::int64_t i = 0; i < call.count; ++i)
        numbering({call.begin, call.end, tile_begin_, tile_end_, len_},
                  static_cast<std::byte*>(call.indices) + i * one * offset_bytes,
                  static_cast<std::int64_t*>(all.indices) + at + i * one, place_ + (p + i) * beside.place, stream);
    }
  }
}

void Block::number_inside() {
  const Plan::Impl& plan = run_.plan;
  const std::int64_t plane = inside_.line.dst_plane;
  inside_.out = Finish{static_cast<std::byte*>(inside_.ring) + run_.kernels.parts * plane * run_.lane_bytes,
                       plane,
                       0,
                       nullptr,
                       *plan.count,
                       nullptr,
                       nullptr,
                       false,
                       params_};
  inside_.out_size = run_.lane_bytes;
  inside_.finish = kernels(plan.lane_type, plan.pooling.reducer, plan.role).finish;
  inside_.direct = plan.type == plan.lane_type;
  inside_.number = run_.emitter.numberer(Type::u8);
  inside_.index_size = 1;
  inside_.indices = scratch_.take(inside_.out_row * inside_.end + 64);
}

void Block::widen_numbers(std::byte* dst) const {
  widen(static_cast<const std::uint8_t*>(inside_.indices), inside_.out_row * inside_.end, dst, run_.lane_bytes);
}

Planes Block::planes_of_two_levels(const std::byte* x) {
  const Axis &across = axis(last_ - 1), &along = axis(last_);
  // From the one row of a plane that has no other there is no step, whatever the stride of such an axis says.
  const std::int64_t row = across.n > 1 ? loop(last_ - 1).x : 1;
  Planes call{};
  call.line = first_pass_of(x, 1, row, tile_begin_, tile_end_, nullptr, 0, 0);
  call.across = &across;
  call.folded = run_.direct || (run_.fused_inside && !work_ && along.out >= least_line &&
                                folds(across, len_ > 1 ? 0 : along.n * run_.read_bytes));
  call.line.fold = call.folded ? across.size : 1;
  call.line.fold_step = across.dilation * row;
  call.way = run_.way == PlaneWay::none ? PlaneWay::rows : run_.way;
  call.out_size = static_cast<std::int64_t>(size_of(run_.plan.output_type));
  call.index_size = run_.emitter.index_size();
  // Neighbouring sweeps repeat a window's length of work.
  const std::int64_t most_pieces = std::max<std::int64_t>(4, swept_together_ / plane_piece);
  call.piece = work_      ? std::clamp<std::int64_t>(along.size / 256, 1, most_pieces) * plane_piece
               : len_ > 1 ? std::max<std::int64_t>(1, plane_piece / len_) * len_
                          : plane_piece;
  std::int64_t rows = call.folded ? 0 : ((tile_end_ - tile_begin_) * len_ + 160) * 2 * across.size;
  if (run_.way == PlaneWay::swept) {
    const std::int64_t width = tile_end_ - tile_begin_, strip = strip_bytes / run_.lane_bytes;
    const std::int64_t held = std::min(across.n, 2 * across.size);
    call.piece = swept_pitch(along, tile_begin_, tile_end_, len_, run_.lane_bytes);
    // Of small planes, cells and states of several are in L1 together.
    call.batch = std::max<std::int64_t>((held < across.n ? swept_cells : swept_cells / 2) / call.piece, 1);
    // Behind the last column comes the one before it; of lines, which have none, the same row of the next plane.
    call.out_step = len_ > 1 ? loop(last_).y : -loop(0).y * across.out;
    rows = std::max(std::max(held, call.batch) * call.piece + strip,
                    plane_piece + std::min(across.size, across.out) * width * len_ + strip);
    const std::int64_t places = call.batch * call.piece;
    work_lanes_ = places + along.size + 24 * slack_lanes();
    work_ = scratch_.take(sweep_rows * work_lanes_ * run_.lane_bytes);
    call.cells = scratch_.take((places + strip + along.size) * run_.lane_bytes);
    call.ends = scratch_.take(std::max(across.size, along.size) * strip_bytes);
  } else if (run_.way == PlaneWay::flat) {
    rows = flat_together(across, along) * flat_pitch(across, along);
    call.piece = ceil_div(across.out * along.out, plane_piece) * plane_piece;
    // Where masks are packs, they are as large as the states of all taps.
    call.cells = scratch_.take((across.n * along.out + 64) * along.size * run_.lane_bytes);
  } else if (run_.way == PlaneWay::rows_first) {
    rows = rows_first_lanes(across, along);
    call.piece = ceil_div(rows_first_lines(across, along) * along.out, plane_piece) * plane_piece;
  } else if (run_.way == PlaneWay::joined) {
    joined_ = along;
    joined_.n *= across.n;
    joined_.out *= across.n;
    rows = std::max(joined_.out, joined_lanes) + 160;
    call.joined = along.out;
    call.line.axis = &joined_;
    call.line.end = joined_.out;
  }
  call.line.work = work_;
  call.line.work_lanes = work_lanes_;
  call.line.dst_plane = std::max(rows, plane_stage(call.piece)) + (len_ > 1 ? joined_cells : 0);
  call.line.by_window = true;
  call.line.fold_id_scale = along.size;
  call.line.nan = &nan_;
  // The states on their way out lie behind the ring.
  call.ring = scratch_.take(2 * run_.kernels.parts * call.line.dst_plane * run_.lane_bytes);
  return call;
}

void Block::make_work() {
  const Axis& axis = run_.layout.axes[static_cast<std::size_t>(last_)];
  const bool lines = run_.layout.inner.extent == 1, side_by_side = lines || loop(last_).x == len_ || run_.staged;
  work_ = nullptr;
  const bool folds = run_.direct && run_.layout.axes[0].size > 1;
  in_phases_ = side_by_side && makes_phases(run_.rules, axis, lines);
  const Axis along = in_phases_ ? longest_phase(axis) : axis;
  if (folds || !side_by_side || !run_.rules.sweeps(along, true)) return;
  across_ = cells_across(along);
  const std::int64_t reach = std::min(along.size, 2 * across_) * along.dilation * len_;
  // Of a transposed axis, those of all phases.
  swept_together_ = reach / len_ / along.stride * (in_phases_ ? phases_of(axis) : 1);
  work_lanes_ = 12 * slack_lanes() + len_ + reach + std::max<std::int64_t>(2048, 2 * reach);
  work_ = scratch_.take(sweep_rows * run_.kernels.parts * work_lanes_ * run_.lane_bytes);
}

Pass Block::first_pass_of(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin,
                          std::int64_t end, std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) const {
  Pass pass{&axis(last_), begin, end,       x,    loop(last_).x, 0,       0, run_.x_plane, len_,
            dst,          len_,  dst_plane, rows, x_row,         dst_row, 1, params_};
  pass.ahead = asked_ahead() / run_.read_bytes;
  if (run_.direct) {
    pass.fold = axis(0).size;
    pass.fold_step = axis(0).dilation * loop(0).x;
    pass.fold_id_scale = run_.emitter.id_scale(0);
  }
  return pass;
}

void Block::first_pass(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin, std::int64_t end,
                       std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) {
  const Axis& axis = this->axis(last_);
  Pass pass = first_pass_of(x, rows, x_row, begin, end, dst, dst_row, dst_plane);
  if (staged_) return staged_pass(pass);
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

void Block::launch(Pass& pass) {
  const bool lines = run_.layout.inner.extent == 1;
  if (in_phases_ && pass.axis->transposed) return launch_phases(pass);
  pass.work = work_;
  pass.work_lanes = work_lanes_;
  pass.nan = &nan_;
  if (!work_ || pass.axis->size == 1) return lines ? kernels_->lines(pass) : kernels_->rows(pass);
  (pass.axis->size - 1) / 2 >= across_ ? launch_overhanging(pass) : kernels_->sweep(pass);
}

void Block::launch_overhanging(const Pass& pass) {
  const Axis& axis = *pass.axis;
  const std::int64_t extent = (axis.size - 1) * axis.dilation + 1;
  // Windows of outputs from these on reach the last cell, and begin with a cell.
  const auto from = [&](std::int64_t place) {
    return std::clamp(place > 0 ? ceil_div(place, axis.stride) : 0, pass.begin, pass.end);
  };
  const std::int64_t whole = from(axis.n + axis.low - extent + 1), last = from(axis.low);
  Axis first = axis, second = axis;
  first.size = second.size = across_;
  first.low -= (axis.size - across_) * axis.dilation;
  // Row by row: what runs over the end of one is made good by the next.
  Pass row = pass;
  row.rows = 1;
  for (std::int64_t i = 0; i < pass.rows; ++i) {
    row.src = static_cast<const std::byte*>(pass.src) + i * pass.src_row * source_bytes();
    std::byte* dst = static_cast<std::byte*>(pass.dst) + i * pass.dst_row * run_.lane_bytes;
    const auto part = [&](const Axis& along, std::int64_t begin, std::int64_t end, const auto& make) {
      if (begin == end) return;
      row.axis = &along;
      row.begin = begin;
      row.end = end;
      row.dst = dst + (begin - pass.begin) * pass.dst_step * run_.lane_bytes;
      make(row);
    };
    part(first, pass.begin, whole, kernels_->sweep);
    part(axis, whole, last, [&](const Pass& between) { repeat_whole(between); });
    part(second, last, pass.end, kernels_->sweep);
  }
}

void Block::repeat_whole(const Pass& pass) {
  const Axis& axis = *pass.axis;
  const auto rest = [](std::int64_t a, std::int64_t b) { return a % b < 0 ? a % b + b : a % b; };
  // The windows that there are, wherever work is cut: those that begin with one of the first cells.
  const std::int64_t apart = std::gcd(axis.stride, axis.dilation), period = axis.dilation / apart;
  Axis distinct = axis;
  distinct.size = across_;
  distinct.stride = apart;
  distinct.low = -rest(-axis.low, apart);
  distinct.out = period;
  const std::int64_t lanes = period * len_, plane = lanes + slack_lanes();
  const auto mark = scratch_.mark();
  std::byte* states = scratch_.take(kernels_->parts * plane * run_.lane_bytes);
  Pass part = pass;
  part.axis = &distinct;
  part.begin = 0;
  part.end = period;
  part.dst = states;
  part.dst_plane = plane;
  part.work = nullptr;
  run_.layout.inner.extent == 1 ? kernels_->lines(part) : kernels_->rows(part);
  for (int k = 0; k < kernels_->parts; ++k) {
    std::byte* dst = static_cast<std::byte*>(pass.dst) + k * pass.dst_plane * run_.lane_bytes;
    const std::int64_t bytes = len_ * run_.lane_bytes, all = (pass.end - pass.begin) * bytes;
    std::int64_t done = 0;
    for (std::int64_t o = pass.begin; o < std::min(pass.end, pass.begin + period); ++o, done += bytes) {
      const std::int64_t number = (rest(o * axis.stride - axis.low, axis.dilation) + distinct.low) / apart;
      std::memcpy(dst + done, states + (k * plane + number * len_) * run_.lane_bytes, static_cast<std::size_t>(bytes));
    }
    for (std::int64_t more; done < all; done += more) {
      more = std::min(done, all - done);
      std::memcpy(dst + done, dst, static_cast<std::size_t>(more));
    }
  }
  scratch_.release(mark);
}

void Block::launch_phases(const Pass& pass) {
  const Axis& axis = *pass.axis;
  const std::int64_t count = phases_of(axis), step = axis.step(), outputs = pass.end - pass.begin;
  const std::int64_t together = ceil_div(outputs, count), apart = together * len_ + 2 * slack_lanes();
  const std::int64_t row_lanes = kernels_->parts * count * apart;
  const auto mark = scratch_.mark();
  std::byte* phases = scratch_.take(pass.rows * row_lanes * run_.lane_bytes);
  std::byte* woven = scratch_.take((count * together * len_ + 2 * count * slack_lanes()) * run_.lane_bytes);
  Pass part = pass;
  const Lattice lattice = step > 1 ? thin_out(part, step) : Lattice{};
  const auto* cells = static_cast<const std::byte*>(part.src);
  part.dst_plane = count * apart;
  part.dst_row = row_lanes;
  for (std::int64_t k = 0; k < std::min(count, outputs); ++k) {
    // Outputs are counted from the first of all, so that sums do not depend on where work is cut.
    const std::int64_t first = pass.begin + k;
    Axis phase = phase_of(axis, first % count);
    if (step > 1) {
      const Thinned thin = thinned(phase);
      phase = thin.axis;
      phase.low += lattice.from;
      phase.n = std::clamp<std::int64_t>(ceil_div(lattice.count - thin.first, step), 0, phase.n);
      part.src = cells + thin.first * lattice.lanes * source_bytes();
    }
    part.axis = &phase;
    part.begin = first / count;
    part.end = part.begin + ceil_div(outputs - k, count);
    part.dst = phases + k * apart * run_.lane_bytes;
    launch(part);
  }
  for (std::int64_t row = 0; row < pass.rows; ++row)
    for (std::int64_t k = 0; k < kernels_->parts; ++k) {
      std::byte* dst = static_cast<std::byte*>(pass.dst) + (row * pass.dst_row + k * pass.dst_plane) * run_.lane_bytes;
      const std::byte* states = phases + (row * row_lanes + k * count * apart) * run_.lane_bytes;
      if (len_ == 1)
        transpose(run_.lane_bytes, states, apart, count, together, woven, count);
      else
        for (std::int64_t o = 0; o < outputs; ++o)
          std::memcpy(woven + o * len_ * run_.lane_bytes,
                      states + (o % count * apart + o / count * len_) * run_.lane_bytes,
                      static_cast<std::size_t>(len_ * run_.lane_bytes));
      std::memcpy(dst, woven, static_cast<std::size_t>(outputs * len_ * run_.lane_bytes));
    }
  scratch_.release(mark);
}

Block::Lattice Block::thin_out(Pass& pass, std::int64_t apart) {
  const auto [reached, to] = reach(*pass.axis, pass.begin, pass.end);
  const std::int64_t from = reached / apart * apart, lanes = ceil_div(to - from, apart) * len_ + slack_lanes();
  const std::int64_t bytes = source_bytes(), planes = run_.x_plane != 0 ? 2 : 1, plane = pass.rows * apart * lanes;
  const Type type = staged_ ? staged_type(run_.plan) : run_.plan.type;
  const auto* src = static_cast<const std::byte*>(pass.src);
  std::byte* cells = scratch_.take(planes * plane * bytes);
  pass.src = cells;
  for (std::int64_t i = 0; i < planes * pass.rows; ++i) {
    const std::byte* row = src + (i / pass.rows * pass.src_plane + i % pass.rows * pass.src_row) * bytes;
    for (std::int64_t first = 0; first < apart; ++first, cells += lanes * bytes) {
      const std::int64_t count = from + first < to ? ceil_div(to - from - first, apart) : 0;
      const std::byte* cell = row + (from + first) * len_ * bytes;
      if (len_ == 1)
        convert_line(type, cells, type, cell, apart, count);
      else
        for (std::int64_t p = 0; p < count; ++p)
          std::memcpy(cells + p * len_ * bytes, cell + p * apart * len_ * bytes,
                      static_cast<std::size_t>(len_ * bytes));
    }
  }
  pass.src_row = apart * lanes;
  if (planes > 1) pass.src_plane = plane;
  return {lanes, from / apart, to - from};
}

void Block::staged_pass(Pass pass) {
  const Axis axis = *pass.axis;
  const std::byte* x = static_cast<const std::byte*>(pass.src);
  auto* dst = static_cast<std::byte*>(pass.dst);
  const std::int64_t apart = axis.irregular() ? 1 : axis.stride;
  const std::int64_t together =
      axis.adaptive
          ? pass.end - pass.begin
          : std::max({std::int64_t{1}, work_ ? swept_together_ : 0, stage_bytes * 4 / run_.lane_bytes / len_ / apart});
  // Several rows at a time where they are short. What runs over the end of one is made good by the next.
  const std::int64_t row_bytes = std::max<std::int64_t>(1, axis.n * len_ * pass.fold * run_.lane_bytes);
  const std::int64_t most = together < pass.end - pass.begin ? 1 : std::max<std::int64_t>(1, stage_bytes / row_bytes);
  for (std::int64_t row = 0; row < pass.rows; row += most)
    for (std::int64_t o = pass.begin; o < pass.end; o += together) {
      const std::int64_t stop = std::min(pass.end, o + together);
      auto [from, to] = reach(axis, o, stop);
      // One more cell, for kernels that read in pairs: which windows reach over the end must not depend on the cut.
      if (!axis.irregular()) to = std::min(axis.n, to + 1);
      Axis shifted = axis;
      Pass part = pass;
      if (in_phases_) {
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
      part.rows = std::min(most, pass.rows - row);
      part.ahead = 0;  // all is brought into the cache
      gather(x + (row * pass.src_row + from * pass.step) * run_.read_bytes, to - from, part);
      part.dst = dst + (row * pass.dst_row + (o - pass.begin) * len_) * run_.lane_bytes;
      launch(part);
      scratch_.release(mark);
    }
}

void Block::gather(const std::byte* x, std::int64_t count, Pass& pass) {
  const std::int64_t fold = pass.fold, line = count * len_, plane = pass.rows * fold * line + slack_lanes();
  const bool tame = staged_ && params_.tame;
  const std::int64_t planes = run_.x_plane != 0 && !tame ? 2 : 1;
  std::byte* cells = scratch_.take(planes * plane * run_.lane_bytes);
  const Type from = run_.plan.type, to = staged_type(run_.plan);
  const bool lines = run_.layout.inner.extent == 1;
  const std::int64_t step = pass.step, x_row = pass.src_row, fold_step = pass.fold_step;
  // Where one row ends the next begins: they are one long line.
  const bool touch = lines && (fold == 1 || fold_step == count * step) && x_row == fold * count * step;
  pass.src = cells;
  pass.src_plane = plane;
  pass.step = len_;
  pass.src_row = fold * line;
  pass.fold_step = line;
  const auto bring = [&](std::byte* dst, const std::byte* src, std::int64_t stride, std::int64_t n) {
    if (tame) return run_.kernels.powers(src, run_.x_plane, dst, n, looked_at_, params_);
    convert_line(to, dst, from, src, stride, n);
  };
  const bool side_by_side = !lines && step == len_ && run_.layout.inner.x == 1;
  for (std::int64_t k = 0; k < planes; ++k, cells += plane * run_.lane_bytes, x += run_.x_plane * run_.read_bytes) {
    const std::int64_t rows = touch ? 1 : pass.rows * fold;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::byte* dst = cells + i * line * run_.lane_bytes;
      const std::byte* src = x + (i / fold * x_row + i % fold * fold_step) * run_.read_bytes;
      if (lines)
        bring(dst, src, step, touch ? pass.rows * fold * count : count);
      else if (side_by_side)
        bring(dst, src, 1, line);
      else
        for (std::int64_t p = 0; p < count; ++p)
          bring(dst + p * len_ * run_.lane_bytes, src + p * step * run_.read_bytes, run_.layout.inner.x, len_);
    }
  }
}

}  // namespace cenote::cpu
