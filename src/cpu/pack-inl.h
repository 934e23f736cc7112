// The abstract number as a SIMD pack: the functions of reduce/numbers.h over Highway vectors, loads and stores.
// Included once per target, inside the toggle of the translation unit that includes it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <cenote/types.h>

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
  HWY_INLINE void doubt() { seen_ = hn::FirstN(Tag<T>(), 1); }
  HWY_INLINE bool any() const { return !hn::AllFalse(Tag<T>(), seen_); }

 private:
  hn::Mask<Tag<T>> seen_;
};

template <class T>
HWY_INLINE bool all(Flags<T> flags) {
  return HWY_LIKELY(hn::AllTrue(Tag<T>(), flags.m));
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
  return select(is_nan(error), product + c, (product + c) + error);
#endif
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
HWY_INLINE Pack<T> magnitude(Pack<T> x) {
  return {hn::Abs(x.v)};
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

// Storage: an element type in memory is computed in its lane type.
template <class T>
struct LaneFor {
  using type = T;
};
template <>
struct LaneFor<f16> {
  using type = float;
};
template <>
struct LaneFor<bf16> {
  using type = float;
};
template <class T>
using Lane = typename LaneFor<T>::type;

template <class T>
HWY_INLINE std::int64_t lanes() {
  return static_cast<std::int64_t>(hn::Lanes(Tag<Lane<T>>()));
}

template <class T>
requires std::is_same_v<T, Lane<T>> HWY_INLINE Pack<T> load(const T* p) { return {hn::LoadU(Tag<T>(), p)}; }
// Halves come as their bits, half as wide as a pack of f32.
using HalfBits = hn::Vec<hn::Rebind<std::uint16_t, Tag<float>>>;
HWY_INLINE Pack<float> widen(HalfBits half, f16) {
#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
  // Highway widens NaN to infinity here. Scaling by 2^112 moves the exponent, of subnormals too.
  const hn::RebindToUnsigned<Tag<float>> wide;
  const auto bits = hn::PromoteTo(wide, half);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(wide, 0x7fffu)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(wide, 0x8000u)));
  const auto scaled = hn::Mul(hn::BitCast(Tag<float>(), magnitude), hn::Set(Tag<float>(), 0x1p112f));
  const auto special = hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(wide, 0x0f7fffffu)), hn::Set(wide, 0x7f800000u));
  return {hn::BitCast(Tag<float>(), hn::Or(hn::Or(hn::BitCast(wide, scaled), special), sign))};
#else
  return {hn::PromoteTo(Tag<float>(), hn::BitCast(hn::Rebind<hwy::float16_t, Tag<float>>(), half))};
#endif
}
HWY_INLINE Pack<float> widen(HalfBits half, bf16) {
  const hn::RebindToUnsigned<Tag<float>> wide;
  return {hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(hn::PromoteTo(wide, half)))};
}
template <class T>
requires std::is_same_v<T, f16> || std::is_same_v<T, bf16> HWY_INLINE Pack<float> load(const T* p) {
  const hn::Rebind<std::uint16_t, Tag<float>> half;
  return widen(hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p)), T{});
}

/// As it is, and in a register: a compiler may read again from memory what is used several times, which costs more
/// than a register where packs cross cache lines.
template <class T>
HWY_INLINE Pack<T> kept(Pack<T> x) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC
  asm("" : "+v"(x.v.raw));
#endif
  return x;
}

/// A number below 256 beside each lane of Pack<A>, bytes in memory. Where masks are bits it is a byte in registers too;
/// elsewhere it is as wide as the lane, so that masks need not be narrowed.
template <class A>
struct Bytes {
  static constexpr bool narrow = HWY_TARGET == HWY_AVX3;
  using Memory = hn::Rebind<std::uint8_t, Tag<A>>;
  using Register = std::conditional_t<narrow, Memory, Tag<hwy::MakeUnsigned<A>>>;
  hn::Vec<Register> v;

