// The way out of the kernels: divisors, types, strides of the result.
#include "cpu/emit.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>

#include "core/copy.h"
#include "cpu/scratch.h"

namespace cenote::cpu {
namespace {

bool writes_directly(const Plan::Impl& plan) {
  return plan.lane_type == plan.output_type || is_keyed(plan) ||
         (plan.lane_type == Type::f32 && is_half(plan.output_type));
}

// One division in double precision, one rounding.
template <class Sum>
void divide(float* dst, const Sum* sums, const double* counts, double count, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i)
    dst[i] = static_cast<float>(static_cast<double>(sums[i]) / (counts ? counts[i] : count));
}

void divide_line(Type lane, float* dst, const void* sums, const double* counts, double count, std::int64_t n) noexcept {
  if (lane == Type::u64) return divide(dst, static_cast<const std::uint64_t*>(sums), counts, count, n);
  if (lane == Type::i64) return divide(dst, static_cast<const std::int64_t*>(sums), counts, count, n);
  return divide(dst, static_cast<const float*>(sums), counts, count, n);
}

// Of a whole number: that of padded cells, which most of the outputs at borders share.
double logarithm(double number) {
  static const auto table = [] {
    std::array<double, 4097> result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::log(static_cast<double>(i));
    return result;
  }();
  return number < static_cast<double>(table.size()) ? table[static_cast<std::size_t>(number)] : std::log(number);
}

}  // namespace

Emitter::Emitter(const Plan::Impl& plan, const Layout& layout, const Operands& operands, Reducer reducer, bool stream,
                 const Numbering* numbering)
    : plan_(plan),
      layout_(layout),
      y_(static_cast<std::byte*>(operands.y.data)),
      second_(static_cast<std::byte*>(operands.second)),
      indices_(static_cast<std::byte*>(operands.indices.data)),
      cells_(static_cast<const std::byte*>(operands.cells.data)),
      numbering_(numbering && numbering->applies() ? numbering : nullptr),
      index_type_(operands.indices.type),
      finish_type_(writes_directly(plan) ? plan.output_type : plan.lane_type),
      stream_(stream) {
  if (!kernels(finish_type_, reducer, plan.role).finish) finish_type_ = plan.lane_type;
  kernels_ = kernels(finish_type_, reducer, plan.role);
  std::int64_t scale = 1;
  for (int l = layout.depth - 1; l >= 0; --l) {
    scales_[static_cast<std::size_t>(l)] = scale;
    if (plan.index_type) scale *= real_cells(layout.axes[static_cast<std::size_t>(l)]);
  }
  if (!plan.index_type) return;
  offsets_ = operands.as_offsets || *plan.pooling.indices == IndexKind::offset;
  find_numbers(scale);
}

bool Emitter::is_straight() const noexcept {
  const Loop& last = layout_.levels[static_cast<std::size_t>(layout_.depth - 1)];
  if (plan_.role == Role::winner) {
    // Indices lie as y does, and are numbers within windows, none of which is empty along the last level.
    bool plain = (offsets_ || numbering_) && is_filled(layout_.axes[static_cast<std::size_t>(layout_.depth - 1)]);
    const auto look_at = [&](const Loop& loop) { plain = plain && loop.beside == loop.y; };
    if (layout_.inner.extent > 1) look_at(layout_.inner);
    for (int l = 0; l < layout_.depth; ++l) look_at(layout_.levels[static_cast<std::size_t>(l)]);
    for (int i = 0; i < layout_.outer_count; ++i) look_at(layout_.outer[static_cast<std::size_t>(i)]);
    if (!plain) return false;
  } else if (plan_.role != Role::value && plan_.role != Role::follower && plan_.role != Role::tangent) {
    return false;
  }
  return plan_.count && !plan_.divides_late && finish_type_ == plan_.output_type &&
         (layout_.inner.extent == 1 || layout_.inner.y == 1) && last.y == layout_.inner.extent;
}

Finish Emitter::straight(std::byte* states, std::int64_t y) const noexcept {
  return {states,
          0,
          0,
          nullptr,
          *plan_.count,
          y_ + y * static_cast<std::int64_t>(size_of(plan_.output_type)),
          nullptr,
          stream_,
          plan_.params};
}

void* Emitter::straight_indices(std::int64_t y) const noexcept {
  return plan_.role == Role::winner ? indices_ + y * static_cast<std::int64_t>(size_of(index_type_)) : nullptr;
}

void Emitter::flush() noexcept { hwy::FlushStream(); }

