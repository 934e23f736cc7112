// The abstract number as a SIMD pack: the functions of reduce/numbers.h over Highway vectors.
// Included once per target, inside the toggle of the translation unit that includes it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <cenote/types.h>

#include "cpu/machine.h"

/// Behind a lambda's parameters: compiled for the target, and always inlined.
#ifndef CENOTE_INLINED
#define CENOTE_INLINED HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;

/// As many numbers as fit one SIMD register.
template <class T>
struct Pack {
  hn::Vec<Tag<T>> v;
};

/// One yes or no per lane of Pack<T>.
template <class T>
struct Flags {
  hn::Mask<Tag<T>> m;
};

template <class N>
struct LaneOf;
template <class T>
struct LaneOf<Pack<T>> {
  using type = T;
};

template <class T>
using IndexLane = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class N>
struct IndexOf;
template <class T>
struct IndexOf<Pack<T>> {
  using type = Pack<IndexLane<T>>;
};

template <class T>
HWY_INLINE Pack<T> broadcast(T value) {
  return {hn::Set(Tag<T>(), value)};
}
template <class N>
HWY_INLINE N number(double value) {
  using T = typename LaneOf<N>::type;
  return broadcast<T>(static_cast<T>(value));
}
template <class N>
HWY_INLINE N lowest() {
  using T = typename LaneOf<N>::type;
  using Limits = std::numeric_limits<T>;
  return broadcast<T>(Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest());
}
template <class N>
HWY_INLINE N highest() {
  using T = typename LaneOf<N>::type;
  using Limits = std::numeric_limits<T>;
  return broadcast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
}

template <class T>
HWY_INLINE Pack<T> operator+(Pack<T> a, Pack<T> b) {
  return {hn::Add(a.v, b.v)};
}
template <class T>
HWY_INLINE Pack<T> operator-(Pack<T> a, Pack<T> b) {
  return {hn::Sub(a.v, b.v)};
}
template <class T>
HWY_INLINE Pack<T> operator*(Pack<T> a, Pack<T> b) {
  return {hn::Mul(a.v, b.v)};
}
template <class T>
HWY_INLINE Pack<T> operator/(Pack<T> a, Pack<T> b) {
  return {hn::Div(a.v, b.v)};
}
template <class T>
HWY_INLINE Pack<T> add(Pack<T> a, Pack<T> b) {
  return a + b;
}

template <class T>
HWY_INLINE Flags<T> operator==(Pack<T> a, Pack<T> b) {
  return {hn::Eq(a.v, b.v)};
}
template <class T>
HWY_INLINE Flags<T> operator<=(Pack<T> a, Pack<T> b) {
  if constexpr (std::is_floating_point_v<T>)
    return {hn::Le(a.v, b.v)};
  else
    return {hn::Not(hn::Lt(b.v, a.v))};
}
template <class T>
HWY_INLINE Flags<T> operator|(Flags<T> a, Flags<T> b) {
  return {hn::Or(a.m, b.m)};
}
/// Integers are never NaN: a type of its own lets the test vanish.
struct Never {};
template <class T>
HWY_INLINE Flags<T> operator|(Flags<T> a, Never) {
  return a;
}
/// Not by Ne: on AVX-512 Highway 1.0.3 compares ordered, so that NaN is not unequal to itself.
template <class T>
HWY_INLINE auto is_nan(Pack<T> x) {
  if constexpr (std::is_floating_point_v<T>)
    return Flags<T>{hn::IsNaN(x.v)};
  else
    return Never{};
}
/// Lanes of a where the flag is set, of b elsewhere. The flags may be those of another type of the same width.
template <class T, class F>
HWY_INLINE Pack<T> select(Flags<F> yes, Pack<T> a, Pack<T> b) {
  return {hn::IfThenElse(hn::RebindMask(Tag<T>(), yes.m), a.v, b.v)};
}

