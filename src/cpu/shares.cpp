// The kernels behind shares.h, compiled for every SIMD target.
#include "cpu/shares.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/shares.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/outlet-inl.h"

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

/// The cube root of a positive normal number.
HWY_INLINE Pack<float> cube_root(Pack<float> x) {
  // A third of its bits gives the inverse root but for a thirtieth. Each step squares that, and one more corrects it.
  const Tag<std::int32_t> bits;
  const auto third = hn::Mul(hn::ConvertTo(Tag<float>(), hn::BitCast(bits, x.v)), hn::Set(Tag<float>(), 1.0F / 3));
  const auto guess = hn::Sub(hn::Set(bits, 0x54a23000), hn::ConvertTo(bits, third));
  const Pack<float> step = number<Pack<float>>(4.0 / 3), down = x * number<Pack<float>>(-1.0 / 3);
  Pack<float> inverse{hn::BitCast(Tag<float>(), guess)};
  for (int i = 0; i < 2; ++i) inverse = inverse * mul_add(down * inverse, inverse * inverse, step);
  const Pack<float> square = inverse * inverse, root = x * square;
  return mul_add(mul_add(root * root, number<Pack<float>>(0) - root, x), square * number<Pack<float>>(1.0 / 3), root);
}

/// The p-th root of a positive number.
template <int P, class A>
HWY_INLINE Pack<A> root(Pack<A> sum) {
  if constexpr (P == 1) return sum;
  if constexpr (P == 2) return square_root(sum);
  if constexpr (P == 4) return square_root(square_root(sum));
  if constexpr (P == 3 && sizeof(A) == 4) return cube_root(sum);
  // A guess, whose error grows with the exponent, and a step of Newton's.
  const Pack<A> p = number<Pack<A>>(P), guess = exponential(logarithm(sum) / p);
  return guess - (guess - sum / whole_power<P - 1>(guess)) / p;
}

template <Weight weight, class A>
HWY_INLINE Pack<A> power_of(const SmoothMax& smooth, Pack<A> cell) {
  if constexpr (weight == Weight::power)
    return smooth.tame_power(cell);
  else
    return whole_power<exponent_of(weight) + 1>(magnitude(cell));
}

/// What the derivative of a window's sum in a cell is, but for what is the same for all.
template <Weight weight, class A>
HWY_INLINE Pack<A> slope_of(Pack<A> cell, Pack<A> power) {
  const Pack<A> zero = number<Pack<A>>(0), one = number<Pack<A>>(1);
  if constexpr (weight == Weight::power) return power;
  if constexpr (weight == Weight::cell) return cell;
  if constexpr (weight == Weight::square) return cell * magnitude(cell);
  if constexpr (weight == Weight::cube) return cell * cell * cell;
  return select((cell == zero) | is_nan(cell), cell, select(zero <= cell, one, zero - one));
}

/// A number by what slopes are divided by in a window.
template <Weight weight, class A>
HWY_INLINE Pack<A> divided(Pack<A> by, Pack<A> sum) {
  if constexpr (weight == Weight::power)
    return by / sum;
  else if constexpr (weight == Weight::sign)
    return select(is_nan(sum), sum, by);
  else
    return by / whole_power<exponent_of(weight)>(root<exponent_of(weight) + 1>(sum));
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
      store(select(fits, power_of<weight>(smooth, cell), not_a_number<A>()), to);
    };
    const std::int64_t ahead = cpu::asked_ahead() / static_cast<std::int64_t>(sizeof(T));
    std::int64_t i = 0;
    for (; i + L <= n; i += L) {
      __builtin_prefetch(x + i + ahead);
      make(load(x + i), powers + i);
    }
    if (i < n) make(load_first(x + i, n - i), powers + i);
    return !hn::AllFalse(tag, wild);
  });
}

