// The kernel behind winner_runs.h, compiled for every SIMD target.
#include "cpu/winner_runs.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/winner_runs.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::WinnerRuns;

/// The lanes of a group, in as many packs as it takes.
template <class A>
struct Group {
  static constexpr int lanes = hn::MaxLanes(Tag<A>()), count = static_cast<int>(WinnerRuns::group) / lanes;
  Pack<A> packs[count];
};

/// Adds lane i - Step to lane i where bit i says so.
template <int Step, class A>
HWY_INLINE void add_below(Group<A>& group, std::uint64_t bits) {
  constexpr int L = Group<A>::lanes;
#pragma GCC unroll 8
  for (int j = Group<A>::count - 1; j >= 0; --j) {
    const Tag<A> tag;
    Pack<A> below;
    if constexpr (Step < L)
      below = slide<L - Step>(j > 0 ? group.packs[j - 1] : number<Pack<A>>(0), group.packs[j]);
    else if (j * L >= Step)
      below = group.packs[j - Step / L];
    else
      continue;
    const std::uint64_t word = bits >> (j * L);
    const auto mask = hn::LoadMaskBits(tag, reinterpret_cast<const std::uint8_t*>(&word));
    group.packs[j].v = hn::IfThenElse(mask, hn::Add(group.packs[j].v, below.v), group.packs[j].v);
  }
}

/// Up to a group of lanes.
template <class T>
using GroupTag = hn::CappedTag<T, WinnerRuns::group>;

