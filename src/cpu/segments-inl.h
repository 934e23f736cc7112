// The kernels of row reductions: every target folds its source rows, some packs of channels at a time. Included once
// per target by each type's translation unit.

#if defined(CENOTE_CPU_SEGMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SEGMENTS_INL_H_
#undef CENOTE_CPU_SEGMENTS_INL_H_
#else
#define CENOTE_CPU_SEGMENTS_INL_H_
#endif

#include "cpu/fold-inl.h"
#include "cpu/segments.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::RowKernels;
using cpu::RowPass;

/// A pack of channels of one row: all lanes, or the first n where a row is shorter than a pack.
template <class T>
HWY_INLINE Pack<Lane<T>> load_channels(const T* p, std::int64_t n) {
  return HWY_LIKELY(n >= lanes<T>()) ? load(p) : load_first(p, n);
}
template <class T>
HWY_INLINE void store_channels(Pack<Lane<T>> x, T* p, std::int64_t n) {
  if (HWY_LIKELY(n >= lanes<T>()))
    store(x, p);
  else
    store_first(x, p, n);
}

/// Row numbers beside lanes of A.
template <class A>
HWY_INLINE Pack<IndexLane<A>> load_rows(const std::int32_t* p, std::int64_t n) {
  if constexpr (sizeof(A) == 4) {
    return load_channels(p, n);
  } else {
    std::int32_t narrow[8];
    HWY_ALIGN std::int64_t wide[8] = {};
    const std::int64_t count = HWY_MIN(n, lanes<A>());
    std::memcpy(narrow, p, static_cast<std::size_t>(count) * sizeof(std::int32_t));
    for (std::int64_t i = 0; i < count; ++i) wide[i] = narrow[i];
    return load(wide);
  }
}
template <class I>
HWY_INLINE void store_rows(Pack<I> rows, std::int32_t* p, std::int64_t n) {
  if constexpr (sizeof(I) == 4) {
    store_channels(rows, p, n);
  } else {
    HWY_ALIGN I wide[8];
    store(rows, wide);
    for (std::int64_t i = 0; i < HWY_MIN(n, lanes<I>()); ++i) p[i] = static_cast<std::int32_t>(wide[i]);
  }
}

template <class C>
HWY_INLINE C make_carry(const RowPass& pass) {
  Pass plain{};
  plain.params = pass.params;
  plain.src_plane = pass.x_plane;
  return C(plain);
}

/// Where edges lead.
template <class T>
struct Sources {
  const T* x;
  std::int64_t step;
  const std::int32_t* source;

  explicit HWY_INLINE Sources(const RowPass& pass)
      : x(static_cast<const T*>(pass.x)), step(pass.x_step), source(pass.segments.source) {}
  HWY_INLINE std::int64_t row(std::int64_t e) const { return source ? source[e] : e; }
  HWY_INLINE const T* at(std::int64_t row, std::int64_t c) const { return x + row * step + c; }
};

/// Cells as they lie.
template <class C, class T>
struct PlainCells {
  const C& carry;
  Sources<T> sources;
  HWY_INLINE PlainCells(const C& c, const RowPass& pass) : carry(c), sources(pass) {}

  HWY_INLINE typename C::State operator()(std::int64_t, std::int64_t e, std::int64_t c, std::int64_t n) const {
    const std::int64_t row = sources.row(e);
    return carry.cell(sources.at(row, c), row, [&](const T* p) CENOTE_INLINED { return load_channels(p, n); });
  }
};

/// Cells times the weights of their edges, divided by what belongs to their rows.
template <class C, class T>
struct ScaledCells {
  using N = typename C::N;
  const C& carry;
  Sources<T> sources;
  const std::int32_t* id;
  const double *weights, *divisors;
  HWY_INLINE ScaledCells(const C& c, const RowPass& pass)
      : carry(c), sources(pass), id(pass.segments.id), weights(pass.weights), divisors(pass.source_divisors) {}

  HWY_INLINE typename C::State operator()(std::int64_t, std::int64_t e, std::int64_t c, std::int64_t n) const {
    const std::int64_t row = sources.row(e);
    N x = load_channels(sources.at(row, c), n);
    if (weights) x = x * number<N>(weights[id[e]]);
    if (divisors) x = x / number<N>(divisors[row]);
    return carry.lift(x, 0);
  }
};

/// Cells that routes name; others are zero, whatever they hold. Back: sources are outputs, and say whose they are.
template <bool Back>
struct RoutedCells {
  template <class C, class T>
  struct Of {
    using N = typename C::N;
    using I = IndexLane<Lane<T>>;
    const C& carry;
    Sources<T> sources;
    const std::int32_t* routes;
    std::int64_t width;
    HWY_INLINE Of(const C& c, const RowPass& pass) : carry(c), sources(pass), routes(pass.routes), width(pass.width) {}

