// Lines of small windows two apart, which most poolings have.

#if defined(CENOTE_CPU_PAIRED_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PAIRED_LINE_INL_H_
#undef CENOTE_CPU_PAIRED_LINE_INL_H_
#else
#define CENOTE_CPU_PAIRED_LINE_INL_H_
#endif

#include "cpu/line_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Windows of two or three cells, two apart: a line is split into its even and its odd cells, each read once, and a
/// window's first or last cell comes from the pack before or after.
template <class C, class T>
class PairedLine {
  using A = typename LaneOf<typename C::N>::type;
  using State = typename C::State;
  struct Cells {
    Pack<A> even, odd;
  };

 public:
  static constexpr bool writes_values = false;
  /// The states of a row that two windows share wait for the second.
  static constexpr bool keeps() { return true; }
  /// Whether only the last pack of a line may reach over an end.
  static HWY_INLINE bool applies(const Pass& pass) {
    const Axis& axis = *pass.axis;
    return axis.stride == 2 && (axis.size == 2 || axis.size == 3) && axis.dilation == 1 && axis.low < 2 &&
           pass.begin % lanes<A>() == 0 && 2 * last_pack(pass) <= axis.n;
  }
  HWY_INLINE PairedLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass), L_(lanes<A>()), cut_(pass.end) {
    const std::int64_t n = pass.axis->n;
    if (2 * (last_pack(pass) + L_) <= n) return;
    cut_ = last_pack(pass);
    const std::int64_t rest = HWY_MIN(n - 2 * cut_, 2 * L_), half = HWY_MIN(rest, L_);
    cut_cells_[0] = Cut<1, T>(0, half);
    cut_cells_[1] = Cut<1, T>(0, rest - half);
  }

  /// Outputs [from, to), which begin and end as those of RegularLine do. True if it met NaN.
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return make_rows(*this, carry_, rows, from, to);
  }
  /// Lines from `row` on, up to and with the first that has NaN, and says which that was.
  template <class Q>
  HWY_NOINLINE std::int64_t make(const Q& carry, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                 std::int64_t to) const {
    const bool three = pass_.axis->size == 3;
    if (pass_.axis->low == 1)
      return three ? make_from<1, true, false>(carry, rows, row, from, to)
                   : make_from<1, false, false>(carry, rows, row, from, to);
    if constexpr (Q::is_calm || !Calm<C>::differs) {
      const bool near = rows.fold_row * std::int64_t{sizeof(T)} < cpu::least_apart;
      if (near && !rows.last && to - from >= L_ && 2 * to + three <= pass_.axis->n)
        return three ? make_from<0, true, true>(carry, rows, row, from, to)
                     : make_from<0, false, true>(carry, rows, row, from, to);
    }
    return three ? make_from<0, true, false>(carry, rows, row, from, to)
                 : make_from<0, false, false>(carry, rows, row, from, to);
  }

 private:
  static HWY_INLINE std::int64_t last_pack(const Pass& pass) {
    return pass.begin + (pass.end - pass.begin - 1) / lanes<A>() * lanes<A>();
  }

  /// `Together`: windows share no row and lie inside, so that rows are folded in registers.
  template <int Low, bool Three, bool Together, class Q>
  HWY_INLINE std::int64_t make_from(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                    std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Rows<T, A> all = rows;
    const std::int64_t L = L_, n = pass_.axis->n, scale = pass_.id_scale, plane = pass_.dst_plane;
    const std::int64_t ahead = pass_.ahead;
    const std::int64_t cut = HWY_MIN(cut_, to), begin = pass_.begin;
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    constexpr bool follows = C::inputs == 2;
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto split = [&](Pack<A> first, Pack<A> second) CENOTE_INLINED {
      return Cells{{hn::ConcatEven(Tag<A>(), second.v, first.v)}, {hn::ConcatOdd(Tag<A>(), second.v, first.v)}};
    };
    // Where there is so little to do that loads run far ahead of all else, memory is faster if some are repeated, as
    // the compiler does if it may.
    constexpr bool repeats = Low == 0 && !Three && !Together;
    const auto ask = [&](const T* p) CENOTE_INLINED {
      __builtin_prefetch(p + ahead);
      __builtin_prefetch(p + ahead + L);
    };
    const auto inside = [&](const T* p, const T*) CENOTE_INLINED {
      ask(p);
      return repeats ? split(load(p), load(p + L)) : split(kept(load(p)), kept(load(p + L)));
    };
    // What stands for cells outside. A follower has no number that yields to all cells and their tangents, but the cell
    // at the end once more changes nothing: every window that reaches over it holds it.
    const auto outside = [&](const T* nearest)
                             CENOTE_INLINED { return follows && !IsTame<C> ? load_every(nearest) : nothing; };
    const auto at_end = [&](const T* p, const T* nearest) CENOTE_INLINED {
      ask(p);
      const auto cells = [&](int i) CENOTE_INLINED {
        return select(cut_cells_[i].inside, load_between(p + i * L, cut_cells_[i].low), outside(nearest));
      };
      return split(cells(0), cells(1));
    };
    Pack<A> left = nothing, left_tangents = nothing;  // those of the odd cells of the pack before
    const auto look_at = [&](const Pack<A>& before, Pack<A> a, Pack<A> b) CENOTE_INLINED {
      if constexpr (Calm<C>::differs) {
        if (!follows || &before == &left) return watch.add(a, b);
        if constexpr (IsTame<C>) watch.add_tangents(a, b);
      }
    };
    // Calls use(cells) with the cells of the windows that begin with output o, or with their tangents.
    const auto with_taps = [&](const T* line, std::int64_t o, Pack<A>& before, const auto& read,
                               const auto& use) CENOTE_INLINED {
      const Cells now = read(line + 2 * o, line + n - 1);
      look_at(before, now.even, now.odd);
      if constexpr (Low == 1) {
        const Pack<A> first = slide<static_cast<int>(hn::MaxLanes(Tag<A>())) - 1>(before, now.odd);
        before = now.odd;
        return use(first, now.even, now.odd);
      } else {
        if constexpr (!Three) return use(now.even, now.odd, nothing);
        const Pack<A> after = 2 * (o + L) < n ? load_every(line + 2 * (o + L)) : outside(line + n - 1);
        look_at(before, after, after);
        return use(now.even, now.odd, slide<1>(now.even, after));
      }
    };
    // The windows of one row that begin with output o.
    const auto window = [&](const T* line, std::int64_t o, const auto& read) CENOTE_INLINED {
      return with_taps(line, o, left, read, [&](Pack<A> a, Pack<A> b, Pack<A> c) CENOTE_INLINED {
        if constexpr (follows) {
          const auto& pair = carry.reducer;
          return with_taps(line + carry.src_plane, o, left_tangents, read,
                           [&](Pack<A> da, Pack<A> db, Pack<A> dc) CENOTE_INLINED {
                             const State state = carry.combine(pair.lift(a, da), pair.lift(b, db));
                             return Three ? carry.combine(state, pair.lift(c, dc)) : state;
                           });
        } else {
          State state = carry.combine(carry.lift(a, 0), carry.lift(b, scale));
          if constexpr (Three) state = carry.combine(state, carry.lift(c, 2 * scale));
          return Low == 1 && o == 0 ? carry.without_first(state, scale) : state;
        }
      });
    };
    for (; row < all.count; ++row) {
      A* const dst = all.dst + row * all.dst_row;
      watch = WatchFor<Q>::of(carry);
      const T* line = all.src + row * all.src_row;
      if constexpr (Together) {
        const auto make_pack = [&](std::int64_t o) CENOTE_INLINED {
          State state = carry.behind(window(line, o, inside), all.id);
          for (std::int64_t r = 1; r < all.fold; ++r)
            state = carry.combine(state,
                                  carry.behind(window(line + r * all.fold_row, o, inside), all.id + r * all.id_scale));
          carry.store_state(state, dst + (o - from), plane);
        };
        std::int64_t o = from;
        for (; o + L <= to; o += L) make_pack(o);
        if (o < to) make_pack(to - L);
        if (HWY_UNLIKELY(watch.any())) break;
        continue;
      }
      // One row after the other, in the order of memory: the states of those before wait in L1.
      for (std::int64_t r = 0; r < all.fold; ++r, line += all.fold_row) {
        A* const last_states = all.last ? all.last + (from - begin) : nullptr;
        const A* before = r > 0 ? dst : all.shared ? last_states : nullptr;
        A* const after = r + 1 == all.fold ? last_states : nullptr;
        const std::int64_t id = all.id + r * all.id_scale;
        if constexpr (Low == 1) {
          const auto first = [&](const T* p)
                                 CENOTE_INLINED { return from > 0 ? load_every(p + 2 * from - 1) : outside(p); };
          left = first(line);
          look_at(left, left, left);
          if constexpr (follows) {
            left_tangents = first(line + carry.src_plane);
            look_at(left_tangents, left_tangents, left_tangents);
          }
        }
        // What is known of a row before it is made is not asked at every pack.
        const auto make_row = [&](auto joins, auto keeps) CENOTE_INLINED {
          const auto make_pack = [&](std::int64_t o, const auto& read) CENOTE_INLINED {
            const State cells = window(line, o, read);
            State state = carry.behind(cells, id);
            if (joins) state = carry.combine(carry.load_state(before + (o - from), plane, 0), state);
            carry.store_state(state, dst + (o - from), plane);
            if (keeps) carry.store_state(cells, after + (o - from), plane);
          };
          std::int64_t o = from;
          for (; o < cut; o += L) make_pack(o, inside);
          if (o < to) make_pack(o, at_end);
        };
        constexpr bool common =
            (Q::is_calm || !Calm<C>::differs) && (sizeof(State) == sizeof(Pack<A>) || C::is_winner || follows);
        if (common && before && after)
          make_row(std::bool_constant<common>(), std::bool_constant<common>());
        else if (common && before)
          make_row(std::bool_constant<common>(), std::false_type());
        else if (common && !after)
          make_row(std::false_type(), std::false_type());
        else
          make_row(before != nullptr, after != nullptr);
      }
      if (HWY_UNLIKELY(watch.any())) break;
    }
    return row;
  }

  const C& carry_;
  const Pass& pass_;
  const std::int64_t L_;
  std::int64_t cut_;  // the output from which on lanes may reach over the end
  Cut<1, T> cut_cells_[2];
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
