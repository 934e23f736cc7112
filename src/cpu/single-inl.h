// One output by itself: its cells one after the other, or lanes that run along them.

#if defined(CENOTE_CPU_SINGLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SINGLE_INL_H_
#undef CENOTE_CPU_SINGLE_INL_H_
#else
#define CENOTE_CPU_SINGLE_INL_H_
#endif

#include "cpu/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// One output whose cells lie `dilation` apart: every lane holds the same.
template <class C, class T>
HWY_INLINE typename C::State fold_cells(const C& carry, const T* cells, std::int64_t count, std::int64_t dilation,
                                        std::int64_t id_scale, std::int64_t id) {
  typename C::State state[1];
  fold<1>(
      carry, count,
      [&](std::int64_t j, int) CENOTE_INLINED {
        return carry.cell(cells + j * dilation, id + j * id_scale,
                          [](const T* p) CENOTE_INLINED { return load_every(p); });
      },
      state);
  return state[0];
}

/// Cells of one output from which on lanes run along them.
constexpr std::int64_t least_across = 6;

/// The states of all lanes in one: halves are joined until one lane is left, which is lane 0.
template <int Half, class C>
HWY_INLINE typename C::State across(const C& carry, typename C::State state) {
  if constexpr (Half == 0) {
    return state;
  } else {
    typename C::State other;
    for (int i = 0; i < C::State::count; ++i) other.part[i] = slide<Half>(state.part[i], state.part[i]);
    return across<Half / 2>(carry, carry.combine(state, other));
  }
}

/// Several neighbouring cells, lanes running along them: every lane holds the fold of its own. `rest` is what is left
/// of them behind whole packs.
template <class R, class T>
HWY_INLINE auto fold_packs(const Carry<R, Lane<T>>& carry, const T* cells, std::int64_t packs, const Cut<1, T>& rest) {
  typename Carry<R, Lane<T>>::State all[1];
  const auto pack = [&](std::int64_t j, int) CENOTE_INLINED {
    const T* p = cells + j * lanes<T>();
    if (HWY_LIKELY(j < packs)) return carry.lift(load(p), 0);
    return choose(rest.inside, carry.lift(load_between(p, rest.low), 0), carry.identity());
  };
  fold<1>(carry, packs + (rest.low.to > 0), pack, all);
  return all[0];
}

/// Whether zeros that are equal may differ.
template <class C>
constexpr bool looks_up_zeros = false;
template <class R, class A>
constexpr bool looks_up_zeros<Carry<R, A>> = R::picks && (std::is_floating_point_v<A> || requires { R::minus_zero; });
/// Whether some lane is zero.
template <class R, class A>
HWY_INLINE bool any_zero(const Carry<R, A>&, Pack<A> x) {
  const auto equals = [&](A zero) CENOTE_INLINED { return (x == broadcast<A>(zero)).m; };
  if constexpr (requires { R::minus_zero; })
    return !hn::AllFalse(Tag<A>(), hn::Or(equals(R::minus_zero), equals(static_cast<A>(R::minus_zero + 1))));
  else
    return !hn::AllFalse(Tag<A>(), equals(A{0}));
}

/// One output over several neighbouring cells: lanes are folded at the end. Reducers that pick would lose the order of
/// equal zeros, so a zero is looked up again.
template <class R, class T>
HWY_INLINE auto fold_across(const Carry<R, Lane<T>>& carry, const T* cells, std::int64_t count) {
  using A = Lane<T>;
  const std::int64_t packs = count / lanes<A>();
  const Cut<1, T> rest(0, count - packs * lanes<A>());
  auto state = across<static_cast<int>(hn::MaxLanes(Tag<A>())) / 2>(carry, fold_packs(carry, cells, packs, rest));
  if constexpr (looks_up_zeros<Carry<R, A>>) {
    const Pack<A> value = broadcast<A>(hn::GetLane(state.part[0].v));
    if (any_zero(carry, value)) {
      std::int64_t j = 0;
      while (!any_zero(carry, load_every(cells + j))) ++j;
      state.part[0] = load_every(cells + j);
    }
  }
  return state;
}

/// Of groups of 2 Half lanes, first those of a and then those of b, the lower halves or the upper ones.
template <int Half, bool Upper, class A>
HWY_INLINE Pack<A> halves(Pack<A> a, Pack<A> b) {
  using Raw = decltype(a.v.raw);
  using Lanes [[gnu::vector_size(sizeof(Raw))]] = A;
  return [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED {
    return Pack<A>{hn::Vec<Tag<A>>{(Raw)__builtin_shufflevector(
        (Lanes)a.v.raw, (Lanes)b.v.raw, (I / Half * 2 * Half + I % Half + (Upper ? Half : 0))...)}};
  }
  (std::make_integer_sequence<int, static_cast<int>(sizeof(Raw) / sizeof(A))>());
}
/// The lanes of `Count` packs in one, each by itself and as `across` does it. With as many packs as lanes there is one
/// lane for each.
template <int Count, class C, class A>
HWY_INLINE Pack<A> across_many(const C& carry, const A* packs) {
  if constexpr (Count == 1) {
    return load(packs);
  } else {
    constexpr int half = static_cast<int>(hn::MaxLanes(Tag<A>())) / Count;
    const Pack<A> a = across_many<Count / 2>(carry, packs),
                  b = across_many<Count / 2>(carry, packs + Count / 2 * lanes<A>());
    return carry.combine({{halves<half, false>(a, b)}}, {{halves<half, true>(a, b)}}).part[0];
  }
}

/// One output by itself: at a border, of an adaptive bin, or of a window longer than its step. Lanes run along its
/// cells only where that is so for all outputs: bits must not depend on where a line is cut.
template <bool Across, class C, class T, class A>
HWY_NOINLINE void single_output(const C& carry, const Pass& pass, const Axis& axis, const T* line, std::int64_t o,
                                A* dst) {
  const Axis::Span span = axis.span(o);
  if (span.count == 0) return carry.store_one(carry.identity(), dst, pass.dst_plane);
  const auto of_row = [&](std::int64_t r) CENOTE_INLINED {
    const T* cells = line + r * pass.fold_step + span.first;
    if constexpr (Across && !C::is_winner && C::inputs == 1)
      if (axis.step() == 1 && span.count >= least_across) return fold_across(carry, cells, span.count);
    return fold_cells(carry, cells, span.count, axis.step(), pass.id_scale, r * pass.fold_id_scale);
  };
  typename C::State state = carry.identity();
  for (std::int64_t r = 0; r < pass.fold; ++r) {
    const auto next = of_row(r);
    state = r == 0 ? next : carry.combine(state, next);
  }
  carry.store_one(state, dst, pass.dst_plane);
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
