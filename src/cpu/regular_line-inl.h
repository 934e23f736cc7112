// Lines whose windows are shifted copies of each other, and those of them that reach over an end.

#if defined(CENOTE_CPU_REGULAR_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_REGULAR_LINE_INL_H_
#undef CENOTE_CPU_REGULAR_LINE_INL_H_
#else
#define CENOTE_CPU_REGULAR_LINE_INL_H_
#endif

#include "cpu/line_rows-inl.h"
#include "cpu/single-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// How many neighbouring taps of a window are read together: as many as windows lie apart, where that is so few that
/// packs of cells are sorted in registers, or one.
template <class C>
HWY_INLINE std::int64_t taps_together(const Axis& axis) {
  return C::inputs == 1 && axis.dilation == 1 && axis.stride > 1 && axis.stride <= 4 ? axis.stride : 1;
}

/// Cells of one line, by tap and pack of outputs.
template <int Stride, class C, class T>
class LineTaps {
  using A = typename LaneOf<typename C::N>::type;
  using State = typename C::State;

 public:
  HWY_INLINE LineTaps(const C& carry, const Pass& pass, const T* line)
      : carry_(carry), pass_(pass), line_(line), n_(pass.axis->n), dilation_(pass.axis->dilation) {}

  HWY_INLINE std::int64_t stride() const { return Stride < 3 ? Stride : pass_.axis->stride; }
  /// Where the first tap of output o lies.
  HWY_INLINE std::int64_t start(std::int64_t o) const { return o * stride() - pass_.axis->low; }
  /// Tap j of the windows in row r, the first of which begins at `place`.
  HWY_INLINE State whole(std::int64_t r, std::int64_t j, std::int64_t place) const {
    return carry_.cell(line_ + r * pass_.fold_step + place + j * dilation_, id(r, j),
                       [&](const T* p) CENOTE_INLINED { return load_apart<Stride>(p, stride()); });
  }
  HWY_INLINE const T* row(std::int64_t r) const { return line_ + r * pass_.fold_step; }
  /// Of windows in row r, as many neighbouring taps as they lie apart, from Apart * i on: all come from the same loads.
  template <int Apart>
  HWY_INLINE State group(const T* window, std::int64_t r, std::int64_t i, std::int64_t size) const {
    const T* p = window + Apart * i;
    Pack<A> phases[Apart];
    if constexpr (Apart == 2) {
      const auto low = load(p).v, high = load(p + lanes<A>()).v;
      phases[0].v = hn::ConcatEven(Tag<A>(), high, low);
      phases[1].v = hn::ConcatOdd(Tag<A>(), high, low);
    } else {
      load_woven<Apart>(p, phases);
    }
    State state = carry_.lift(phases[0], id(r, Apart * i));
    each<Apart - 1>([&](int q) CENOTE_INLINED {
      const std::int64_t j = Apart * i + q + 1;
      if (j < size) state = carry_.combine(state, carry_.lift(phases[q + 1], id(r, j)));
    });
    return state;
  }
  /// As `whole`, where lanes outside the line are nothing.
  HWY_INLINE State part(std::int64_t r, std::int64_t j, std::int64_t place, const Cut<Stride, T>& cut) const {
    const State cells = carry_.cell(line_ + r * pass_.fold_step + place + j * dilation_, id(r, j),
                                    [&](const T* p) CENOTE_INLINED { return load_apart<Stride>(p, stride(), cut); });
    return choose(cut.inside, cells, carry_.identity());
  }
  /// Which lanes of tap j lie on the line.
  HWY_INLINE Cut<Stride, T> cut(std::int64_t j, std::int64_t place) const {
    const std::int64_t at = place + j * dilation_;
    return {lanes_over(HWY_MAX(-at, 0)), lanes_over(HWY_MAX(n_ - at, 0))};
  }

 private:
  HWY_INLINE std::int64_t id(std::int64_t r, std::int64_t j) const {
    return r * pass_.fold_id_scale + j * pass_.id_scale;
  }
  /// How many lanes begin within so many cells.
  HWY_INLINE std::int64_t lanes_over(std::int64_t cells) const {
    return HWY_MIN(cells / stride() + (cells % stride() != 0), lanes<A>());
  }

  const C& carry_;
  const Pass& pass_;
  const T* line_;
  const std::int64_t n_, dilation_;
};

