// Lines of short windows that lie far apart: every window has lanes of its own, which are joined in pairs.

#if defined(CENOTE_CPU_APART_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_APART_LINE_INL_H_
#undef CENOTE_CPU_APART_LINE_INL_H_
#else
#define CENOTE_CPU_APART_LINE_INL_H_
#endif

#include "cpu/line_rows-inl.h"
#include "plan/apart.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Width cells from place(first) on, and behind them those from the next places on, as many as fill the vector.
template <int Width, class D, class Place>
HWY_INLINE hn::Vec<D> load_places(D tag, int first, const Place& place) {
  constexpr int count = static_cast<int>(hn::MaxLanes(D()));
  if constexpr (count <= Width) {
    return hn::LoadU(tag, reinterpret_cast<const hn::TFromD<D>*>(place(first)));
  } else {
    const hn::Half<D> half;
    const auto low = load_places<Width>(half, first, place);
    return hn::Combine(tag, load_places<Width>(half, first + count / 2 / Width, place), low);
  }
}

/// Windows of up to most_cells cells, each in as many lanes of its own as a power of two says; those behind its cells
/// are nothing. Neighbouring lanes are joined until one is left of each window, so that the order of cells is kept, and
/// sums are grouped alike wherever a window lies.
template <class C, class T>
class ApartLine {
  using A = typename LaneOf<typename C::N>::type;
  static constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
  static constexpr std::int64_t most_cells = most_apart_cells;

