// The kernels of row reductions: every target folds its source rows, some packs of channels at a time. Included once
// per target by each type's translation unit.

#if defined(CENOTE_CPU_SEGMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SEGMENTS_INL_H_
#undef CENOTE_CPU_SEGMENTS_INL_H_
#else
#define CENOTE_CPU_SEGMENTS_INL_H_
#endif

#include "cpu/fold-inl.h"
#include "cpu/runs-inl.h"
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
  if (HWY_LIKELY(n >= lanes<T>())) return store(x, p);
  // As for masked loads: elsewhere masked lanes may be touched.
  if constexpr (std::is_same_v<T, Lane<T>> && (HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4)))
    hn::BlendedStore(x.v, hn::FirstN(Tag<T>(), static_cast<std::size_t>(n)), Tag<T>(), p);
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

/// Where a pack of results goes: elements of y, elements of an array without gaps, and how many.
struct Spot {
  std::int64_t y, dense, n;
};

/// Lowers states and stores values. `by` divides them, or is the cell that they belong to.
template <class C, class T>
struct ValueSink {
  using N = typename C::N;
  const C& carry;
  const RowPass& pass;

  HWY_INLINE void operator()(const typename C::State& state, N by, Flags<Lane<T>>, Spot spot) const {
    T* to = static_cast<T*>(pass.y) + spot.y;
    const N value = carry.reducer.lower(state, by);
    if (pass.stream)
      stream(value, to);
    else
      store_channels(value, to, spot.n);
  }
};

/// Stores values and the rows that they came from.
template <class C, class T>
struct WinnerSink {
  using N = typename C::N;
  const C& carry;
  const RowPass& pass;

  HWY_INLINE void operator()(const typename C::State& state, N, Flags<Lane<T>> empty, Spot spot) const {
    store_channels(state.value, static_cast<T*>(pass.y) + spot.y, spot.n);
    store_rows(select(empty, broadcast<typename C::I>(-1), state.index), pass.winners + spot.dense, spot.n);
  }
};

/// Stores the two numbers that weights hang on.
template <class C, class T>
struct WeightSink {
  using N = typename C::N;
  const C& carry;
  const RowPass& pass;

  HWY_INLINE void operator()(const typename C::State& state, N by, Flags<Lane<T>>, Spot spot) const {
    const typename C::State whole = carry.reducer.close(state, by);
    store_channels(whole.part[0], static_cast<T*>(pass.y) + spot.y, spot.n);
    store_channels(carry.reducer.spread(whole.part[1]), static_cast<T*>(pass.second) + spot.y, spot.n);
  }
};

/// Stores states as they are; their rows reach a pack beyond the last channel.
template <class C, class T>
struct StateSink {
  using N = typename C::N;
  const C& carry;
  const RowPass& pass;

  HWY_INLINE void operator()(const typename C::State& state, N, Flags<Lane<T>>, Spot spot) const {
    carry.store_state(state, static_cast<Lane<T>*>(pass.y) + spot.y, pass.y_plane);
  }
};

/// The edges of one target.
struct Edges {
  std::int64_t first, count;
};
HWY_INLINE Edges edges_of(const sparse::Segments& segments, std::int64_t t) {
  if (!segments.offsets) return {t, segments.source[t] >= 0};
  return {segments.offsets[t], segments.offsets[t + 1] - segments.offsets[t]};
}

HWY_INLINE double divisor_of(const RowPass& pass, std::int64_t t, std::int64_t edges) {
  if (pass.divides_by_edges) return static_cast<double>(HWY_MAX(edges, 1));
  return pass.divisors ? pass.divisors[t] : pass.divisor;
}

/// Brings the rows of edges that come soon: they may lie anywhere.
template <class T>
class Ahead {
 public:
  explicit HWY_INLINE Ahead(const RowPass& pass) : pass_(pass), sources_(pass) {
    const auto bytes = static_cast<std::int64_t>(sizeof(T)) * pass.width;
    row_bytes_ = HWY_MIN(bytes, 512);
    // Rows that stay in the caches need no help.
    rows_ = pass.segments.offsets && pass.segments.source && bytes * pass.segments.sources > (8 << 20);
  }
  HWY_INLINE void operator()(Edges edges) const {
    constexpr std::int64_t ahead = 16;
    const std::int64_t last = rows_ ? HWY_MIN(edges.first + edges.count + ahead, pass_.segments.edges) : 0;
    for (std::int64_t e = edges.first + ahead; e < last; ++e) {
      const char* row = reinterpret_cast<const char*>(sources_.at(sources_.row(e), 0));
      for (std::int64_t b = 0; b < row_bytes_; b += 64) __builtin_prefetch(row + b);
    }
  }

