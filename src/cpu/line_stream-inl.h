// Long windows along a line in one pass: doubled in registers and chained by blocks of packs.

#if defined(CENOTE_CPU_LINE_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_LINE_STREAM_INL_H_
#undef CENOTE_CPU_LINE_STREAM_INL_H_
#else
#define CENOTE_CPU_LINE_STREAM_INL_H_
#endif

#include <bit>
#include <utility>

#include "cpu/regular_line-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Whether windows that overlap may be joined.
template <class C>
struct Repeats {
  static constexpr bool value = false;
};
template <bool Largest, class A>
struct Repeats<Carry<Extreme<Largest>, A>> {
  static constexpr bool value = true;
};
template <bool Largest, class A>
struct Repeats<Carry<Ordered<Largest>, A>> {
  static constexpr bool value = true;
};
template <class Half, bool Largest, class A>
struct Repeats<Carry<KeyedExtreme<Half, Largest>, A>> {
  static constexpr bool value = true;
};
template <class Half, bool Largest, class A>
struct Repeats<Carry<KeyedOrdered<Half, Largest>, A>> {
  static constexpr bool value = true;
};
template <bool Largest, class A>
struct Repeats<Carry<Winner<Extreme<Largest>>, A>> {
  static constexpr bool value = true;
};
template <bool Largest, class A>
struct Repeats<Carry<Winner<Ordered<Largest>>, A>> {
  static constexpr bool value = true;
};

template <int N, class A, int P>
HWY_INLINE Parts<Pack<A>, P> slide(const Parts<Pack<A>, P>& a, const Parts<Pack<A>, P>& b) {
  Parts<Pack<A>, P> result;
  for (int i = 0; i < P; ++i) result.part[i] = slide<N>(a.part[i], b.part[i]);
  return result;
}
template <int N, class A>
HWY_INLINE Place<Pack<A>> slide(const Place<Pack<A>>& a, const Place<Pack<A>>& b) {
  return {slide<N>(a.value, b.value), slide<N>(a.index, b.index)};
}
template <class A, int P>
HWY_INLINE Parts<Pack<A>, P> shifted(const Shift<A>& shift, const Parts<Pack<A>, P>& a, const Parts<Pack<A>, P>& b) {
  Parts<Pack<A>, P> result;
  for (int i = 0; i < P; ++i) result.part[i] = shift(a.part[i], b.part[i]);
  return result;
}
template <class A>
HWY_INLINE Place<Pack<A>> shifted(const Shift<A>& shift, const Place<Pack<A>>& a, const Place<Pack<A>>& b) {
  return {shift(a.value, b.value), shift(a.index, b.index)};
}

/// The windows at every place of a line, in one pass. Of every pack of cells that is read, states of 2, 4, … cells are
/// made in registers, each of which waits for the next pack. The longest, of `width` cells, are chained: a window is
/// the end of one block of them and the beginning of the next, lane by lane. What is left of a window's length is
/// another such window that overlaps, or pieces that were met on the way, one for each bit. Packs and blocks are
/// counted from output 0, wherever work begins, so that sums do not depend on where a line is cut.
template <class Q, class T>
class LineStream {
  using A = typename LaneOf<typename Q::N>::type;
  using State = typename Q::State;
  static constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
  static constexpr int pack_level = std::bit_width(static_cast<unsigned>(L)) - 1;
  static constexpr bool repeats = Repeats<Q>::value;
  static constexpr int parts = sizeof(State) / sizeof(typename Q::N);
  // States of two packs are chained, two chains at once; sums, which take a step more for each level, from 16 cells on,
  // and shorter windows not at all. Values that repeat are doubled once more before that.
  static constexpr int most_levels = pack_level + (repeats && parts == 1 ? 2 : 1);
  static constexpr int chain_level = repeats ? pack_level + 1 : HWY_MIN(most_levels, 4);
  static constexpr std::int64_t least_chained = 2 << most_levels;
  // What may become a plain sum is joined like one.
  static constexpr bool plain = sizeof(State) == sizeof(typename Q::N) || requires { decltype(Q::reducer)::tames; };
  static constexpr int least_levels = plain && sizeof(A) >= 4 ? 1 : HWY_MAX(HWY_MIN(pack_level, 3), pack_level - 1);

