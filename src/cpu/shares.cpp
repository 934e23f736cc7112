// The kernels behind shares.h, compiled for every SIMD target.
#include "cpu/shares.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/shares.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::Put;
using cpu::Shares;
using cpu::TameRule;
using cpu::Weight;

/// Which lanes are 0 or within bounds.
template <class A>
class Tameness {
 public:
  explicit HWY_INLINE Tameness(const Bounds& bounds)
      : low_(number<Pack<A>>(bounds.low)), high_(number<Pack<A>>(bounds.high)) {}
  HWY_INLINE Flags<A> operator()(Pack<A> x) const {
    const Pack<A> m = magnitude(x);
    return Flags<A>{hn::And((low_ <= m).m, (m <= high_).m)} | (m == number<Pack<A>>(0));
  }

 private:
  Pack<A> low_, high_;
};

template <class A>
HWY_INLINE Pack<A> not_a_number() {
  return broadcast<A>(std::numeric_limits<A>::quiet_NaN());
}

/// Calls body(weight), which is known to the compiler then.
template <class Body>
HWY_INLINE auto with_weight(Weight weight, const Body& body) {
  if (weight == Weight::power) return body(std::integral_constant<Weight, Weight::power>{});
  if (weight == Weight::sign) return body(std::integral_constant<Weight, Weight::sign>{});
  if (weight == Weight::cell) return body(std::integral_constant<Weight, Weight::cell>{});
  if (weight == Weight::square) return body(std::integral_constant<Weight, Weight::square>{});
  return body(std::integral_constant<Weight, Weight::cube>{});
}

/// Of lp, p - 1.
constexpr int exponent_of(Weight weight) { return static_cast<int>(weight) - static_cast<int>(Weight::sign); }

template <int Exponent, class A>
HWY_INLINE Pack<A> whole_power(Pack<A> x) {
  Pack<A> result = x;
  for (int i = 1; i < Exponent; ++i) result = result * x;
  return result;
}

/// The p-th root of a positive number: a guess, whose error grows with the exponent, and a step of Newton's.
template <int P, class A>
HWY_INLINE Pack<A> root(Pack<A> sum) {
  if constexpr (P == 2) return square_root(sum);
  const Pack<A> p = number<Pack<A>>(P), guess = exponential(logarithm(sum) / p);
  return guess - (guess - sum / whole_power<P - 1>(guess)) / p;
}

template <class T>
bool tame_cells_of(const TameRule& rule, const T* x, Lane<T>* powers, std::int64_t n) {
  using A = Lane<T>;
  return with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const Tag<A> tag;
    const std::int64_t L = lanes<A>();
    const Tameness<A> tame(rule.cells);
    const SmoothMax smooth(rule.params);
    auto wild = hn::FirstN(tag, 0);
    const auto make = [&](Pack<A> cell, A* to) CENOTE_INLINED {
      const Flags<A> fits = tame(cell);
      wild = hn::Or(wild, hn::Not(fits.m));
      Pack<A> power;
      if constexpr (weight == Weight::power)
        power = smooth.tame_power(cell);
      else
        power = whole_power<exponent_of(weight) + 1>(magnitude(cell));
      store(select(fits, power, not_a_number<A>()), to);
    };
    std::int64_t i = 0;
    for (; i + L <= n; i += L) make(load(x + i), powers + i);
    if (i < n) make(load_first(x + i, n - i), powers + i);
    return !hn::AllFalse(tag, wild);
  });
}

template <class T>
Shares share_sums_of(const TameRule& rule, const T* gy, Lane<T>* sums, std::int64_t n) {
  using A = Lane<T>;
  return with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const Tag<A> tag;
    const std::int64_t L = lanes<A>();
    const Tameness<A> tame(rule.given);
    const Pack<A> zero = number<Pack<A>>(0);
    auto some = hn::FirstN(tag, 0), wild = some;
    const auto make = [&](Pack<A> g, Pack<A> sum, std::int64_t count, A* to) CENOTE_INLINED {
      Pack<A> quotient;
      if constexpr (weight == Weight::power)
        quotient = g / sum;
      else if constexpr (weight == Weight::sign)
        quotient = select(is_nan(sum), sum, g);
      else
        quotient = g / whole_power<exponent_of(weight)>(root<exponent_of(weight) + 1>(sum));
      const Pack<A> share = select(tame(g), select(sum == zero, zero, quotient), not_a_number<A>());
      const auto bad = is_nan(share).m;
      wild = hn::Or(wild, bad);
      some = hn::Or(some, hn::AndNot(bad, hn::FirstN(tag, static_cast<std::size_t>(count))));
      store(share, to);
    };
    std::int64_t i = 0;
    for (; i + L <= n; i += L) make(load(gy + i), load(sums + i), L, sums + i);
    if (i < n) make(load_first(gy + i, n - i), load_first(sums + i, n - i), n - i, sums + i);
    return Shares{!hn::AllFalse(tag, some), !hn::AllFalse(tag, wild)};
  });
}

