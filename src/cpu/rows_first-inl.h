// Planes whose rows come first: those of a window are joined lane by lane, and then what is left of them along the
// line.

#if defined(CENOTE_CPU_ROWS_FIRST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_FIRST_INL_H_
#undef CENOTE_CPU_ROWS_FIRST_INL_H_
#else
#define CENOTE_CPU_ROWS_FIRST_INL_H_
#endif

#include "cpu/cached_lines-inl.h"
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
  /// Whether that may show in the first `count` of those results: a negative zero does in zeros alone.
  HWY_INLINE bool shows(const T* results, std::int64_t count) const {
    bool zero = nan_.any();
    for (std::int64_t i = 0; i < count && !zero; i += lanes<T>())
      zero = !hn::AllFalse(Tag<T>(), (load(results + i) == broadcast<T>(T{0})).m);
    return zero;
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
  static constexpr bool picks = decltype(C::reducer)::picks;

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
        blocks_(blocks_across(across_)),
        rest_rows_(blocks_ > 0 ? across_.size % across_.stride : 0),
        ring_(cpu::rows_first_lines(across_, line_) + blocks_),
        // Windows of one column are what is left of their rows.
        narrow_(line_.size == 1 && line_.stride == 1 && real_ == line_.out),
        cells_(static_cast<A*>(call.ring) + (line_.low + L - 1) / L * L - line_.low),
        more_(cells_ + rounded(cpu::rows_first_cells(across_, line_))),
        whole_(more_ + rounded(cpu::rows_first_lines(across_, line_) * line_.out + 64)),
        part_(whole_ + ring_ * rounded(width_) + 64),
        along_(line_, cells_, whole_ + rounded(cpu::rows_first_rows(across_, line_))),
        call_(call) {
    // Padding stays as it is: behind the cells of a row only nothing is written.
    if (narrow_) return;
    std::fill_n(static_cast<A*>(call.ring), cpu::rows_first_cells(across_, line_), C::template neutral<A>());
    if (real_ < width_) std::fill_n(whole_, cpu::rows_first_rows(across_, line_), C::template neutral<A>());
  }

  void run() {
    Outlet<A> outlet(call_, nullptr);
    const bool apart = call_.out_row != line_.out, together = !apart && call_.out_plane == lines_ * line_.out;
    const std::int64_t most = apart ? 1 : cpu::rows_first_lines(across_, line_), all = call_.count * lines_;
    std::int64_t held = 0;
    Cursor at{static_cast<const T*>(call_.line.src), call_.begin, call_.count};
    for (std::int64_t i = 0, count; i < all; i += count) {
      count = HWY_MIN(most, all - i);
      if (!together || blocks_ > 0) count = HWY_MIN(count, call_.end - at.o);
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

  /// `count` lines of outputs. True if the order of cells may show in them.
  HWY_NOINLINE bool make(Cursor& at, std::int64_t count, A* states) {
    const auto calm = Calm<C>::of(carry_);
    auto watch = watch_order<C>();
    A* const to = narrow_ ? states : cells_;
    if (blocks_ > 0)
      join_blocks(calm, watch, at, count, to);
    else
      join_windows(calm, watch, at, count, to);
    if (!narrow_) along_(calm, count, states);
    if (HWY_LIKELY(!watch.any())) return false;
    held_.plane = nullptr;
    if constexpr (requires { watch.shows(states, count); })
      return watch.shows(states, count * line_.out);
    else
      return true;
  }
  template <class Q, class W>
  HWY_INLINE void join_windows(const Q& calm, W& watch, Cursor& at, std::int64_t count, A* to) const {
    // Where only the processor asks memory ahead, many rows are better read one after the other.
    const bool near = src_row_ < cpu::least_rows_apart / std::int64_t{sizeof(T)} &&
                      across_.size <= (call_.line.ahead > 0 ? most_rows_first : most_joint_rows);
    for (std::int64_t i = 0; i < count;) {
      const Span rows = rows_of(at, near ? count - i : 1);
      if (HWY_UNLIKELY(rows.count == 0))
        nothing(to);
      else if (near)
        rows.count == 3   ? join<3>(calm, watch, rows, to)
        : rows.count == 2 ? join<2>(calm, watch, rows, to)
                          : join<0>(calm, watch, rows, to);
      else if (picks || rows.count <= group_cells)
        add_rows(calm, watch, rows, rows.count, to);
      else
        add_groups(calm, watch, rows, to);
      i += rows.lines;
      to += rows.lines * width_;
      advance(at, rows.lines);
    }
  }
  /// The same of windows that share rows: as many as lie between them are a block, and a window is whole ones and the
  /// first rows of the next. Those that the last lines have left begin the next ones.
  template <class Q, class W>
  HWY_INLINE void join_blocks(const Q& calm, W& watch, Cursor& at, std::int64_t count, A* to) {
    const std::int64_t stride = across_.stride, n = across_.n;
    const bool follows = held_.plane == at.plane && held_.o == at.o, followed = at.planes > 1 && call_.step >= L;
    const auto inside = [&](std::int64_t row) { return HWY_MIN(HWY_MAX(row, 0), n); };
    // Those of a block lie in a ring.
    const std::int64_t origin = at.o % ring_, step = rounded(width_);
    const auto place_of = [&](std::int64_t b) { return (origin + b < ring_ ? origin + b : origin + b - ring_) * step; };
    for (std::int64_t b = follows ? blocks_ : 0; b < count + blocks_; ++b) {
      const std::int64_t start = (at.o + b) * stride - across_.low, end = inside(start + stride);
      const std::int64_t first = inside(start), middle = inside(start + rest_rows_);
      const std::int64_t place = place_of(b);
      A *const whole = whole_ + place, *const part = part_ + place, *before = nullptr;
      if (rest_rows_ > 0 && middle == first) nothing(part);
      for (std::int64_t r = first; r < end; ++r) {
        A* const sum = r < middle ? part : whole;
        add_row(calm, watch, at.plane + r * src_row_, followed || end <= last_, before, sum);
        before = sum;
      }
      if (before == nullptr)
        nothing(whole);
      else if (before == part)
        std::copy_n(part, width_, whole);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto block = [&](std::int64_t j) { return whole_ + place_of(i + j) + line_.low; };
      const A* const part = rest_rows_ > 0 ? part_ + place_of(i + blocks_) + line_.low : nullptr;
      cenote::HWY_NAMESPACE::join_blocks(calm, block, blocks_, part, real_, to + i * width_ + line_.low);
    }
    held_ = {at.plane, at.o + count};
    advance(at, count);
  }

  /// The same with windows along rows first.
  HWY_NOINLINE void make_in_order(const Cursor& first, std::int64_t count, A* states) const {
    NoWatch none;
    for (std::int64_t r = 0; r < across_.size; ++r) {
      Cursor at = first;
      A *const made = r == 0 ? states : more_, *to = narrow_ ? made : cells_;
      for (std::int64_t i = 0; i < count; ++i, to += width_, advance(at, 1)) {
        const Span rows = rows_of(at, 1);
        if (r < rows.count)
          add_row(carry_, none, rows.cells + r * row_, rows.readable, nullptr, to);
        else
          nothing(to);
      }
      if (!narrow_) along_(carry_, count, made);
      for (std::int64_t i = 0; r > 0 && i < count * line_.out; i += L)
        store(carry_.combine({{load(states + i)}}, {{load(more_ + i)}}).part[0], states + i);
    }
  }

  HWY_INLINE void nothing(A* to) const { std::fill_n(to, width_, C::template neutral<A>()); }

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
  /// The first `count` rows of a window, one after the other: a processor that asks memory ahead does so in one run of
  /// addresses.
  template <class Q, class W>
  HWY_INLINE void add_rows(const Q& carry, W& watch, const Span& rows, std::int64_t count, A* to) const {
    for (std::int64_t r = 0; r < count; ++r)
      add_row(carry, watch, rows.cells + r * row_, rows.readable, r > 0 ? to : nullptr, to);
  }
  /// The same in groups that are merged like a binary counter.
  template <class Q, class W>
  HWY_NOINLINE void add_groups(const Q& carry, W& watch, const Span& rows, A* to) const {
    const std::int64_t step = rounded(width_);
    const auto join = [&](std::int64_t level, A* with) CENOTE_INLINED {
      const A* const items[] = {whole_ + level * step + line_.low, with + line_.low};
      cenote::HWY_NAMESPACE::join_items<2>(carry, items, 2, real_, with + line_.low);
    };
    std::int64_t groups = 0;
    Span left = rows;
    for (; left.count > 0; ++groups, left.cells += group_cells * row_, left.count -= group_cells) {
      std::int64_t level = 0;
      while (groups >> level & 1) ++level;
      A* const sum = left.count <= group_cells ? to : whole_ + level * step;
      add_rows(carry, watch, left, HWY_MIN(left.count, group_cells), sum);
      if (sum == to) break;
      for (std::int64_t l = 0; l < level; ++l) join(l, sum);
    }
    for (std::int64_t level = 0; groups >> level > 0; ++level)
      if (groups >> level & 1) join(level, to);
  }
  /// A row, behind the states `before` unless that is null.
  template <class Q, class W>
  HWY_INLINE void add_row(const Q& carry, W& watch, const T* from, bool readable, const A* before, A* to) const {
    before ? add_row<true>(carry, watch, from, readable, before + line_.low, to + line_.low)
           : add_row<false>(carry, watch, from, readable, before, to + line_.low);
  }
  template <bool More, class Q, class W>
  HWY_INLINE void add_row(const Q& like, W& watched, const T* from, bool readable, const A* before, A* dst) const {
    const Q carry = like;
    W watch = watched;
    const std::int64_t real = real_, whole = real / L * L, ahead = call_.line.ahead;
    const auto joined = [&](Pack<A> cells, std::int64_t i) CENOTE_INLINED {
      auto state = carry.lift(cells, 0);
      if constexpr (More) state = carry.combine({{load(before + i)}}, state);
      return state.part[0];
    };
    std::int64_t i = 0;
    for (; i + 2 * L <= whole; i += 2 * L) {
      if (ahead > 0) {
        __builtin_prefetch(from + i + ahead);
        __builtin_prefetch(from + i + L + ahead);
      }
      const Pack<A> a = kept(load(from + i)), b = kept(load(from + i + L));
      watch.add(a, b);
      store(joined(a, i), dst + i);
      store(joined(b, i + L), dst + i + L);
    }
    const auto one = [&](std::int64_t at, const auto& get) CENOTE_INLINED {
      const Pack<A> cells = get(from + at);
      watch.add(cells, cells);
      return joined(cells, at);
    };
    if (i < whole) store(one(i, [](const T* p) CENOTE_INLINED { return load(p); }), dst + i);
    if (whole < real) end(whole, readable, one, dst);
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
  static constexpr std::int64_t rounded(std::int64_t lanes) { return (lanes + 63) / 64 * 64; }
  static HWY_INLINE Pack<A> none() { return broadcast<A>(C::template neutral<A>()); }

  const C& carry_;
  const Axis across_, line_;
  const bool unbroken_;  // lines follow each other without a gap
  const std::int64_t src_row_, row_, width_, real_;
  const LaneRange<T> rest_;
  const Flags<A> inside_;                                // the lanes of the last pack of a row
  const std::int64_t lines_;                             // of windows in a plane
  const std::int64_t last_;                              // rows up to which a pack behind each may be read
  const std::int64_t first_whole_, last_whole_, reach_;  // windows that hold no padding, and from end to end of one
  const std::int64_t blocks_, rest_rows_;                // of a window, and rows behind them
  const std::int64_t ring_;                              // blocks that there is room for
  const bool narrow_;
  A *const cells_, *const more_;
  A *const whole_, *const part_;  // of blocks, or of rows beyond those that are added up
  const CachedLines<A> along_;
  const Planes& call_;
  // The line of a plane whose first blocks are there, if there is one.
  struct {
    const T* plane = nullptr;
    std::int64_t o = 0;
  } held_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