 public:
  static constexpr bool exists = repeats ? L >= 4 : L >= 8 && sizeof(A) >= 4;
  static HWY_INLINE bool applies(const Pass& pass) {
    return exists && pass.len == 1 && pass.axis->dilation == 1 && pass.axis->size >= 1 << least_levels;
  }
  /// The axis has a stride of 1. `block` is memory for as many states as a window has cells, and two packs.
  HWY_INLINE LineStream(const Q& carry, const Pass& pass, const Axis& axis, A* block)
      : carry_(carry), pass_(pass), axis_(axis), block_(block) {}

  /// The states of outputs [begin, end) from dst on, or their values. Stops where it met NaN, as far as that is looked
  /// for, and says how far it came.
  HWY_INLINE std::int64_t operator()(const T* line, std::int64_t begin, std::int64_t end, A* dst,
                                     const Values<T>& values) const {
    return with_levels<least_levels>(line, begin, end, dst, values);
  }

 private:
  static constexpr bool writes_values = parts == 1;
  // Cells that are states as they are, are read again instead of moved between lanes.
  static constexpr bool reads_twice = std::is_same_v<T, A> && (parts == 1 || Q::is_winner);
  static constexpr std::int64_t turn_outputs = 2048;  // before it is looked whether there was NaN

  template <int Levels>
  HWY_INLINE std::int64_t with_levels(const T* line, std::int64_t begin, std::int64_t end, A* dst,
                                      const Values<T>& values) const {
    if constexpr (Levels < most_levels)
      if (axis_.size >> (Levels + 1) > 0 && (Levels != chain_level || axis_.size < least_chained))
        return with_levels<Levels + 1>(line, begin, end, dst, values);
    if constexpr (Levels == chain_level)
      if (axis_.size >= least_chained) return run<Levels, true>(line, begin, end, dst, values);
    return run<Levels, false>(line, begin, end, dst, values);
  }

