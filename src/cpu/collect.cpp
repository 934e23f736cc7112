// The kernel behind collect.h, compiled for every SIMD target.
#include "cpu/collect.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/collect.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::Collect;
using cpu::Giver;
using cpu::Phase;

/// Offsets as numbers beside lanes of A.
template <class A>
HWY_INLINE auto widen_offsets(hn::Vec<hn::Rebind<std::uint8_t, Tag<A>>> bytes) {
  const auto words = hn::PromoteTo(hn::Rebind<std::uint32_t, Tag<A>>(), bytes);
  if constexpr (sizeof(A) == 8)
    return hn::PromoteTo(hn::Rebind<std::uint64_t, Tag<A>>(), words);
  else
    return words;
}

/// gy where the offset is `wanted`, else 0.
template <class A>
HWY_INLINE Pack<A> matching(Pack<A> gy, hn::Vec<hn::Rebind<std::uint8_t, Tag<A>>> offsets, std::int64_t wanted) {
  const hn::RebindToUnsigned<Tag<A>> tag;
  const auto same = hn::Eq(widen_offsets<A>(offsets), hn::Set(tag, static_cast<hn::TFromD<decltype(tag)>>(wanted)));
  return {hn::IfThenElseZero(hn::RebindMask(Tag<A>(), same), gy.v)};
}
/// What outputs from number o on give to cells at the given tap.
template <bool Offsets, class T>
HWY_INLINE Pack<Lane<T>> given(const Giver& giver, std::int64_t o, std::int64_t tap) {
  const auto gy = load(static_cast<const T*>(giver.gy) + o);
  if constexpr (!Offsets)
    return gy;
  else
    return matching(gy, hn::LoadU(hn::Rebind<std::uint8_t, Tag<Lane<T>>>(), giver.offsets + o), giver.offset + tap);
}
/// As above, of lanes from <= i < to.
template <bool Offsets, class T>
HWY_NOINLINE Pack<Lane<T>> given_between(const Giver& giver, std::int64_t o, std::int64_t tap, std::int64_t from,
                                         std::int64_t to) {
  using A = Lane<T>;
  if (from >= to) return number<Pack<A>>(0);
  const Pack<A> gy = load_between(static_cast<const T*>(giver.gy) + o, LaneRange<T>(from, to));
  if constexpr (!Offsets) {
    return gy;
  } else {
    const hn::Rebind<std::uint8_t, Tag<A>> tag;
    const std::uint8_t* offsets = giver.offsets + o;
    if constexpr (HWY_TARGET == HWY_AVX3) {
      const auto mask =
          hn::AndNot(hn::FirstN(tag, static_cast<std::size_t>(from)), hn::FirstN(tag, static_cast<std::size_t>(to)));
      return matching(gy, hn::MaskedLoad(mask, tag, offsets), giver.offset + tap);
    } else {
      std::uint8_t bytes[64 / sizeof(A)] = {};
      std::memcpy(bytes + from, offsets + from, static_cast<std::size_t>(to - from));
      return matching(gy, hn::LoadU(tag, bytes), giver.offset + tap);
    }
  }
}

template <bool Offsets, class T>
void collect_lanes(const Collect& call) {
  using A = Lane<T>;
  const std::int64_t L = lanes<A>(), len = call.len, count = call.count;
  const Giver* givers = call.givers;
  A* dst = static_cast<A*>(call.dst);
  std::int64_t i = 0;
  for (; i + L <= len; i += L) {
    Pack<A> sum = number<Pack<A>>(0);
    for (std::int64_t g = 0; g < count; ++g) sum = sum + given<Offsets, T>(givers[g], i, 0);
    store(sum, dst + i);
  }
  if (i == len) return;
  Pack<A> sum = number<Pack<A>>(0);
  for (std::int64_t g = 0; g < count; ++g) sum = sum + given_between<Offsets, T>(givers[g], i, 0, 0, len - i);
  store(sum, dst + i);
}