template <class D, class M>
HWY_INLINE std::uint64_t bits_of(D tag, M mask) {
  std::uint64_t bits = 0;
  hn::StoreMaskBits(tag, mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

/// A bit for each of a group's outputs whose next one has an offset that is `stride` less, or, since numbers wrap
/// around, that much less than more.
template <class O>
HWY_INLINE std::uint64_t find_less(const O* offsets, const O* next, std::int64_t stride) {
  const GroupTag<O> tag;
  std::uint64_t bits = 0;
#pragma GCC unroll 4
  for (int i = 0; i < static_cast<int>(WinnerRuns::group); i += static_cast<int>(hn::MaxLanes(tag))) {
    const auto more = hn::Add(hn::LoadU(tag, next + i), hn::Set(tag, static_cast<O>(stride)));
    bits |= bits_of(tag, hn::Eq(more, hn::LoadU(tag, offsets + i))) << i;
  }
  return bits;
}

/// Finds the outputs whose winner is that of the next output too: its tap along the row is `stride` or more. Offsets
/// are rows of `width` taps.
template <class O>
class Continued;
template <>
class Continued<std::uint8_t> {
 public:
  // Numbers are small enough for an exact quotient, here and below.
  Continued(std::int64_t width, std::int64_t stride)
      : stride_(stride), width_(width), inverse_(width > 0 ? 65536 / width + 1 : 0) {}
  HWY_INLINE std::uint64_t operator()(const std::uint8_t* offsets, const std::uint8_t* next) const {
    const std::uint64_t less = find_less(offsets, next, stride_);
    if (width_ == 0) return less;
    const GroupTag<std::uint16_t> tag;
    const hn::Rebind<std::uint8_t, decltype(tag)> narrow;
    const auto wide = hn::Set(tag, static_cast<std::uint16_t>(width_)),
               inverse = hn::Set(tag, static_cast<std::uint16_t>(inverse_)),
               least = hn::Set(tag, static_cast<std::uint16_t>(stride_));
    std::uint64_t bits = 0;
#pragma GCC unroll 4
    for (int i = 0; i < static_cast<int>(WinnerRuns::group); i += static_cast<int>(hn::MaxLanes(tag))) {
      const auto offset = hn::PromoteTo(tag, hn::LoadU(narrow, offsets + i));
      const auto tap = hn::Sub(offset, hn::Mul(hn::MulHigh(offset, inverse), wide));
      bits |= bits_of(tag, hn::Eq(hn::Max(tap, least), tap)) << i;
    }
    return bits & less;
  }

 private:
  std::int64_t stride_, width_, inverse_;
};
template <>
class Continued<std::uint16_t> {
 public:
  Continued(std::int64_t width, std::int64_t stride) : stride_(stride), width_(static_cast<float>(width)) {}
  HWY_INLINE std::uint64_t operator()(const std::uint16_t* offsets, const std::uint16_t* next) const {
    const std::uint64_t less = find_less(offsets, next, stride_);
    if (width_ == 0) return less;
    const GroupTag<float> tag;
    const hn::Rebind<std::int32_t, decltype(tag)> whole;
    const hn::Rebind<std::uint16_t, decltype(tag)> narrow;
    const auto wide = hn::Set(tag, width_), inverse = hn::Set(tag, 1.f / width_), half = hn::Set(tag, 0.5f),
               least = hn::Set(tag, static_cast<float>(stride_));
    std::uint64_t bits = 0;
#pragma GCC unroll 4
    for (int i = 0; i < static_cast<int>(WinnerRuns::group); i += static_cast<int>(hn::MaxLanes(tag))) {
      const auto offset = hn::ConvertTo(tag, hn::PromoteTo(whole, hn::LoadU(narrow, offsets + i)));
      const auto row = hn::Floor(hn::Mul(hn::Add(offset, half), inverse));
      bits |= bits_of(tag, hn::Ge(hn::Sub(offset, hn::Mul(row, wide)), least)) << i;
    }
    return bits & less;
  }

 private:
  std::int64_t stride_;
  float width_;
};

/// Stores the lanes whose bits are set, without gaps.
template <class A>
HWY_INLINE void store_some(const Group<A>& group, std::uint64_t bits, A* dst) {
  constexpr int L = Group<A>::lanes;
#pragma GCC unroll 8
  for (int j = 0; j < Group<A>::count; ++j) {
    const std::uint64_t word = bits >> (j * L) & (L < 64 ? (std::uint64_t{1} << L) - 1 : ~std::uint64_t{0});
    const auto mask = hn::LoadMaskBits(Tag<A>(), reinterpret_cast<const std::uint8_t*>(&word));
    hn::StoreU(hn::Compress(group.packs[j].v, mask), Tag<A>(), dst);
    dst += std::popcount(word);
  }
}

/// at, at + 1, …
template <class A>
HWY_INLINE Group<A> numbers(std::int64_t at) {
  Group<A> group;
#pragma GCC unroll 8
  for (int j = 0; j < Group<A>::count; ++j)
    group.packs[j] = {hn::Iota(Tag<A>(), static_cast<A>(at) + j * Group<A>::lanes)};
  return group;
}

template <class A, class O>
std::int64_t winner_runs(const WinnerRuns& call) {
  const std::int64_t count = call.count;
  const Continued<O> find(call.width, call.stride);
  const O* offsets = static_cast<const O*>(call.offsets);
  const A* gy = static_cast<const A*>(call.gy);
  A* sums = static_cast<A*>(call.sums);
  std::int32_t* ends = call.ends;
  for (std::int64_t at = 0; at < count; at += WinnerRuns::group) {
    // The next rows are asked from memory while these are added up.
    __builtin_prefetch(gy + at + 2 * WinnerRuns::most);
    const std::int64_t left = HWY_MIN(count - at, WinnerRuns::group);
    const std::uint64_t all = (std::uint64_t{1} << left) - 1;
    const std::uint64_t continued = find(offsets + at, offsets + at + 1) & (all >> 1);
    const std::uint64_t two = continued << 1, three = two & (two << 1), five = three & (three << 2);
    Group<A> group;
#pragma GCC unroll 8
    for (int j = 0; j < Group<A>::count; ++j) group.packs[j] = load(gy + at + j * Group<A>::lanes);
    add_below<1>(group, two);
    add_below<2>(group, three);
    add_below<4>(group, five);
    add_below<8>(group, five & (five << 4));
    const std::uint64_t last = continued ^ all;
    store_some(group, last, sums);
    store_some(numbers<std::int32_t>(at), last, ends);
    sums += std::popcount(last);
    ends += std::popcount(last);
  }
  return ends - call.ends;
}

template <class A, class O>
std::int64_t lane_runs(const cpu::LaneRuns& call) {
  constexpr int L = Group<A>::lanes;
  const std::int64_t count = call.count, outputs = call.outputs;
  const Continued<O> find(call.width, call.stride);
  A* sums = static_cast<A*>(call.sums);
  std::int32_t* ends = call.ends;
  for (std::int64_t at = 0; at < count; at += WinnerRuns::group) {
    const std::uint64_t all = (std::uint64_t{1} << HWY_MIN(count - at, WinnerRuns::group)) - 1;
    const O* offsets = static_cast<const O*>(call.offsets) + at;
    const A* gy = static_cast<const A*>(call.gy) + at;
    Group<A> open;
#pragma GCC unroll 8
    for (int j = 0; j < Group<A>::count; ++j) open.packs[j] = number<Pack<A>>(0);
    for (std::int64_t o = 0; o < outputs; ++o, gy += call.gy_step, offsets += call.offset_step) {
      const std::uint64_t last = (o + 1 < outputs ? ~find(offsets, offsets + call.offset_step) : all) & all;
#pragma GCC unroll 8
      for (int j = 0; j < Group<A>::count; ++j) open.packs[j] = open.packs[j] + load(gy + j * L);
      store_some(open, last, sums);
      store_some(numbers<std::int32_t>(o * cpu::LaneRuns::most + at), last, ends);
      sums += std::popcount(last);
      ends += std::popcount(last);
#pragma GCC unroll 8
      for (int j = 0; j < Group<A>::count; ++j) {
        const std::uint64_t word = last >> (j * L);
        const auto mask = hn::LoadMaskBits(Tag<A>(), reinterpret_cast<const std::uint8_t*>(&word));
        open.packs[j] = {hn::IfThenZeroElse(mask, open.packs[j].v)};
      }
    }
  }
  return ends - call.ends;
}

}  // namespace

cpu::WinnerRunsFunctions winner_runs_in(Type lane, Type offset) {
  const auto of = []<class O>(bool wide, O) -> cpu::WinnerRunsFunctions {
    if (wide) return {winner_runs<double, O>, lane_runs<double, O>};
    return {winner_runs<float, O>, lane_runs<float, O>};
  };
  if (offset == Type::u8) return of(lane == Type::f64, std::uint8_t{});
  if (offset == Type::u16) return of(lane == Type::f64, std::uint16_t{});
  return {nullptr, nullptr};
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(winner_runs_in);
cpu::WinnerRunsFunctions cpu::winner_runs_functions(Type lane, Type offset) noexcept {
  return HWY_DYNAMIC_DISPATCH(winner_runs_in)(lane, offset);
}
}  // namespace cenote
#endif
