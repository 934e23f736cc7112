// How states are made, moved and folded: the core that rows and lines share. Included once per target.

#if defined(CENOTE_CPU_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_FOLD_INL_H_
#undef CENOTE_CPU_FOLD_INL_H_
#else
#define CENOTE_CPU_FOLD_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/kernels.h"
#include "cpu/storage-inl.h"

#define CENOTE_REGION_BEGIN \
  HWY_BEFORE_NAMESPACE();   \
  namespace cenote {        \
  namespace HWY_NAMESPACE {
#define CENOTE_REGION_END \
  }                       \
  }                       \
  HWY_AFTER_NAMESPACE();
#define CENOTE_FN HWY_INLINE
#define CENOTE_LONG_FN HWY_NOINLINE
#include "reduce/reducers-inl.h"
#undef CENOTE_REGION_BEGIN
#undef CENOTE_REGION_END
#undef CENOTE_FN
#undef CENOTE_LONG_FN

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Pass;

/// How a reducer's state is made, moved and merged. `id` numbers the cell; a plain reducer does not care.
template <class R, class A>
struct Carry {
  using N = Pack<A>;
  using State = Parts<N, R::parts>;
  static constexpr bool is_winner = false;
  static constexpr bool is_calm = requires { R::is_calm; };
  static constexpr bool has_neutral = requires { R::template neutral<A>(); };
  /// Numbers that make up a cell, in planes.
  static constexpr int inputs = [] {
    if constexpr (requires { R::inputs; })
      return R::inputs;
    else
      return 1;
  }();
  R reducer;
  std::int64_t src_plane = 0;
  explicit HWY_INLINE Carry(const Params& params) : reducer(params) {}
  explicit HWY_INLINE Carry(const Pass& pass) : reducer(pass.params), src_plane(pass.src_plane) {}

  template <class Cell>
  static constexpr Cell neutral() {
    return R::template neutral<Cell>();
  }
  HWY_INLINE State identity() const { return reducer.template identity<N>(); }
  HWY_INLINE State lift(N x, std::int64_t) const { return reducer.lift(x); }
  /// The state of the cells at p, each plane of them read by `get`.
  template <class T, class Get>
  HWY_INLINE State cell(const T* p, std::int64_t, const Get& get) const {
    if constexpr (inputs == 1)
      return reducer.lift(get(p));
    else
      return reducer.lift(get(p), get(p + src_plane));
  }
  HWY_INLINE State combine(const State& a, const State& b) const { return reducer.combine(a, b); }
  /// The same state, of cells whose numbers are higher.
  HWY_INLINE State behind(const State& a, std::int64_t) const { return a; }
  HWY_INLINE State without_first(const State& a, std::int64_t) const { return a; }
  HWY_INLINE State load_state(const A* p, std::int64_t plane, std::int64_t) const {
    State s;
    for (int i = 0; i < R::parts; ++i) s.part[i] = load(p + i * plane);
    return s;
  }
  HWY_INLINE void store_state(const State& s, A* p, std::int64_t plane) const {
    for (int i = 0; i < R::parts; ++i) store(s.part[i], p + i * plane);
  }
  /// Lane 0 only.
  HWY_INLINE void store_one(const State& s, A* p, std::int64_t plane) const {
    for (int i = 0; i < R::parts; ++i) p[i * plane] = hn::GetLane(s.part[i].v);
  }
};

template <class R, class A>
struct Carry<Winner<R>, A> {
  using N = Pack<A>;
  using I = IndexLane<A>;
  using State = Place<N>;
  static constexpr bool is_winner = true, has_neutral = true, is_calm = requires { R::is_calm; };
  static constexpr int inputs = 1;
  template <class Cell>
  static constexpr Cell neutral() {
    return R::template neutral<Cell>();
  }
  Winner<R> reducer;
  explicit HWY_INLINE Carry(const Params& params) : reducer(params) {}
  explicit HWY_INLINE Carry(const Pass& pass) : reducer(pass.params) {}

