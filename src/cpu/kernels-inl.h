// The kernels: fold cells along one axis, with lanes along outputs (lines) or along rows, and finish.
// Included once per target by each element type's translation unit.

#if defined(CENOTE_CPU_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_KERNELS_INL_H_
#undef CENOTE_CPU_KERNELS_INL_H_
#else
#define CENOTE_CPU_KERNELS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/kernels.h"
#include "cpu/pack-inl.h"

#define CENOTE_REGION_BEGIN \
  HWY_BEFORE_NAMESPACE();   \
  namespace cenote {        \
  namespace HWY_NAMESPACE {
#define CENOTE_REGION_END \
  }                       \
  }                       \
  HWY_AFTER_NAMESPACE();
#define CENOTE_FN HWY_INLINE
#define CENOTE_LONG_FN HWY_NOINLINE
#include "reduce/reducers-inl.h"
#undef CENOTE_REGION_BEGIN
#undef CENOTE_REGION_END
#undef CENOTE_FN
#undef CENOTE_LONG_FN

/// Behind a lambda's parameters: compiled for the target, and always inlined.
#ifndef CENOTE_INLINED
#define CENOTE_INLINED HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Finish;
using cpu::Kernels;
using cpu::Pass;

/// How a reducer's state is made, moved and merged. `id` numbers the cell; a plain reducer does not care.
template <class R, class A>
struct Carry {
  using N = Pack<A>;
  using State = Parts<N, R::parts>;
  static constexpr bool is_winner = false;
  static constexpr bool has_neutral = requires { R::template neutral<A>(); };
  R reducer;
  explicit HWY_INLINE Carry(const Params& params) : reducer(params) {}

  template <class Cell>
  static constexpr Cell neutral() {
    return R::template neutral<Cell>();
  }
  HWY_INLINE State identity() const { return reducer.template identity<N>(); }
  HWY_INLINE State lift(N x, std::int64_t) const { return reducer.lift(x); }
  HWY_INLINE State combine(const State& a, const State& b) const { return reducer.combine(a, b); }
  HWY_INLINE State load_state(const A* p, std::int64_t plane, std::int64_t) const {
    State s;
    for (int i = 0; i < R::parts; ++i) s.part[i] = load(p + i * plane);
    return s;
  }
  HWY_INLINE void store_state(const State& s, A* p, std::int64_t plane) const {
    for (int i = 0; i < R::parts; ++i) store(s.part[i], p + i * plane);
  }
  /// Lane 0 only.
  HWY_INLINE void store_one(const State& s, A* p, std::int64_t plane) const {
    for (int i = 0; i < R::parts; ++i) p[i * plane] = hn::GetLane(s.part[i].v);
  }
};

template <class R, class A>
struct Carry<Winner<R>, A> {
  using N = Pack<A>;
  using I = IndexLane<A>;
  using State = Place<N>;
  static constexpr bool is_winner = true, has_neutral = false;
  Winner<R> reducer;
  explicit HWY_INLINE Carry(const Params& params) : reducer(params) {}

  HWY_INLINE State identity() const { return {reducer.base.template identity<N>().part[0], broadcast<I>(0)}; }
  HWY_INLINE State lift(N x, std::int64_t id) const { return {x, broadcast<I>(static_cast<I>(id))}; }
  HWY_INLINE State combine(const State& a, const State& b) const { return reducer.combine(a, b); }
  HWY_INLINE State load_state(const A* p, std::int64_t plane, std::int64_t id) const {
    return {load(p), load(reinterpret_cast<const I*>(p + plane)) + broadcast<I>(static_cast<I>(id))};
  }
  HWY_INLINE void store_state(const State& s, A* p, std::int64_t plane) const {
    store(s.value, p);
    store(s.index, reinterpret_cast<I*>(p + plane));
  }
  HWY_INLINE void store_one(const State& s, A* p, std::int64_t plane) const {
    *p = hn::GetLane(s.value.v);
    reinterpret_cast<I*>(p + plane)[0] = hn::GetLane(s.index.v);
  }
};

/// Cells folded one after the other before groups are merged pairwise. Keeps a sum's error within
/// 7 + log2(cells / 8) + 2 roundings, and short windows free of any stack.
constexpr std::int64_t group_cells = 8;

