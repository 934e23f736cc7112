// The kernels behind quotients.h, compiled for every SIMD target.
#include "cpu/quotients.h"

#include "core/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/quotients.cpp"
#include <hwy/foreach_target.h>

#include "cpu/outlet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::Quotients;

/// A pack of cells from p on, of which there are `count` in all.
template <class A, class T>
HWY_INLINE Pack<A> cells_at(const T* p, std::int64_t count) {
  if constexpr (std::is_same_v<A, Lane<T>>) {
    return HWY_LIKELY(count >= lanes<A>()) ? load(p) : load_first(p, count);
  } else {
    // Sums of integers, all of which i32 holds.
    const hn::Rebind<std::int32_t, Tag<A>> wide;
    const auto cells = hn::LoadU(hn::Rebind<T, Tag<A>>(), p);
    if constexpr (sizeof(T) == 2)
      return {hn::ConvertTo(Tag<A>(), hn::PromoteTo(wide, cells))};
    else
      return {hn::ConvertTo(Tag<A>(), hn::BitCast(wide, cells))};
  }
}

template <class From, class To>
void divide_packs(const Quotients& call) {
  using A = Lane<To>;
  const std::int64_t L = lanes<A>(), count = call.count, period = call.period, first = call.first, last = call.last;
  const auto* cells = static_cast<const From*>(call.cells);
  const auto* divisors = static_cast<const A*>(call.divisors);
  const Divisor<A> same(call.same);
  std::int64_t begin = 0;  // of the period
  write_values(static_cast<To*>(call.dst), count, call.stream, [&](std::int64_t i) CENOTE_INLINED {
    const Pack<A> x = cells_at<A>(cells + i, count - i);
    if (!divisors) return x / same;
    while (i - begin >= period) begin += period;
    const std::int64_t at = i - begin;
    return at >= first && at + L <= last ? x / same : x / load(divisors + at);
  });
}

template <class From>
HWY_INLINE Pack<double> doubles_at(const From* p) {
  const Tag<double> tag;
  using Wide = std::conditional_t<std::is_signed_v<From>, std::int64_t, std::uint64_t>;
  if constexpr (sizeof(From) == 8)
    return {hn::ConvertTo(tag, hn::LoadU(Tag<From>(), p))};
  else
    return {hn::ConvertTo(tag, hn::PromoteTo(Tag<Wide>(), hn::LoadU(hn::Rebind<From, Tag<Wide>>(), p)))};
}

template <class From>
void divide_in_doubles(const Quotients& call) {
  const std::int64_t L = lanes<double>(), count = call.count, period = call.period;
  const auto* cells = static_cast<const From*>(call.cells);
  const auto* divisors = static_cast<const double*>(call.divisors);
  float* to = static_cast<float*>(call.dst);
  const auto is_same = [&](std::int64_t at, std::int64_t n)
                           CENOTE_INLINED { return !divisors || (at >= call.first && at + n <= call.last); };
  std::int64_t i = 0, at = 0;  // in the period
  const auto move = [&](std::int64_t n) CENOTE_INLINED {
    i += n;
    for (at += n; at >= period;) at -= period;
  };
  if constexpr (sizeof(From) >= 4)
    for (; i + L <= count; move(L)) {
      const Pack<double> by = is_same(at, L) ? broadcast(call.same) : load(divisors + at);
      hn::StoreU(hn::DemoteTo(hn::Rebind<float, Tag<double>>(), (doubles_at(cells + i) / by).v),
                 hn::Rebind<float, Tag<double>>(), to + i);
    }
  for (; i < count; move(1))
    to[i] = static_cast<float>(static_cast<double>(cells[i]) / (is_same(at, 1) ? call.same : divisors[at]));
}

template <class To, class From>
void widen_packs(To* dst, const From* cells, std::int64_t count) {
  // Cells come from beyond the cache, and more is written than read.
  constexpr std::int64_t ahead = 2048 / sizeof(From);
  const std::int64_t L = lanes<To>();
  std::int64_t i = 0;
  for (; i + L <= count; i += L) {
    __builtin_prefetch(cells + i + ahead);
    hn::StoreU(hn::PromoteTo(Tag<To>(), hn::LoadU(hn::Rebind<From, Tag<To>>(), cells + i)), Tag<To>(), dst + i);
  }
  for (; i < count; ++i) dst[i] = static_cast<To>(cells[i]);
}

}  // namespace

void divide_in(const Quotients& call) {
  if (call.in_doubles)
    return visit(call.from, [&]<class From>(From) {
      if constexpr (std::is_integral_v<From> && sizeof(From) > 1) divide_in_doubles<From>(call);
    });
  switch (call.from) {
    case Type::f64: return divide_packs<double, double>(call);
    case Type::i16: return divide_packs<std::int16_t, float>(call);
    case Type::u16: return divide_packs<std::uint16_t, float>(call);
    case Type::i32: return divide_packs<std::int32_t, float>(call);
    case Type::u32: return divide_packs<std::uint32_t, float>(call);
    case Type::f16: return divide_packs<f16, float>(call);
    case Type::bf16: return divide_packs<bf16, float>(call);
    default: break;
  }
  if (call.to == Type::f16) return divide_packs<float, f16>(call);
  if (call.to == Type::bf16) return divide_packs<float, bf16>(call);
  divide_packs<float, float>(call);
}

bool widen_in(Type to, void* dst, Type from, const void* cells, std::int64_t count) {
  bool done = false;
  visit(to, [&]<class To>(To) {
    visit(from, [&]<class From>(From) {
      if constexpr (std::is_integral_v<To> && std::is_integral_v<From> &&
                    std::is_signed_v<To> == std::is_signed_v<From> && !std::is_same_v<From, bool> &&
                    (sizeof(To) == 2 * sizeof(From) || (sizeof(To) == 4 && sizeof(From) == 1))) {
        widen_packs(static_cast<To*>(dst), static_cast<const From*>(cells), count);
        done = true;
      }
    });
  });
  return done;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(divide_in);
HWY_EXPORT(widen_in);

namespace cpu {

void divide(const Quotients& call) noexcept { HWY_DYNAMIC_DISPATCH(divide_in)(call); }

void widen(Type to, void* dst, Type from, const void* cells, std::int64_t count) noexcept {
  if (!HWY_DYNAMIC_DISPATCH(widen_in)(to, dst, from, cells, count)) convert_line(to, dst, from, cells, 1, count);
}

}  // namespace cpu
}  // namespace cenote
#endif