  static HWY_INLINE Bytes all(std::int64_t value) {
    return {hn::Set(Register(), static_cast<hn::TFromD<Register>>(value))};
  }
  static HWY_INLINE Bytes load(const std::uint8_t* p) {
    const auto bytes = hn::LoadU(Memory(), p);
    if constexpr (narrow)
      return {bytes};
    else if constexpr (sizeof(A) == 4)
      return {hn::PromoteTo(Register(), bytes)};
    else
      return {hn::PromoteTo(Register(), hn::PromoteTo(hn::Rebind<std::uint32_t, Register>(), bytes))};
  }
  HWY_INLINE void store(std::uint8_t* p) const {
    if constexpr (narrow)
      hn::StoreU(v, Memory(), p);
    else
      hn::StoreU(hn::TruncateTo(Memory(), v), Memory(), p);
  }
  HWY_INLINE Bytes operator+(Bytes other) const { return {hn::Add(v, other.v)}; }
};
template <class A>
HWY_INLINE Bytes<A> select(Flags<A> yes, Bytes<A> a, Bytes<A> b) {
  using Register = typename Bytes<A>::Register;
#if HWY_TARGET == HWY_AVX3
  return {hn::IfThenElse(hn::Mask<Register>{yes.m.raw}, a.v, b.v)};
#else
  return {hn::IfThenElse(hn::RebindMask(Register(), yes.m), a.v, b.v)};
#endif
}

/// Lanes as they lie in memory.
template <class T>
using StorageTag = std::conditional_t<std::is_same_v<T, Lane<T>>, Tag<T>, hn::Rebind<std::uint16_t, Tag<float>>>;
/// Whether masked loads leave alone what they do not load.
template <class T>
constexpr bool loads_masked = HWY_TARGET == HWY_AVX3 ||
                              (HWY_TARGET == HWY_AVX2 && std::is_same_v<T, Lane<T>> && sizeof(T) >= 4);

/// Lanes from <= i < to, which are at most the number of lanes.
template <class T>
struct LaneRange {
  std::int64_t from, to;
  hn::Mask<StorageTag<T>> m;
  HWY_INLINE LaneRange() = default;
  HWY_INLINE LaneRange(std::int64_t from, std::int64_t to) : from(from), to(to) {
    const StorageTag<T> tag;
    m = hn::AndNot(hn::FirstN(tag, static_cast<std::size_t>(from)), hn::FirstN(tag, static_cast<std::size_t>(to)));
  }
};
/// p[i] for the lanes of a range; the others are 0, and what lies there is not read.
template <class T>
HWY_INLINE Pack<Lane<T>> load_between(const T* p, const LaneRange<T>& range) {
  if constexpr (!loads_masked<T>) {
    T buffer[64 / sizeof(Lane<T>)] = {};
    if (range.from < range.to)
      std::memcpy(static_cast<void*>(buffer + range.from), p + range.from,
                  static_cast<std::size_t>(range.to - range.from) * sizeof(T));
    return load(buffer);
  } else if constexpr (std::is_same_v<T, Lane<T>>) {
    return {hn::MaskedLoad(range.m, Tag<T>(), p)};
  } else {
    return widen(hn::MaskedLoad(range.m, StorageTag<T>(), reinterpret_cast<const std::uint16_t*>(p)), T{});
  }
}
/// The first `count` lanes; the others are 0.
template <class T>
HWY_INLINE Pack<Lane<T>> load_first(const T* p, std::int64_t count) {
  return load_between(p, LaneRange<T>(0, count));
}
template <class T>
HWY_INLINE Pack<Lane<T>> load_every(const T* p) {
  if constexpr (std::is_same_v<T, Lane<T>>)
    return broadcast<T>(*p);
  else
    return broadcast<float>(static_cast<float>(*p));
}
/// Every `stride`-th element from p; with a stride of 2 one element past the last lane's is read too.
template <int Stride, class T>
HWY_INLINE Pack<Lane<T>> load_apart(const T* p, std::int64_t stride) {
  if constexpr (Stride == 1) {
    return load(p);
  } else if constexpr (Stride == 2 && std::is_same_v<T, Lane<T>>) {
    return {hn::ConcatEven(Tag<T>(), load(p + lanes<T>()).v, load(p).v)};
  } else if constexpr (Stride == 2) {
    return {hn::ConcatEven(Tag<Lane<T>>(), load(p + lanes<T>()).v, load(p).v)};
  } else {
    HWY_ALIGN T buffer[64 / sizeof(Lane<T>)];
    for (std::int64_t i = 0; i < lanes<T>(); ++i) buffer[i] = p[i * stride];
    return load(buffer);
  }
}