 private:
  const RowPass& pass_;
  Sources<T> sources_;
  std::int64_t row_bytes_;
  bool rows_;
};

/// One target, or a piece of one, U packs of channels at a time.
template <class C, class T, class Cells, class Sink>
struct RowFold {
  using N = typename C::N;
  static constexpr std::int64_t stage = 1024;
  const RowPass& pass;
  const C& carry;
  const Cells& cells;
  const Sink& sink;

  template <int U>
  HWY_INLINE void packs(std::int64_t t, Edges edges, std::int64_t c, std::int64_t n) const {
    const std::int64_t L = lanes<T>(), owner = pass.owners ? pass.owners[t] : t;
    typename C::State state[U];
    each<U>([&](int u) CENOTE_INLINED { state[u] = carry.identity(); });
    if (HWY_LIKELY(edges.count > 0))
      fold<U>(
          carry, edges.count,
          [&](std::int64_t j, int u) CENOTE_INLINED { return cells(owner, edges.first + j, c + u * L, n); }, state);
    each<U>([&](int u) CENOTE_INLINED { finish(state[u], t, edges, c + u * L, n); });
  }
  HWY_INLINE void finish(const typename C::State& state, std::int64_t t, Edges edges, std::int64_t c,
                         std::int64_t n) const {
    const Spot spot{t * pass.y_step + c, t * pass.width + c, n};
    const N by = pass.cells ? load_channels(static_cast<const T*>(pass.cells) + spot.y, n)
                            : number<N>(divisor_of(pass, t, edges.count));
    sink(state, by, number<N>(static_cast<double>(HWY_MIN(edges.count, 1))) == number<N>(0), spot);
  }
  /// Few long rows, one after the other: memory is read in the order of its addresses.
  HWY_INLINE void wide(std::int64_t t, Edges edges, std::int64_t from, std::int64_t to) const {
    const std::int64_t L = lanes<T>(), owner = pass.owners ? pass.owners[t] : t;
    HWY_ALIGN Lane<T> sums[stage];
    for (std::int64_t j = 0; j < edges.count; ++j)
      for (std::int64_t c = from; c < to; c += L) {
        const typename C::State cell = cells(owner, edges.first + j, c, L);
        carry.store_state(j == 0 ? cell : carry.combine(carry.load_state(sums + (c - from), 0, 0), cell),
                          sums + (c - from), 0);
      }
    for (std::int64_t c = from; c < to; c += L) finish(carry.load_state(sums + (c - from), 0, 0), t, edges, c, L);
  }
  HWY_INLINE void operator()(std::int64_t t, Edges edges) const {
    constexpr int U = packs_in_flight<C>();
    const std::int64_t L = lanes<T>(), width = pass.width;
    std::int64_t c = 0;
    if constexpr (U > 1)
      if (width > U * L && !pass.segments.source && edges.count > 1 && edges.count <= group_cells)
        for (; c + L <= width; c = HWY_MIN(c + stage, width / L * L))
          wide(t, edges, c, HWY_MIN(c + stage, width / L * L));
    for (; c + U * L <= width; c += U * L) packs<U>(t, edges, c, L);
    // The last pack of a row overlaps the one before it.
    for (; c < width; c += L) packs<1>(t, edges, c + L <= width ? c : HWY_MAX(width - L, 0), HWY_MIN(L, width));
  }
};

/// Targets of at most group_cells rows, which have at most P packs each, without a branch for every row: where there
/// are fewer rows the last one is read again, and not folded, unless the reducer picks and so sees no difference.
template <int P, class C, class T, class Cells, class Sink>
struct BriefFold {
  using I = IndexLane<Lane<T>>;
  const RowFold<C, T, Cells, Sink>& fold;
  // Rows shorter than a pack are read and written as whole packs where others follow, which are written later.
  std::int64_t reserve = (lanes<T>() + fold.pass.width - 1) / fold.pass.width;
  std::int64_t last_read = lies_dense() ? fold.pass.segments.sources - reserve : -1;
  std::int64_t last_written = fold.pass.y_step == fold.pass.width ? fold.pass.end - reserve : -1;