  HWY_INLINE State identity() const { return {reducer.base.template identity<N>().part[0], broadcast<I>(0)}; }
  HWY_INLINE State lift(N x, std::int64_t id) const { return {x, broadcast<I>(static_cast<I>(id))}; }
  template <class T, class Get>
  HWY_INLINE State cell(const T* p, std::int64_t id, const Get& get) const {
    return lift(get(p), id);
  }
  HWY_INLINE State combine(const State& a, const State& b) const { return reducer.combine(a, b); }
  HWY_INLINE State behind(const State& a, std::int64_t id) const {
    return {a.value, a.index + broadcast<I>(static_cast<I>(id))};
  }
  HWY_INLINE State load_state(const A* p, std::int64_t plane, std::int64_t id) const {
    return behind({load(p), load(reinterpret_cast<const I*>(p + plane))}, id);
  }
  HWY_INLINE void store_state(const State& s, A* p, std::int64_t plane) const {
    store(s.value, p);
    store(s.index, reinterpret_cast<I*>(p + plane));
  }
  HWY_INLINE void store_one(const State& s, A* p, std::int64_t plane) const {
    *p = hn::GetLane(s.value.v);
    reinterpret_cast<I*>(p + plane)[0] = hn::GetLane(s.index.v);
  }
};

/// A winner whose number in its window fits a byte.
template <class R>
struct ByteWinner {};
template <class N>
struct BytePlace {
  N value;
  Bytes<typename LaneOf<N>::type> number;
};
template <class R, class A>
struct Carry<ByteWinner<R>, A> {
  using N = Pack<A>;
  using State = BytePlace<N>;
  static constexpr bool is_winner = true, has_neutral = true, is_calm = requires { R::is_calm; };
  static constexpr int inputs = 1;
  template <class Cell>
  static constexpr Cell neutral() {
    return R::template neutral<Cell>();
  }
  R reducer;
  // Of the state at p, the number is numbers[p - values].
  A* values;
  std::uint8_t* numbers;
  HWY_INLINE Carry(A* values, std::uint8_t* numbers) : reducer(Params{}), values(values), numbers(numbers) {}

  HWY_INLINE State identity() const { return lift(reducer.template identity<N>().part[0], 0); }
  HWY_INLINE State lift(N x, std::int64_t id) const { return {x, Bytes<A>::all(id)}; }
  template <class T, class Get>
  HWY_INLINE State cell(const T* p, std::int64_t id, const Get& get) const {
    return lift(get(p), id);
  }
  HWY_INLINE State combine(const State& a, const State& b) const {
    const auto keep = reducer.keeps(a.value, b.value);
    const Parts<N, 1> x{{a.value}}, y{{b.value}};
    return {reducer.combine(x, y).part[0], select(keep, a.number, b.number)};
  }
  HWY_INLINE State behind(const State& a, std::int64_t id) const { return {a.value, a.number + Bytes<A>::all(id)}; }
  /// In lane 0 the first cell is none: numbers begin with that of the second.
  HWY_INLINE State without_first(const State& a, std::int64_t id) const {
    const Flags<A> second{hn::AndNot(hn::FirstN(Tag<A>(), 1), hn::FirstN(Tag<A>(), hn::Lanes(Tag<A>())))};
    return {a.value, {hn::Max(a.number.v, select(second, Bytes<A>::all(0), Bytes<A>::all(id)).v)}};
  }
  HWY_INLINE State load_state(const A* p, std::int64_t, std::int64_t id) const {
    return behind({load(p), Bytes<A>::load(numbers + (p - values))}, id);
  }
  HWY_INLINE void store_state(const State& s, A* p, std::int64_t) const {
    store(s.value, p);
    s.number.store(numbers + (p - values));
  }
};