Emitter::Block Emitter::block(const Origin& origin, std::int64_t len, std::int64_t tile_begin, std::int64_t tile_end,
                              std::int64_t row) const {
  Block block;
  block.emitter_ = this;
  block.params_ = plan_.params;
  block.origin_ = origin;
  block.len_ = len;
  block.tile_begin_ = tile_begin;
  block.tile_end_ = tile_end;
  block.row_ = row;
  // How far the outputs lie side by side, from the innermost level outwards.
  bool touching = len == 1 || layout_.inner.y == 1, full = len == layout_.inner.extent;
  std::int64_t run = len;
  for (int l = layout_.depth - 1; l >= 1; --l) {
    const std::int64_t out = layout_.axes[static_cast<std::size_t>(l)].out;
    const std::int64_t width = l == layout_.depth - 1 ? tile_end - tile_begin : out;
    touching = touching && (width == 1 || (full && layout_.levels[static_cast<std::size_t>(l)].y == run));
    full = full && width == out;
    run *= width;
  }
  block.whole_rows_ = touching;
  block.joined_rows_ = touching && full && layout_.levels[0].y == row;
  return block;
}

template <class Visit>
void Emitter::Block::each_line(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                               const Visit& visit) const {
  const Layout& layout = emitter_->layout_;
  const std::int64_t width = tile_end_ - tile_begin_, line_len = width * len_;
  Line line;
  for (std::int64_t i = begin; i < end; ++i) {
    line.o[0] = i;
    for (std::int64_t f = from; f < to;) {
      std::int64_t number = f / line_len;
      const std::int64_t first = f % line_len / len_, last = std::min(width, first + (to - f) / len_);
      for (int l = layout.depth - 2; l >= 1; --l) {
        line.o[static_cast<std::size_t>(l)] = number % layout.axes[static_cast<std::size_t>(l)].out;
        number /= layout.axes[static_cast<std::size_t>(l)].out;
      }
      line.begin = tile_begin_ + first;
      line.end = tile_begin_ + last;
      line.offset = (i - begin) * (to - from) + (f - from);
      visit(line);
      f += (last - first) * len_;
    }
  }
}

void Emitter::Block::operator()(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                                const std::byte* states, std::int64_t plane) {
  const Emitter& e = *emitter_;
  const Layout& layout = e.layout_;
  const std::int64_t n = (end - begin) * (to - from);
  Scratch& scratch = Scratch::of_this_thread();
  const auto mark = scratch.mark();
  find_counts(begin, end, from, to);
  const bool run = (end - begin == 1 && whole_rows_) || (joined_rows_ && from == 0 && to == row_);
  if (run) {
    finish(states, plane, 0, n, origin_.y + begin * layout.levels[0].y + tile_y() + from, 1);
  } else {
    const Loop& last = layout.levels[static_cast<std::size_t>(layout.depth - 1)];
    each_line(begin, end, from, to, [&](const Line& line) {
      std::int64_t y = origin_.y + line.begin * last.y;
      for (int l = 0; l + 1 < layout.depth; ++l)
        y += line.o[static_cast<std::size_t>(l)] * layout.levels[static_cast<std::size_t>(l)].y;
      const std::int64_t outputs = line.end - line.begin;
      if (len_ == 1) return finish(states, plane, line.offset, outputs, y, last.y);
      if (layout.inner.y == 1 && last.y == len_) return finish(states, plane, line.offset, outputs * len_, y, 1);
      for (std::int64_t o = 0; o < outputs; ++o)
        finish(states, plane, line.offset + o * len_, len_, y + o * last.y, layout.inner.y);
    });
  }
  if (e.plan_.index_type) {
    const std::byte* ids = states + plane * static_cast<std::int64_t>(size_of(e.plan_.lane_type));
    if (run && e.uniform_)
      write_run(origin_.beside + begin * layout.levels[0].beside + tile_y() + from, ids, n);
    else if (!run || !number_slices(begin, end, from, to, ids))
      each_line(begin, end, from, to, [&](const Line& line) { write_indices(line, ids); });
  }
  scratch.release(mark);
}

// What `lower` is given beside each state: a count, or for a cotangent the cell itself.
void Emitter::Block::find_counts(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to) {
  const Emitter& e = *emitter_;
  const std::int64_t room = (end - begin) * (to - from) + 64;
  Scratch& scratch = Scratch::of_this_thread();
  counts_ = nullptr;
  lane_counts_ = nullptr;
  if (e.plan_.role == Role::cotangent) {
    lane_counts_ = scratch.take(room * 8);
    return each_line(begin, end, from, to, [&](const Line& line) { read_cells(line); });
  }
  if (e.plan_.count) return;
  counts_ = reinterpret_cast<double*>(scratch.take(room * static_cast<std::int64_t>(sizeof(double))));
  Line before{};
  each_line(begin, end, from, to, [&](const Line& line) {
    count_cells(line, before);
    before = line;
  });
  lane_counts_ = reinterpret_cast<std::byte*>(counts_);
  if (e.plan_.lane_type == Type::f32) {
    lane_counts_ = scratch.take(room * static_cast<std::int64_t>(sizeof(float)));
    convert_line(Type::f32, lane_counts_, Type::f64, counts_, 1, room - 64);
  }
}