/// Some lanes of load_apart, those before `from` and from `to` on being outside.
template <int Stride, class T>
struct Cut {
  LaneRange<T> low, high;
  Flags<Lane<T>> inside;
  HWY_INLINE Cut() = default;
  HWY_INLINE Cut(std::int64_t from, std::int64_t to) : low(from, to), inside{LaneRange<Lane<T>>(from, to).m} {
    if constexpr (Stride != 2) return;
    const std::int64_t L = lanes<T>(), first = 2 * from, last = HWY_MAX(2 * to - 1, first);
    low = LaneRange<T>(HWY_MIN(first, L), HWY_MIN(last, L));
    high = LaneRange<T>(HWY_MAX(first - L, 0), HWY_MAX(last - L, 0));
  }
};
/// As load_apart; lanes outside are 0, and what lies there is not read.
template <int Stride, class T>
HWY_INLINE Pack<Lane<T>> load_apart(const T* p, std::int64_t stride, const Cut<Stride, T>& cut) {
  if constexpr (Stride == 1) {
    return load_between(p, cut.low);
  } else if constexpr (Stride == 2) {
    const auto low = load_between(p, cut.low), high = load_between(p + lanes<T>(), cut.high);
    return {hn::ConcatEven(Tag<Lane<T>>(), high.v, low.v)};
  } else {
    T buffer[64 / sizeof(Lane<T>)] = {};
    for (std::int64_t i = cut.low.from; i < cut.low.to; ++i) buffer[i] = p[i * stride];
    return load(buffer);
  }
}

