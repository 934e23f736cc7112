// The innermost level of a block: whole planes, lines and rows, in phases, staged where they must be.
#include "cpu/block.h"

#include <cstring>

#include "core/copy.h"
#include "cpu/transpose.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t numbered = 8192;  // offsets that wait to become indices

}  // namespace

void Block::planes(const std::byte* x, std::int64_t y, std::int64_t count, const Loop& beside) {
  scratch_.reset();
  make_work();
  Planes call = planes_of_two_levels(x);
  const std::int64_t first = y + begin_ * loop(0).y + tile_begin_ * loop(1).y;
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
  run_.emitter.numbering() ? number_planes(call, beside) : run_.kernels.planes(call);
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
  Planes call{};
  call.line = first_pass_of(x, 1, loop(last_ - 1).x, tile_begin_, tile_end_, nullptr, 0, 0);
  call.across = &across;
  call.folded = run_.direct || (run_.fused_inside && !work_ && along.out >= least_line &&
                                folds(across, len_ > 1 ? 0 : along.n * run_.read_bytes));
  call.line.fold = call.folded ? across.size : 1;
  call.line.fold_step = across.dilation * loop(last_ - 1).x;
  call.swept = run_.swept;
  call.out_size = static_cast<std::int64_t>(size_of(run_.plan.output_type));
  call.index_size = run_.emitter.index_size();
  // Neighbouring sweeps repeat a window's length of work.
  call.piece = work_      ? std::clamp<std::int64_t>(along.size / 256, 1, 4) * plane_piece
               : len_ > 1 ? std::max<std::int64_t>(1, plane_piece / len_) * len_
                          : plane_piece;
  std::int64_t rows = call.folded ? 0 : ((tile_end_ - tile_begin_) * len_ + 160) * 2 * across.size;
  if (run_.swept) {
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
  // The states on their way out lie behind the ring.
  call.ring = scratch_.take(2 * run_.kernels.parts * call.line.dst_plane * run_.lane_bytes);
  return call;
}

void Block::make_work() {
  const Axis& axis = run_.layout.axes[static_cast<std::size_t>(last_)];
  const bool side_by_side = run_.layout.inner.extent == 1 || loop(last_).x == len_ || run_.staged;
  work_ = nullptr;
  const bool folds = run_.direct && run_.layout.axes[0].size > 1;
  const bool phases = run_.layout.inner.extent == 1 && has_phases(axis);
  const Axis along = phases ? phase_of(axis, 0) : axis;
  if (folds || !side_by_side || !run_.rules.sweeps(along, true)) return;
  const std::int64_t reach = along.size * along.dilation * len_;
  work_lanes_ = 12 * slack_lanes() + len_ + reach + std::max<std::int64_t>(2048, 2 * reach);
  work_ = scratch_.take(sweep_rows * run_.kernels.parts * work_lanes_ * run_.lane_bytes);
}

Pass Block::first_pass_of(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin,
                          std::int64_t end, std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) const {
  Pass pass{&axis(last_), begin, end,       x,    loop(last_).x, 0,       0, run_.x_plane, len_,
            dst,          len_,  dst_plane, rows, x_row,         dst_row, 1, params_};
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
  if (lines && has_phases(*pass.axis)) return launch_phases(pass);
  pass.work = work_;
  pass.work_lanes = work_lanes_;
  pass.nan = &nan_;
  if (work_ && pass.axis->size > 1) return kernels_->sweep(pass);
  lines ? kernels_->lines(pass) : kernels_->rows(pass);
}

void Block::launch_phases(const Pass& pass) {
  const Axis& axis = *pass.axis;
  const std::int64_t stride = axis.stride, outputs = pass.end - pass.begin;
  const std::int64_t apart = ceil_div(outputs, stride) + 2 * slack_lanes();
  const std::int64_t row_lanes = kernels_->parts * stride * apart;
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
    for (std::int64_t k = 0; k < kernels_->parts; ++k) {
      std::byte* dst = static_cast<std::byte*>(pass.dst) + (row * pass.dst_row + k * pass.dst_plane) * run_.lane_bytes;
      transpose(run_.lane_bytes, phases + (row * row_lanes + k * stride * apart) * run_.lane_bytes, apart, stride,
                ceil_div(outputs, stride), woven, stride);
      std::memcpy(dst, woven, static_cast<std::size_t>(outputs * run_.lane_bytes));
    }
  scratch_.release(mark);
}

void Block::staged_pass(Pass pass) {
  const Axis axis = *pass.axis;
  const std::byte* x = static_cast<const std::byte*>(pass.src);
  auto* dst = static_cast<std::byte*>(pass.dst);
  const std::int64_t apart = axis.irregular() ? 1 : axis.stride;
  const std::int64_t together = axis.adaptive
                                    ? pass.end - pass.begin
                                    : std::max<std::int64_t>(1, stage_bytes * 4 / run_.lane_bytes / len_ / apart);
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
      part.rows = std::min(most, pass.rows - row);
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
