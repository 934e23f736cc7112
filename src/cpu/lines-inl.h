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

/// One output over many neighbouring cells: lanes run along the cells and are folded at the end. Reducers that pick
/// would lose the order of equal zeros, so a zero is looked up again.
template <class R, class T>
HWY_INLINE auto fold_across(const Carry<R, Lane<T>>& carry, const T* cells, std::int64_t count) {
  using A = Lane<T>;
  using C = Carry<R, A>;
  const std::int64_t L = lanes<A>();
  const std::int64_t packs = count / L;
  typename C::State state[1];
  fold<1>(
      carry, packs, [&](std::int64_t j, int) CENOTE_INLINED { return carry.lift(load(cells + j * L), 0); }, state);
  HWY_ALIGN A buffer[R::parts * (64 / sizeof(A))];
  carry.store_state(state[0], buffer, L);
  const std::int64_t rest = count - packs * L;
  fold<1>(
      carry, L + rest,
      [&](std::int64_t j, int) CENOTE_INLINED {
        if (j >= L) return carry.lift(load_every(cells + packs * L + (j - L)), 0);
        typename C::State one;
        for (int i = 0; i < R::parts; ++i) one.part[i] = broadcast<A>(buffer[i * L + j]);
        return one;
      },
      state);
  if constexpr (R::picks && std::is_floating_point_v<A>) {
    if (hn::GetLane(state[0].part[0].v) == A{0}) {
      std::int64_t j = 0;
      while (hn::GetLane(load_every(cells + j).v) != A{0}) ++j;
      state[0].part[0] = load_every(cells + j);
    }
  }
  return state[0];
}

/// One output by itself: at a border, of an adaptive bin, or of a window longer than its step.
template <class C, class T, class A>
HWY_NOINLINE void single_output(const C& carry, const Pass& pass, const Axis& axis, const T* line, std::int64_t o,
                                A* dst) {
  const Axis::Span span = axis.span(o);
  if (span.count == 0) return carry.store_one(carry.identity(), dst, pass.dst_plane);
  const auto of_row = [&](std::int64_t r) CENOTE_INLINED {
    const T* cells = line + r * pass.fold_step + span.first;
    if constexpr (!C::is_winner && C::inputs == 1)
      if (axis.step() == 1 && span.count >= 2 * lanes<A>()) return fold_across(carry, cells, span.count);
    return fold_cells(carry, cells, span.count, axis.step(), pass.id_scale, r * pass.fold_id_scale);
  };
  auto state = of_row(0);
  for (std::int64_t r = 1; r < pass.fold; ++r) state = carry.combine(state, of_row(r));
  carry.store_one(state, dst, pass.dst_plane);
}

/// Outputs [begin, end), all of them interior, of one line. With slack, elements past the line may be read. Size is
/// that of the window where the compiler shall know it, or 0.
template <int Stride, int Size, class C, class T, class A>
HWY_INLINE void interior_line(const C& carry, const Pass& pass, const Axis& axis, const T* line, std::int64_t begin,
                              std::int64_t end, A* dst, bool slack) {
  using State = typename C::State;
  constexpr int U = packs_in_flight<C>();
  const std::int64_t L = lanes<A>();
  const auto at = [&](std::int64_t o) CENOTE_INLINED { return line + (o * axis.stride - axis.low); };
  const std::int64_t size = Size > 0 ? Size : axis.size;
  const bool paired = Stride == 2 && (Size > 0 || axis.dilation == 1);
  // Packs of outputs from o on, `apart` from each other.
  const auto some = [&]<int Packs>(std::int64_t o, std::int64_t apart,
                                   std::integral_constant<int, Packs>) CENOTE_INLINED {
    const T* cell = at(o);
    State state[Packs];
    const auto tap = [&](std::int64_t r, std::int64_t j, int u) CENOTE_INLINED {
      const T* p = cell + r * pass.fold_step + j * axis.dilation + u * apart * axis.stride;
      return carry.cell(p, r * pass.fold_id_scale + j * pass.id_scale,
                        [&](const T* q) CENOTE_INLINED { return load_apart<Stride>(q, axis.stride); });
    };
    if constexpr (Stride == 2 && C::inputs == 1) {
      // Two taps side by side are the even and the odd elements of the same two loads.
      const auto pair = [&](std::int64_t r, std::int64_t i, int u) CENOTE_INLINED {
        const std::int64_t j = 2 * i, id = r * pass.fold_id_scale + j * pass.id_scale;
        const T* p = cell + r * pass.fold_step + j + u * apart * 2;
        const auto low = load(p).v, high = load(p + L).v;
        const State even = carry.lift(Pack<A>{hn::ConcatEven(Tag<A>(), high, low)}, id);
        if (j + 1 == size) return even;
        return carry.combine(even, carry.lift(Pack<A>{hn::ConcatOdd(Tag<A>(), high, low)}, id + pass.id_scale));
      };
      if (paired)
        fold_rows<Packs>(carry, pass.fold, (size + 1) / 2, pair, state);
      else
        fold_rows<Packs>(carry, pass.fold, size, tap, state);
    } else {
      fold_rows<Packs>(carry, pass.fold, size, tap, state);
    }
    each<Packs>([&](int u)
                    CENOTE_INLINED { carry.store_state(state[u], dst + (o - begin) + u * apart, pass.dst_plane); });
  };
  std::int64_t o = begin;
  if constexpr (U > 1) {
    for (; o + U * L <= end; o += U * L) some(o, L, std::integral_constant<int, U>());
    for (; o + 2 * L <= end; o += 2 * L) some(o, L, std::integral_constant<int, 2>());
    if (o + L < end) return some(o, end - L - o, std::integral_constant<int, 2>());
  }
  for (; o < end; o += L) {
    // The last pack overlaps the one before it, or reads and writes what does not matter.
    const std::int64_t place = o + L <= end || slack ? o : end - L;
    if (place < begin) break;
    some(place, L, std::integral_constant<int, 1>());
  }
  for (; o < end; ++o) single_output(carry, pass, axis, line, o, dst + (o - begin));
}

