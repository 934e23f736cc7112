// Packs and memory: an element type is computed in its lane type. Included as pack-inl.h is.

#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

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
/// Halves whose order alone matters, as whole numbers of their size in the same order. They are moved so that what
/// comes before all others, an infinity, is the last number of all, and NaN of either sign goes round to the other end.
template <class Half, bool Largest>
struct Keyed {
  static constexpr int infinity = std::is_same_v<Half, f16> ? 0x7c00 : 0x7f80;
  static constexpr auto offset = static_cast<std::int16_t>(Largest ? infinity - 0x7fff : 0x7fff - infinity);
  static constexpr auto minus_zero = static_cast<std::int16_t>(offset - 1);
  std::int16_t bits;
};
template <class Half, bool Largest>
struct LaneFor<Keyed<Half, Largest>> {
  using type = std::int16_t;
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
/// Numbers below 0 come in the order of their magnitudes: turned round, and back.
HWY_INLINE Pack<std::int16_t> turned(Pack<std::int16_t> x) {
  const Tag<std::int16_t> tag;
  return {hn::Xor(x.v, hn::And(hn::ShiftRight<15>(x.v), hn::Set(tag, std::int16_t{0x7fff})))};
}
template <class Half, bool Largest>
HWY_INLINE Pack<std::int16_t> widen(hn::Vec<Tag<std::uint16_t>> half, Keyed<Half, Largest>) {
  return turned({hn::BitCast(Tag<std::int16_t>(), half)}) + broadcast(Keyed<Half, Largest>::offset);
}
/// Lanes as they lie in memory.
template <class T>
using StorageTag = std::conditional_t<std::is_same_v<T, Lane<T>>, Tag<T>, hn::Rebind<std::uint16_t, Tag<Lane<T>>>>;
template <class T>
requires(!std::is_same_v<T, Lane<T>>) HWY_INLINE Pack<Lane<T>> load(const T* p) {
  return widen(hn::LoadU(StorageTag<T>(), reinterpret_cast<const std::uint16_t*>(p)), T{});
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
  /// Past the caches: only of packs of 16 bytes.
  HWY_INLINE void stream(std::uint8_t* p) const { hn::Stream(v, Memory(), p); }
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
template <class Half, bool Largest>
HWY_INLINE Pack<std::int16_t> load_every(const Keyed<Half, Largest>* p) {
  const Tag<std::uint16_t> tag;
  return widen(hn::Set(tag, static_cast<std::uint16_t>(p->bits)), Keyed<Half, Largest>{});
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

/// Cells that lie Stride apart, 3 or 4: phases[i] are those from p[i] on. As many packs as there are phases are read.
template <int Stride, class T>
HWY_INLINE void load_woven(const T* p, Pack<Lane<T>> (&phases)[Stride]) {
  constexpr bool half = !std::is_same_v<T, Lane<T>>;
  using Stored = std::conditional_t<half, std::uint16_t, T>;
  const StorageTag<T> tag;
  const auto* from = reinterpret_cast<const Stored*>(p);
#if HWY_TARGET == HWY_AVX3
  if constexpr (Stride == 3 && sizeof(Stored) == 4) {
    // Each cell is read once, which matters where packs cross cache lines, and moved twice.
    using Raw = decltype(phases[0].v.raw);
    using Lanes [[gnu::vector_size(64)]] = T;
    const auto a = (Lanes)kept(load(p)).v.raw, b = (Lanes)kept(load(p + 16)).v.raw, c = (Lanes)kept(load(p + 32)).v.raw;
    const auto phase = [&]<int First, int... I>(std::integer_sequence<int, First>, std::integer_sequence<int, I...>)
        CENOTE_INLINED {
      const auto low = __builtin_shufflevector(a, b, (3 * I + First < 32 ? 3 * I + First : I)...);
      phases[First].v.raw = (Raw)__builtin_shufflevector(low, c, (3 * I + First < 32 ? I : 3 * I + First - 32 + 16)...);
    };
    const auto all = std::make_integer_sequence<int, 16>();
    phase(std::integer_sequence<int, 0>(), all);
    phase(std::integer_sequence<int, 1>(), all);
    phase(std::integer_sequence<int, 2>(), all);
    return;
  }
#endif
  hn::Vec<decltype(tag)> v[4];
  if constexpr (Stride == 3)
    hn::LoadInterleaved3(tag, from, v[0], v[1], v[2]);
  else
    hn::LoadInterleaved4(tag, from, v[0], v[1], v[2], v[3]);
  for (int i = 0; i < Stride; ++i) {
    if constexpr (half)
      phases[i] = widen(v[i], T{});
    else
      phases[i].v = v[i];
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
  // What lies half way above an even number is cut off, and so is what NaN carries: those made here have more.
  const auto last = hn::And(bits, hn::Set(wide, 0x1ffffu)), half = hn::Set(wide, 0x8000u);
#if HWY_TARGET == HWY_AVX3
  const auto moves =
      _mm512_mask_cmpneq_epi32_mask(_mm512_cmp_ps_mask(x.v.raw, x.v.raw, _CMP_ORD_Q), last.raw, half.raw);
  const __m512i rounded = _mm512_mask_add_epi32(bits.raw, moves, bits.raw, half.raw);
  const auto upper = hn::Add(hn::Iota(Tag<std::uint16_t>(), 1), hn::Iota(Tag<std::uint16_t>(), 0));
  return hn::Vec<StorageTag<bf16>>{_mm512_castsi512_si256(_mm512_permutexvar_epi16(upper.raw, rounded))};
#else
  const auto half_way = hn::Eq(last, half);
  const auto stays = hn::Or(half_way, hn::RebindMask(wide, is_nan(x).m));
  const auto chosen = hn::IfThenElse(stays, bits, hn::Add(bits, half));
  return hn::TruncateTo(hn::Rebind<std::uint16_t, Tag<float>>(), hn::ShiftRight<16>(chosen));
#endif
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
/// Cells as they were.
template <class Half, bool Largest>
HWY_INLINE Pack<std::int16_t> unkeyed(Pack<std::int16_t> x, const Keyed<Half, Largest>*) {
  return turned(x - broadcast(Keyed<Half, Largest>::offset));
}
template <class Half, bool Largest>
HWY_INLINE void store(Pack<std::int16_t> x, Keyed<Half, Largest>* p) {
  store(unkeyed(x, p), &p->bits);
}
template <class Half, bool Largest>
HWY_INLINE void stream(Pack<std::int16_t> x, Keyed<Half, Largest>* p) {
  stream(unkeyed(x, p), &p->bits);
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