/// Merges groups pairwise: stack[i] holds 2^i of them, as the bits of `groups` say, like a binary counter.
template <int U, class C>
struct Merger {
  using State = typename C::State;
  State stack[60][U];
  std::int64_t groups = 0;

  HWY_NOINLINE void push(const C& carry, State (&group)[U]) {
    int level = 0;
    for (std::int64_t bits = groups; bits & 1; bits >>= 1, ++level)
      for (int u = 0; u < U; ++u) group[u] = carry.combine(stack[level][u], group[u]);
    for (int u = 0; u < U; ++u) stack[level][u] = group[u];
    ++groups;
  }
  HWY_NOINLINE void total(const C& carry, State (&result)[U]) const {
    bool first = true;
    for (int level = 0; groups >> level; ++level) {
      if (!((groups >> level) & 1)) continue;
      for (int u = 0; u < U; ++u) result[u] = first ? stack[level][u] : carry.combine(stack[level][u], result[u]);
      first = false;
    }
  }
};

/// Calls f(0), …, f(U - 1), unrolled at compile time so that what they index stays in registers.
template <int U, class F>
HWY_INLINE void each(const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED { (f(I), ...); }
  (std::make_integer_sequence<int, U>());
}

/// Folds cells at(0, u), …, at(count - 1, u) in order, for u < U packs at once. count >= 1.
template <int U, class C, class At>
HWY_INLINE void fold(const C& carry, std::int64_t count, const At& at, typename C::State (&result)[U]) {
  typename C::State acc[U];
  const auto run = [&](std::int64_t j, std::int64_t stop) CENOTE_INLINED {
    each<U>([&](int u) CENOTE_INLINED { acc[u] = at(j, u); });
    for (++j; j < stop; ++j) each<U>([&](int u) CENOTE_INLINED { acc[u] = carry.combine(acc[u], at(j, u)); });
  };
  if (HWY_LIKELY(count <= group_cells)) {
    run(0, count);
    each<U>([&](int u) CENOTE_INLINED { result[u] = acc[u]; });
    return;
  }
  Merger<U, C> merger;
  typename C::State group[U];
  for (std::int64_t j = 0; j < count; j += group_cells) {
    run(j, HWY_MIN(j + group_cells, count));
    each<U>([&](int u) CENOTE_INLINED { group[u] = acc[u]; });
    merger.push(carry, group);
  }
  merger.total(carry, group);
  each<U>([&](int u) CENOTE_INLINED { result[u] = group[u]; });
}

/// How many packs a kernel keeps in flight: several hide latency, but large states spill.
template <class C>
constexpr int packs_in_flight() {
  return sizeof(typename C::State) == sizeof(typename C::N) ? 4 : 1;
}

/// Few long rows, one after the other into the result: memory is read in the order of its addresses.
template <class C, class A, class Source>
HWY_INLINE void add_rows(const C& carry, std::int64_t count, std::int64_t len, A* dst, std::int64_t plane,
                         const Source& source) {
  const std::int64_t L = lanes<A>();
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = 0; i < len; i += L) {
      const auto cells = HWY_LIKELY(i + L <= len) ? source.whole(j, i) : source.rest(j, i, len);
      const auto state = j == 0 ? cells : carry.combine(carry.load_state(dst + i, plane, 0), cells);
      carry.store_state(state, dst + i, plane);
    }
  }
}

// Rows: one output row of `len` lanes from `count` source rows. Source(j, at_lane) gives the state of row j.
template <class C, class A, class Source>
HWY_INLINE void fold_row(const C& carry, std::int64_t count, std::int64_t len, A* dst, std::int64_t plane,
                         const Source& source) {
  using State = typename C::State;
  constexpr int U = packs_in_flight<C>();
  const std::int64_t L = lanes<A>();
  if constexpr (U > 1 && Source::is_raw)
    if (count > 1 && count <= group_cells && len > U * L) return add_rows(carry, count, len, dst, plane, source);
  std::int64_t i = 0;
  if constexpr (U > 1) {
    for (; i + U * L <= len; i += U * L) {
      State state[U];
      fold<U>(
          carry, count, [&](std::int64_t j, int u) CENOTE_INLINED { return source.whole(j, i + u * L); }, state);
      each<U>([&](int u) CENOTE_INLINED { carry.store_state(state[u], dst + i + u * L, plane); });
    }
  }
  for (; i < len; i += L) {
    State state[1];
    const std::int64_t at = source.place(i, len, L);
    fold<1>(
        carry, count, [&](std::int64_t j, int) CENOTE_INLINED { return source.one(j, at, len); }, state);
    carry.store_state(state[0], dst + at, plane);
  }
}