/// Lines up to this long are copied to the stack where that saves outputs from being made one by one.
constexpr std::int64_t short_line = 512;

/// How lines are read: as they lie, or copied behind `low` cells into a buffer that reaches past their end. There the
/// padding is real where the reducer has a cell that changes nothing, so that every window is an interior one.
struct Reading {
  Axis axis;                     // the line as it is read
  std::int64_t inside, outside;  // outputs made in packs
  std::int64_t low = 0;
  bool copied = false;
};

template <int Stride, class C>
HWY_INLINE Reading plan_reading(const Pass& pass, std::int64_t L) {
  const Axis& axis = *pass.axis;
  const auto [first, last] = axis.interior();
  Reading reading{axis, HWY_MAX(first, pass.begin), HWY_MIN(last, pass.end)};
  const bool across = !C::is_winner && Stride > 2 && axis.dilation == 1 && axis.size >= 2 * L;
  const bool all = reading.inside == pass.begin && reading.outside == pass.end;
  if (C::inputs == 1 && Stride <= 2 && !axis.irregular() && axis.low >= 0 && pass.fold == 1 && axis.n <= short_line &&
      (!all || pass.end - pass.begin <= L)) {
    const std::int64_t length = (axis.out - 1) * axis.stride + (axis.size - 1) * axis.dilation + 1;
    if (C::has_neutral && HWY_MAX(length, axis.low + axis.n) <= short_line) {
      reading = {axis, pass.begin, pass.end, axis.low, true};
      reading.axis.n = HWY_MAX(length, axis.low + axis.n);
      reading.axis.low = 0;
      return reading;
    }
    reading.copied = reading.outside - reading.inside <= L;
  }
  // A stride of 2 reads in pairs: the last interior output may have no pair within the line.
  const std::int64_t reach =
      C::inputs == 1 && axis.dilation == 1 ? (axis.size + 1) / 2 * 2 : (axis.size - 1) * axis.dilation + 2;
  if (Stride == 2 && !reading.copied && reading.outside > reading.inside &&
      (reading.outside - 1) * axis.stride - axis.low + reach > axis.n)
    --reading.outside;
  if (reading.outside <= reading.inside || across) reading.inside = reading.outside = pass.end;
  return reading;
}

template <int Stride, int Size, class C, class T>
HWY_INLINE void lines_apart(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass);
  const Reading reading = plan_reading<Stride, C>(pass, lanes<A>());
  T buffer[short_line + 2 * 64];
  if constexpr (C::has_neutral)
    if (reading.copied) std::fill(buffer, buffer + reading.axis.n, static_cast<T>(C::template neutral<A>()));
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const T* line = static_cast<const T*>(pass.src) + row * pass.src_row - pass.origin;
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row;
    for (std::int64_t o = pass.begin; o < reading.inside; ++o)
      single_output(carry, pass, *pass.axis, line, o, dst + (o - pass.begin));
    if (reading.inside < reading.outside) {
      const std::size_t bytes = static_cast<std::size_t>(pass.axis->n) * sizeof(T);
      if (reading.copied && bytes > 0) std::memcpy(static_cast<void*>(buffer + reading.low), line, bytes);
      interior_line<Stride, Size>(carry, pass, reading.axis, reading.copied ? buffer : line, reading.inside,
                                  reading.outside, dst + (reading.inside - pass.begin), reading.copied);
    }
    for (std::int64_t o = reading.outside; o < pass.end; ++o)
      single_output(carry, pass, *pass.axis, line, o, dst + (o - pass.begin));
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
  if (axis.stride == 1 && !axis.irregular()) return lines_apart<1, 0, C, T>(pass);
  if constexpr (packs_in_flight<C>() > 1)
    if (axis.stride == 2 && axis.dilation == 1 && !axis.irregular()) {
      if (axis.size == 2) return lines_apart<2, 2, C, T>(pass);
      if (axis.size == 3) return lines_apart<2, 3, C, T>(pass);
    }
  if (axis.stride == 2 && !axis.irregular()) return lines_apart<2, 0, C, T>(pass);
  return lines_apart<3, 0, C, T>(pass);
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
