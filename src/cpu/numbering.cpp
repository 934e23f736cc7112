// The kernels behind numbering.h, compiled for every SIMD target, and what they are given.
#include "cpu/numbering.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/numbering.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::NumberCall;

using Wide = hn::ScalableTag<std::int64_t>;
using Lanes = hn::Rebind<std::int32_t, Wide>;

/// The numbers of one pack of indices.
template <class Number, bool Deep>
class Numberer {
 public:
  explicit HWY_INLINE Numberer(const NumberCall& call)
      : numbers_(static_cast<const Number*>(call.numbers)),
        starts_(call.starts),
        base_(hn::Set(Wide(), call.base)),
        step_(hn::Set(Lanes(), call.step)),
        scale_(hn::Set(Lanes(), call.scale)),
        fix_(hn::Set(Lanes(), call.fix)),
        far_(hn::Set(Lanes(), call.far)),
        size_(hn::Set(Lanes(), static_cast<std::int32_t>(call.size))),
        area_(hn::Set(Lanes(), static_cast<std::int32_t>(call.area))) {}

  /// Of outputs i, i + 1, …
  HWY_INLINE hn::Vec<Wide> operator()(std::int64_t i) const {
    const Lanes tag;
    const auto number = load(numbers_ + i);
    const auto start =
        starts_ ? hn::LoadU(tag, starts_ + i) : hn::Mul(hn::Iota(tag, static_cast<std::int32_t>(i)), step_);
    auto sum = hn::Add(hn::Add(start, hn::Mul(number, scale_)), hn::Mul(quotient(number, size_), fix_));
    if constexpr (Deep) sum = hn::Add(sum, hn::Mul(quotient(number, area_), far_));
    return hn::Add(base_, hn::PromoteTo(Wide(), sum));
  }

 private:
  using Pack = hn::Vec<Lanes>;
  static HWY_INLINE Pack load(const std::int32_t* from) { return hn::LoadU(Lanes(), from); }
  static HWY_INLINE Pack load(const std::int64_t* from) {
    const hn::RebindToUnsigned<Wide> bits;
    return hn::BitCast(Lanes(),
                       hn::TruncateTo(hn::RebindToUnsigned<Lanes>(), hn::BitCast(bits, hn::LoadU(Wide(), from))));
  }
  template <class Narrow>
  static HWY_INLINE Pack load(const Narrow* from) {
    return hn::PromoteTo(Lanes(), hn::LoadU(hn::Rebind<Narrow, Wide>(), from));
  }
  static HWY_INLINE Pack quotient(Pack number, Pack factor) {
    const hn::RebindToUnsigned<Lanes> bits;
    return hn::BitCast(Lanes(), hn::ShiftRight<16>(hn::BitCast(bits, hn::Mul(number, factor))));
  }
  const Number* numbers_;
  const std::int32_t* starts_;
  hn::Vec<Wide> base_;
  Pack step_, scale_, fix_, far_, size_, area_;
};

template <class Number, bool Deep>
void number(const NumberCall& call) {
  const Wide tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  const Numberer<Number, Deep> numbers(call);
  std::int64_t* const to = call.indices;
  const auto part = [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    hn::BlendedStore(numbers(i), hn::FirstN(tag, static_cast<std::size_t>(n)), tag, to + i);
  };
  std::int64_t i = 0;
  if (call.stream) {
    const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) / sizeof(*to)) & (L - 1);
    if (behind > 0) part(0, i = HWY_MIN(L - behind, call.count));
    for (; i + L <= call.count; i += L) hn::Stream(numbers(i), tag, to + i);
  } else {
    for (; i + L <= call.count; i += L) hn::StoreU(numbers(i), tag, to + i);
  }
  if (i < call.count) part(i, call.count - i);
}

}  // namespace