/// Rows of raw elements: nothing past a row may be read, so the last pack overlaps the one before it.
template <class C, class T>
struct RawRows {
  static constexpr bool is_raw = true;
  const C& carry;
  const T* first;
  std::int64_t distance, id_scale;

  HWY_INLINE typename C::State whole(std::int64_t j, std::int64_t i) const {
    return carry.lift(load(first + j * distance + i), j * id_scale);
  }
  HWY_INLINE typename C::State one(std::int64_t j, std::int64_t i, std::int64_t len) const {
    const T* p = first + j * distance + i;
    return carry.lift(HWY_LIKELY(len >= lanes<T>()) ? load(p) : load_first(p, len), j * id_scale);
  }
  /// The lanes from i on, fewer than a pack.
  HWY_INLINE typename C::State rest(std::int64_t j, std::int64_t i, std::int64_t len) const {
    return carry.lift(load_first(first + j * distance + i, len - i), j * id_scale);
  }
  HWY_INLINE std::int64_t place(std::int64_t i, std::int64_t len, std::int64_t L) const {
    return i + L <= len ? i : HWY_MAX(len - L, 0);
  }
};

/// Rows of states, possibly in a ring: their memory reaches a pack beyond every row.
template <class C, class A>
struct StateRows {
  static constexpr bool is_raw = false;
  const C& carry;
  const A* base;
  std::int64_t first, dilation, wrap, step, plane, id_scale;

  HWY_INLINE typename C::State whole(std::int64_t j, std::int64_t i) const {
    std::int64_t position = first + j * dilation;
    if (position >= wrap) position -= wrap;
    return carry.load_state(base + position * step + i, plane, j * id_scale);
  }
  HWY_INLINE typename C::State one(std::int64_t j, std::int64_t i, std::int64_t) const { return whole(j, i); }
  HWY_INLINE std::int64_t place(std::int64_t i, std::int64_t, std::int64_t) const { return i; }
};

template <class C, class A>
HWY_INLINE void fill_identity(const C& carry, std::int64_t len, A* dst, std::int64_t plane) {
  for (std::int64_t i = 0; i < len; i += lanes<A>()) carry.store_state(carry.identity(), dst + i, plane);
}

template <class C, class T>
void rows(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass.params);
  const Axis axis = *pass.axis;
  // Outputs at every position, side by side in source and result, are one long row.
  const auto [inside, outside] = axis.interior();
  const bool joined = axis.stride == 1 && pass.step == pass.len && pass.dst_step == pass.len;
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const T* src = static_cast<const T*>(pass.src) + row * pass.src_row;
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row;
    for (std::int64_t o = pass.begin; o < pass.end;) {
      const Axis::Span span = axis.span(o);
      std::int64_t outputs = 1;
      if (joined && o >= inside && o < outside) outputs = HWY_MIN(outside, pass.end) - o;
      const std::int64_t len = outputs * pass.len;
      if (HWY_UNLIKELY(span.count == 0))
        fill_identity(carry, len, dst, pass.dst_plane);
      else
        fold_row(carry, span.count, len, dst, pass.dst_plane,
                 RawRows<C, T>{carry, src + span.first * pass.step, axis.dilation * pass.step, pass.id_scale});
      o += outputs;
      dst += outputs * pass.dst_step;
    }
  }
}

template <class C>
void merge(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass.params);
  const Axis axis = *pass.axis;
  const std::int64_t wrap = pass.wrap > 0 ? pass.wrap : INT64_MAX;
  A* dst = static_cast<A*>(pass.dst);
  for (std::int64_t o = pass.begin; o < pass.end; ++o, dst += pass.dst_step) {
    const Axis::Span span = axis.span(o);
    if (HWY_UNLIKELY(span.count == 0)) {
      fill_identity(carry, pass.len, dst, pass.dst_plane);
      continue;
    }
    const std::int64_t first = span.first - pass.origin;
    fold_row(carry, span.count, pass.len, dst, pass.dst_plane,
             StateRows<C, A>{carry, static_cast<const A*>(pass.src), first < wrap ? first : first % wrap, axis.dilation,
                             wrap, pass.step, pass.src_plane, pass.id_scale});
  }
}

