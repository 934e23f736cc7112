// Windows along lines of cells that lie in L1, with room to read before and behind them.

#if defined(CENOTE_CPU_CACHED_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_CACHED_LINES_INL_H_
#undef CENOTE_CPU_CACHED_LINES_INL_H_
#else
#define CENOTE_CPU_CACHED_LINES_INL_H_
#endif

#include "cpu/apart_line-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Lanes of so many rows, joined in pairs and four at a time, which keeps the error of sums small.
template <int Count, class C, class A>
HWY_INLINE void join_items(const C& like, const A* const* items, std::int64_t n, std::int64_t len, A* to) {
  const C carry = like;
  const std::int64_t count = Count > 0 ? Count : n;
  const auto at = [&](std::int64_t j, std::int64_t i) CENOTE_INLINED { return carry.lift(load(items[j] + i), 0); };
  const auto few = [&](std::int64_t j, std::int64_t i) CENOTE_INLINED {
    auto state = at(j, i);
    if (j + 1 < count) state = carry.combine(state, at(j + 1, i));
    if (j + 3 < count)
      state = carry.combine(state, carry.combine(at(j + 2, i), at(j + 3, i)));
    else if (j + 2 < count)
      state = carry.combine(state, at(j + 2, i));
    return state;
  };
  for (std::int64_t i = 0; i < len; i += lanes<A>()) {
    auto state = few(0, i);
    for (std::int64_t j = 4; j < count; j += 4) state = carry.combine(state, few(j, i));
    store(state.part[0], to + i);
  }
}
/// Windows of block(0), …, block(count - 1) and behind them a part of one, unless that is null.
template <class C, class A, class Block>
HWY_NOINLINE void join_blocks(const C& carry, const Block& block, std::int64_t count, const A* part, std::int64_t len,
                              A* to) {
  const A* items[most_blocks + 1];
  for (std::int64_t j = 0; j < count; ++j) items[j] = block(j);
  items[count] = part;
  switch (count += part != nullptr) {
    case 2: return join_items<2>(carry, items, 2, len, to);
    case 3: return join_items<3>(carry, items, 3, len, to);
    case 4: return join_items<4>(carry, items, 4, len, to);
    case 5: return join_items<5>(carry, items, 5, len, to);
    default: join_items<0>(carry, items, count, len, to);
  }
}

/// Lines of cells as rows_first_width() says, one behind the other, and memory for rows_first_blocks() states. The
/// order of cells is kept.
template <class A>
class CachedLines {
  static constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
  // Behind the first.
  static constexpr int most_taps = static_cast<int>(most_rows_first) - 1;

 public:
  CachedLines(const Axis& line, const A* cells, A* blocks)
      : line_(line),
        unbroken_(cpu::lies_unbroken(line)),
        width_(cpu::rows_first_width(line)),
        whole_(blocks_along(line)),
        rest_(whole_ > 0 ? line.size % line.stride : 0),
        pitch_(cpu::rows_first_pitch(line)),
        cells_(cells),
        blocks_(blocks) {}

  /// The windows of so many lines.
  template <class Q>
  HWY_INLINE void operator()(const Q& carry, std::int64_t lines, A* states) const {
    if (whole_ > 0) return of_blocks(carry, lines, states);
    switch (line_.stride) {
      case 1:
        return line_.size == 3   ? dense<3>(carry, lines, states)
               : line_.size == 5 ? dense<5>(carry, lines, states)
                                 : dense<0>(carry, lines, states);
      case 2: return woven<2>(carry, lines, states);
      case 3: return woven<3>(carry, lines, states);
      case 4: return woven<4>(carry, lines, states);
      default:
        each_line(lines, states, [&](const A* from, std::int64_t outputs, A* to) CENOTE_INLINED {
          laned(carry, line_.size, from, outputs, to);
        });
    }
  }

