// The way out of the kernels for winners: their numbers become indices.
#include <algorithm>

#include "cpu/emit.h"
#include "cpu/index_type.h"

namespace cenote::cpu {
namespace {

/// Winners' numbers that are indices as they are.
template <class Number, class Index>
void write_numbers(const void* numbers, std::int64_t count, void* indices) {
  const auto* from = static_cast<const Number*>(numbers);
  auto* to = static_cast<Index*>(indices);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Index>(from[i]);
}

constexpr std::int64_t most_bytes = 256;  // numbers that bytes tell apart

bool is_inside(const Axis& axis) { return axis.interior() == std::pair(std::int64_t{0}, axis.out); }

}  // namespace

// What the numbers of winners are, of which windows of real cells have so many.
void Emitter::find_numbers(std::int64_t scale) {
  bool adaptive = false;
  std::array<Axis::Span, max_rank> spans{};
  for (int l = 0; l < layout_.depth; ++l) adaptive = adaptive || layout_.axes[static_cast<std::size_t>(l)].irregular();
  const Numbers any = numbers(spans, 0);
  packed_ = numbering_;
  for (int l = 1; l < layout_.depth; ++l) {
    const Axis& axis = layout_.axes[static_cast<std::size_t>(l)];
    packed_ = packed_ && real_cells(axis) == axis.size;
  }
  find_uniform(any.plain);
  if (adaptive || any.plain || scale > largest_table) return;
  tabled_ = true;
  for (std::int64_t id = 0; id < scale; ++id) table_[static_cast<std::size_t>(id)] = spread(id, any.weight);
}

void Emitter::find_uniform(bool plain) noexcept {
  bool alike = layout_.inner.beside == layout_.inner.y;
  sliced_ = packed_;
  slice_ = layout_.inner.extent;
  for (int l = layout_.depth - 1; l >= 0; --l) {
    const Axis& axis = layout_.axes[static_cast<std::size_t>(l)];
    const Loop& loop = layout_.levels[static_cast<std::size_t>(l)];
    const bool inside = !axis.irregular() && (is_inside(axis) || (l >= by_window_ && is_filled(axis)));
    alike = alike && loop.beside == loop.y;
    plain = plain && inside;
    if (l == 0) break;
    sliced_ = sliced_ && inside;
    slice_ *= axis.out;
  }
  uniform_ = offsets_ && alike && plain;
  sliced_ = sliced_ && alike;
}

bool Emitter::number_inside_by_window() noexcept {
  const int from = layout_.depth - 2;
  std::int64_t taps = 1;
  for (int l = layout_.depth - 1; l >= 1; --l) {
    const Axis& axis = layout_.axes[static_cast<std::size_t>(l)];
    if (axis.irregular() || real_cells(axis) != axis.size || (l >= from && !is_filled(axis))) return false;
    if (l >= from) taps *= std::min(axis.size, most_bytes + 1);
  }
  if (taps > most_bytes) return false;
  by_window_ = from;
  find_uniform(numbers({}, 0).plain);
  return true;
}

auto Emitter::numberer() const noexcept -> Numberer {
  return plan_.role == Role::winner ? numberer(numbering_ ? numbering_->type() : index_type_) : nullptr;
}

auto Emitter::numberer(Type to) const noexcept -> Numberer {
  Numberer result = nullptr;
  visit_index_type(to, [&]<class Index>(Index) {
    const bool narrow = size_of(plan_.lane_type) == 4;
    result = narrow ? write_numbers<std::int32_t, Index> : write_numbers<std::int64_t, Index>;
  });
  return result;
}

// Numbers that are indices as they are, side by side.
void Emitter::Block::write_run(std::int64_t to, const std::byte* ids, std::int64_t n) const {
  emitter_->numberer()(ids, n, emitter_->straight_indices(to));
}

// Whole slices of the outermost level, all of whose windows are numbered alike; says whether they are.
bool Emitter::Block::number_slices(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                                   const std::byte* ids) const {
  const Emitter& e = *emitter_;
  const Loop& top = e.layout_.levels[0];
  if (!e.sliced_ || row_ != e.slice_) return false;
  const auto number = [&](const auto* all) {
    if (e.layout_.kept_top && row_ == 1 && top.beside == 1)
      return e.numbering_->column(all, begin, end, reinterpret_cast<std::int64_t*>(e.indices_) + origin_.beside + begin,
                                  origin_.place, e.stream_);
    for (std::int64_t o = begin; o < end; ++o) {
      auto* const indices = reinterpret_cast<std::int64_t*>(e.indices_) + origin_.beside + o * top.beside + from;
      const std::int64_t base = origin_.place + e.layout_.axes[0].span(o).first * top.place;
      if (!e.numbering_->slice(all + (o - begin) * (to - from), from, to - from, indices, base, e.stream_))
        return false;
    }
    return true;
  };
  return size_of(e.plan_.lane_type) == 4 ? number(reinterpret_cast<const std::int32_t*>(ids))
                                         : number(reinterpret_cast<const std::int64_t*>(ids));
}

void Emitter::Block::write_indices(const Line& line, const std::byte* ids) const {
  visit_index_type(emitter_->index_type_, [&]<class Index>(Index) {
    if (size_of(emitter_->plan_.lane_type) == 4)
      number_line<Index>(line, reinterpret_cast<const std::int32_t*>(ids));
    else
      number_line<Index>(line, reinterpret_cast<const std::int64_t*>(ids));
  });
}

// Turns winners' numbers into indices: what the window begins with, and what each step along a level adds.
template <class Index, class Id>
void Emitter::Block::number_line(const Line& line, const Id* ids) const {
  const Emitter& e = *emitter_;
  const Layout& layout = e.layout_;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const Axis& axis = layout.axes[last];
  const bool offset = e.offsets_;
  std::array<Axis::Span, max_rank> spans;
  std::int64_t to = origin_.beside;
  for (std::size_t l = 0; l < last; ++l) {
    spans[l] = layout.axes[l].span(line.o[l]);
    to += line.o[l] * layout.levels[l].beside;
  }
  const bool by_window = layout.depth - 1 >= e.by_window_;
  const auto [inside, outside] = by_window ? std::pair(std::int64_t{0}, axis.out) : axis.interior();
  for (std::int64_t o = line.begin; o < line.end;) {
    spans[last] = axis.span(o);
    const Numbers numbers = e.numbers(spans, origin_.place);
    const bool together = o >= inside && o < outside;
    const std::int64_t stop = together ? std::min(outside, line.end) : o + 1;
    const std::int64_t base_step = offset ? 0 : axis.stride * layout.levels[last].place;
    const std::int64_t c_step = offset ? 0 : layout.inner.place;
    Index* dst = reinterpret_cast<Index*>(e.indices_) + to + o * layout.levels[last].beside;
    const Id* from = ids + line.offset + (o - line.begin) * len_;
    const bool touching = len_ == 1 ? layout.levels[last].beside == 1 : layout.inner.beside == 1;
    const auto write = [&](const auto& number) {
      for (std::int64_t i = 0; i < stop - o; ++i)
        for (std::int64_t c = 0; c < len_; ++c)
          dst[i * layout.levels[last].beside + c * layout.inner.beside] =
              static_cast<Index>(number(from[i * len_ + c]) + i * base_step + c * c_step);
    };
    if (numbers.empty)
      for (std::int64_t i = 0; i < stop - o; ++i)
        for (std::int64_t c = 0; c < len_; ++c)
          dst[i * layout.levels[last].beside + c * layout.inner.beside] = static_cast<Index>(offset ? 0 : -1);
    else if (sizeof(Index) <= 4 && numbers.plain && c_step == 0 && base_step == 0 && touching &&
             layout.levels[last].beside == len_)
      // Modulo 2^n, so that few bits need no more.
      for (std::int64_t i = 0; i < (stop - o) * len_; ++i)
        dst[i] = static_cast<Index>(static_cast<std::uint32_t>(from[i]) + static_cast<std::uint32_t>(numbers.base));
    else if (sizeof(Index) == 8 && e.packed_ && touching)
      for (std::int64_t i = 0; i < (len_ == 1 ? 1 : stop - o); ++i)
        e.numbering_->run(from + i * len_, len_ == 1 ? stop - o : len_,
                          reinterpret_cast<std::int64_t*>(dst) + i * layout.levels[last].beside,
                          numbers.base + i * base_step, e.stream_);
    else if (numbers.plain)
      write([&](Id id) { return numbers.base + id; });
    else if (e.tabled_)
      write([&](Id id) { return numbers.base + e.table_[static_cast<std::size_t>(id)]; });
    else
      write([&](Id id) { return numbers.base + e.spread(id, numbers.weight); });
    o = stop;
  }
}

Emitter::Numbers Emitter::numbers(const std::array<Axis::Span, max_rank>& spans, std::int64_t place) const {
  Numbers result{offsets_ ? 0 : place, false, offsets_, {}};
  std::int64_t taps = 1;
  for (int l = layout_.depth - 1; l >= 0; --l) {
    const auto i = static_cast<std::size_t>(l);
    const Axis& axis = layout_.axes[i];
    const std::int64_t width = axis.irregular() ? spans[i].count : axis.size;
    result.empty = result.empty || spans[i].count == 0;
    result.weight[i] = offsets_ ? taps : axis.dilation * layout_.levels[i].place;
    const std::int64_t skipped = l >= by_window_ ? spans[i].tap : 0;
    result.base += offsets_ ? (spans[i].tap - skipped) * taps
                            : (spans[i].first - skipped * axis.dilation) * layout_.levels[i].place;
    result.plain = result.plain && (l == 0 || width == real_cells(axis));
    if (offsets_) taps *= width;
  }
  return result;
}

// The digits of a winner's number, each times its weight.
std::int64_t Emitter::spread(std::int64_t id, const std::array<std::int64_t, max_rank>& weight) const {
  std::int64_t sum = 0;
  for (int l = layout_.depth - 1; l >= 0; --l) {
    const auto i = static_cast<std::size_t>(l);
    const std::int64_t radix = real_cells(layout_.axes[i]);
    sum += id % radix * weight[i];
    id /= radix;
  }
  return sum;
}

}  // namespace cenote::cpu