/// Lanes N, N + 1, … of a, and then those of b.
template <int N, class T>
HWY_INLINE Pack<T> slide(Pack<T> a, Pack<T> b) {
#if HWY_TARGET == HWY_AVX3
  // Unlike a permutation of two packs this writes over neither.
  if constexpr (sizeof(T) >= 4 && N < static_cast<int>(64 / sizeof(T))) {
    const Tag<IndexLane<T>> tag;
    const auto one = hn::BitCast(tag, a.v).raw, two = hn::BitCast(tag, b.v).raw;
    hn::Vec<decltype(tag)> result;
    if constexpr (sizeof(T) == 4)
      result.raw = _mm512_alignr_epi32(two, one, N);
    else
      result.raw = _mm512_alignr_epi64(two, one, N);
    return {hn::BitCast(Tag<T>(), result)};
  }
#endif
  using Raw = decltype(a.v.raw);
  using Lanes [[gnu::vector_size(sizeof(Raw))]] = T;
  return [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED {
    return Pack<T>{hn::Vec<Tag<T>>{(Raw)__builtin_shufflevector((Lanes)a.v.raw, (Lanes)b.v.raw, (I + N)...)}};
  }
  (std::make_integer_sequence<int, static_cast<int>(sizeof(Raw) / sizeof(T))>());
}

/// As slide, by a number of lanes that is known when it runs, from 0 to all of them.
template <class T, class = void>
class Shift {
 public:
  HWY_INLINE Shift() = default;
  explicit HWY_INLINE Shift(std::int64_t by) {
    const Tag<I> tag;
    const auto from = hn::Add(hn::Iota(tag, 0), hn::Set(tag, static_cast<I>(by)));
#if HWY_TARGET == HWY_AVX3
    from_ = from;
#else
    from_ = hn::IndicesFromVec(tag, hn::And(from, hn::Set(tag, static_cast<I>(hn::Lanes(tag) - 1))));
    others_ = hn::FirstN(tag, static_cast<std::size_t>(by));
#endif
  }
  template <class U>
  HWY_INLINE Pack<U> operator()(Pack<U> a, Pack<U> b) const {
    const Tag<I> tag;
    const auto one = hn::BitCast(tag, a.v), two = hn::BitCast(tag, b.v);
#if HWY_TARGET == HWY_AVX3
    hn::Vec<Tag<I>> result;
    if constexpr (sizeof(I) == 4)
      result.raw = _mm512_permutex2var_epi32(one.raw, from_.raw, two.raw);
    else
      result.raw = _mm512_permutex2var_epi64(one.raw, from_.raw, two.raw);
    return {hn::BitCast(Tag<U>(), result)};
#else
    return {hn::BitCast(Tag<U>(), hn::TableLookupLanes(hn::IfThenElse(others_, two, one), from_))};
#endif
  }

 private:
  using I = IndexLane<T>;
#if HWY_TARGET == HWY_AVX3
  hn::Vec<Tag<I>> from_;
#else
  decltype(hn::IndicesFromVec(Tag<I>(), hn::Zero(Tag<I>()))) from_;
  hn::Mask<Tag<I>> others_;
#endif
};
/// Of short lanes: four bytes at a time, each made of two.
template <class T>
class Shift<T, std::enable_if_t<sizeof(T) < 4>> {
 public:
  HWY_INLINE Shift() = default;
  explicit HWY_INLINE Shift(std::int64_t by)
      : low_(by / together), high_(by / together + 1), bits_(static_cast<int>(by % together * 8) * int{sizeof(T)}) {}
  HWY_INLINE Pack<T> operator()(Pack<T> a, Pack<T> b) const {
    const Tag<std::uint32_t> wide;
    const Pack<std::uint32_t> one{hn::BitCast(wide, a.v)}, two{hn::BitCast(wide, b.v)};
    const auto low = hn::ShiftRightSame(low_(one, two).v, bits_);
    return {hn::BitCast(Tag<T>(), hn::Or(low, hn::ShiftLeftSame(high_(one, two).v, 32 - bits_)))};
  }

 private:
  static constexpr std::int64_t together = 4 / sizeof(T);
  Shift<std::uint32_t> low_, high_;
  int bits_;
};

template <class T>
HWY_INLINE void store(Pack<T> x, T* p) {
  hn::StoreU(x.v, Tag<T>(), p);
}
/// Past the caches; p is aligned to the pack.
template <class T>
HWY_INLINE void stream(Pack<T> x, T* p) {
  hn::Stream(x.v, Tag<T>(), p);
}

// Rounds to nearest even by integer arithmetic: Highway 1.0.3 truncates bf16 everywhere and f16 below AVX2.
HWY_INLINE auto narrow(Pack<float> x, bf16) {
  const hn::RebindToUnsigned<Tag<float>> wide;
  const auto bits = hn::BitCast(wide, x.v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000u));
  const auto chosen = hn::IfThenElse(hn::RebindMask(wide, is_nan(x).m), quiet, rounded);
  return hn::TruncateTo(hn::Rebind<std::uint16_t, Tag<float>>(), hn::ShiftRight<16>(chosen));
}
HWY_INLINE auto narrow(Pack<float> x, f16) {
  const hn::Rebind<std::uint16_t, Tag<float>> half;
#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
  const hn::RebindToUnsigned<Tag<float>> wide;
  HWY_ALIGN float values[4];
  HWY_ALIGN std::uint32_t bits[4];
  hn::Store(x.v, Tag<float>(), values);
  for (int i = 0; i < 4; ++i) bits[i] = f16(values[i]).bits;
  return hn::TruncateTo(half, hn::Load(wide, bits));
#else
  return hn::BitCast(half, hn::DemoteTo(hn::Rebind<hwy::float16_t, Tag<float>>(), x.v));
#endif
}
template <class T>
HWY_INLINE void store_half(Pack<float> x, T* p) {
  const hn::Rebind<std::uint16_t, Tag<float>> half;
  hn::StoreU(narrow(x, T{}), half, reinterpret_cast<std::uint16_t*>(p));
}
/// Streaming is for 16 bytes and more: half a register of SSE4 is stored.
template <class T>
HWY_INLINE void stream_half(Pack<float> x, T* p) {
  const hn::Rebind<std::uint16_t, Tag<float>> half;
  if constexpr (hn::MaxLanes(half) * sizeof(T) >= 16)
    hn::Stream(narrow(x, T{}), half, reinterpret_cast<std::uint16_t*>(p));
  else
    store_half(x, p);
}
HWY_INLINE void store(Pack<float> x, f16* p) { store_half(x, p); }
HWY_INLINE void store(Pack<float> x, bf16* p) { store_half(x, p); }
HWY_INLINE void stream(Pack<float> x, f16* p) { stream_half(x, p); }
HWY_INLINE void stream(Pack<float> x, bf16* p) { stream_half(x, p); }

template <class T>
HWY_INLINE void store_first(Pack<Lane<T>> x, T* p, std::int64_t count) {
  T buffer[64 / sizeof(Lane<T>)];
  store(x, buffer);
  std::memcpy(static_cast<void*>(p), buffer, static_cast<std::size_t>(count) * sizeof(T));
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();