/// b where it lies beyond a, or is NaN and a is not; a otherwise, also when they are equal.
template <bool Upwards, class T>
HWY_INLINE Pack<T> further(Pack<T> a, Pack<T> b) {
  if constexpr (!std::is_floating_point_v<T>) return {Upwards ? hn::Max(a.v, b.v) : hn::Min(a.v, b.v)};
#if HWY_ARCH_X86
  // MAXPS and MINPS give their second operand for equal zeros and wherever a NaN takes part.
  else
    return select(is_nan(b), b, Pack<T>{Upwards ? hn::Max(b.v, a.v) : hn::Min(b.v, a.v)});
#else
  else
    return select((Upwards ? b <= a : a <= b) | is_nan(a), a, b);
#endif
}

/// The same of numbers that are not NaN.
template <bool Upwards, class T>
HWY_INLINE Pack<T> further_number(Pack<T> a, Pack<T> b) {
#if HWY_ARCH_X86
  return {Upwards ? hn::Max(b.v, a.v) : hn::Min(b.v, a.v)};
#else
  return select(Upwards ? b <= a : a <= b, a, b);
#endif
}

/// As it is, and in a register for masks: a compiler may keep it elsewhere and move it to and fro at every use.
template <class Mask>
HWY_INLINE Mask kept_mask(Mask mask) {
#if HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
  asm("" : "+k"(mask.raw));
#endif
  return mask;
}

/// Remembers whether any lane was NaN.
template <class T>
class NanWatch {
 public:
  HWY_INLINE NanWatch() : seen_(hn::FirstN(Tag<T>(), 0)) {}
  HWY_INLINE void add(Pack<T> a, Pack<T> b) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(T) == 4)
      seen_ = hn::Or(seen_, {_mm512_cmp_ps_mask(a.v.raw, b.v.raw, _CMP_UNORD_Q)});
    else
      seen_ = hn::Or(seen_, {_mm512_cmp_pd_mask(a.v.raw, b.v.raw, _CMP_UNORD_Q)});
#else
    seen_ = hn::Or(seen_, hn::Or(hn::IsNaN(a.v), hn::IsNaN(b.v)));
#endif
  }
  HWY_INLINE void stay() { seen_ = kept_mask(seen_); }
  HWY_INLINE void doubt() { seen_ = hn::FirstN(Tag<T>(), 1); }
  HWY_INLINE bool any() const { return !hn::AllFalse(Tag<T>(), seen_); }

 private:
  hn::Mask<Tag<T>> seen_;
};

template <class T>
HWY_INLINE bool all(Flags<T> flags) {
  return HWY_LIKELY(hn::AllTrue(Tag<T>(), flags.m));
}