  HWY_INLINE bool lies_dense() const { return !fold.pass.segments.source && fold.pass.x_step == fold.pass.width; }

  HWY_INLINE void operator()(std::int64_t t, Edges edges) const {
    if (HWY_UNLIKELY(edges.count == 0)) return fold(t, edges);
    const std::int64_t L = lanes<T>(), width = fold.pass.width, last = edges.first + edges.count - 1;
    const std::int64_t n = last <= last_read ? L : HWY_MIN(L, width);
    const auto cell = [&](std::int64_t e, int u) CENOTE_INLINED { return fold.cells(t, e, place(u), n); };
    typename C::State state[P];
    each<P>([&](int u) CENOTE_INLINED { state[u] = cell(edges.first, u); });
    const auto step = [&](int j) CENOTE_INLINED {
      const std::int64_t e = HWY_MIN(edges.first + j, last);
      each<P>([&](int u) CENOTE_INLINED {
        const typename C::State next = fold.carry.combine(state[u], cell(e, u));
        if constexpr (picks)
          state[u] = next;
        else
          state[u] = choose(broadcast(static_cast<I>(j + 1)) <= broadcast(static_cast<I>(edges.count)), next, state[u]);
      });
    };
    step(1), step(2), step(3);
    if (edges.count > 4) step(4), step(5), step(6), step(7);
    const std::int64_t written = t <= last_written ? L : HWY_MIN(L, width);
    each<P>([&](int u) CENOTE_INLINED { fold.finish(state[u], t, edges, place(u), written); });
  }

 private:
  static constexpr bool picks = [] {
    if constexpr (C::is_winner)
      return true;
    else
      return decltype(C::reducer)::picks;
  }();
  /// The last pack of a row overlaps the one before it.
  HWY_INLINE std::int64_t place(int u) const {
    return HWY_MIN(u * lanes<T>(), HWY_MAX(fold.pass.width - lanes<T>(), 0));
  }
};

/// Targets [begin, end) of a pass, each by fold(t, edges).
template <class T, class Fold>
HWY_INLINE void for_targets(const RowPass& pass, const Fold& fold) {
  const Ahead<T> ahead(pass);
  for (std::int64_t t = pass.begin; t < pass.end; ++t) {
    const Edges edges = edges_of(pass.segments, t);
    ahead(edges);
    fold(t, edges);
  }
}

/// Targets [begin, end) of a pass.
template <class C, class T, template <class, class> class Cells, template <class, class> class Sink>
void reduce_segments(const RowPass& given) {
  const RowPass pass = given;  // a copy that no store through a pointer can change
  const C carry = make_carry<C>(pass);
  const Cells<C, T> cells(carry, pass);
  const Sink<C, T> sink{carry, pass};
  const RowFold<C, T, Cells<C, T>, Sink<C, T>> fold{pass, carry, cells, sink};
  // Short targets have ways of their own, where values or winners are asked for and states are small.
  constexpr bool plain = std::is_same_v<Cells<C, T>, PlainCells<C, T>>;
  constexpr bool values = plain && std::is_same_v<Sink<C, T>, ValueSink<C, T>> && packs_in_flight<C>() > 1;
  if constexpr (values)
    if (Runs<C, T>::apply(pass)) return Runs<C, T>(carry, pass)();
  if constexpr (values || (plain && std::is_same_v<Sink<C, T>, WinnerSink<C, T>>)) {
    const bool brief = pass.segments.longest <= group_cells;
    if (brief && pass.width <= lanes<T>())
      return for_targets<T>(pass, BriefFold<1, C, T, Cells<C, T>, Sink<C, T>>{fold});
    if (brief && pass.width <= 2 * lanes<T>())
      return for_targets<T>(pass, BriefFold<2, C, T, Cells<C, T>, Sink<C, T>>{fold});
  }
  for_targets<T>(pass, fold);
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