/// One pack of outputs from o on, whose windows may reach over the ends of the line: where they do is found once for
/// all lines. Few cells, or those that padding adds would be too many.
template <int Stride, class C, class T>
class BorderPack {
 public:
  static HWY_INLINE bool applies(const Axis& axis) { return axis.size <= group_cells; }

  HWY_NOINLINE void find(const LineTaps<Stride, C, T>& taps, const Pass& pass, std::int64_t o) {
    place_ = taps.start(o);
    for (std::int64_t j = 0; j < pass.axis->size; ++j) cuts_[j] = taps.cut(j, place_);
  }
  /// The first tap's place, and tap j from p on, which is that place of a row.
  HWY_INLINE std::int64_t place() const { return place_; }
  template <class Q>
  HWY_INLINE typename Q::State tap(const Q& carry, const T* p, std::int64_t j, std::int64_t id) const {
    using A = typename LaneOf<typename C::N>::type;
    const Pack<A> cells = load_apart<Stride>(p + j, Stride, cuts_[j]);
    return carry.lift(select(cuts_[j].inside, cells, broadcast<A>(C::template neutral<A>())), id);
  }
  template <class A>
  HWY_NOINLINE void make(const C& carry, const Pass& pass, const LineTaps<Stride, C, T>& taps, A* dst) const {
    typename C::State state[1];
    const std::int64_t size = pass.axis->size;
    const auto tap = [&](std::int64_t r, std::int64_t j, int)
                         CENOTE_INLINED { return taps.part(r, j, place_, cuts_[j]); };
    // In groups where whole packs are: bits must not depend on where a line is cut.
    const std::int64_t together = taps_together<C>(*pass.axis);
    if constexpr (copies)
      if (together == 3 ? make_copied<3>(carry, pass, taps, dst)
                        : together == 4 && make_copied<4>(carry, pass, taps, dst))
        return;
    const auto group = [&](std::int64_t r, std::int64_t i, int u) CENOTE_INLINED {
      auto cells = tap(r, i * together, u);
      for (std::int64_t j = i * together + 1; j < HWY_MIN((i + 1) * together, size); ++j)
        cells = carry.combine(cells, tap(r, j, u));
      return cells;
    };
    fold_rows<1>(carry, pass.fold, (size + together - 1) / together, group, state);
    carry.store_state(state[0], dst, pass.dst_plane);
  }

 private:
  /// Whether cells are better copied than picked one by one, with what is nothing around them.
  static constexpr bool copies = Stride == 3 && C::has_neutral && C::inputs == 1 && std::is_same_v<T, Lane<T>>;

  template <int Apart>
  HWY_INLINE bool make_copied(const C& carry, const Pass& pass, const LineTaps<Stride, C, T>& taps, T* dst) const {
    const std::int64_t size = pass.axis->size, groups = (size + Apart - 1) / Apart;
    constexpr std::int64_t L = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));
    constexpr std::int64_t pitch = (Apart + (2 * group_cells + L - 1) / L) * L;
    const std::int64_t first = HWY_MIN(HWY_MAX(-place_, 0), pitch);
    const std::int64_t last = HWY_MAX(HWY_MIN(pass.axis->n - place_, pitch), first);
    T cells[group_cells * pitch];
    for (std::int64_t r = 0; r < pass.fold; ++r) {
      T* const to = cells + r * pitch;
      for (std::int64_t i = 0; i < pitch; i += L) store(broadcast<T>(C::template neutral<T>()), to + i);
      std::copy(taps.row(r) + place_ + first, taps.row(r) + place_ + last, to + first);
    }
    typename C::State state[1];
    fold_rows<1>(
        carry, pass.fold, groups,
        [&](std::int64_t r, std::int64_t i, int)
            CENOTE_INLINED { return taps.template group<Apart>(cells + r * pitch, r, i, size); },
        state);
    carry.store_state(state[0], dst, pass.dst_plane);
    return true;
  }

  std::int64_t place_ = 0;
  Cut<Stride, T> cuts_[group_cells];
};