template <class T>
HWY_INLINE Pack<T> magnitude(Pack<T> x) {
  return {hn::Abs(x.v)};
}
template <class T>
HWY_INLINE Pack<T> minus_magnitude(Pack<T> x) {
  return {hn::Or(x.v, hn::SignBit(Tag<T>()))};
}
/// a * b + c, rounded once or twice.
template <class T>
HWY_INLINE Pack<T> mul_add(Pack<T> a, Pack<T> b, Pack<T> c) {
  return {hn::MulAdd(a.v, b.v, c.v)};
}
/// a * b + c, rounded once; c takes away most of the product.
template <class T>
HWY_INLINE Pack<T> fused(Pack<T> a, Pack<T> b, Pack<T> c) {
#if HWY_NATIVE_FMA
  return mul_add(a, b, c);
#else
  // The product's own error, of halves whose products are exact.
  using Bits = hwy::MakeUnsigned<T>;
  const auto keep = hn::BitCast(Tag<T>(), hn::Set(Tag<Bits>(), ~Bits{0} << (sizeof(T) == 4 ? 12 : 27)));
  const Pack<T> a1{hn::And(a.v, keep)}, b1{hn::And(b.v, keep)}, a2 = a - a1, b2 = b - b1, product = a * b;
  const Pack<T> error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
  // A product that overflows has none: it may be infinite while that of the halves is not.
  const auto exists = magnitude(error) <= number<Pack<T>>(std::numeric_limits<T>::max());
  return select(exists, (product + c) + error, product + c);
#endif
}
/// A number that all lanes are divided by. Quotients are those of the instruction, bit for bit, which takes longer than
/// all else that is done for an average; where memory is waited for anyway, it is used all the same. Sums of integers
/// are not divided here.
template <class T>
class Divisor {
 public:
  explicit HWY_INLINE Divisor(double number, bool by_instruction = false) : by_(static_cast<T>(number)) {
    if constexpr (std::is_floating_point_v<T>) {
      // Others, such as the 0 of what is not divided, have no inverse that is of use.
      if (!(by_ >= least_divisor && by_ <= most_divisor)) return;
      inverse_ = T{1} / by_;
      // Of a power of two it is exact, and so are products but for the one rounding that quotients have too.
      using Bits = hwy::MakeUnsigned<T>;
      Bits bits;
      std::memcpy(&bits, &by_, sizeof(T));
      is_power_ = (bits & ((Bits{1} << (std::numeric_limits<T>::digits - 1)) - 1)) == 0;
      // Shorter packs are divided sooner than that.
      is_corrected_ = HWY_NATIVE_FMA && HWY_TARGET == HWY_AVX3 && !by_instruction && cpu::divides_slowly();
      if (is_corrected_) rest_ = std::fma(-inverse_, by_, T{1}) / by_;
    }
  }
  HWY_INLINE T quotient(T x) const { return is_power_ ? x * inverse_ : x / by_; }
  HWY_INLINE Pack<T> quotient(Pack<T> x) const {
    if constexpr (!std::is_floating_point_v<T>) {
      return x;
    } else {
      if (is_power_) return x * broadcast(inverse_);
      const Pack<T> by = broadcast(by_);
      if (HWY_LIKELY(is_corrected_)) {
        const Pack<T> size = magnitude(x);
        const auto inside = hn::And(hn::Le(size.v, hn::Set(Tag<T>(), most)), hn::Ge(size.v, hn::Set(Tag<T>(), least)));
        if (HWY_LIKELY(hn::AllTrue(Tag<T>(), hn::Or(inside, hn::Eq(x.v, hn::Zero(Tag<T>())))))) {
          // The inverse to twice the digits gives a quotient next to the right one; what that leaves is exact, and
          // corrects it (Markstein). Zeros keep their sign.
          const Pack<T> inverse = broadcast(inverse_), near = mul_add(x, inverse, x * broadcast(rest_));
          const Pack<T> left{hn::NegMulAdd(near.v, by.v, x.v)};
          return {hn::CopySign(mul_add(left, inverse, near).v, x.v)};
        }
      }
      return x / by;
    }
  }

 private:
  // What neither overflows nor loses digits on the way.
  static constexpr T least_divisor = T{1} / (1 << 20), most_divisor = static_cast<T>(std::int64_t{1} << 40);
  static constexpr T least = static_cast<T>(sizeof(T) == 4 ? 0x1p-60 : 0x1p-500);
  static constexpr T most = static_cast<T>(sizeof(T) == 4 ? 0x1p100 : 0x1p900);
  T by_, inverse_{}, rest_{};
  bool is_power_ = false, is_corrected_ = false;
};
template <class T>
HWY_INLINE Pack<T> operator/(Pack<T> x, const Divisor<T>& divisor) {
  return divisor.quotient(x);
}

/// 2^n for a whole number n that is not too large; 0 where that is below all normal numbers.
template <class T>
HWY_INLINE Pack<T> two_to_whole(Pack<T> n) {
  // The last digit of the anchor stands for 1: there n + bias is what the exponent's bits have to be.
  constexpr int digits = std::numeric_limits<T>::digits - 1, bias = std::numeric_limits<T>::max_exponent - 1;
  constexpr T anchor = T{1.5} * static_cast<T>(std::int64_t{1} << digits);
  const auto biased = hn::Max(hn::Add(n.v, hn::Set(Tag<T>(), anchor + T{bias})), hn::Set(Tag<T>(), anchor));
  return {hn::BitCast(Tag<T>(), hn::ShiftLeft<digits>(hn::BitCast(Tag<IndexLane<T>>(), biased)))};
}