    HWY_INLINE typename C::State operator()(std::int64_t t, std::int64_t e, std::int64_t c, std::int64_t n) const {
      const std::int64_t row = sources.row(e), output = Back ? row : t, input = Back ? t : row;
      const auto mine = load_rows<Lane<T>>(routes + output * width + c, n) == broadcast(static_cast<I>(input));
      return carry.lift(select(mine, load_channels(sources.at(row, c), n), number<N>(0)), 0);
    }
  };
};

/// States that pieces have left: parts of one row side by side.
template <class C, class T>
struct StateCells {
  const C& carry;
  const Lane<T>* x;
  std::int64_t step, plane;
  HWY_INLINE StateCells(const C& c, const RowPass& pass)
      : carry(c), x(static_cast<const Lane<T>*>(pass.x)), step(pass.x_step), plane(pass.x_plane) {}

  HWY_INLINE typename C::State operator()(std::int64_t, std::int64_t e, std::int64_t c, std::int64_t) const {
    return carry.load_state(x + e * step + c, plane, 0);
  }
};

/// Lowers states and stores values.
template <class C, class T>
struct ValueSink {
  const C& carry;
  const RowPass& pass;

  template <class State>
  HWY_INLINE void operator()(const State& state, std::int64_t t, std::int64_t edges, std::int64_t c,
                             std::int64_t n) const {
    using N = typename C::N;
    T* to = static_cast<T*>(pass.y) + t * pass.y_step + c;
    N by;
    if (pass.cells)
      by = load_channels(static_cast<const T*>(pass.cells) + t * pass.y_step + c, n);
    else
      by = number<N>(pass.divides_by_edges ? static_cast<double>(HWY_MAX(edges, 1))
                     : pass.divisors       ? pass.divisors[t]
                                           : pass.divisor);
    const N value = carry.reducer.lower(state, by);
    if (pass.stream)
      stream(value, to);
    else
      store_channels(value, to, n);
  }
};

/// Stores values and the rows that they came from.
template <class C, class T>
struct WinnerSink {
  const C& carry;
  const RowPass& pass;

  template <class State>
  HWY_INLINE void operator()(const State& state, std::int64_t t, std::int64_t edges, std::int64_t c,
                             std::int64_t n) const {
    using I = typename C::I;
    store_channels(state.value, static_cast<T*>(pass.y) + t * pass.y_step + c, n);
    store_rows(edges > 0 ? state.index : broadcast<I>(-1), pass.winners + t * pass.width + c, n);
  }
};

/// Stores the two numbers that weights hang on.
template <class C, class T>
struct WeightSink {
  const C& carry;
  const RowPass& pass;

  template <class State>
  HWY_INLINE void operator()(const State& state, std::int64_t t, std::int64_t, std::int64_t c, std::int64_t n) const {
    const State whole = carry.reducer.close(state, number<typename C::N>(pass.divisor));
    store_channels(whole.part[0], static_cast<T*>(pass.y) + t * pass.y_step + c, n);
    store_channels(carry.reducer.spread(whole.part[1]), static_cast<T*>(pass.second) + t * pass.y_step + c, n);
  }
};

/// Stores states as they are; their rows reach a pack beyond the last channel.
template <class C, class T>
struct StateSink {
  const C& carry;
  const RowPass& pass;

  template <class State>
  HWY_INLINE void operator()(const State& state, std::int64_t t, std::int64_t, std::int64_t c, std::int64_t) const {
    carry.store_state(state, static_cast<Lane<T>*>(pass.y) + t * pass.y_step + c, pass.y_plane);
  }
};

