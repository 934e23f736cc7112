// Planes of short windows, rows first: those of a window are joined lane by lane, and then what is left of them along
// the line.

#if defined(CENOTE_CPU_ROWS_FIRST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_FIRST_INL_H_
#undef CENOTE_CPU_ROWS_FIRST_INL_H_
#else
#define CENOTE_CPU_ROWS_FIRST_INL_H_
#endif

#include "cpu/apart_line-inl.h"
#include "cpu/outlet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Remembers whether any lane was NaN or a negative zero: without those the order of cells does not matter.
template <class T>
class OrderWatch {
  using Bits = hwy::MakeSigned<T>;

 public:
  HWY_INLINE OrderWatch() : least_(hn::Zero(Tag<Bits>())) {}
  HWY_INLINE void add(Pack<T> a, Pack<T> b) {
    nan_.add(a, b);
    // As a whole number, a negative zero is the least of all.
    const Tag<Bits> tag;
    least_ = hn::Min(least_, hn::Min(hn::BitCast(tag, a.v), hn::BitCast(tag, b.v)));
  }
  HWY_INLINE bool any() const {
    const auto lowest = hn::Set(Tag<Bits>(), std::numeric_limits<Bits>::min());
    return nan_.any() || !hn::AllFalse(Tag<Bits>(), hn::Eq(least_, lowest));
  }

 private:
  NanWatch<T> nan_;
  hn::Vec<Tag<Bits>> least_;
};
/// Where nothing depends on the order of cells.
struct NoWatch {
  template <class N>
  HWY_INLINE void add(N, N) {}
  HWY_INLINE bool any() const { return false; }
};
template <class C>
HWY_INLINE auto watch_order() {
  using A = typename LaneOf<typename C::N>::type;
  if constexpr (!Calm<C>::differs)
    return NoWatch{};
  else if constexpr (std::is_floating_point_v<A>)
    return OrderWatch<A>{};
  else
    return Watch<C>{};
}

/// The rows of a window are joined in the order of memory. What they leave of several lines of windows lies in L1, and
/// without gaps where windows share no cells, so that windows along lines are one line of them, wherever rows end.
/// Where the order of cells matters, those lines are made once more, windows along rows first.
template <class C, class T>
class RowsFirst {
  using A = typename LaneOf<typename C::N>::type;
  static constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
  static constexpr std::int64_t most_joint_rows = 4;
  // Along lines, behind the first.
  static constexpr int most_taps = static_cast<int>(most_rows_first) - 1;

 public:
  RowsFirst(const C& carry, const Planes& call)
      : carry_(carry),
        across_(*call.across),
        line_(*call.line.axis),
        unbroken_(cpu::lies_unbroken(line_)),
        src_row_(call.line.src_row),
        // Windows hold one row of a plane that has no other.
        row_(across_.n > 1 ? src_row_ * across_.dilation : 0),
        width_(cpu::rows_first_width(line_)),
        real_(HWY_MIN(line_.n, width_ - line_.low)),
        rest_(0, real_ % L),
        inside_{LaneRange<A>(0, real_ % L).m},
        lines_(call.end - call.begin),
        last_(across_.n - ((L - 1) / src_row_ + 1)),
        first_whole_(across_.interior().first),
        last_whole_(across_.interior().second),
        reach_((across_.size - 1) * across_.dilation + 1),
        cells_(static_cast<A*>(call.ring) + (line_.low + L - 1) / L * L - line_.low),
        call_(call) {
    // Padding stays as it is: behind the cells of a row only nothing is written.
    std::fill_n(static_cast<A*>(call.ring), cpu::rows_first_cells(line_), C::template neutral<A>());
  }

  void run() {
    Outlet<A> outlet(call_, nullptr);
    const bool apart = call_.out_row != line_.out, together = !apart && call_.out_plane == lines_ * line_.out;
    const std::int64_t most = apart ? 1 : cpu::rows_first_lines(line_), all = call_.count * lines_;
    std::int64_t held = 0;
    Cursor at{static_cast<const T*>(call_.line.src), call_.begin, call_.count};
    for (std::int64_t i = 0, count; i < all; i += count) {
      count = HWY_MIN(most, all - i);
      if (!together) count = HWY_MIN(count, call_.end - at.o);
      const std::int64_t row = at.o - call_.begin, plane = call_.count - at.planes;
      held = outlet.go_on(
          held, static_cast<char*>(call_.out.dst) + (plane * call_.out_plane + row * call_.out_row) * call_.out_size);
      A* const states = outlet.states() + held;
      Cursor next = at;
      if (HWY_UNLIKELY(make(next, count, states))) make_in_order(at, count, states);
      at = next;
      held = outlet.pass_on(held + count * line_.out);
    }
    outlet.go_on(held, nullptr);
  }