void number_in(const NumberCall& call) {
  const auto as = [&]<class Number>(Number) {
    call.far != 0 ? number<Number, true>(call) : number<Number, false>(call);
  };
  if (call.bytes == 1) as(std::uint8_t{});
  if (call.bytes == 2) as(std::uint16_t{});
  if (call.bytes == 4) as(std::int32_t{});
  if (call.bytes == 8) as(std::int64_t{});
}

void widen_in(const std::uint8_t* from, std::int64_t count, void* to, std::int64_t bytes) {
  const auto as = [&]<class Lane>(Lane) HWY_ATTR {
    const hn::ScalableTag<Lane> tag;
    const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
    auto* const lanes = static_cast<Lane*>(to);
    const hn::Rebind<std::uint8_t, decltype(tag)> narrow;
    std::int64_t i = 0;
    for (; i + L <= count; i += L) {
      const auto number = hn::LoadU(narrow, from + i);
      if constexpr (sizeof(Lane) == 4)
        hn::StoreU(hn::PromoteTo(tag, number), tag, lanes + i);
      else
        hn::StoreU(hn::PromoteTo(tag, hn::PromoteTo(Lanes(), number)), tag, lanes + i);
    }
    for (; i < count; ++i) lanes[i] = from[i];
  };
  bytes == 4 ? as(std::int32_t{}) : as(std::int64_t{});
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(number_in);
HWY_EXPORT(widen_in);

namespace cpu {
namespace {

constexpr std::int64_t most_numbers = 1 << 16;
constexpr std::int64_t most_reach = 1 << 30;  // of cells of a plane

}  // namespace

bool is_filled(const Axis& axis) noexcept {
  return axis.n > 0 && axis.low < axis.size && (axis.out - 1) * axis.stride - axis.low < axis.n &&
         (axis.dilation == 1 || axis.interior() == std::pair(std::int64_t{0}, axis.out));
}

void widen(const std::uint8_t* from, std::int64_t count, void* to, std::int64_t bytes) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_in)(from, count, to, bytes);
}

Numbering::Numbering(const Plan::Impl& plan, const Layout& layout) : layout_(layout) {
  if (plan.role != Role::winner || *plan.pooling.indices == IndexKind::offset || layout.depth > 3) return;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const std::size_t top = layout.kept_top ? 1 : 0;
  std::int64_t taps = 1, dense = layout.inner.extent;
  bool side_by_side = layout.inner.extent == 1 || layout.inner.y == 1;
  double reach = static_cast<double>(layout.inner.extent) * static_cast<double>(layout.inner.place);
  for (std::size_t l = last + 1; l-- > top;) {
    const Axis& axis = layout.axes[l];
    const Loop& loop = layout.levels[l];
    if (axis.irregular() || axis.size > most_numbers || !is_filled(axis)) return;
    taps *= axis.size;
    if (taps > most_numbers) return;
    const double extent =
        static_cast<double>(axis.n) + 2.0 * static_cast<double>(axis.size) * static_cast<double>(axis.dilation);
    reach += (extent + 2.0 * static_cast<double>(axis.stride)) * static_cast<double>(loop.place);
    side_by_side = side_by_side && loop.y == dense;
    dense = std::min(most_starts + 1, dense * std::min(axis.out, most_starts + 1));
    if (side_by_side && dense <= most_starts) top_ = static_cast<int>(l);
  }
  const auto width = [&](std::size_t l) { return l <= last ? layout.axes[last - l].size : 1; };
  const auto weight = [&](std::size_t l) {
    return l <= last ? layout.axes[last - l].dilation * layout.levels[last - l].place : 0;
  };
  const std::int64_t area = layout.depth > 2 ? width(0) * width(1) : width(0);
  if (taps * area > most_numbers || reach > most_reach) return;  // else quotients are exact, and sums fit their lanes
  applies_ = true;
  call_.bytes = taps > 256 ? 2 : 1;
  call_.scale = static_cast<std::int32_t>(weight(0));
  call_.fix = static_cast<std::int32_t>(weight(1) - width(0) * weight(0));
  call_.far = layout.depth > 2 ? static_cast<std::int32_t>(weight(2) - width(1) * weight(1)) : 0;
  call_.size = static_cast<std::uint32_t>((most_numbers + width(0) - 1) / width(0));
  call_.area = static_cast<std::uint32_t>((most_numbers + area - 1) / area);
  const bool lines = layout.inner.extent == 1;
  call_.step =
      static_cast<std::int32_t>(lines ? layout.axes[last].stride * layout.levels[last].place : layout.inner.place);
  if (top_ <= static_cast<int>(last)) find_starts(top_, 0);
}