/// Winners are numbered from the first real cell; where all are as low as nothing, that one has won.
template <class A>
HWY_NOINLINE void renumber(const Pass& pass, std::int64_t begin, std::int64_t end, std::int64_t unit, A* dst) {
  using I = IndexLane<A>;
  const Axis& axis = *pass.axis;
  for (std::int64_t o = begin; o < end && o * axis.stride < axis.low; ++o) {
    const auto tap = static_cast<I>(axis.span(o).tap * pass.id_scale);
    I* ids = reinterpret_cast<I*>(dst + pass.dst_plane + (o - begin) * unit);
    for (std::int64_t c = 0; c < unit; ++c)
      ids[c] = pass.by_window ? HWY_MAX(ids[c], tap) : HWY_MAX(ids[c] - tap, I{0});
  }
}

/// Whole packs of outputs of one line.
template <int Stride, int Packs, class C, class T, class A>
HWY_INLINE void whole_packs(const C& carry, const Pass& pass, const LineTaps<Stride, C, T>& taps, std::int64_t o,
                            A* dst) {
  typename C::State state[Packs];
  const std::int64_t place = taps.start(o), size = pass.axis->size, L = lanes<A>();
  const auto at = [&](int u) CENOTE_INLINED { return place + u * L * taps.stride(); };
  const auto tap = [&](std::int64_t r, std::int64_t j, int u) CENOTE_INLINED { return taps.whole(r, j, at(u)); };
  const std::int64_t together = taps_together<C>(*pass.axis);
  const auto by_groups = [&]<int Apart>(std::integral_constant<int, Apart>) CENOTE_INLINED {
    if (together != Apart) return false;
    const auto group = [&](std::int64_t r, std::int64_t i, int u)
                           CENOTE_INLINED { return taps.template group<Apart>(taps.row(r) + at(u), r, i, size); };
    fold_rows<Packs>(carry, pass.fold, (size + Apart - 1) / Apart, group, state);
    return true;
  };
  bool done = false;
  if constexpr (C::inputs == 1 && Stride == 2) done = by_groups(std::integral_constant<int, 2>());
  if constexpr (C::inputs == 1 && Stride == 3)
    done = by_groups(std::integral_constant<int, 3>()) || by_groups(std::integral_constant<int, 4>());
  if (!done) fold_rows<Packs>(carry, pass.fold, size, tap, state);
  each<Packs>([&](int u) CENOTE_INLINED { carry.store_state(state[u], dst + u * L, pass.dst_plane); });
}

/// Size cells from tap(0) on, joined as longer windows are: two apart in pairs.
template <int Stride, int Size, class C, class Tap>
HWY_INLINE typename C::State join_taps(const C& carry, const Tap& tap) {
  auto state = tap(0);
  if constexpr (Size > 1 && Stride == 2) state = carry.combine(state, tap(1));
  constexpr int step = Stride == 2 ? 2 : 1, more = (Size - 1) / step;
  if constexpr (more > 0)
    each<more>([&](int i) CENOTE_INLINED {
      const int j = (i + 1) * step;
      state = carry.combine(state, step == 2 && j + 1 < Size ? carry.combine(tap(j), tap(j + 1)) : tap(j));
    });
  return state;
}

/// Lines whose windows are shifted copies of each other.
template <int Stride, class C, class T>
class RegularLine {
  using A = typename LaneOf<typename C::N>::type;
  using Border = BorderPack<Stride, C, T>;

 public:
  HWY_INLINE RegularLine(const C& carry, const Pass& pass)
      : carry_(carry), pass_(pass), L_(lanes<A>()), begin_(pass.begin), end_(pass.end) {
    const Axis& axis = *pass.axis;
    auto [inside, outside] = axis.interior();
    // Groups of taps are read as a whole, and single ones in pairs with a stride of 2: the last interior output may
    // have none within the line.
    const std::int64_t together = taps_together<C>(axis);
    const std::int64_t reach = together > 1 ? (axis.size + together - 1) / together * together
                                            : (axis.size - 1) * axis.dilation + (Stride == 2 ? 2 : 1);
    if (outside > inside && (outside - 1) * axis.stride - axis.low + reach > axis.n) --outside;
    outside = HWY_MIN(outside, end_);
    if (inside >= outside) inside = outside = end_;
    // Outputs [begin, first) and from `high` on may reach over an end. Others come in whole packs, the last of which
    // overlaps the one before it where that is possible.
    packs_ = Border::applies(axis);
    const std::int64_t lowest = HWY_MAX(inside, begin_), stop = packs_ ? end_ : outside;
    first_ = packs_ && inside > begin_ ? begin_ + (inside - begin_ + L_ - 1) / L_ * L_ : lowest;
    const std::int64_t last = first_ < outside ? first_ + (outside - first_) / L_ * L_ : first_;
    const bool overlaps = last < stop && stop == outside && stop - L_ >= lowest;
    rest_ = overlaps ? stop : last;
    high_ = HWY_MIN(rest_, end_);
    const LineTaps<Stride, C, T> taps(carry_, pass_, nullptr);
    if (packs_ && begin_ < first_) low_border_.find(taps, pass_, begin_);
    if (packs_ && high_ < end_) high_border_.find(taps, pass_, high_);
  }