template <class T>
void weigh_cells_of(const TameRule& rule, const T* x, const Lane<T>* powers, const Lane<T>* sums, T* gx, std::int64_t n,
                    Put put) {
  using A = Lane<T>;
  with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const std::int64_t L = lanes<A>();
    const Pack<A> zero = number<Pack<A>>(0), one = number<Pack<A>>(1);
    const auto value = [&](std::int64_t i, const auto& cell) CENOTE_INLINED {
      const Pack<A> sum = load(sums + i);
      if constexpr (weight == Weight::power) return load(powers + i) * sum + zero;
      const Pack<A> c = cell(x + i);
      if constexpr (weight == Weight::cell) return c * sum + zero;
      if constexpr (weight == Weight::square) return c * magnitude(c) * sum + zero;
      if constexpr (weight == Weight::cube) return c * c * c * sum + zero;
      return select((c == zero) | is_nan(c), c, select(zero <= c, one, zero - one)) * sum + zero;
    };
    const auto whole = [](const T* p) CENOTE_INLINED { return load(p); };
    const auto part = [&](std::int64_t i, std::int64_t count, const auto& to) CENOTE_INLINED {
      const auto first = [&](const T* p) CENOTE_INLINED { return load_first(p, count); };
      store_first(to(value(i, first), first(gx + i)), gx + i, count);
    };
    const auto new_one = [](Pack<A> v, Pack<A>) CENOTE_INLINED { return v; };
    const auto mended = [](Pack<A> v, Pack<A> old) CENOTE_INLINED { return select(is_nan(v), old, v); };
    std::int64_t i = 0;
    if (put == Put::mend) {
      for (; i + L <= n; i += L) store(mended(value(i, whole), load(gx + i)), gx + i);
      if (i < n) part(i, n - i, mended);
      return;
    }
    if (put == Put::stream) {
      const auto place = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(gx) / sizeof(T));
      if (place % L != 0) part(0, i = HWY_MIN(n, L - place % L), new_one);
      for (; i + L <= n; i += L) stream(value(i, whole), gx + i);
    } else {
      for (; i + L <= n; i += L) store(value(i, whole), gx + i);
    }
    if (i < n) part(i, n - i, new_one);
  });
}

/// Calls body with an element of the type.
template <class Body>
HWY_INLINE auto with_element(Type type, const Body& body) {
  if (type == Type::f64) return body(double{});
  if (type == Type::f16) return body(f16{});
  if (type == Type::bf16) return body(bf16{});
  return body(float{});
}

}  // namespace

bool tame_cells_in(const TameRule& rule, const void* x, void* powers, std::int64_t n) {
  return with_element(rule.type, [&]<class T>(T) {
    return tame_cells_of(rule, static_cast<const T*>(x), static_cast<Lane<T>*>(powers), n);
  });
}
Shares share_sums_in(const TameRule& rule, const void* gy, void* sums, std::int64_t n) {
  return with_element(rule.type, [&]<class T>(T) {
    return share_sums_of(rule, static_cast<const T*>(gy), static_cast<Lane<T>*>(sums), n);
  });
}
void weigh_cells_in(const TameRule& rule, const void* x, const void* powers, const void* sums, void* gx, std::int64_t n,
                    Put put) {
  with_element(rule.type, [&]<class T>(T) {
    weigh_cells_of(rule, static_cast<const T*>(x), static_cast<const Lane<T>*>(powers),
                   static_cast<const Lane<T>*>(sums), static_cast<T*>(gx), n, put);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(tame_cells_in);
HWY_EXPORT(share_sums_in);
HWY_EXPORT(weigh_cells_in);

namespace cpu {

bool tame_cells(const TameRule& rule, const void* x, void* powers, std::int64_t n) noexcept {
  return HWY_DYNAMIC_DISPATCH(tame_cells_in)(rule, x, powers, n);
}
Shares share_sums(const TameRule& rule, const void* gy, void* sums, std::int64_t n) noexcept {
  return HWY_DYNAMIC_DISPATCH(share_sums_in)(rule, gy, sums, n);
}
void weigh_cells(const TameRule& rule, const void* x, const void* powers, const void* sums, void* gx, std::int64_t n,
                 Put put) noexcept {
  HWY_DYNAMIC_DISPATCH(weigh_cells_in)(rule, x, powers, sums, gx, n, put);
  if (put == Put::stream) hwy::FlushStream();
}

}  // namespace cpu
}  // namespace cenote
#endif
