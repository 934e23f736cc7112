// Lines: the axis is contiguous, and lanes run along outputs.

#if defined(CENOTE_CPU_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_LINES_INL_H_
#undef CENOTE_CPU_LINES_INL_H_
#else
#define CENOTE_CPU_LINES_INL_H_
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
constexpr bool looks_up_zeros<Carry<R, A>> = R::picks&& std::is_floating_point_v<A>;

/// One output over several neighbouring cells: lanes are folded at the end. Reducers that pick would lose the order of
/// equal zeros, so a zero is looked up again.
template <class R, class T>
HWY_INLINE auto fold_across(const Carry<R, Lane<T>>& carry, const T* cells, std::int64_t count) {
  using A = Lane<T>;
  const std::int64_t packs = count / lanes<A>();
  const Cut<1, T> rest(0, count - packs * lanes<A>());
  auto state = across<static_cast<int>(hn::MaxLanes(Tag<A>())) / 2>(carry, fold_packs(carry, cells, packs, rest));
  if constexpr (looks_up_zeros<Carry<R, A>>) {
    if (hn::GetLane(state.part[0].v) == A{0}) {
      std::int64_t j = 0;
      while (hn::GetLane(load_every(cells + j).v) != A{0}) ++j;
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
  auto state = of_row(0);
  for (std::int64_t r = 1; r < pass.fold; ++r) state = carry.combine(state, of_row(r));
  carry.store_one(state, dst, pass.dst_plane);
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
  /// Taps 2i and 2i + 1 of windows two apart: the even and the odd elements of the same two loads.
  HWY_INLINE State pair(std::int64_t r, std::int64_t i, std::int64_t place, std::int64_t size) const {
    const T* p = line_ + r * pass_.fold_step + place + 2 * i;
    const auto low = load(p).v, high = load(p + lanes<A>()).v;
    const State even = carry_.lift(Pack<A>{hn::ConcatEven(Tag<A>(), high, low)}, id(r, 2 * i));
    if (2 * i + 1 == size) return even;
    return carry_.combine(even, carry_.lift(Pack<A>{hn::ConcatOdd(Tag<A>(), high, low)}, id(r, 2 * i + 1)));
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
    // In pairs where whole packs are: bits must not depend on where a line is cut.
    const auto pair = [&](std::int64_t r, std::int64_t i, int u) CENOTE_INLINED {
      return 2 * i + 1 == size ? tap(r, 2 * i, u) : carry.combine(tap(r, 2 * i, u), tap(r, 2 * i + 1, u));
    };
    if (Stride == 2 && C::inputs == 1 && pass.axis->dilation == 1)
      fold_rows<1>(carry, pass.fold, (size + 1) / 2, pair, state);
    else
      fold_rows<1>(carry, pass.fold, size, tap, state);
    carry.store_state(state[0], dst, pass.dst_plane);
  }

 private:
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
  if constexpr (Stride == 2 && C::inputs == 1) {
    const auto pair = [&](std::int64_t r, std::int64_t i, int u)
                          CENOTE_INLINED { return taps.pair(r, i, at(u), size); };
    if (pass.axis->dilation == 1)
      fold_rows<Packs>(carry, pass.fold, (size + 1) / 2, pair, state);
    else
      fold_rows<Packs>(carry, pass.fold, size, tap, state);
  } else {
    fold_rows<Packs>(carry, pass.fold, size, tap, state);
  }
  each<Packs>([&](int u) CENOTE_INLINED { carry.store_state(state[u], dst + u * L, pass.dst_plane); });
}

/// Where a maker writes values itself: those of its first output, or for streams those of output 0 of a line.
template <class T>
struct Values {
  T* dst = nullptr;
  double divisor = 0;
  bool divides = false, past_caches = false;
};
/// Sums of integers are never divided here.
template <class A>
HWY_INLINE Pack<A> quotient(Pack<A> sum, Pack<A> divisor) {
  if constexpr (std::is_floating_point_v<A>)
    return sum / divisor;
  else
    return sum;
}

/// Lines of the same shape, and where the outputs of each go. Some makers fold several rows into each line of outputs,
/// and keep the states of the last one for the next line, whose first row it is.
template <class T, class A>
struct Rows {
  const T* src;
  A* dst;
  std::int64_t count = 1, src_row = 0, dst_row = 0;
  std::int64_t fold = 1, fold_row = 0;
  A* last = nullptr;                  // where the states of the last row are kept, from the first output of all on
  bool shared = false;                // the states kept there are those of one more row, before src
  bool doubt = false;                 // some of them may be NaN
  std::int64_t id = 0, id_scale = 0;  // what the first row adds to its winners' numbers, and each further one
  A* spare = nullptr;                 // memory for the states of two outputs of several packs
  Values<T> values{};                 // instead of dst, whose steps it shares

  /// Line i by itself, of all its rows.
  HWY_INLINE Rows alone(std::int64_t i) const {
    Rows one = *this;
    one.src += i * src_row - shared * fold_row;
    one.dst += i * dst_row;
    if (values.dst) one.values.dst += i * dst_row;
    one.count = 1;
    one.fold += shared;
    one.id -= shared * id_scale;
    one.shared = false;
    return one;
  }
};

/// All lines, by a maker that says at which line it met NaN: those without are simpler, and the others are made anew.
/// True if there are some.
template <class C, class Line, class T, class A>
HWY_INLINE bool make_rows(const Line& line, const C& carry, const Rows<T, A>& rows, std::int64_t from,
                          std::int64_t to) {
  bool any = false, doubt = rows.doubt;
  for (std::int64_t row = 0;; ++row) {
    if (HWY_LIKELY(!doubt)) row = line.make(Calm<C>::of(carry), rows, row, from, to);
    if (HWY_LIKELY(row >= rows.count)) return any;
    if constexpr (Calm<C>::differs) {
      const bool met = line.make(carry, rows.alone(row), 0, from, to) == 0;
      doubt = met && rows.last;
      any |= met;
    }
  }
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
    // A stride of 2 reads in pairs: the last interior output may have no pair within the line.
    const std::int64_t reach =
        C::inputs == 1 && axis.dilation == 1 ? (axis.size + 1) / 2 * 2 : (axis.size - 1) * axis.dilation + 2;
    if (Stride == 2 && outside > inside && (outside - 1) * 2 - axis.low + reach > axis.n) --outside;
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
      if (plain && pass_.axis->size == 2) return make_short<2>(rows, from, to);
      if (plain && pass_.axis->size == 3) return make_short<3>(rows, from, to);
      if constexpr (Stride == 1)
        if (plain && pass_.axis->size == 5) return make_short<5>(rows, from, to);
    }
    make(rows, from, to);
    return true;
  }

 private:
  static constexpr bool is_short =
      Stride < 3 && (packs_in_flight<C>() > 1 || C::is_winner) && C::inputs == 1 && C::has_neutral;

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
        make_short<Size>(carry_, again, 0, from, to);
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
    NanWatch<A> watch;
    // A window of every row that is folded, joined.
    const auto folded = [&](const T* p, const auto& window, std::int64_t o) CENOTE_INLINED {
      auto state = window(p, 0);
      for (std::int64_t r = 1; r < fold; ++r) state = carry.combine(state, window(p + r * fold_step, r * fold_scale));
      carry.store_state(state, dst + (o - from), plane);
    };
    const auto at_border = [&](const Border& known, std::int64_t o) CENOTE_INLINED {
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
    constexpr int U = packs_in_flight<C>();
    const std::int64_t L = L_, first = HWY_MAX(from, first_), whole = HWY_MIN(rest_, to), high = HWY_MAX(high_, first);
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const T* line = rows.src + row * rows.src_row;
      A* dst = rows.dst + row * rows.dst_row;
      if (from < first_) border(line, from, HWY_MIN(first_, to), low_border_, dst);
      std::int64_t o = first;
      const LineTaps<Stride, C, T> taps(carry_, pass_, line);
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
    if (pass_.axis->low == 1) return make_from<1, false>(carry, rows, row, from, to);
    if constexpr (C::is_winner)
      if (!rows.last && to - from >= L_ && 2 * to <= pass_.axis->n)
        return make_from<0, true>(carry, rows, row, from, to);
    return make_from<0, false>(carry, rows, row, from, to);
  }

 private:
  static HWY_INLINE std::int64_t last_pack(const Pass& pass) {
    return pass.begin + (pass.end - pass.begin - 1) / lanes<A>() * lanes<A>();
  }

  /// `Together`: windows share no row and lie inside, so that rows are folded in registers.
  template <int Low, bool Together, class Q>
  HWY_INLINE std::int64_t make_from(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                    std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Rows<T, A> all = rows;
    const std::int64_t L = L_, n = pass_.axis->n, scale = pass_.id_scale, plane = pass_.dst_plane;
    const std::int64_t cut = HWY_MIN(cut_, to), begin = pass_.begin;
    const bool three = pass_.axis->size == 3;
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    constexpr bool follows = C::inputs == 2;
    NanWatch<A> watch;
    const auto split = [&](Pack<A> first, Pack<A> second) CENOTE_INLINED {
      return Cells{{hn::ConcatEven(Tag<A>(), second.v, first.v)}, {hn::ConcatOdd(Tag<A>(), second.v, first.v)}};
    };
    const auto inside = [&](const T* p, const T*) CENOTE_INLINED { return split(kept(load(p)), kept(load(p + L))); };
    // What stands for cells outside. A follower has no number that yields to all cells and their tangents, but the cell
    // at the end once more changes nothing: every window that reaches over it holds it.
    const auto outside = [&](const T* nearest) CENOTE_INLINED { return follows ? load_every(nearest) : nothing; };
    const auto at_end = [&](const T* p, const T* nearest) CENOTE_INLINED {
      const auto cells = [&](int i) CENOTE_INLINED {
        return select(cut_cells_[i].inside, load_between(p + i * L, cut_cells_[i].low), outside(nearest));
      };
      return split(cells(0), cells(1));
    };
    Pack<A> left = nothing, left_tangents = nothing;  // those of the odd cells of the pack before
    // Calls use(cells) with the cells of the windows that begin with output o, or with their tangents.
    const auto with_taps = [&](const T* line, std::int64_t o, Pack<A>& before, const auto& read,
                               const auto& use) CENOTE_INLINED {
      const Cells now = read(line + 2 * o, line + n - 1);
      if constexpr (Calm<C>::differs)
        if (!follows || &before == &left) watch.add(now.even, now.odd);
      if constexpr (Low == 1) {
        const Pack<A> first = slide<static_cast<int>(hn::MaxLanes(Tag<A>())) - 1>(before, now.odd);
        before = now.odd;
        return use(first, now.even, now.odd);
      } else {
        if (!three) return use(now.even, now.odd, nothing);
        const Pack<A> after = 2 * (o + L) < n ? load_every(line + 2 * (o + L)) : outside(line + n - 1);
        if constexpr (Calm<C>::differs)
          if (!follows || &before == &left) watch.add(after, after);
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
                             return three ? carry.combine(state, pair.lift(c, dc)) : state;
                           });
        } else {
          State state = carry.combine(carry.lift(a, 0), carry.lift(b, scale));
          if (three) state = carry.combine(state, carry.lift(c, 2 * scale));
          return Low == 1 && o == 0 ? carry.without_first(state, scale) : state;
        }
      });
    };
    for (; row < all.count; ++row) {
      A* const dst = all.dst + row * all.dst_row;
      watch = {};
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
        const auto make_pack = [&](std::int64_t o, const auto& read) CENOTE_INLINED {
          const State cells = window(line, o, read);
          State state = carry.behind(cells, id);
          if (before) state = carry.combine(carry.load_state(before + (o - from), plane, 0), state);
          carry.store_state(state, dst + (o - from), plane);
          if (after) carry.store_state(cells, after + (o - from), plane);
        };
        if constexpr (Low == 1) {
          const auto first = [&](const T* p)
                                 CENOTE_INLINED { return from > 0 ? load_every(p + 2 * from - 1) : outside(p); };
          left = first(line);
          if constexpr (follows) left_tangents = first(line + carry.src_plane);
          if constexpr (Calm<C>::differs) watch.add(left, left);
        }
        std::int64_t o = from;
        for (; o < cut; o += L) make_pack(o, inside);
        if (o < to) make_pack(o, at_end);
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

/// One output after the other: bins, and windows that are long for the outputs there are. Windows of one length that
/// lie in lines are folded a pack of outputs at a time.
template <class C, class T>
class SingleLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
  HWY_INLINE SingleLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass) {}
  HWY_NOINLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    const std::int64_t width = to - from, all = rows.count * width;
    std::int64_t done = 0;
    if constexpr (packs_in_flight<C>() > 1 && C::inputs == 1)
      if (rows.count == 1 || rows.dst_row == width) done = make_packs(rows, from, to);
    for (; done < all; ++done) {
      const std::int64_t row = done / width, o = from + done % width;
      single_output<true>(carry_, pass_, *pass_.axis, rows.src + row * rows.src_row, o,
                          rows.dst + row * rows.dst_row + (o - from));
    }
    return true;
  }

 private:
  /// As many outputs as make whole packs; says how many those are. None where windows differ or may reach over an end.
  HWY_INLINE std::int64_t make_packs(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    const Axis axis = *pass_.axis;
    const auto [inside, outside] = axis.interior();
    if (axis.irregular() || from < inside || to > outside || axis.size < least_across || pass_.fold > 1) return 0;
    constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
    const std::int64_t width = to - from, all = rows.count * width / L * L, packs = axis.size / L;
    const Cut<1, T> rest(0, axis.size - packs * L);
    const T* line = rows.src + from * axis.stride - axis.low;
    std::int64_t o = 0;
    HWY_ALIGN A partial[L * L];
    for (std::int64_t i = 0; i < all; i += L) {
      const T* cells[L];
      for (int g = 0; g < L; ++g) {
        cells[g] = line + o * axis.stride;
        store(fold_packs(carry_, cells[g], packs, rest).part[0], partial + g * L);
        if (++o == width) o = 0, line += rows.src_row;
      }
      const Pack<A> sums = across_many<L>(carry_, partial);
      store(sums, rows.dst + i);
      if constexpr (looks_up_zeros<C>) {
        if (HWY_LIKELY(hn::AllFalse(Tag<A>(), (sums == number<Pack<A>>(0)).m))) continue;
        for (int g = 0; g < L; ++g) carry_.store_one(fold_across(carry_, cells[g], axis.size), rows.dst + i + g, 0);
      }
    }
    return all;
  }

  const C& carry_;
  const Pass& pass_;
};

