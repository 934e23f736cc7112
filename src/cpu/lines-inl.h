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

/// One output over several neighbouring cells: lanes run along the cells and are folded at the end. Reducers that pick
/// would lose the order of equal zeros, so a zero is looked up again.
template <class R, class T>
HWY_INLINE auto fold_across(const Carry<R, Lane<T>>& carry, const T* cells, std::int64_t count) {
  using A = Lane<T>;
  using State = typename Carry<R, A>::State;
  const std::int64_t L = lanes<A>(), packs = count / L, rest = count - packs * L;
  State all[1];
  const auto pack = [&](std::int64_t j, int) CENOTE_INLINED {
    if (HWY_LIKELY(j < packs)) return carry.lift(load(cells + j * L), 0);
    const Cut<1, T> cut(0, rest);
    return choose(cut.inside, carry.lift(load_between(cells + j * L, cut.low), 0), carry.identity());
  };
  fold<1>(carry, packs + (rest > 0), pack, all);
  State state = across<static_cast<int>(hn::MaxLanes(Tag<A>())) / 2>(carry, all[0]);
  if constexpr (R::picks && std::is_floating_point_v<A>) {
    if (hn::GetLane(state.part[0].v) == A{0}) {
      std::int64_t j = 0;
      while (hn::GetLane(load_every(cells + j).v) != A{0}) ++j;
      state.part[0] = load_every(cells + j);
    }
  }
  return state;
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

  HWY_INLINE const T* line() const { return line_; }
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

  HWY_INLINE BorderPack(const LineTaps<Stride, C, T>& taps, const Pass& pass, std::int64_t o, bool needed)
      : place_(taps.start(o)) {
    if (needed) find(taps, pass);
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
  HWY_NOINLINE void find(const LineTaps<Stride, C, T>& taps, const Pass& pass) {
    for (std::int64_t j = 0; j < pass.axis->size; ++j) cuts_[j] = taps.cut(j, place_);
  }
  std::int64_t place_;
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
    for (std::int64_t c = 0; c < unit; ++c) ids[c] = HWY_MAX(ids[c] - tap, I{0});
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

/// Lines whose windows are shifted copies of each other.
template <int Stride, class C, class T>
HWY_INLINE void regular_lines(const C& carry, const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  constexpr int U = packs_in_flight<C>();
  const Axis& axis = *pass.axis;
  auto [inside, outside] = axis.interior();
  // A stride of 2 reads in pairs: the last interior output may have no pair within the line.
  const std::int64_t reach =
      C::inputs == 1 && axis.dilation == 1 ? (axis.size + 1) / 2 * 2 : (axis.size - 1) * axis.dilation + 2;
  if (Stride == 2 && outside > inside && (outside - 1) * 2 - axis.low + reach > axis.n) --outside;
  const std::int64_t L = lanes<A>(), begin = pass.begin, end = pass.end;
  outside = HWY_MIN(outside, end);
  if (inside >= outside) inside = outside = end;
  const auto taps_of = [&](std::int64_t row) CENOTE_INLINED {
    return LineTaps<Stride, C, T>(carry, pass, static_cast<const T*>(pass.src) + row * pass.src_row - pass.origin);
  };
  // Outputs [begin, first) and from `high` on may reach over an end. Others come in whole packs, the last of which
  // overlaps the one before it where that is possible.
  using Border = BorderPack<Stride, C, T>;
  const bool packs = Border::applies(axis);
  const std::int64_t lowest = HWY_MAX(inside, begin), stop = packs ? end : outside;
  const std::int64_t first = packs && inside > begin ? begin + (inside - begin + L - 1) / L * L : lowest;
  const std::int64_t last = first < outside ? first + (outside - first) / L * L : first;
  const bool overlaps = last < stop && stop == outside && stop - L >= lowest;
  const std::int64_t rest = overlaps ? stop : last, high = HWY_MIN(rest, end);
  const Border low_border(taps_of(0), pass, begin, packs && begin < first);
  const Border high_border(taps_of(0), pass, high, packs && high < end);
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const auto taps = taps_of(row);
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row;
    // Outputs from `from` up to `to`, whose windows may reach over an end.
    const auto border = [&](std::int64_t from, std::int64_t to, const Border& known) HWY_ATTR {
      if (packs) {
        known.make(carry, pass, taps, dst + (from - begin));
        for (std::int64_t o = from + L; o < to; o += L)
          Border(taps, pass, o, true).make(carry, pass, taps, dst + (o - begin));
      } else {
        for (std::int64_t o = from; o < to; ++o)
          single_output<false>(carry, pass, axis, taps.line(), o, dst + (o - begin));
      }
    };
    if (begin < first) border(begin, HWY_MIN(first, end), low_border);
    std::int64_t o = first;
    for (; o + U * L <= outside; o += U * L) whole_packs<Stride, U>(carry, pass, taps, o, dst + (o - begin));
    for (; o < rest; o += L) {
      const std::int64_t at = HWY_MIN(o, rest - L);
      whole_packs<Stride, 1>(carry, pass, taps, at, dst + (at - begin));
    }
    if (high < end) border(high, end, high_border);
    if constexpr (C::is_winner)
      if (packs) renumber(pass, begin, end, 1, dst);
  }
}

/// Part of a pack of cells `at` so many cells from the line's begin: those outside change nothing.
template <class C, class T>
HWY_NOINLINE auto part_of_pack(const T* line, std::int64_t at, std::int64_t n) {
  using A = typename LaneOf<typename C::N>::type;
  const std::int64_t L = lanes<A>();
  const Cut<1, T> cut(HWY_MIN(HWY_MAX(-at, 0), L), HWY_MIN(HWY_MAX(n - at, 0), L));
  return select(cut.inside, load_between(line + at, cut.low), broadcast<A>(C::template neutral<A>()));
}

/// Two or three cells, two apart: a line is split into its even and its odd cells, each read once, and a window's first
/// or last cell comes from the pack before or after.
template <int Size, class C, class T>
HWY_INLINE void paired_lines(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  using State = typename C::State;
  struct Cells {
    Pack<A> even, odd;
  };
  const C carry(pass);
  // Copies, since a stored pack might alias the originals.
  const std::int64_t L = lanes<A>(), n = pass.axis->n, low = pass.axis->low, begin = pass.begin, end = pass.end;
  const std::int64_t scale = pass.id_scale, fold = pass.fold, fold_step = pass.fold_step, plane = pass.dst_plane;
  const std::int64_t fold_scale = pass.fold_id_scale, shift = low >> 1;
  const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
  const auto read_pack = [=](const T* line, std::int64_t at) CENOTE_INLINED {
    if (at >= 0 && at + L <= n) return load(line + at);
    return at >= n || at + L <= 0 ? nothing : part_of_pack<C>(line, at, n);
  };
  const auto split = [](Pack<A> first, Pack<A> second) CENOTE_INLINED {
    return Cells{{hn::ConcatEven(Tag<A>(), second.v, first.v)}, {hn::ConcatOdd(Tag<A>(), second.v, first.v)}};
  };
  // Pairs of cells for outputs from o on; those from `inside` up to `outside` lie on the line.
  const auto whole = [=](const T* line, std::int64_t o) CENOTE_INLINED {
    const T* p = line + 2 * (o - shift);
    return split(load(p), load(p + L));
  };
  const auto part = [=](const T* line, std::int64_t o) CENOTE_INLINED {
    return split(read_pack(line, 2 * (o - shift)), read_pack(line, 2 * (o - shift) + L));
  };
  const std::int64_t inside = HWY_MAX(begin, shift), outside = HWY_MIN(end, n / 2 + shift - L + 1);
  constexpr int last = static_cast<int>(hn::MaxLanes(Tag<A>())) - 1;
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const T* line = static_cast<const T*>(pass.src) + row * pass.src_row - pass.origin;
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row - begin;
    std::int64_t o = begin;
    // Calls make(o, cells of o) for every pack. No function is called between whole ones: they stay in registers.
    const auto each_pack = [&](const auto& make) CENOTE_INLINED {
      while (o < end) {
        if (o < inside || o >= outside) {
          make(part);
          o += L;
        }
        for (; o >= inside && o < outside; o += L) make(whole);
      }
    };
    if (low & 1) {
      const std::int64_t first = 2 * (begin - shift) - 1;
      Pack<A> before = first >= 0 && first < n ? load_every(line + first) : nothing;
      each_pack([&](const auto& read) CENOTE_INLINED {
        const Cells now = read(line, o);
        State state = carry.combine(carry.lift(slide<last>(before, now.odd), 0), carry.lift(now.even, scale));
        if constexpr (Size == 3) state = carry.combine(state, carry.lift(now.odd, 2 * scale));
        carry.store_state(state, dst + o, plane);
        before = now.odd;
      });
    } else if constexpr (Size == 3) {
      // The next pack's first cell ends the last window of this one.
      each_pack([&](const auto& read) CENOTE_INLINED {
        const Cells now = read(line, o);
        const std::int64_t next = 2 * (o + L - shift);
        const Pack<A> after = next >= 0 && next < n ? load_every(line + next) : nothing;
        const State two = carry.combine(carry.lift(now.even, 0), carry.lift(now.odd, scale));
        carry.store_state(carry.combine(two, carry.lift(slide<1>(now.even, after), 2 * scale)), dst + o, plane);
      });
    } else {
      each_pack([&](const auto& read) CENOTE_INLINED {
        State sum;
        for (std::int64_t r = 0; r < fold; ++r) {
          const Cells now = read(line + r * fold_step, o);
          const State two =
              carry.combine(carry.lift(now.even, r * fold_scale), carry.lift(now.odd, r * fold_scale + scale));
          sum = r == 0 ? two : carry.combine(sum, two);
        }
        carry.store_state(sum, dst + o, plane);
      });
    }
    if constexpr (C::is_winner) renumber(pass, begin, end, 1, dst + begin);
  }
}