 private:
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
  template <int Stride>
  static HWY_INLINE void read(const A* from, Pack<A> (&phases)[Stride]) {
    if constexpr (Stride == 2) {
      const auto low = load(from).v, high = load(from + L).v;
      phases[0].v = hn::ConcatEven(Tag<A>(), high, low);
      phases[1].v = hn::ConcatOdd(Tag<A>(), high, low);
    } else {
      load_woven<Stride>(from, phases);
    }
  }
  /// Stride apart: a cell is in one of as many phases, and its neighbours there are so many cells on.
  template <int Stride, class Q>
  HWY_INLINE void woven(const Q& like, std::int64_t lines, A* states) const {
    const Q carry = like;
    const std::int64_t size = line_.size, beyond = (size - 1) / Stride;
    each_line(lines, states, [&](const A* from, std::int64_t outputs, A* to) CENOTE_INLINED {
      Pack<A> here[Stride], next[Stride];
      read<Stride>(from, here);
      for (std::int64_t o = 0;; o += L, from += Stride * L) {
        // Of the last outputs there may be so few that all of their cells are here.
        const bool more = outputs - o + beyond > L;
        each<Stride>([&](int i) CENOTE_INLINED { next[i] = here[i]; });
        if (more) read<Stride>(from + Stride * L, next);
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
  /// Far apart: `size` cells of each window.
  template <class Q>
  HWY_INLINE void laned(const Q& carry, std::int64_t size, const A* from, std::int64_t outputs, A* to) const {
    size > most_apart_cells || line_.stride > most_apart_cells ? far(carry, size, from, outputs, to)
    : size <= 4                                                ? laned<4>(carry, size, from, outputs, to)
    : size <= 8                                                ? laned<8>(carry, size, from, outputs, to)
                                                               : laned<16>(carry, size, from, outputs, to);
  }
  template <int Width, class Q>
  HWY_INLINE void laned(const Q& like, std::int64_t size, const A* from, std::int64_t outputs, A* to) const {
    using Lanes = ApartLine<Q, A>;
    constexpr int width = HWY_MAX(Width, Lanes::least_width);
    const Q carry = like;
    const std::int64_t stride = line_.stride;
    for (std::int64_t o = 0; o < outputs; o += L, from += stride * L)
      store(Lanes::template windows<width>(carry, size, [&](int c) CENOTE_INLINED { return from + c * stride; }),
            to + o);
  }
  /// Of windows that are longer, or farther apart, a part at a time; what lies behind the last one is not read.
  template <class Q>
  HWY_NOINLINE void far(const Q& like, std::int64_t size, const A* from, std::int64_t outputs, A* to) const {
    constexpr std::int64_t width = most_apart_cells;
    const Q carry = like;
    const std::int64_t stride = line_.stride;
    for (std::int64_t o = 0; o < outputs; o += L, from += stride * L) {
      const std::int64_t last = outputs - 1 - o;
      typename Q::State state[1];
      const auto part = [&](std::int64_t j, int) CENOTE_INLINED {
        const auto place = [&](int c) CENOTE_INLINED { return from + HWY_MIN(c, last) * stride + j * width; };
        return carry.lift(ApartLine<Q, A>::template windows<width>(carry, HWY_MIN(size - j * width, width), place), 0);
      };
      fold<1>(carry, (size + width - 1) / width, part, state);
      store(state[0].part[0], to + o);
    }
  }

  /// Blocks of as many cells as lie between windows: each window is whole ones, and the first cells of the next.
  template <class Q>
  HWY_INLINE void of_blocks(const Q& carry, std::int64_t lines, A* states) const {
    A* const parts = blocks_ + lines * pitch_ + 2 * L;
    // All of them before windows are made, for what is read soon after it was stored is waited for.
    for (std::int64_t i = 0; i < lines; ++i)
      make_blocks(carry, cells_ + i * width_, blocks_ + i * pitch_, parts + i * pitch_);
    const A *whole = blocks_, *part = parts + whole_;
    for (; lines > 0; --lines, whole += pitch_, part += pitch_, states += line_.out) {
      const auto block = [&](std::int64_t j) { return whole + j; };
      join_blocks(carry, block, whole_, rest_ > 0 ? part : nullptr, line_.out, states);
    }
  }
  template <class Q>
  HWY_INLINE void make_blocks(const Q& carry, const A* from, A* whole, A* part) const {
    const std::int64_t count = line_.out + whole_;
    switch (line_.stride) {
      case 2: return woven_blocks<2>(carry, from, count, whole, part);
      case 3: return woven_blocks<3>(carry, from, count, whole, part);
      case 4: return woven_blocks<4>(carry, from, count, whole, part);
      default:
        laned(carry, line_.stride, from, count, whole);
        if (rest_ > 0) laned(carry, rest_, from, count, part);
    }
  }
  template <int Stride, class Q>
  HWY_INLINE void woven_blocks(const Q& like, const A* from, std::int64_t count, A* whole, A* part) const {
    const Q carry = like;
    const std::int64_t rest = rest_;
    for (std::int64_t i = 0; i < count; i += L, from += Stride * L) {
      Pack<A> phases[Stride];
      read<Stride>(from, phases);
      auto state = carry.lift(phases[0], 0);
      each<Stride - 1>([&](int p) CENOTE_INLINED {
        if (p + 1 == rest) store(state.part[0], part + i);
        state = carry.combine(state, carry.lift(phases[p + 1], 0));
      });
      store(state.part[0], whole + i);
    }
  }

  const Axis line_;
  const bool unbroken_;  // lines follow each other without a gap
  const std::int64_t width_;
  const std::int64_t whole_, rest_;  // blocks of a window, and cells behind them
  const std::int64_t pitch_;         // blocks of a line
  const A* const cells_;
  A* const blocks_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