// Lines: the axis is contiguous, lanes run along outputs.

/// One output whose cells lie `dilation` apart: every lane holds the same.
template <class C, class T>
HWY_INLINE typename C::State fold_cells(const C& carry, const T* cells, std::int64_t count, std::int64_t dilation,
                                        std::int64_t id_scale) {
  typename C::State state[1];
  fold<1>(
      carry, count,
      [&](std::int64_t j, int) CENOTE_INLINED { return carry.lift(load_every(cells + j * dilation), j * id_scale); },
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
  const T* cells = line + span.first;
  if constexpr (!C::is_winner)
    if (axis.dilation == 1 && span.count >= 2 * lanes<A>())
      return carry.store_one(fold_across(carry, cells, span.count), dst, pass.dst_plane);
  carry.store_one(fold_cells(carry, cells, span.count, axis.dilation, pass.id_scale), dst, pass.dst_plane);
}

/// Outputs [begin, end), all of them interior, of one line. With slack, elements past the line may be read.
template <int Stride, class C, class T, class A>
HWY_INLINE void interior_line(const C& carry, const Pass& pass, const Axis& axis, const T* line, std::int64_t begin,
                              std::int64_t end, A* dst, bool slack) {
  using State = typename C::State;
  constexpr int U = packs_in_flight<C>();
  const std::int64_t L = lanes<A>();
  const auto at = [&](std::int64_t o) CENOTE_INLINED { return line + (o * axis.stride - axis.low); };
  const bool paired = Stride == 2 && axis.dilation == 1;
  const auto some = [&]<int Packs>(std::int64_t o, std::integral_constant<int, Packs>) CENOTE_INLINED {
    const T* cell = at(o);
    State state[Packs];
    const auto tap = [&](std::int64_t j, int u) CENOTE_INLINED {
      const T* p = cell + j * axis.dilation + u * L * axis.stride;
      return carry.lift(load_apart<Stride>(p, axis.stride), j * pass.id_scale);
    };
    if constexpr (Stride == 2) {
      // Two taps side by side are the even and the odd elements of the same two loads.
      const auto pair = [&](std::int64_t i, int u) CENOTE_INLINED {
        const std::int64_t j = 2 * i;
        const T* p = cell + j + u * L * 2;
        const auto low = load(p).v, high = load(p + L).v;
        const State even = carry.lift(Pack<A>{hn::ConcatEven(Tag<A>(), high, low)}, j * pass.id_scale);
        if (j + 1 == axis.size) return even;
        return carry.combine(even, carry.lift(Pack<A>{hn::ConcatOdd(Tag<A>(), high, low)}, (j + 1) * pass.id_scale));
      };
      if (paired)
        fold<Packs>(carry, (axis.size + 1) / 2, pair, state);
      else
        fold<Packs>(carry, axis.size, tap, state);
    } else {
      fold<Packs>(carry, axis.size, tap, state);
    }
    each<Packs>([&](int u) CENOTE_INLINED { carry.store_state(state[u], dst + (o - begin) + u * L, pass.dst_plane); });
  };
  std::int64_t o = begin;
  if constexpr (U > 1)
    for (; o + U * L <= end; o += U * L) some(o, std::integral_constant<int, U>());
  for (; o < end; o += L) {
    // The last pack overlaps the one before it, or reads and writes what does not matter.
    const std::int64_t place = o + L <= end || slack ? o : end - L;
    if (place < begin) break;
    some(place, std::integral_constant<int, 1>());
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
  if (Stride <= 2 && !axis.adaptive && axis.n <= short_line && (!all || pass.end - pass.begin <= L)) {
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
  if (Stride == 2 && !reading.copied && reading.outside > reading.inside &&
      (reading.outside - 1) * axis.stride - axis.low + (axis.size - 1) * axis.dilation + 2 > axis.n)
    --reading.outside;
  if (reading.outside <= reading.inside || across) reading.inside = reading.outside = pass.end;
  return reading;
}

template <int Stride, class C, class T>
HWY_INLINE void lines_apart(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass.params);
  const Reading reading = plan_reading<Stride, C>(pass, lanes<A>());
  T buffer[short_line + 2 * 64];
  if constexpr (C::has_neutral)
    if (reading.copied) std::fill(buffer, buffer + reading.axis.n, static_cast<T>(C::template neutral<A>()));
  for (std::int64_t row = 0; row < pass.rows; ++row) {
    const T* line = static_cast<const T*>(pass.src) + row * pass.src_row;
    A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row;
    for (std::int64_t o = pass.begin; o < reading.inside; ++o)
      single_output(carry, pass, *pass.axis, line, o, dst + (o - pass.begin));
    if (reading.inside < reading.outside) {
      const std::size_t bytes = static_cast<std::size_t>(pass.axis->n) * sizeof(T);
      if (reading.copied && bytes > 0) std::memcpy(static_cast<void*>(buffer + reading.low), line, bytes);
      interior_line<Stride>(carry, pass, reading.axis, reading.copied ? buffer : line, reading.inside, reading.outside,
                            dst + (reading.inside - pass.begin), reading.copied);
    }
    for (std::int64_t o = reading.outside; o < pass.end; ++o)
      single_output(carry, pass, *pass.axis, line, o, dst + (o - pass.begin));
  }
}

template <class C, class T>
void lines(const Pass& pass) {
  if (pass.axis->stride == 1) return lines_apart<1, C, T>(pass);
  if (pass.axis->stride == 2) return lines_apart<2, C, T>(pass);
  return lines_apart<3, C, T>(pass);
}

template <class R, class T>
void finish(const Finish& call) {
  using A = Lane<T>;
  using C = Carry<R, A>;
  const C carry(call.params);
  const std::int64_t L = lanes<A>();
  const A* src = static_cast<const A*>(call.src);
  const A* counts = static_cast<const A*>(call.counts);
  T* dst = static_cast<T*>(call.dst);
  const auto value = [&](std::int64_t i) CENOTE_INLINED {
    const Pack<A> n = counts ? load(counts + i) : number<Pack<A>>(call.count);
    return carry.reducer.lower(carry.load_state(src + i, call.src_plane, 0), n);
  };
  std::int64_t i = 0;
  if (call.stream && call.len >= 2 * L) {
    store(value(0), dst);
    const std::uintptr_t width = static_cast<std::uintptr_t>(L) * sizeof(T);
    const auto past = reinterpret_cast<std::uintptr_t>(dst) % width;
    i = past ? static_cast<std::int64_t>((width - past) / sizeof(T)) : 0;
    for (; i + L <= call.len; i += L) stream(value(i), dst + i);
  }
  for (; i + L <= call.len; i += L) store(value(i), dst + i);
  if (i < call.len) store_first(value(i), dst + i, call.len - i);
}

/// States are merged in the lane type, so the halves leave that to f32.
template <class C, class T>
constexpr auto merger() -> void (*)(const Pass&) {
  if constexpr (std::is_same_v<T, Lane<T>>)
    return merge<C>;
  else
    return nullptr;
}

template <class R, class T>
HWY_INLINE void add_reducer(cpu::Table& table, Reducer reducer) {
  using A = Lane<T>;
  if constexpr (R::integers || std::is_floating_point_v<A>) {
    using C = Carry<R, A>;
    const auto i = static_cast<std::size_t>(reducer);
    table.plain[i] = Kernels{lines<C, T>, rows<C, T>, merger<C, T>(), finish<R, T>, R::parts};
    if constexpr (R::picks && sizeof(A) >= 4) {
      using W = Carry<Winner<R>, A>;
      table.winner[i] = Kernels{lines<W, T>, rows<W, T>, merger<W, T>(), finish<R, T>, 2};
    }
  }
}

template <class T>
const cpu::Table& make_table() {
  static const cpu::Table table = [] {
    cpu::Table result;
#define CENOTE_ITEM(name, struct_name) add_reducer<struct_name, T>(result, Reducer::name);
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
    return result;
  }();
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