/// Brings the rows of edges that come soon: they lie anywhere.
template <class T>
HWY_INLINE void prefetch_rows(const RowPass& pass, std::int64_t first, std::int64_t count) {
  constexpr std::int64_t ahead = 16, most_bytes = 512;
  const std::int64_t last = HWY_MIN(first + count + ahead, pass.segments.edges);
  const std::int64_t bytes = HWY_MIN(pass.width * static_cast<std::int64_t>(sizeof(T)), most_bytes);
  for (std::int64_t e = first + ahead; e < last; ++e) {
    const char* row =
        reinterpret_cast<const char*>(static_cast<const T*>(pass.x) + pass.segments.source[e] * pass.x_step);
    for (std::int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(row + b);
  }
}

template <int U, class C, class Cells, class Sink>
HWY_INLINE std::int64_t reduce_packs(const C& carry, const Cells& cells, const Sink& sink, std::int64_t t,
                                     std::int64_t owner, std::int64_t first, std::int64_t count, std::int64_t c,
                                     std::int64_t width) {
  const std::int64_t L = lanes<typename LaneOf<typename C::N>::type>();
  for (; c + U * L <= width; c += U * L) {
    typename C::State state[U];
    fold<U>(
        carry, count, [&](std::int64_t j, int u) CENOTE_INLINED { return cells(owner, first + j, c + u * L, L); },
        state);
    each<U>([&](int u) CENOTE_INLINED { sink(state[u], t, count, c + u * L, L); });
  }
  return c;
}

/// One target, or a piece of its owner, from the edges [first, first + count).
template <class C, class Cells, class Sink>
HWY_INLINE void reduce_row(const C& carry, const Cells& cells, const Sink& sink, std::int64_t t, std::int64_t owner,
                           std::int64_t first, std::int64_t count, std::int64_t width) {
  const std::int64_t L = lanes<typename LaneOf<typename C::N>::type>();
  std::int64_t c = 0;
  if (HWY_LIKELY(count > 0)) {
    if constexpr (packs_in_flight<C>() > 1)
      c = reduce_packs<packs_in_flight<C>()>(carry, cells, sink, t, owner, first, count, c, width);
    c = reduce_packs<1>(carry, cells, sink, t, owner, first, count, c, width);
  }
  for (; c < width; c += L) {
    // The last pack of a row overlaps the one before it.
    const std::int64_t at = c + L <= width ? c : HWY_MAX(width - L, 0), n = HWY_MIN(L, width);
    typename C::State state[1] = {carry.identity()};
    if (HWY_LIKELY(count > 0))
      fold<1>(
          carry, count, [&](std::int64_t j, int) CENOTE_INLINED { return cells(owner, first + j, at, n); }, state);
    sink(state[0], t, count, at, n);
  }
}

/// Targets [begin, end) of a pass.
template <class C, class T, template <class, class> class Cells, template <class, class> class Sink>
void reduce_segments(const RowPass& pass) {
  const C carry = make_carry<C>(pass);
  const Cells<C, T> cells(carry, pass);
  const Sink<C, T> sink{carry, pass};
  const std::int64_t* offsets = pass.segments.offsets;
  const std::int32_t* source = pass.segments.source;
  for (std::int64_t t = pass.begin; t < pass.end; ++t) {
    const std::int64_t first = offsets ? offsets[t] : t;
    const std::int64_t count = offsets ? offsets[t + 1] - first : source[t] >= 0;
    if (offsets && source) prefetch_rows<T>(pass, first, count);
    reduce_row(carry, cells, sink, t, pass.owners ? pass.owners[t] : t, first, count, pass.width);
  }
}

template <class C, class T, template <class, class> class Cells, template <class, class> class Sink>
HWY_INLINE RowKernels row_kernels(int parts) {
  return {reduce_segments<C, T, Cells, Sink>, reduce_segments<C, T, Cells, StateSink>,
          reduce_segments<C, T, StateCells, Sink>, parts};
}

template <class R, class T>
HWY_INLINE void add_row_values(cpu::RowTable& table, Reducer reducer) {
  using C = Carry<R, Lane<T>>;
  table.at(Role::value, reducer) = row_kernels<C, T, PlainCells, ValueSink>(R::parts);
  if constexpr (R::picks)
    table.at(Role::winner, reducer) = row_kernels<Carry<Winner<R>, Lane<T>>, T, PlainCells, WinnerSink>(2);
  else if constexpr (!R::weighs)
    table.scaled[static_cast<int>(reducer)] = row_kernels<C, T, ScaledCells, ValueSink>(R::parts);
}

/// Weights are computed in the lane types alone.
template <class R, class T>
HWY_INLINE void add_row_derivatives(cpu::RowTable& table, Reducer reducer) {
  if constexpr (R::weighs || R::picks) {
    using W = typename Weighing<R>::type;
    table.at(Role::states, reducer) = row_kernels<Carry<W, T>, T, PlainCells, WeightSink>(2);
    table.at(Role::tangent, reducer) = row_kernels<Carry<Tangent<W>, T>, T, PlainCells, ValueSink>(3);
    table.at(Role::cotangent, reducer) = row_kernels<Carry<Cotangent<W>, T>, T, PlainCells, ValueSink>(2);
  }
}

template <class T>
const cpu::RowTable& make_row_table() {
  static const cpu::RowTable table = [] {
    cpu::RowTable result;
#define CENOTE_ITEM(name, struct_name) add_row_values<struct_name, T>(result, Reducer::name);
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
    if constexpr (std::is_same_v<T, Lane<T>>) {
#define CENOTE_ITEM(name, struct_name) add_row_derivatives<struct_name, T>(result, Reducer::name);
      CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
    }
    using Adds = Carry<Sum, Lane<T>>;
    result.forth = row_kernels<Adds, T, RoutedCells<false>::template Of, ValueSink>(1);
    result.back = row_kernels<Adds, T, RoutedCells<true>::template Of, ValueSink>(1);
    return result;
  }();
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