template <int Stride, class C, class T>
HWY_INLINE void lines_apart(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass);
  const Axis& axis = *pass.axis;
  const std::int64_t long_enough = axis.out < lanes<A>() ? least_across : 2 * lanes<A>();
  const bool across = Stride > 2 && !C::is_winner && C::inputs == 1 && axis.dilation == 1 && axis.size >= long_enough;
  if (!axis.irregular() && !across) return regular_lines<Stride, C, T>(carry, pass);
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const T* line = static_cast<const T*>(pass.src) + row * pass.src_row - pass.origin;
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row;
    for (std::int64_t o = pass.begin; o < pass.end; ++o)
      single_output<true>(carry, pass, axis, line, o, dst + (o - pass.begin));
  }
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
  const Axis& axis = *pass.axis;
  if constexpr (!C::is_winner && std::is_same_v<T, Lane<T>> && std::is_floating_point_v<T>)
    if ((axis.transposed || (axis.adaptive && axis.size < 2 * lanes<T>())) &&
        axis.n < std::numeric_limits<std::int32_t>::max())
      return scattered_lines<C, T>(pass);
  if (axis.stride == 1 && !axis.irregular()) return lines_apart<1, C, T>(pass);
  if constexpr (C::has_neutral && C::inputs == 1)
    if (axis.stride == 2 && axis.dilation == 1 && !axis.irregular() && (axis.size == 2 || axis.size == 3) &&
        (pass.fold == 1 || (axis.size == 2 && axis.low % 2 == 0)))
      return axis.size == 2 ? paired_lines<2, C, T>(pass) : paired_lines<3, C, T>(pass);
  if (axis.stride == 2 && !axis.irregular()) return lines_apart<2, C, T>(pass);
  return lines_apart<3, C, T>(pass);
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