template <class T>
void tame_tangents_of(const TameRule& rule, const T* x, const T* dx, Lane<T>* powers, Lane<T>* products,
                      std::int64_t n) {
  using A = Lane<T>;
  with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const std::int64_t L = lanes<A>();
    const Tameness<A> tame(rule.cells), given(rule.given);
    const SmoothMax smooth(rule.params);
    const auto make = [&](Pack<A> cell, Pack<A> tangent, std::int64_t i) CENOTE_INLINED {
      const Pack<A> power = power_of<weight>(smooth, cell), product = slope_of<weight>(cell, power) * tangent;
      store(select(tame(cell), power, not_a_number<A>()), powers + i);
      store(select(given(tangent), product, not_a_number<A>()), products + i);
    };
    const std::int64_t ahead = cpu::asked_ahead() / static_cast<std::int64_t>(2 * sizeof(T));
    std::int64_t i = 0;
    for (; i + L <= n; i += L) {
      __builtin_prefetch(x + i + ahead);
      __builtin_prefetch(dx + i + ahead);
      make(load(x + i), load(dx + i), i);
    }
    if (i < n) make(load_first(x + i, n - i), load_first(dx + i, n - i), i);
  });
}

/// Writes the packs that value(i) gives. True if some are NaN.
template <class T, class Value>
HWY_INLINE bool put_values(T* y, std::int64_t n, bool past_caches, const Value& value) {
  using A = Lane<T>;
  auto wild = hn::FirstN(Tag<A>(), 0);
  write_values(y, n, past_caches, [&](std::int64_t i) CENOTE_INLINED {
    const Pack<A> result = value(i);
    // Lanes behind the end are those of nothing.
    const auto inside = hn::FirstN(Tag<A>(), static_cast<std::size_t>(HWY_MIN(n - i, lanes<A>())));
    wild = hn::Or(wild, hn::And(is_nan(result).m, inside));
    return result;
  });
  return !hn::AllFalse(Tag<A>(), wild);
}

template <class T>
bool value_sums_of(const TameRule& rule, const Lane<T>* sums, T* y, std::int64_t n, bool past_caches) {
  using A = Lane<T>;
  return with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const SmoothMax smooth(rule.params);
    return put_values(y, n, past_caches, [&](std::int64_t i) CENOTE_INLINED {
      const Pack<A> sum = load(sums + i);
      if constexpr (weight == Weight::power)
        return select(is_nan(sum), sum, smooth.lower_tame(sum));
      else
        return select((sum == number<Pack<A>>(0)) | is_nan(sum), sum, root<exponent_of(weight) + 1>(sum));
    });
  });
}

template <class T>
bool divide_sums_of(const TameRule& rule, const Lane<T>* sums, const Lane<T>* products, T* dy, std::int64_t n,
                    bool past_caches) {
  using A = Lane<T>;
  return with_weight(rule.weight, [&](auto weight) CENOTE_INLINED {
    const Pack<A> zero = number<Pack<A>>(0);
    return put_values(dy, n, past_caches, [&](std::int64_t i) CENOTE_INLINED {
      const Pack<A> sum = load(sums + i);
      return select(sum == zero, zero, divided<weight>(load(products + i), sum) + zero);
    });
  });
}

template <class A>
void add_sums_of(const A* more, A* sums, std::int64_t n) {
  const std::int64_t L = lanes<A>();
  std::int64_t i = 0;
  for (; i + L <= n; i += L) store(load(sums + i) + load(more + i), sums + i);
  if (i < n) store_first(load_first(sums + i, n - i) + load_first(more + i, n - i), sums + i, n - i);
}