/// L cells of one phase from number m * stride on.
template <bool Offsets, class T>
HWY_INLINE Pack<Lane<T>> collect_phase(const Giver* givers, std::int64_t count, const Phase phase, std::int64_t stride,
                                       std::int64_t out, std::int64_t m) {
  using A = Lane<T>;
  const std::int64_t L = lanes<A>(), last = m + phase.ahead;
  Pack<A> sum = number<Pack<A>>(0);
  if (HWY_LIKELY(last - phase.taps + 1 >= 0 && last + L <= out)) {
    for (std::int64_t g = 0; g < count; ++g)
      for (std::int64_t t = phase.taps - 1; t >= 0; --t)
        sum = sum + given<Offsets, T>(givers[g], last - t, phase.phase + t * stride);
    return sum;
  }
  for (std::int64_t g = 0; g < count; ++g)
    for (std::int64_t t = phase.taps - 1; t >= 0; --t) {
      const std::int64_t o = last - t;
      sum = sum + given_between<Offsets, T>(givers[g], o, phase.phase + t * stride, HWY_MIN(HWY_MAX(-o, 0), L),
                                            HWY_MIN(HWY_MAX(out - o, 0), L));
    }
  return sum;
}

template <bool Offsets, class T>
void collect_line(const Collect& call) {
  using A = Lane<T>;
  const std::int64_t L = lanes<A>(), stride = call.stride, out = call.out, len = call.len, count = call.count;
  const Giver* givers = call.givers;
  A* dst = static_cast<A*>(call.dst);
  // The last pack may overlap the one before it.
  if (stride == 1) {
    const Phase phase = call.phases[0];
    for (std::int64_t i = 0; i < len; i += L) {
      const std::int64_t m = HWY_MAX(HWY_MIN(i, len - L), 0);
      store(collect_phase<Offsets, T>(givers, count, phase, 1, out, m), dst + m);
    }
  } else if (stride == 2) {
    const Phase even = call.phases[0], odd = call.phases[1];
    const std::int64_t pairs = (len + 1) / 2;
    for (std::int64_t i = 0; i < pairs; i += L) {
      const std::int64_t m = HWY_MAX(HWY_MIN(i, pairs - L), 0);
      const Pack<A> first = collect_phase<Offsets, T>(givers, count, even, 2, out, m);
      const Pack<A> second = collect_phase<Offsets, T>(givers, count, odd, 2, out, m);
      hn::StoreInterleaved2(first.v, second.v, Tag<A>(), dst + 2 * m);
    }
  } else {
    for (std::int64_t i = 0; i < stride; ++i)
      for (std::int64_t m = 0; i + m * stride < len; m += L) {
        HWY_ALIGN A cells[64 / sizeof(A)];
        store(collect_phase<Offsets, T>(givers, count, call.phases[i], stride, out, m), cells);
        for (std::int64_t k = 0; k < L && i + (m + k) * stride < len; ++k) dst[i + (m + k) * stride] = cells[k];
      }
  }
}

template <class T>
cpu::CollectFunction function_of(bool lines, bool offsets) {
  if (lines) return offsets ? collect_line<true, T> : collect_line<false, T>;
  return offsets ? collect_lanes<true, T> : collect_lanes<false, T>;
}

}  // namespace

cpu::CollectFunction collect_in(Type type, bool lines, bool offsets) {
  switch (type) {
    case Type::f16: return function_of<f16>(lines, offsets);
    case Type::bf16: return function_of<bf16>(lines, offsets);
    case Type::f64: return function_of<double>(lines, offsets);
    default: return function_of<float>(lines, offsets);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(collect_in);
cpu::CollectFunction cpu::collect_function(Type type, bool lines, bool offsets) noexcept {
  return HWY_DYNAMIC_DISPATCH(collect_in)(type, lines, offsets);
}
}  // namespace cenote
#endif
