// Planes whose windows share no cells: rows first, lane by lane, and then what is left of them along the line.

#if defined(CENOTE_CPU_TILED_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_TILED_PLANES_INL_H_
#undef CENOTE_CPU_TILED_PLANES_INL_H_
#else
#define CENOTE_CPU_TILED_PLANES_INL_H_
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

/// The rows of a window are joined in the order of memory. What they leave of several lines of windows lies in L1
/// without gaps, so that windows along lines are one line of them, wherever rows end. Where the order of cells matters,
/// those lines are made once more, windows along rows first.
template <class C, class T>
class TiledPlanes {
  using A = typename LaneOf<typename C::N>::type;
  static constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));

 public:
  TiledPlanes(const C& carry, const Planes& call)
      : carry_(carry),
        across_(*call.across),
        line_(*call.line.axis),
        src_row_(call.line.src_row),
        width_(line_.out * line_.stride),
        real_(HWY_MIN(line_.n, width_ - line_.low)),
        rest_(0, real_ % L),
        lines_(call.end - call.begin),
        last_(across_.n - ((L - 1) / src_row_ + 1)),
        cells_(static_cast<A*>(call.ring)),
        call_(call) {}

  void run() {
    Outlet<A> outlet(call_, nullptr);
    const bool apart = call_.out_row != line_.out, together = !apart && call_.out_plane == lines_ * line_.out;
    const std::int64_t most = apart ? 1 : cpu::tiled_rows(line_), all = call_.count * lines_;
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
  HWY_INLINE void advance(Cursor& at) const {
    if (++at.o < call_.end) return;
    at.o = call_.begin;
    at.plane += call_.step;
    --at.planes;
  }
  /// The rows of its windows. Behind the last rows of all there may be less than a pack.
  struct Span {
    const T* cells;
    std::int64_t first, count;
    bool readable;
  };
  HWY_INLINE Span rows_of(const Cursor& at) const {
    const std::int64_t start = at.o * across_.stride - across_.low, first = HWY_MAX(start, 0);
    const std::int64_t count = HWY_MAX(HWY_MIN(start + across_.size, across_.n) - first, 0);
    const bool readable = (at.planes > 1 && call_.step >= L) || first + count <= last_;
    return {count > 0 ? at.plane + first * src_row_ : nullptr, first, count, readable};
  }

  /// `count` lines of outputs. True if the order of cells may have mattered.
  HWY_NOINLINE bool make(Cursor& at, std::int64_t count, A* states) const {
    const auto calm = Calm<C>::of(carry_);
    auto watch = watch_order<C>();
    const bool near = src_row_ < cpu::least_tiled_apart / std::int64_t{sizeof(T)};
    A* to = cells_;
    for (std::int64_t i = 0; i < count; ++i, to += width_, advance(at)) {
      const Span rows = rows_of(at);
      fill(to, rows.count == 0 ? width_ : line_.low);
      if (rows.count == 0) continue;
      if (near || rows.count == 1)
        rows.count == 3   ? join<3>(calm, watch, rows.cells, 3, to, rows.readable)
        : rows.count == 2 ? join<2>(calm, watch, rows.cells, 2, to, rows.readable)
                          : join<0>(calm, watch, rows.cells, rows.count, to, rows.readable);
      else
        for (std::int64_t r = 0; r < rows.count; ++r)
          r == 0 ? join<1>(calm, watch, rows.cells, 1, to, rows.readable)
                 : add(calm, watch, rows.cells + r * src_row_, to, rows.readable);
      fill(to + line_.low + real_, width_ - line_.low - real_);
    }
    along(calm, count * line_.out, states);
    return watch.any();
  }

  /// The same with windows along rows first.
  HWY_NOINLINE void make_in_order(const Cursor& first, std::int64_t count, A* states) const {
    NoWatch none;
    A* const more = cells_ + cpu::tiled_cells(line_);
    for (std::int64_t r = 0; r < across_.size; ++r) {
      Cursor at = first;
      A* to = cells_;
      for (std::int64_t i = 0; i < count; ++i, to += width_, advance(at)) {
        const Span rows = rows_of(at);
        fill(to, r < rows.count ? line_.low : width_);
        if (r >= rows.count) continue;
        join<1>(carry_, none, rows.cells + r * src_row_, 1, to, rows.readable);
        fill(to + line_.low + real_, width_ - line_.low - real_);
      }
      along(carry_, count * line_.out, r == 0 ? states : more);
      for (std::int64_t i = 0; r > 0 && i < count * line_.out; i += L)
        store(carry_.combine({{load(states + i)}}, {{load(more + i)}}).part[0], states + i);
    }
  }

  HWY_INLINE void fill(A* to, std::int64_t count) const {
    std::fill_n(to, HWY_MAX(count, 0), C::template neutral<A>());
  }

  /// `count` rows of cells from `from` on, joined; Count of them if that is not 0. Behind them one pack may be
  /// overrun, and read if that is `readable`.
  template <int Count, class Q, class W>
  HWY_INLINE void join(const Q& like, W& watched, const T* from, std::int64_t count, A* to, bool readable) const {
    const Q carry = like;
    W watch = watched;
    const std::int64_t row = src_row_, rows = Count > 0 ? Count : count, real = real_, whole = real / L * L;
    A* const dst = to + line_.low;
    const auto pack = [&](std::int64_t i, const auto& get) CENOTE_INLINED {
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
      store(state.part[0], dst + i);
    };
    const std::int64_t ahead = call_.line.ahead;
    for (std::int64_t i = 0; i < whole; i += L) {
      for (std::int64_t r = 0; r < rows; ++r) __builtin_prefetch(from + r * row + i + ahead);
      pack(i, [](const T* p) CENOTE_INLINED { return kept(load(p)); });
    }
    if (whole < real) end(whole, readable, pack);
    watched = watch;
  }
  /// One more row.
  template <class Q, class W>
  HWY_INLINE void add(const Q& like, W& watched, const T* from, A* to, bool readable) const {
    const Q carry = like;
    W watch = watched;
    const std::int64_t real = real_, whole = real / L * L, ahead = call_.line.ahead;
    A* const dst = to + line_.low;
    const auto pack = [&](std::int64_t i, const auto& get) CENOTE_INLINED {
      const Pack<A> cells = get(from + i);
      watch.add(cells, cells);
      store(carry.combine({{load(dst + i)}}, carry.lift(cells, 0)).part[0], dst + i);
    };
    for (std::int64_t i = 0; i < whole; i += L) {
      __builtin_prefetch(from + i + ahead);
      pack(i, [](const T* p) CENOTE_INLINED { return kept(load(p)); });
    }
    if (whole < real) end(whole, readable, pack);
    watched = watch;
  }
  /// The last pack of a row.
  template <class Make>
  HWY_INLINE void end(std::int64_t at, bool readable, const Make& make) const {
    if (HWY_LIKELY(readable))
      make(at, [&](const T* p) CENOTE_INLINED { return load(p); });
    else
      make(at, [&](const T* p) CENOTE_INLINED { return load_between(p, rest_); });
  }

  /// Windows of what lies side by side in the cells.
  template <class Q>
  HWY_INLINE void along(const Q& carry, std::int64_t outputs, A* states) const {
    switch (line_.stride) {
      case 2: return woven<2>(carry, outputs, states);
      case 3: return woven<3>(carry, outputs, states);
      case 4: return woven<4>(carry, outputs, states);
      default:
        line_.size <= 4   ? laned<4>(carry, outputs, states)
        : line_.size <= 8 ? laned<8>(carry, outputs, states)
                          : laned<16>(carry, outputs, states);
    }
  }
  template <int Stride, class Q>
  HWY_INLINE void woven(const Q& like, std::int64_t outputs, A* states) const {
    const Q carry = like;
    const std::int64_t size = line_.size;
    const A* from = cells_;
    for (std::int64_t o = 0; o < outputs; o += L, from += Stride * L) {
      Pack<A> phases[Stride];
      if constexpr (Stride == 2) {
        const auto low = load(from).v, high = load(from + L).v;
        phases[0].v = hn::ConcatEven(Tag<A>(), high, low);
        phases[1].v = hn::ConcatOdd(Tag<A>(), high, low);
      } else {
        load_woven<Stride>(from, phases);
      }
      auto state = carry.lift(phases[0], 0);
      each<Stride - 1>([&](int j) CENOTE_INLINED {
        if (j + 1 < size) state = carry.combine(state, carry.lift(phases[j + 1], 0));
      });
      store(state.part[0], states + o);
    }
  }
  template <int Width, class Q>
  HWY_INLINE void laned(const Q& like, std::int64_t outputs, A* states) const {
    using Lanes = ApartLine<Q, A>;
    constexpr int width = HWY_MAX(Width, Lanes::least_width);
    const Q carry = like;
    const std::int64_t size = line_.size, stride = line_.stride;
    const A* from = cells_;
    for (std::int64_t o = 0; o < outputs; o += L, from += stride * L)
      store(Lanes::template windows<width>(carry, size, [&](int c) CENOTE_INLINED { return from + c * stride; }),
            states + o);
  }

  const C& carry_;
  const Axis across_, line_;
  const std::int64_t src_row_, width_, real_;
  const LaneRange<T> rest_;
  const std::int64_t lines_;  // of windows in a plane
  const std::int64_t last_;   // rows up to which a pack behind each may be read
  A* const cells_;
  const Planes& call_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