template <class T>
void mend_of(const T* by, T* y, std::int64_t n) {
  const std::int64_t L = lanes<Lane<T>>();
  const auto mended = [](auto old, auto fresh) CENOTE_INLINED { return select(is_nan(old), fresh, old); };
  std::int64_t i = 0;
  for (; i + L <= n; i += L) store(mended(load(y + i), load(by + i)), y + i);
  if (i < n) store_first(mended(load_first(y + i, n - i), load_first(by + i, n - i)), y + i, n - i);
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
      const Pack<A> share = select(tame(g), select(sum == zero, zero, divided<weight>(g, sum)), not_a_number<A>());
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
    const Pack<A> zero = number<Pack<A>>(0);
    const auto value = [&](std::int64_t i, const auto& cell) CENOTE_INLINED {
      // Cells are not read where powers are all there is to know.
      const Pack<A> power = weight == Weight::power ? load(powers + i) : zero;
      return slope_of<weight>(weight == Weight::power ? zero : cell(x + i), power) * load(sums + i) + zero;
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
void tame_tangents_in(const TameRule& rule, const void* x, const void* dx, void* powers, void* products,
                      std::int64_t n) {
  with_element(rule.type, [&]<class T>(T) {
    tame_tangents_of(rule, static_cast<const T*>(x), static_cast<const T*>(dx), static_cast<Lane<T>*>(powers),
                     static_cast<Lane<T>*>(products), n);
  });
}
bool value_sums_in(const TameRule& rule, const void* sums, void* y, std::int64_t n, bool past_caches) {
  return with_element(rule.type, [&]<class T>(T) {
    return value_sums_of(rule, static_cast<const Lane<T>*>(sums), static_cast<T*>(y), n, past_caches);
  });
}
bool divide_sums_in(const TameRule& rule, const void* sums, const void* products, void* dy, std::int64_t n,
                    bool past_caches) {
  return with_element(rule.type, [&]<class T>(T) {
    return divide_sums_of(rule, static_cast<const Lane<T>*>(sums), static_cast<const Lane<T>*>(products),
                          static_cast<T*>(dy), n, past_caches);
  });
}
void add_sums_in(Type lane, const void* more, void* sums, std::int64_t n) {
  if (lane == Type::f64) return add_sums_of(static_cast<const double*>(more), static_cast<double*>(sums), n);
  add_sums_of(static_cast<const float*>(more), static_cast<float*>(sums), n);
}
void mend_in(Type type, const void* by, void* y, std::int64_t n) {
  with_element(type, [&]<class T>(T) { mend_of(static_cast<const T*>(by), static_cast<T*>(y), n); });
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
HWY_EXPORT(tame_tangents_in);
HWY_EXPORT(value_sums_in);
HWY_EXPORT(divide_sums_in);
HWY_EXPORT(add_sums_in);
HWY_EXPORT(mend_in);
HWY_EXPORT(share_sums_in);
HWY_EXPORT(weigh_cells_in);

namespace cpu {

bool tame_cells(const TameRule& rule, const void* x, void* powers, std::int64_t n) noexcept {
  return HWY_DYNAMIC_DISPATCH(tame_cells_in)(rule, x, powers, n);
}
void tame_tangents(const TameRule& rule, const void* x, const void* dx, void* powers, void* products,
                   std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(tame_tangents_in)(rule, x, dx, powers, products, n);
}
bool value_sums(const TameRule& rule, const void* sums, void* y, std::int64_t n, bool past_caches) noexcept {
  const bool wild = HWY_DYNAMIC_DISPATCH(value_sums_in)(rule, sums, y, n, past_caches);
  if (past_caches) hwy::FlushStream();
  return wild;
}
bool divide_sums(const TameRule& rule, const void* sums, const void* products, void* dy, std::int64_t n,
                 bool past_caches) noexcept {
  const bool wild = HWY_DYNAMIC_DISPATCH(divide_sums_in)(rule, sums, products, dy, n, past_caches);
  if (past_caches) hwy::FlushStream();
  return wild;
}
void add_sums(Type lane, const void* more, void* sums, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(add_sums_in)(lane, more, sums, n);
}
void mend(Type type, const void* by, void* y, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(mend_in)(type, by, y, n);
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