 public:
  // Lanes of a window: those of 8 bytes, or of a whole block of a register.
  static constexpr int least_width = sizeof(A) > 2 ? 4 : 8;
  static constexpr bool exists = packs_in_flight<C>() > 1 && C::inputs == 1 && C::has_neutral;
  static HWY_INLINE bool applies(const Axis& axis) { return lie_apart(axis); }
  HWY_INLINE ApartLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass) {}

  /// Outputs [from, to) of all lines. True if there may be NaN among them.
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return with_width<least_width>(rows, from, to);
  }
  /// As many windows as lanes, from place(0), place(1), … on.
  template <int Width, class Place>
  static HWY_INLINE Pack<A> windows(const C& carry, std::int64_t size, const Place& place) {
    constexpr int pieces = HWY_MAX(Width / L, 1);
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    Flags<A> real[pieces];
    each<pieces>([&](int i) CENOTE_INLINED {
      using I = hwy::MakeSigned<A>;
      const Tag<I> tag;
      const auto number = hn::And(hn::Iota(tag, static_cast<I>(i * L)), hn::Set(tag, static_cast<I>(Width - 1)));
      real[i].m = hn::RebindMask(Tag<A>(), hn::Lt(number, hn::Set(tag, static_cast<I>(size))));
    });
    return joined<Width>(carry, 0, [&](int i) CENOTE_INLINED {
      const StorageTag<T> tag;
      hn::Vec<decltype(tag)> stored;
      if constexpr (Width > L)
        stored = hn::LoadU(tag, reinterpret_cast<const hn::TFromD<decltype(tag)>*>(place(i / pieces) + i % pieces * L));
      else
        stored = load_places<Width>(tag, i * (L / Width), place);
      Pack<A> cells;
      if constexpr (std::is_same_v<T, A>)
        cells.v = stored;
      else
        cells = widen(stored, T{});
      return carry.lift(select(real[i % pieces], cells, nothing), 0).part[0];
    });
  }

 private:
  template <int Width>
  HWY_INLINE bool with_width(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    if constexpr (Width < most_cells)
      if (pass_.axis->size > Width) return with_width<2 * Width>(rows, from, to);
    return make<Width>(rows, from, to);
  }

  /// Outputs that are made one by one wait here until they fill a pack.
  struct Queue {
    std::int64_t n = 0;  // of their lines
    int count = 0;
    const T* line[L];
    std::int64_t start[L];
    A* dst[L];
  };
  /// Whether outputs show if there was a cell that only a careful carry is made for.
  static constexpr bool tells_nan = Calm<C>::differs && std::is_floating_point_v<A>;

  template <int Width>
  HWY_NOINLINE bool make(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const C carry = carry_;
    const std::int64_t stride = pass_.axis->stride, low = pass_.axis->low, size = pass_.axis->size;
    const std::int64_t fold = pass_.fold, fold_step = pass_.fold_step, row_step = rows.src_row, dst_row = rows.dst_row;
    // Of the lines of the cache that a pack of windows lies in.
    const std::int64_t ahead = pass_.ahead, asked = ahead > 0 ? HWY_MIN(stride, L) : 0, asked_step = HWY_MAX(stride, L);
    std::int64_t n = pass_.axis->n, count = rows.count;
    // Windows may lie alike in a line and from one to the next: then they are one line.
    const std::int64_t width = to - from;
    if (dst_row == width && row_step == width * stride && from * stride >= low && (to - 1) * stride - low + size <= n) {
      n += (count - 1) * row_step;
      to = from + count * width;
      count = 1;
    }
    // Outputs whose windows reach over no end.
    const std::int64_t inside = HWY_MIN(HWY_MAX((low + stride - 1) / stride, from), to);
    const std::int64_t outside = n + low < size ? inside : HWY_MAX(HWY_MIN((n + low - size) / stride + 1, to), inside);
    const T* line = rows.src;
    A* dst = rows.dst;
    Watch<C> watch;
    Queue queue;
    queue.n = n;
    bool any = !tells_nan;
    const auto wait = [&](std::int64_t o, std::int64_t stop) CENOTE_INLINED {
      for (; o < stop; ++o) {
        queue.line[queue.count] = line;
        queue.start[queue.count] = o * stride - low;
        queue.dst[queue.count] = dst + (o - from);
        if (++queue.count == L) any |= make_queued<Width>(queue);
      }
    };
    for (; count > 0; --count, line += row_step, dst += dst_row) {
      // What lies between lines may be read.
      const std::int64_t reach = n + (count - 1) * row_step - (L - 1) * stride - Width;
      wait(from, inside);
      std::int64_t o = inside;
      while (o < outside) {
        // The last pack overlaps the one before, or reaches beyond outputs that are yet to be made.
        const std::int64_t at = outside - inside < L ? o : HWY_MIN(o, outside - L);
        const std::int64_t start = at * stride - low;
        if (HWY_UNLIKELY(start > reach)) break;
        const auto row = [&](std::int64_t r) CENOTE_INLINED {
          const T* const p = line + start + r * fold_step;
          for (std::int64_t c = 0; c < asked; ++c) __builtin_prefetch(p + ahead + c * asked_step);
          return windows<Width>(carry, size, [&](int c) CENOTE_INLINED { return p + c * stride; });
        };
        Pack<A> states = row(0);
        for (std::int64_t r = 1; r < fold; ++r) states = join(carry, states, row(r));
        if constexpr (tells_nan) watch.add(states, states);
        store(states, dst + (at - from));
        o = at + L;
      }
      wait(HWY_MIN(o, outside), to);
    }
    if (queue.count > 0) any |= make_queued<Width>(queue);
    return any || watch.any();
  }
  /// Those that wait. True if there may be NaN among them.
  template <int Width>
  HWY_NOINLINE bool make_queued(Queue& queue) const {
    const std::int64_t n = queue.n, size = pass_.axis->size;
    const T* places[L];
    T copies[L * Width], nothing[L];
    store(broadcast<A>(C::template neutral<A>()), nothing);
    Pack<A> states;
    for (std::int64_t r = 0; r < pass_.fold; ++r) {
      for (int c = 0; c < L; ++c) {
        // Those that are missing are like the first.
        const std::int64_t start = queue.start[c < queue.count ? c : 0];
        const T* const window = queue.line[c < queue.count ? c : 0] + r * pass_.fold_step + start;
        places[c] = c < queue.count ? window : places[0];
        if (c >= queue.count || (start >= 0 && start + Width <= n)) continue;
        T* const copy = copies + c * Width;
        std::fill_n(copy, Width, nothing[0]);
        for (std::int64_t j = HWY_MAX(-start, 0); j < HWY_MIN(n - start, size); ++j) copy[j] = window[j];
        places[c] = copy;
      }
      const Pack<A> more = windows<Width>(carry_, size, [&](int c) CENOTE_INLINED { return places[c]; });
      states = r == 0 ? more : join(carry_, states, more);
    }
    HWY_ALIGN A made[L];
    store(states, made);
    for (int c = 0; c < queue.count; ++c) *queue.dst[c] = made[c];
    queue.count = 0;
    Watch<C> watch;
    if constexpr (tells_nan) watch.add(states, states);
    return tells_nan && watch.any();
  }

  static HWY_INLINE Pack<A> join(const C& carry, Pack<A> a, Pack<A> b) { return carry.combine({{a}}, {{b}}).part[0]; }
  /// Packs [first, first + Count) in one.
  template <int Count, class Get>
  static HWY_INLINE Pack<A> joined(const C& carry, int first, const Get& get) {
    if constexpr (Count == 1) {
      return get(first);
    } else {
      const Pack<A> a = joined<Count / 2>(carry, first, get), b = joined<Count / 2>(carry, first + Count / 2, get);
      const Tag<A> tag;
      return join(carry, {hn::ConcatEven(tag, b.v, a.v)}, {hn::ConcatOdd(tag, b.v, a.v)});
    }
  }

  const C& carry_;
  const Pass& pass_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