 private:
  /// A line of windows: o of a plane, behind which there are `planes` with it.
  struct Cursor {
    const T* plane;
    std::int64_t o, planes;
  };
  HWY_INLINE void advance(Cursor& at, std::int64_t lines) const {
    at.o += lines;
    if (at.o < call_.end) return;
    at.o = call_.begin;
    at.plane += call_.step;
    --at.planes;
  }
  /// The rows of its windows, and lines whose rows lie alike. Behind the last rows of all there may be less than a
  /// pack.
  struct Span {
    const T* cells;
    std::int64_t count, lines;
    bool readable;
  };
  HWY_INLINE Span rows_of(const Cursor& at, std::int64_t most) const {
    const bool followed = at.planes > 1 && call_.step >= L;
    if (HWY_LIKELY(at.o >= first_whole_ && at.o < last_whole_)) {
      const std::int64_t first = at.o * across_.stride - across_.low, end = first + reach_;
      const std::int64_t lines = HWY_MIN(most, HWY_MIN(call_.end, last_whole_) - at.o);
      const bool all = followed || end + (lines - 1) * across_.stride <= last_;
      return {at.plane + first * src_row_, across_.size, all ? lines : 1, followed || end <= last_};
    }
    const Axis::Span rows = across_.span(at.o);
    if (rows.count == 0) return {nullptr, 0, 1, false};
    const std::int64_t end = rows.first + (rows.count - 1) * across_.dilation + 1;
    return {at.plane + rows.first * src_row_, rows.count, 1, followed || end <= last_};
  }

  /// `count` lines of outputs. True if the order of cells may have mattered.
  HWY_NOINLINE bool make(Cursor& at, std::int64_t count, A* states) const {
    const auto calm = Calm<C>::of(carry_);
    auto watch = watch_order<C>();
    // Where only the processor asks memory ahead, many rows are better read one after the other.
    const bool near = src_row_ < cpu::least_rows_apart / std::int64_t{sizeof(T)} &&
                      (call_.line.ahead > 0 || across_.size <= most_joint_rows);
    A* to = cells_;
    for (std::int64_t i = 0; i < count;) {
      const Span rows = rows_of(at, near ? count - i : 1);
      if (HWY_UNLIKELY(rows.count == 0))
        nothing(to);
      else if (near || rows.count == 1)
        rows.count == 3   ? join<3>(calm, watch, rows, to)
        : rows.count == 2 ? join<2>(calm, watch, rows, to)
                          : join<0>(calm, watch, rows, to);
      else
        for (std::int64_t r = 0; r < rows.count; ++r)
          r == 0 ? join<1>(calm, watch, row_of(rows, r), to) : add(calm, watch, row_of(rows, r), to);
      i += rows.lines;
      to += rows.lines * width_;
      advance(at, rows.lines);
    }
    along(calm, count, states);
    return watch.any();
  }

  /// The same with windows along rows first.
  HWY_NOINLINE void make_in_order(const Cursor& first, std::int64_t count, A* states) const {
    NoWatch none;
    A* const more = static_cast<A*>(call_.ring) + cpu::rows_first_cells(line_);
    for (std::int64_t r = 0; r < across_.size; ++r) {
      Cursor at = first;
      A* to = cells_;
      for (std::int64_t i = 0; i < count; ++i, to += width_, advance(at, 1)) {
        const Span rows = rows_of(at, 1);
        r < rows.count ? join<1>(carry_, none, row_of(rows, r), to) : nothing(to);
      }
      along(carry_, count, r == 0 ? states : more);
      for (std::int64_t i = 0; r > 0 && i < count * line_.out; i += L)
        store(carry_.combine({{load(states + i)}}, {{load(more + i)}}).part[0], states + i);
    }
  }

  HWY_INLINE void nothing(A* to) const { std::fill_n(to, width_, C::template neutral<A>()); }
  HWY_INLINE Span row_of(const Span& rows, std::int64_t r) const {
    return {rows.cells + r * row_, 1, 1, rows.readable};
  }