void Numbering::find_starts(int l, std::int64_t start) noexcept {
  if (l == layout_.depth) {
    for (std::int64_t c = 0; c < layout_.inner.extent; ++c)
      starts_[static_cast<std::size_t>(start_count_++)] = static_cast<std::int32_t>(start + c * layout_.inner.place);
    return;
  }
  const Axis& axis = layout_.axes[static_cast<std::size_t>(l)];
  for (std::int64_t o = 0; o < axis.out; ++o)
    find_starts(l + 1, start + (o * axis.stride - axis.low) * layout_.levels[static_cast<std::size_t>(l)].place);
}

auto Numbering::whole(int top) const noexcept -> Piece {
  return {0, layout_.axes[static_cast<std::size_t>(top)].out, 0,
          layout_.axes[static_cast<std::size_t>(layout_.depth - 1)].out, layout_.inner.extent};
}

void Numbering::operator()(const Piece& piece, const void* offsets, std::int64_t* indices, std::int64_t place,
                           bool stream, int top) const noexcept {
  NumberCall call = call_;
  call.numbers = offsets;
  call.indices = indices;
  call.base = place;
  call.stream = stream;
  write(top, top, piece, call);
}

void Numbering::run(const NumberCall& call) noexcept { HWY_DYNAMIC_DISPATCH(number_in)(call); }

bool Numbering::make_column(std::int64_t begin, NumberCall& call) const noexcept {
  const std::int64_t step = layout_.levels[0].place;
  if (step > most_reach / std::max<std::int64_t>(call.count, 1)) return false;
  call.base += begin * step - layout_.axes[1].low * layout_.levels[1].place;
  call.step = static_cast<std::int32_t>(step);
  run(call);
  return true;
}

void Numbering::write(int top, int l, const Piece& piece, const NumberCall& outside) const noexcept {
  const int last = layout_.depth - 1;
  const Axis& axis = layout_.axes[static_cast<std::size_t>(l)];
  const Axis& tail = layout_.axes[static_cast<std::size_t>(last)];
  const Loop& loop = layout_.levels[static_cast<std::size_t>(l)];
  const auto [begin, end] = l == top    ? std::pair(piece.begin, piece.end)
                            : l == last ? std::pair(piece.tile_begin, piece.tile_end)
                                        : std::pair(std::int64_t{0}, axis.out);
  const bool line = l == last && layout_.inner.extent == 1;
  NumberCall call = outside;
  if (l == top_ && end - begin == axis.out && (l == last || piece.tile_end - piece.tile_begin == tail.out) &&
      piece.len == layout_.inner.extent) {
    call.count = start_count_;
    call.starts = starts_.data();
    return run(call);
  }
  call.count = end - begin;
  if (l == 0 && layout_.kept_top && tail.out == 1 && layout_.inner.extent == 1 && loop.y == 1 &&
      make_column(begin, call))
    return;
  for (std::int64_t o = begin; o < end; o += line ? end - begin : 1) {
    call.base = outside.base + (o * axis.stride - axis.low) * loop.place;
    call.numbers = static_cast<const char*>(outside.numbers) + (o - begin) * loop.y * call.bytes;
    call.indices = outside.indices + (o - begin) * loop.y;
    call.count = line ? end - begin : piece.len;
    l == last ? run(call) : write(top, l + 1, piece, call);
  }
}

}  // namespace cpu
}  // namespace cenote
#endif