/// Calls use(maker of lines) with the one that suits a pass.
template <class C, class T, class Use>
HWY_INLINE void with_line(const C& carry, const Pass& pass, const Use& use) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& axis = *pass.axis;
  const bool regular = !axis.irregular();
  if (regular && axis.stride == 1) return use(RegularLine<1, C, T>(carry, pass));
  if constexpr (C::has_neutral && C::inputs == 1 && !C::is_winner && loads_masked<T>)
    if (regular && pass.fold == 1 && (axis.size == 3 || axis.low == 1) && PairedLine<C, T>::applies(pass))
      return use(PairedLine<C, T>(carry, pass));
  if (regular && axis.stride == 2) return use(RegularLine<2, C, T>(carry, pass));
  const std::int64_t long_enough = axis.out < lanes<A>() ? least_across : 2 * lanes<A>();
  const bool across = !C::is_winner && C::inputs == 1 && axis.dilation == 1 && axis.size >= long_enough;
  if (regular && !across) return use(RegularLine<3, C, T>(carry, pass));
  use(SingleLine<C, T>(carry, pass));
}

/// Outputs of an irregular axis that are worked on together.
constexpr std::int64_t scattered_outputs = 256;

/// Lines whose windows are no shifted copies of each other: every lane gathers the cells of its own window.
template <class C, class T>
HWY_INLINE void scattered_lines(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  using I = IndexLane<A>;
  const C carry(pass);
  const Axis axis = *pass.axis;
  const std::int64_t L = lanes<A>(), step = axis.step();
  I first[scattered_outputs + 64 / sizeof(A)], count[scattered_outputs + 64 / sizeof(A)];
  for (std::int64_t begin = pass.begin; begin < pass.end; begin += scattered_outputs) {
    const std::int64_t outputs = HWY_MIN(scattered_outputs, pass.end - begin);
    for (std::int64_t i = 0; i < outputs; ++i) {
      const Axis::Span span = axis.span(begin + i);
      first[i] = static_cast<I>(span.count > 0 ? span.first - pass.origin : 0);
      count[i] = static_cast<I>(span.count);
    }
    std::fill(first + outputs, first + outputs + L, I{0});
    std::fill(count + outputs, count + outputs + L, I{0});
    for (std::int64_t i = 0; i < outputs; i += L) {
      const I most = *std::max_element(count + i, count + i + L);
      const Pack<I> starts = load(first + i), counts = load(count + i);
      for (std::int64_t row = 0; row < pass.rows; ++row) {
        const T* line = static_cast<const T*>(pass.src) + row * pass.src_row;
        A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row + (begin + i - pass.begin);
        typename C::State state[1] = {carry.identity()};
        const auto tap = [&](std::int64_t r, std::int64_t j, int) CENOTE_INLINED {
          const Pack<I> number = broadcast<I>(static_cast<I>(j));
          const auto outside = hn::RebindMask(Tag<A>(), (counts <= number).m);
          const Pack<I> at{
              hn::IfThenElseZero(hn::Gt(counts.v, number.v), (starts + broadcast<I>(static_cast<I>(j * step))).v)};
          const auto cells = carry.cell(line + r * pass.fold_step, 0, [&](const T* p) CENOTE_INLINED {
            return Pack<A>{hn::GatherIndex(Tag<A>(), p, at.v)};
          });
          return choose(Flags<A>{outside}, carry.identity(), cells);
        };
        if (most > 0) fold_rows<1>(carry, pass.fold, most, tap, state);
        if (HWY_LIKELY(i + L <= outputs)) {
          carry.store_state(state[0], dst, pass.dst_plane);
        } else {
          // Rows may touch: the next one's first outputs are made already.
          HWY_ALIGN A part[C::State::count * (64 / sizeof(A))];
          carry.store_state(state[0], part, L);
          for (int k = 0; k < C::State::count; ++k)
            std::copy(part + k * L, part + k * L + (outputs - i), dst + k * pass.dst_plane);
        }
      }
    }
  }
}

template <class C, class T>
void lines(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& axis = *pass.axis;
  if constexpr (!C::is_winner && std::is_same_v<T, A> && std::is_floating_point_v<T>)
    if ((axis.transposed || (axis.adaptive && axis.size < 2 * lanes<T>())) &&
        axis.n < std::numeric_limits<std::int32_t>::max()) {
      if (pass.nan) *pass.nan = true;
      return scattered_lines<C, T>(pass);
    }
  const C carry(pass);
  with_line<C, T>(carry, pass, [&](const auto& make) HWY_ATTR {
    const bool any = make(Rows<T, A>{static_cast<const T*>(pass.src) - pass.origin, static_cast<A*>(pass.dst),
                                     pass.rows, pass.src_row, pass.dst_row},
                          pass.begin, pass.end);
    if (pass.nan && any) *pass.nan = true;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