  /// Rows of cells, joined; Count of them if that is not 0.
  template <int Count, class Q, class W>
  HWY_INLINE void join(const Q& like, W& watched, const Span& span, A* to) const {
    const Q carry = like;
    W watch = watched;
    const std::int64_t row = row_, rows = Count > 0 ? Count : span.count, real = real_, whole = real / L * L;
    const std::int64_t step = across_.n > 1 ? across_.stride * src_row_ : 0, width = width_;
    // Of the rows that no window before this one holds: some way ahead in each, or the next in the order of memory.
    const std::int64_t ahead = call_.line.ahead, fresh = HWY_MIN(rows, across_.stride);
    const std::int64_t beyond = ahead > 0 ? (rows - fresh) * row + ahead : (rows - 1) * row;
    const std::int64_t asked_row = ahead > 0 ? row : L, asked_step = ahead > 0 ? 1 : fresh;
    const T* from = span.cells;
    A* dst = to + line_.low;
    const auto states = [&](std::int64_t i, const auto& get) CENOTE_INLINED {
      for (std::int64_t r = 0; r < fresh; ++r) __builtin_prefetch(from + beyond + r * asked_row + i * asked_step);
      const T* p = from + i;
      const Pack<A> first = get(p);
      auto state = carry.lift(first, 0);
      std::int64_t left = rows - 1;
      for (; left > 1; left -= 2) {
        const Pack<A> a = get(p += row), b = get(p += row);
        watch.add(a, b);
        state = carry.combine(carry.combine(state, carry.lift(a, 0)), carry.lift(b, 0));
      }
      const Pack<A> last = left > 0 ? get(p += row) : first;
      if (left > 0) state = carry.combine(state, carry.lift(last, 0));
      watch.add(first, last);
      return state.part[0];
    };
    for (std::int64_t left = span.lines;;) {
      for (std::int64_t i = 0; i < whole; i += L)
        store(states(i, [](const T* p) CENOTE_INLINED { return kept(load(p)); }), dst + i);
      if (whole < real) end(whole, span.readable, states, dst);
      if (--left == 0) break;
      from += step;
      dst += width;
    }
    watched = watch;
  }
  /// One more row.
  template <class Q, class W>
  HWY_INLINE void add(const Q& like, W& watched, const Span& span, A* to) const {
    const Q carry = like;
    W watch = watched;
    const T* const from = span.cells;
    const std::int64_t real = real_, whole = real / L * L, ahead = call_.line.ahead;
    A* const dst = to + line_.low;
    const auto states = [&](std::int64_t i, const auto& get) CENOTE_INLINED {
      const Pack<A> cells = get(from + i);
      watch.add(cells, cells);
      return carry.combine({{load(dst + i)}}, carry.lift(cells, 0)).part[0];
    };
    for (std::int64_t i = 0; i < whole; i += L) {
      __builtin_prefetch(from + i + ahead);
      store(states(i, [](const T* p) CENOTE_INLINED { return kept(load(p)); }), dst + i);
    }
    if (whole < real) end(whole, span.readable, states, dst);
    watched = watch;
  }
  /// The last pack of a row, and nothing behind its cells. What lies there may be read if that is `readable`.
  template <class Make>
  HWY_INLINE void end(std::int64_t at, bool readable, const Make& make, A* dst) const {
    const auto put = [&](Pack<A> states) CENOTE_INLINED { store(select(inside_, states, none()), dst + at); };
    if (HWY_LIKELY(readable))
      put(make(at, [&](const T* p) CENOTE_INLINED { return load(p); }));
    else
      put(make(at, [&](const T* p) CENOTE_INLINED { return load_between(p, rest_); }));
  }
  static HWY_INLINE Pack<A> none() { return broadcast<A>(C::template neutral<A>()); }