  template <int Levels, bool Chains>
  HWY_NOINLINE std::int64_t run(const T* line, std::int64_t begin, std::int64_t end, A* dst,
                                const Values<T>& values) const {
    // Those that are chained lie `apart` packs from each other.
    constexpr int width = 1 << Levels, apart = HWY_MAX(width / L, 1);
    constexpr bool within = width < L;
    // Half of the levels work on what the others made a pack before: a processor sees no farther than a few packs.
    constexpr int middle = 2, deepest = Levels > pack_level + 1 ? 2 : 1;
    constexpr int lag = Levels + deepest - 1 + (Levels > middle ? 1 : 0) + (Chains ? 1 : 0);
    // Copies, since a stored pack might alias the originals.
    const Q carry = carry_;
    const std::int64_t n = axis_.n, size = axis_.size, id = pass_.id_scale, plane = pass_.dst_plane;
    const std::int64_t chained = Chains ? size / width : 1, rest = size - chained * width, span = chained * apart;
    State before[Levels], pieces[Levels], chain[apart], whole[apart], between;
    const State nothing = carry.identity();
    State waiting = nothing, waiting_piece = nothing, waiting_end = nothing, last_piece = nothing;
    between = nothing;
    each<Levels>([&](int level) CENOTE_INLINED { before[level] = pieces[level] = nothing; });
    each<apart>([&](int i) CENOTE_INLINED { chain[i] = whole[i] = nothing; });
    Shift<A> shifts[Levels];
    const std::int64_t rest_packs = rest / L;
    if constexpr (repeats)
      shifts[0] = Shift<A>(rest % L);
    else
      each<Levels>([&](int level) CENOTE_INLINED {
        shifts[level] = Shift<A>((within ? width : 0) + (rest & ((1 << level) - 1)));
      });
    const std::int64_t asked = pass_.ahead;
    Watch<Q> watch;
    const auto push = [](auto& queue, const State& state) CENOTE_INLINED {
      for (int i = 0; i < apart - 1; ++i) queue[i] = queue[i + 1];
      queue[apart - 1] = state;
    };

    // The block's states, which become those from each of them to its end, and nothing behind them.
    A* const block = block_;
    const std::int64_t block_plane = (span + apart) * L;
    for (std::int64_t i = 0; i < (Chains ? span + apart : 0); ++i)
      carry.store_state(nothing, block + i * L, block_plane);
    T* const y = values.dst;
    const bool divides = values.divides;
    const Divisor<A> divisor(values.divisor);
    // Packs of values are aligned where they are written. Where it does not matter for their bits they are made so.
    const std::int64_t behind = y ? -reinterpret_cast<std::intptr_t>(y) / std::int64_t{sizeof(T)} & (L - 1) : 0;
    const std::int64_t origin = repeats ? behind - (behind > begin ? L : 0) : 0;
    const Shift<A> align(behind);
    Pack<A> last_value = broadcast<A>(0);
    const std::int64_t first = (begin - origin) / L / apart * apart;
    std::int64_t slot = Chains ? ((first - lag) % span + span) % span : 0;
    std::int64_t o = (first - lag - (!repeats && within ? 0 : span)) * L;
    const std::int64_t ahead = first * L - axis_.low - o + (!repeats && y ? L - behind : 0);
    o += repeats ? origin : y ? behind - L : 0;
    HWY_ALIGN A edge[parts * L], unwanted[parts * L];
    HWY_ALIGN T unwanted_values[L] = {};
    carry.store_state(nothing, edge, L);
    const std::int64_t last_whole = y ? end - L : end;
    std::int64_t done = begin;
    while (done < end) {
      const std::int64_t stop = HWY_MIN(done + turn_outputs, end);
      while (o < stop) {
        // As many packs as are alike.
        const std::int64_t at = o + ahead;
        const bool inside = at >= (reads_twice ? L : 0) && at + L <= n, wanted = o >= begin && o <= last_whole;
        const bool streams = values.past_caches && wanted;
        std::int64_t until = stop;
        if (!wanted && o < begin) until = begin;
        if (wanted && y) until = HWY_MIN(until, last_whole + 1);
        std::int64_t count = (until - o + L - 1) / L;
        if (inside)
          count = HWY_MIN(count, (n - at) / L);
        else if (at < n)
          count = HWY_MIN(count, HWY_MAX(-at / L, 1));
        if (!inside) carry.store_state(part_of_line(line, at), edge, L);
        const T* from = line + at;
        A* out = wanted ? dst + (o - begin) : unwanted;
        T* out_value = wanted ? y + o : unwanted_values;
        const std::int64_t out_step = wanted ? L : 0, out_plane = wanted ? plane : L;
        o += count * L;
        for (std::int64_t left = count; left > 0;) {
          const std::int64_t turn = Chains ? HWY_MIN(left, span - slot) : left;
          A* here = block + slot * L;
          left -= turn;
          for (std::int64_t i = turn; i > 0; --i, from += L, out += out_step, out_value += out_step) {
            State state, beside;
            if (HWY_LIKELY(inside)) {
              __builtin_prefetch(from + asked);
              state = carry.cell(from, 0, [](const T* p) CENOTE_INLINED { return kept(load(p)); });
              if constexpr (reads_twice)
                beside = carry.cell(from - (L - 1), 0, [](const T* p) CENOTE_INLINED { return load(p); });
              else
                beside = slide<1>(before[0], state);
            } else {
              state = carry.load_state(edge, L, 0);
              beside = slide<1>(before[0], state);
            }
            if constexpr (Q::is_calm) watch.add(cells_of(state), cells_of(state));
            State below = pieces[0];
            each_level<Levels>([&]<int Level>(std::integral_constant<int, Level>) CENOTE_INLINED {
              if constexpr (Level == middle) {
                std::swap(state, waiting);
                std::swap(below, waiting_piece);
              }
              const State last = before[Level];
              before[Level] = state;
              // States of two packs wait for the next but one.
              if constexpr (Level > pack_level) std::swap(before[Level], between);
              if constexpr (!repeats) {
                const State lower = below;
                below = pieces[Level];
                if (rest >> Level & 1) {
                  const State piece = shifted(shifts[Level], last, state);
                  pieces[Level] = rest & ((1 << Level) - 1) ? carry.combine(lower, piece) : piece;
                } else {
                  pieces[Level] = lower;
                }
              }
              const State after = Level == 0 ? beside : slide<HWY_MIN(1 << Level, L)>(last, state);
              state = carry.combine(last, carry.behind(after, id << Level));
            });
            if constexpr (Chains) {
              // These wait, too.
              std::swap(state, waiting_end);
              const State ends = carry.load_state(here + apart * L, block_plane, 0);
              carry.store_state(state, here, block_plane);
              const std::int64_t chained_before = (slot & -apart) * L;
              state = carry.combine(chain[0], carry.behind(state, chained_before * id));
              push(chain, state);
              state = carry.combine(ends, carry.behind(state, (chained * width - width - chained_before) * id));
              here += L;
              ++slot;
            }
            State result;
            if constexpr (repeats) {
              const State other = shifted_packs<0>(shifts[0], rest_packs, whole, state);
              result = carry.combine(whole[0], carry.behind(other, rest * id));
            } else {
              result = within ? state : whole[0];
              if (rest > 0) result = carry.combine(result, Chains ? last_piece : pieces[Levels - 1]);
              if constexpr (Chains) last_piece = pieces[Levels - 1];
            }
            push(whole, state);
            if constexpr (writes_values)
              if (y) {
                Pack<A> value = result.part[0];
                if constexpr (!repeats) {
                  value = align(last_value, value);
                  last_value = result.part[0];
                }
                if (divides) value = value / divisor;
                streams ? HWY_NAMESPACE::stream(value, out_value) : store(value, out_value);
                continue;
              }
            carry.store_state(result, out, out_plane);
          }
          if (Chains && slot == span) {
            each<apart>([&](int i) CENOTE_INLINED { chain[i] = nothing; });
            for (; here > block;) {
              here -= L;
              const State ends =
                  carry.combine(carry.load_state(here, block_plane, 0), carry.behind(chain[0], width * id));
              push(chain, ends);
              carry.store_state(ends, here, block_plane);
            }
            each<apart>([&](int i) CENOTE_INLINED { chain[i] = nothing; });
            slot = 0;
          }
        }
        if (wanted || o <= begin) continue;
        const std::int64_t start = HWY_MAX(o - L, begin), taken = HWY_MIN(o, end) - start, skipped = start - (o - L);
        if (y && values.seam)
          values.seam->put(unwanted_values + skipped, taken, y + start);
        else if (y)
          std::copy_n(unwanted_values + skipped, taken, y + start);
        else
          for (int k = 0; k < parts; ++k)
            std::copy_n(unwanted + k * L + skipped, taken, dst + k * plane + (start - begin));
      }
      if (HWY_UNLIKELY(watch.any())) break;
      done = HWY_MIN(o, end);
    }
    if constexpr (Q::is_winner) renumber(pass_, begin, done, 1, dst);
    return done;
  }
  /// The lanes that lie `packs` packs, at least I, and as many lanes as `shift` says behind those of the first state.
  template <int I, int Count>
  static HWY_INLINE State shifted_packs(const Shift<A>& shift, std::int64_t packs, const State (&states)[Count],
                                        const State& last) {
    if constexpr (I + 1 == Count)
      return shifted(shift, states[I], last);
    else
      return packs == I ? shifted(shift, states[I], states[I + 1]) : shifted_packs<I + 1>(shift, packs, states, last);
  }
  template <int Levels, class F>
  static HWY_INLINE void each_level(const F& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED { (f(std::integral_constant<int, I>()), ...); }
    (std::make_integer_sequence<int, Levels>());
  }

  /// One pack of cells, some of which may lie outside the line: those are nothing.
  HWY_NOINLINE State part_of_line(const T* line, std::int64_t at) const {
    const std::int64_t n = axis_.n;
    const std::int64_t from = std::clamp<std::int64_t>(-at, 0, L), to = std::clamp<std::int64_t>(n - at, from, L);
    if (from == to) return carry_.identity();
    const Cut<1, T> cut(from, to);
    const State cells = carry_.cell(line + at, 0, [&](const T* p) CENOTE_INLINED { return load_between(p, cut.low); });
    return choose(cut.inside, cells, carry_.identity());
  }

  const Q carry_;
  const Pass& pass_;
  const Axis axis_;
  A* const block_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