void Emitter::Block::read_cells(const Line& line) {
  const Emitter& e = *emitter_;
  const Layout& layout = e.layout_;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const auto lane_bytes = static_cast<std::int64_t>(size_of(e.plan_.lane_type));
  const Type from = e.plan_.output_type;
  std::int64_t at = origin_.beside + line.begin * layout.levels[last].beside;
  for (std::size_t l = 0; l < last; ++l) at += line.o[l] * layout.levels[l].beside;
  std::byte* to = lane_counts_ + line.offset * lane_bytes;
  const std::int64_t outputs = line.end - line.begin, step = layout.levels[last].beside;
  const auto read = [&](std::int64_t place, std::int64_t stride, std::int64_t n) {
    convert_line(e.plan_.lane_type, to, from, e.cells_ + place * static_cast<std::int64_t>(size_of(from)), stride, n);
    to += n * lane_bytes;
  };
  if (len_ == 1) return read(at, step, outputs);
  for (std::int64_t o = 0; o < outputs; ++o) read(at + o * step, layout.inner.beside, len_);
}

std::int64_t Emitter::Block::tile_y() const {
  const Layout& layout = emitter_->layout_;
  return tile_begin_ * layout.levels[static_cast<std::size_t>(layout.depth - 1)].y;
}

// Turns n states behind lane `first` into elements `step` apart in y.
void Emitter::Block::finish(const std::byte* states, std::int64_t plane, std::int64_t first, std::int64_t n,
                            std::int64_t y, std::int64_t step) {
  const Emitter& e = *emitter_;
  const Type to = e.plan_.output_type;
  const auto lane_bytes = static_cast<std::int64_t>(size_of(e.plan_.lane_type));
  const auto out_bytes = static_cast<std::int64_t>(size_of(to));
  std::byte* dst = e.y_ + y * out_bytes;
  std::byte* second = e.second_ ? e.second_ + y * out_bytes : nullptr;
  Finish call{states + first * lane_bytes,
              plane,
              n,
              lane_counts_ ? lane_counts_ + first * lane_bytes : nullptr,
              e.plan_.count.value_or(0),
              dst,
              second,
              e.stream_,
              params_};
  const bool late = e.plan_.divides_late;
  if (step == 1 && e.finish_type_ == to && !late) return e.kernels_.finish(call);

  Scratch& scratch = Scratch::of_this_thread();
  const auto mark = scratch.mark();
  call.stream = false;
  call.dst = scratch.take(n * 8);
  if (second) call.second = scratch.take(n * 8);
  std::byte* values = scratch.take(n * 8);
  if (late)
    divide_line(e.plan_.lane_type, static_cast<float*>(call.dst), call.src, counts_ ? counts_ + first : nullptr,
                call.count, n);
  else
    e.kernels_.finish(call);
  narrow_line(to, values, late ? Type::f32 : e.finish_type_, call.dst, n);
  scatter_line(to, dst, step, values, n);
  if (second) scatter_line(to, second, step, call.second, n);
  scratch.release(mark);
}

// Cells of one window along one level: the real ones, or all but a ceil overhang.
double Emitter::Block::cells(int level, std::int64_t o, bool real) const {
  const Axis& axis = emitter_->layout_.axes[static_cast<std::size_t>(level)];
  return static_cast<double>(real ? axis.span(o).count : axis.clipped(o));
}

void Emitter::Block::count_cells(const Line& line, const Line& before) {
  const Emitter& e = *emitter_;
  const int last = e.layout_.depth - 1;
  const bool padded = e.plan_.traits.counts == Counts::padded;
  const bool clipped = e.plan_.pooling.divisor.rule() == Divisor::Rule::clipped;
  double real = 1, all = 1;
  bool again = line.begin == before.begin && line.end == before.end;
  for (int l = 0; l < last; ++l) {
    const std::int64_t o = line.o[static_cast<std::size_t>(l)], other = before.o[static_cast<std::size_t>(l)];
    const double here = cells(l, o, true), taps = cells(l, o, false);
    again = again && here == cells(l, other, true) && taps == cells(l, other, false);
    real *= here;
    all *= taps;
  }
  const auto count = [&](std::int64_t o) {
    const double inside = real * cells(last, o, true), whole = all * cells(last, o, false);
    const double divisor = clipped ? whole : inside;
    // A window without cells has the sum 0, and 0 is its average.
    return padded ? logarithm(whole - inside) : divisor > 0 ? divisor : 1.0;
  };
  double* counts = counts_ + line.offset;
  if (again) {
    std::copy_n(counts_ + before.offset, (line.end - line.begin) * len_, counts);
    return;
  }
  // Windows that lie inside all have the same.
  const auto [inside, outside] = e.layout_.axes[static_cast<std::size_t>(last)].interior();
  for (std::int64_t o = line.begin; o < line.end;) {
    const std::int64_t stop = o >= inside && o < outside ? std::min(outside, line.end) : o + 1;
    counts = std::fill_n(counts, (stop - o) * len_, count(o));
    o = stop;
  }
}

}  // namespace cenote::cpu