  /// Windows of what lies in the cells.
  template <class Q>
  HWY_INLINE void along(const Q& carry, std::int64_t lines, A* states) const {
    switch (line_.stride) {
      case 1:
        return line_.size == 3   ? dense<3>(carry, lines, states)
               : line_.size == 5 ? dense<5>(carry, lines, states)
                                 : dense<0>(carry, lines, states);
      case 2: return woven<2>(carry, lines, states);
      case 3: return woven<3>(carry, lines, states);
      case 4: return woven<4>(carry, lines, states);
      default:
        line_.size <= 4   ? laned<4>(carry, lines, states)
        : line_.size <= 8 ? laned<8>(carry, lines, states)
                          : laned<16>(carry, lines, states);
    }
  }
  /// Calls make(cells, outputs, states) for every line, or once for all.
  template <class Make>
  HWY_INLINE void each_line(std::int64_t lines, A* states, const Make& make) const {
    if (unbroken_) return make(cells_, lines * line_.out, states);
    const A* from = cells_;
    const std::int64_t width = width_, outputs = line_.out;
    for (; lines > 0; --lines, from += width, states += outputs) make(from, outputs, states);
  }
  /// At every place: Size cells, if that is not 0.
  template <int Size, class Q>
  HWY_INLINE void dense(const Q& like, std::int64_t lines, A* states) const {
    const Q carry = like;
    const std::int64_t size = Size > 0 ? Size : line_.size, apart = line_.dilation;
    each_line(lines, states, [&](const A* from, std::int64_t outputs, A* to) CENOTE_INLINED {
      for (std::int64_t o = 0; o < outputs; o += L) {
        auto state = carry.lift(load(from + o), 0);
        for (std::int64_t j = 1; j < size; ++j) state = carry.combine(state, carry.lift(load(from + o + j * apart), 0));
        store(state.part[0], to + o);
      }
    });
  }
  /// Stride apart: a cell is in one of as many phases, and its neighbours there are so many cells on.
  template <int Stride, class Q>
  HWY_INLINE void woven(const Q& like, std::int64_t lines, A* states) const {
    const Q carry = like;
    const std::int64_t size = line_.size, beyond = (size - 1) / Stride;
    const auto read = [](const A* from, Pack<A>(&phases)[Stride]) CENOTE_INLINED {
      if constexpr (Stride == 2) {
        const auto low = load(from).v, high = load(from + L).v;
        phases[0].v = hn::ConcatEven(Tag<A>(), high, low);
        phases[1].v = hn::ConcatOdd(Tag<A>(), high, low);
      } else {
        load_woven<Stride>(from, phases);
      }
    };
    each_line(lines, states, [&](const A* from, std::int64_t outputs, A* to) CENOTE_INLINED {
      Pack<A> here[Stride], next[Stride];
      read(from, here);
      for (std::int64_t o = 0;; o += L, from += Stride * L) {
        // Of the last outputs there may be so few that all of their cells are here.
        const bool more = outputs - o + beyond > L;
        each<Stride>([&](int i) CENOTE_INLINED { next[i] = here[i]; });
        if (more) read(from + Stride * L, next);
        auto state = carry.lift(here[0], 0);
        each_tap([&]<int Tap>(std::integral_constant<int, Tap>) CENOTE_INLINED {
          constexpr int phase = Tap % Stride, on = Tap / Stride;
          if (Tap >= size) return;
          Pack<A> cells;
          if constexpr (on == 0)
            cells = here[phase];
          else if constexpr (on < L)
            cells = slide<on>(here[phase], next[phase]);
          else
            cells = load_apart<Stride>(from + Tap, Stride);
          state = carry.combine(state, carry.lift(cells, 0));
        });
        store(state.part[0], to + o);
        if (o + L >= outputs) break;
        each<Stride>([&](int i) CENOTE_INLINED { here[i] = next[i]; });
      }
    });
  }
  template <class Use>
  static HWY_INLINE void each_tap(const Use& use) {
    [&]<int... Tap>(std::integer_sequence<int, Tap...>) CENOTE_INLINED {
      (use(std::integral_constant<int, Tap + 1>()), ...);
    }
    (std::make_integer_sequence<int, most_taps>());
  }
  /// Far apart.
  template <int Width, class Q>
  HWY_INLINE void laned(const Q& like, std::int64_t lines, A* states) const {
    using Lanes = ApartLine<Q, A>;
    constexpr int width = HWY_MAX(Width, Lanes::least_width);
    const Q carry = like;
    const std::int64_t size = line_.size, stride = line_.stride;
    each_line(lines, states, [&](const A* from, std::int64_t outputs, A* to) CENOTE_INLINED {
      for (std::int64_t o = 0; o < outputs; o += L, from += stride * L)
        store(Lanes::template windows<width>(carry, size, [&](int c) CENOTE_INLINED { return from + c * stride; }),
              to + o);
    });
  }

  const C& carry_;
  const Axis across_, line_;
  const bool unbroken_;  // lines follow each other without a gap
  const std::int64_t src_row_, row_, width_, real_;
  const LaneRange<T> rest_;
  const Flags<A> inside_;                                // the lanes of the last pack of a row
  const std::int64_t lines_;                             // of windows in a plane
  const std::int64_t last_;                              // rows up to which a pack behind each may be read
  const std::int64_t first_whole_, last_whole_, reach_;  // windows that hold no padding, and from end to end of one
  A* const cells_;
  const Planes& call_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