/// Max and min of cells of which none is NaN: simpler, and the same.
template <bool Largest>
struct Ordered : Extreme<Largest> {
  static constexpr bool is_calm = true;
  explicit HWY_INLINE Ordered(const Params& params) : Extreme<Largest>(params) {}
  template <class N>
  HWY_INLINE auto keeps(N a, N b) const {
    return Largest ? b <= a : a <= b;
  }
  template <class N>
  HWY_INLINE Parts<N, 1> combine(Parts<N, 1> a, Parts<N, 1> b) const {
    return {{further_number<Largest>(a.part[0], b.part[0])}};
  }
};
/// Max and min of Keyed cells, where a zero comes before a zero of the other sign.
template <class Half, bool Largest>
struct KeyedExtreme : Extreme<Largest> {
  static constexpr std::int16_t minus_zero = Keyed<Half, Largest>::minus_zero;
  explicit HWY_INLINE KeyedExtreme(const Params& params) : Extreme<Largest>(params) {}
  template <class N>
  HWY_INLINE auto keeps(N a, N b) const {
    // Beside a, the zero that comes first is the other one.
    const N minus = broadcast(minus_zero), plus = minus + broadcast(std::int16_t{1});
    return Largest ? b <= select(a == minus, plus, a) : select(a == plus, minus, a) <= b;
  }
  template <class N>
  HWY_INLINE Parts<N, 1> combine(Parts<N, 1> a, Parts<N, 1> b) const {
    return {{select(keeps(a.part[0], b.part[0]), a.part[0], b.part[0])}};
  }
};
/// The same where no zero has a sign.
template <class Half, bool Largest>
struct KeyedOrdered : Extreme<Largest> {
  static constexpr bool is_calm = true;
  static constexpr std::int16_t minus_zero = Keyed<Half, Largest>::minus_zero;
  explicit HWY_INLINE KeyedOrdered(const Params& params) : Extreme<Largest>(params) {}
};

/// Remembers whether a Keyed cell was a negative zero.
template <std::int16_t MinusZero>
class ZeroWatch {
  using T = std::int16_t;

 public:
  HWY_INLINE ZeroWatch() : seen_(hn::FirstN(Tag<T>(), 0)) {}
  HWY_INLINE void add(Pack<T> a, Pack<T> b) {
    const Pack<T> minus = broadcast(MinusZero);
    seen_ = hn::Or(seen_, hn::Or((a == minus).m, (b == minus).m));
  }
  HWY_INLINE void stay() { seen_ = kept_mask(seen_); }
  HWY_INLINE void doubt() { seen_ = hn::FirstN(Tag<T>(), 1); }
  HWY_INLINE bool any() const { return !hn::AllFalse(Tag<T>(), seen_); }

 private:
  hn::Mask<Tag<T>> seen_;
};
/// What tells whether there were cells that a calm carry is not made for.
template <class C>
struct WatchFor {
  using type = NanWatch<typename LaneOf<typename C::N>::type>;
  static HWY_INLINE type of(const C&) { return {}; }
};
template <class C>
requires requires { decltype(C::reducer)::minus_zero; }
struct WatchFor<C> {
  using type = ZeroWatch<decltype(C::reducer)::minus_zero>;
  static HWY_INLINE type of(const C&) { return {}; }
};
template <class C>
using Watch = typename WatchFor<C>::type;

/// What a carry is where no cell is NaN, or a negative zero.
template <class C>
struct Calm {
  static constexpr bool differs = false;
  static HWY_INLINE C of(const C& carry) { return carry; }
};
template <bool Largest, class A>
requires std::is_floating_point_v<A>
struct Calm<Carry<Extreme<Largest>, A>> {
  static constexpr bool differs = true;
  static HWY_INLINE Carry<Ordered<Largest>, A> of(const Carry<Extreme<Largest>, A>&) {
    return Carry<Ordered<Largest>, A>(Params{});
  }
};
template <class Half, bool Largest, class A>
struct Calm<Carry<KeyedExtreme<Half, Largest>, A>> {
  static constexpr bool differs = true;
  static HWY_INLINE Carry<KeyedOrdered<Half, Largest>, A> of(const Carry<KeyedExtreme<Half, Largest>, A>&) {
    return Carry<KeyedOrdered<Half, Largest>, A>(Params{});
  }
};
template <bool Largest, class A>
requires std::is_floating_point_v<A>
struct Calm<Carry<Winner<Extreme<Largest>>, A>> {
  static constexpr bool differs = true;
  static HWY_INLINE Carry<Winner<Ordered<Largest>>, A> of(const Carry<Winner<Extreme<Largest>>, A>&) {
    return Carry<Winner<Ordered<Largest>>, A>(Params{});
  }
};
template <bool Largest, class A>
requires std::is_floating_point_v<A>
struct Calm<Carry<ByteWinner<Extreme<Largest>>, A>> {
  static constexpr bool differs = true;
  static HWY_INLINE Carry<ByteWinner<Ordered<Largest>>, A> of(const Carry<ByteWinner<Extreme<Largest>>, A>& carry) {
    return {carry.values, carry.numbers};
  }
};
template <bool Largest, class A>
requires std::is_floating_point_v<A>
struct Calm<Carry<Follower<Extreme<Largest>>, A>> {
  static constexpr bool differs = true;
  static HWY_INLINE Carry<Follower<Ordered<Largest>>, A> of(const Carry<Follower<Extreme<Largest>>, A>& carry) {
    Carry<Follower<Ordered<Largest>>, A> calm(Params{});
    calm.src_plane = carry.src_plane;
    return calm;
  }
};
/// The cells of a state that has been lifted.
template <class N, int P>
HWY_INLINE N cells_of(const Parts<N, P>& state) {
  return state.part[0];
}
template <class N>
HWY_INLINE N cells_of(const Place<N>& state) {
  return state.value;
}
template <class N>
HWY_INLINE N cells_of(const BytePlace<N>& state) {
  return state.value;
}