  /// Outputs [from, to), which begin and end either where the line does or a multiple of plane_piece from its begin.
  /// True if it met NaN, which only makers of short windows tell.
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    if constexpr (is_short) {
      const bool plain = pass_.axis->dilation == 1 && packs_;
      if constexpr (Stride < 3)
        if (plain && pass_.axis->size == 2) return make_short<2>(rows, from, to);
      if (plain && pass_.axis->size == 3 && (Stride < 3 || pass_.axis->stride == 3))
        return make_short<3>(rows, from, to);
      if constexpr (Stride == 1)
        if (plain && pass_.axis->size == 5) return make_short<5>(rows, from, to);
    }
    make(rows, from, to);
    return true;
  }

 private:
  static constexpr bool is_short = (packs_in_flight<C>() > 1 || C::is_winner) && C::inputs == 1 && C::has_neutral;

  /// Windows of `Size` cells. Those without NaN are simpler: a row is made anew if it turns out to have some.
  template <int Size>
  HWY_INLINE bool make_short(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    bool any = false;
    for (std::int64_t row = 0;; ++row) {
      row = make_short<Size>(Calm<C>::of(carry_), rows, row, from, to);
      if (HWY_LIKELY(row >= rows.count)) return any;
      any = true;
      if constexpr (Calm<C>::differs) {
        const Rows<T, A> again{rows.src + row * rows.src_row, rows.dst + row * rows.dst_row};
        make(again, from, to);
      }
    }
  }
  /// Rows from `row` on, up to and with the first that has NaN, and says which that was.
  template <int Size, class Q>
  HWY_NOINLINE std::int64_t make_short(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                       std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Rows<T, A> all = rows;
    const std::int64_t L = L_, first = HWY_MAX(from, first_), whole = HWY_MIN(rest_, to), low = pass_.axis->low;
    const std::int64_t fold = pass_.fold, fold_step = pass_.fold_step, high = HWY_MAX(high_, first);
    const std::int64_t scale = pass_.id_scale, fold_scale = pass_.fold_id_scale, plane = pass_.dst_plane;
    const bool below = from < first_, above = high < to;
    const T* line = all.src + row * all.src_row;
    A* dst = all.dst + row * all.dst_row;
    Watch<Q> watch;
    // A window of every row that is folded, joined.
    const auto folded = [&](const T* p, const auto& window, std::int64_t o) CENOTE_INLINED {
      auto state = window(p, 0);
      for (std::int64_t r = 1; r < fold; ++r) state = carry.combine(state, window(p + r * fold_step, r * fold_scale));
      carry.store_state(state, dst + (o - from), plane);
    };
    const auto at_border = [&](const Border& known, std::int64_t o) CENOTE_INLINED {
      if constexpr (Stride == 3) {
        // Cells of such windows are fetched one by one, or copied.
        border(line, o, HWY_MIN(o + L, to), known, dst + (o - from));
        if constexpr (Q::is_calm) watch.add(load(dst + (o - from)), load(dst + (o - from)));
        return;
      }
      const auto window = [&](const T* p, std::int64_t id) CENOTE_INLINED {
        return join_taps<Stride, Size>(carry, [&](int j) CENOTE_INLINED {
          const auto cells = known.tap(carry, p, j, id + j * scale);
          if constexpr (Q::is_calm) watch.add(cells_of(cells), cells_of(cells));
          return cells;
        });
      };
      folded(line + known.place(), window, o);
    };
    const auto inside = [&](std::int64_t o) CENOTE_INLINED {
      const auto window = [&](const T* p, std::int64_t id) CENOTE_INLINED {
        Pack<A> cells[Size];
        if constexpr (Stride == 1) {
          each<Size>([&](int j) CENOTE_INLINED { cells[j] = j % (Size - 1) == 0 ? kept(load(p + j)) : load(p + j); });
          if constexpr (Q::is_calm) watch.add(cells[0], cells[Size - 1]);
        } else if constexpr (Stride == 3) {
          load_woven<3>(p, cells);
          if constexpr (Q::is_calm) watch.add(cells[0], cells[1]), watch.add(cells[2], cells[2]);
        } else {
          each<(Size + 1) / 2>([&](int j) CENOTE_INLINED {
            const auto one = kept(load(p + 2 * j)), two = kept(load(p + 2 * j + L));
            if constexpr (Q::is_calm)
              if (j == 0 || 2 * j + 2 >= Size) watch.add(one, two);
            cells[2 * j].v = hn::ConcatEven(Tag<A>(), two.v, one.v);
            if (2 * j + 1 < Size) cells[2 * j + 1].v = hn::ConcatOdd(Tag<A>(), two.v, one.v);
          });
        }
        return join_taps<Stride, Size>(carry,
                                       [&](int j) CENOTE_INLINED { return carry.lift(cells[j], id + j * scale); });
      };
      folded(line + o * Stride - low, window, o);
    };
    for (; row < all.count; ++row, line += all.src_row, dst += all.dst_row) {
      watch = {};
      if (below) {
        std::int64_t o = from;
        if (o == begin_) at_border(low_border_, o), o += L;
        if (HWY_UNLIKELY(o < HWY_MIN(first_, to))) {
          border(line, o, HWY_MIN(first_, to), low_border_, dst + (o - from));
          if constexpr (Q::is_calm) watch.doubt();
        }
      }
      std::int64_t o = first;
      for (; o + L <= whole; o += L) inside(o);
      if (o < whole) inside(whole - L);
      if (above) {
        o = high;
        if (o == high_) at_border(high_border_, o), o += L;
        if (HWY_UNLIKELY(o < to)) {
          border(line, o, to, high_border_, dst + (o - from));
          if constexpr (Q::is_calm) watch.doubt();
        }
      }
      if constexpr (Q::is_winner) renumber(pass_, from, to, 1, dst);
      if (HWY_UNLIKELY(watch.any())) break;
    }
    return row;
  }
  HWY_NOINLINE void make(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    constexpr int U = Stride < 3 ? packs_in_flight<C>() : 1;
    const std::int64_t L = L_, first = HWY_MAX(from, first_), whole = HWY_MIN(rest_, to), high = HWY_MAX(high_, first);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const T* line = rows.src + row * rows.src_row;
      A* dst = rows.dst + row * rows.dst_row;
      if (from < first_) border(line, from, HWY_MIN(first_, to), low_border_, dst);
      std::int64_t o = first;
      const LineTaps<Stride, C, T> taps(carry_, pass_, line);
      if constexpr (U > 1)
        for (; o + U * L <= whole; o += U * L) whole_packs<Stride, U>(carry_, pass_, taps, o, dst + (o - from));
      for (; o < whole; o += L) {
        const std::int64_t at = HWY_MIN(o, whole - L);
        whole_packs<Stride, 1>(carry_, pass_, taps, at, dst + (at - from));
      }
      if (high < to) border(line, high, to, high_border_, dst + (high - from));
      if constexpr (C::is_winner)
        if (packs_) renumber(pass_, from, to, 1, dst);
    }
  }

  /// Outputs from `from` up to `to`, whose windows may reach over an end.
  HWY_NOINLINE void border(const T* line, std::int64_t from, std::int64_t to, const Border& known, A* dst) const {
    const LineTaps<Stride, C, T> taps(carry_, pass_, line);
    if (!packs_) {
      for (std::int64_t o = from; o < to; ++o)
        single_output<false>(carry_, pass_, *pass_.axis, line, o, dst + (o - from));
      return;
    }
    std::int64_t o = from;
    if (from == (&known == &low_border_ ? begin_ : high_)) {
      known.make(carry_, pass_, taps, dst);
      o += L_;
    }
    for (; o < to; o += L_) {
      Border other;
      other.find(taps, pass_, o);
      other.make(carry_, pass_, taps, dst + (o - from));
    }
  }

  const C& carry_;
  const Pass& pass_;
  const std::int64_t L_, begin_, end_;
  std::int64_t first_, rest_, high_;
  bool packs_;
  Border low_border_, high_border_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