/// x * 2^(to - from) where that is a normal number, as x is; `from` and `to` are so large that their last digits stand
/// for 1.
template <class T>
HWY_INLINE Pack<T> moved(Pack<T> x, Pack<T> from, Pack<T> to) {
  const Tag<IndexLane<T>> bits;
  const auto by = hn::Sub(hn::BitCast(bits, to.v), hn::BitCast(bits, from.v));
  const auto sum = hn::Add(hn::BitCast(bits, x.v), hn::ShiftLeft<std::numeric_limits<T>::digits - 1>(by));
  return {hn::BitCast(Tag<T>(), sum)};
}

/// The power of two at or below a positive number, at least the first normal one; infinity of infinity.
template <class T>
HWY_INLINE Pack<T> binade(Pack<T> x) {
  return {hn::Max(hn::And(x.v, highest<Pack<T>>().v), hn::Set(Tag<T>(), std::numeric_limits<T>::min()))};
}

template <class T>
HWY_INLINE Pack<T> square_root(Pack<T> x) {
  return {hn::Sqrt(x.v)};
}
// Out of line: they are long, and many kernels need them.
/// Highway's Exp gives 0 for NaN.
template <class T>
HWY_NOINLINE Pack<T> exponential(Pack<T> x) {
  return select(is_nan(x), x, Pack<T>{hn::Exp(Tag<T>(), x.v)});
}
/// Highway's Log knows neither 0, nor infinity, nor NaN. Arguments are not negative here.
template <class T>
HWY_NOINLINE Pack<T> logarithm(Pack<T> x) {
  const Pack<T> inside{hn::Log(Tag<T>(), x.v)};
  const Pack<T> at_zero = select(x == number<Pack<T>>(0), lowest<Pack<T>>(), inside);
  return select((x == highest<Pack<T>>()) | is_nan(x), x, at_zero);
}

/// A positive normal number as 2^n * m, m between the roots of 1/2 and 2.
template <class T>
HWY_INLINE void split_number(Pack<T> x, Pack<T>& n, Pack<T>& m) {
  using I = IndexLane<T>;
  constexpr int digits = std::numeric_limits<T>::digits - 1;
  const auto bits = hn::BitCast(Tag<I>(), x.v);
  const auto least = hn::BitCast(Tag<I>(), hn::Set(Tag<T>(), static_cast<T>(0.7071067811865476)));
  const auto exponent = hn::ShiftRight<digits>(hn::Sub(bits, least));
  n.v = hn::ConvertTo(Tag<T>(), exponent);
  m.v = hn::BitCast(Tag<T>(), hn::Sub(bits, hn::ShiftLeft<digits>(exponent)));
}
/// factor * log(x * 2^whole) of a positive normal number and a whole one; `doubling` is factor * log(2). Of others it
/// is anything.
template <class T>
HWY_INLINE Pack<T> scaled_logarithm(Pack<T> x, Pack<T> whole, Pack<T> factor, Pack<T> doubling) {
  Pack<T> n, m;
  split_number(x, n, m);
  const Pack<T> doublings = (n + whole) * doubling;
  if constexpr (sizeof(T) == 8) {
    return mul_add(Pack<T>{hn::Log(Tag<T>(), m.v)}, factor, doublings);
  } else {
    // log(1 + z) / z. The error is that of a rounding of 1: what is taken from sums of several powers has no better.
    constexpr double terms[] = {0.16126247906155117,
                                -0.17278206066373422,
                                0.19913347882345095,
                                -0.2496890695895493,
                                0.3333460602345371,
                                -0.5000037505628973,
                                1};
    const Pack<T> z = m - number<Pack<T>>(1);
    Pack<T> sum = number<Pack<T>>(-0.09895350737249223);
#pragma GCC unroll 8
    for (const double term : terms) sum = mul_add(sum, z, number<Pack<T>>(term));
    return mul_add(sum, z * factor, doublings);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();