/// Cells folded one after the other before groups are merged pairwise. Keeps a sum's error within
/// 7 + log2(cells / 8) + 2 roundings, and short windows free of any stack.
constexpr std::int64_t group_cells = 8;

/// Merges groups pairwise: stack[i] holds 2^i of them, as the bits of `groups` say, like a binary counter.
template <int U, class C>
struct Merger {
  using State = typename C::State;
  State stack[60][U];
  std::int64_t groups = 0;

  HWY_NOINLINE void push(const C& carry, State (&group)[U]) {
    int level = 0;
    for (std::int64_t bits = groups; bits & 1; bits >>= 1, ++level)
      for (int u = 0; u < U; ++u) group[u] = carry.combine(stack[level][u], group[u]);
    for (int u = 0; u < U; ++u) stack[level][u] = group[u];
    ++groups;
  }
  HWY_NOINLINE void total(const C& carry, State (&result)[U]) const {
    bool first = true;
    for (int level = 0; groups >> level; ++level) {
      if (!((groups >> level) & 1)) continue;
      for (int u = 0; u < U; ++u) result[u] = first ? stack[level][u] : carry.combine(stack[level][u], result[u]);
      first = false;
    }
  }
};

/// Calls f(0), …, f(U - 1), unrolled at compile time so that what they index stays in registers.
template <int U, class F>
HWY_INLINE void each(const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED { (f(I), ...); }
  (std::make_integer_sequence<int, U>());
}

/// Folds cells at(0, u), …, at(count - 1, u) in order, for u < U packs at once. count >= 1.
template <int U, class C, class At>
HWY_INLINE void fold(const C& carry, std::int64_t count, const At& at, typename C::State (&result)[U]) {
  typename C::State acc[U];
  const auto run = [&](std::int64_t j, std::int64_t stop) CENOTE_INLINED {
    each<U>([&](int u) CENOTE_INLINED { acc[u] = at(j, u); });
    for (++j; j < stop; ++j) each<U>([&](int u) CENOTE_INLINED { acc[u] = carry.combine(acc[u], at(j, u)); });
  };
  Merger<U, C> merger;
  for (std::int64_t j = 0; j < count; j += group_cells) {
    run(j, HWY_MIN(j + group_cells, count));
    if (HWY_LIKELY(count <= group_cells)) {
      each<U>([&](int u) CENOTE_INLINED { result[u] = acc[u]; });
      return;
    }
    typename C::State group[U];
    each<U>([&](int u) CENOTE_INLINED { group[u] = acc[u]; });
    merger.push(carry, group);
  }
  typename C::State total[U];
  merger.total(carry, total);
  each<U>([&](int u) CENOTE_INLINED { result[u] = total[u]; });
}

/// Folds `rows` such sequences, at(r, j, u), each by itself and then one after the other. 1 <= rows <= group_cells.
template <int U, class C, class At>
HWY_INLINE void fold_rows(const C& carry, std::int64_t rows, std::int64_t count, const At& at,
                          typename C::State (&result)[U]) {
  for (std::int64_t r = 0; r < rows; ++r) {
    typename C::State next[U];
    fold<U>(
        carry, count, [&](std::int64_t j, int u) CENOTE_INLINED { return at(r, j, u); }, next);
    each<U>([&](int u) CENOTE_INLINED { result[u] = r == 0 ? next[u] : carry.combine(result[u], next[u]); });
  }
}

/// How many packs a kernel keeps in flight: several hide latency, but large states spill.
template <class C>
constexpr int packs_in_flight() {
  return sizeof(typename C::State) == sizeof(typename C::N) ? 4 : 1;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
