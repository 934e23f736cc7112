// The kernels of one element type: rows, lines, merge and finish, in a table. Included once per target by each type's
// translation unit.

#if defined(CENOTE_CPU_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_KERNELS_INL_H_
#undef CENOTE_CPU_KERNELS_INL_H_
#else
#define CENOTE_CPU_KERNELS_INL_H_
#endif

#include "cpu/lines-inl.h"
#include "cpu/planes-inl.h"
#include "cpu/rows-inl.h"
#include "cpu/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Kernels;

template <class R, class T>
void finish(const Finish& call) {
  using A = Lane<T>;
  using C = Carry<R, A>;
  const C carry(call.params);
  // Copies, since a stored pack might alias the originals.
  const std::int64_t len = call.len, plane = call.src_plane;
  const A* src = static_cast<const A*>(call.src);
  const A* counts = static_cast<const A*>(call.counts);
  const Pack<A> same = number<Pack<A>>(call.count);
  T* dst = static_cast<T*>(call.dst);
  const auto write = [&](const auto& lower) CENOTE_INLINED {
    write_values(dst, len, call.stream, [&](std::int64_t i) CENOTE_INLINED { return lower(src + i, i); });
  };
  const auto count = [&](std::int64_t i) CENOTE_INLINED { return counts ? load(counts + i) : same; };
  if constexpr (requires { R::tames; })
    if (call.params.tame) {
      if constexpr (requires { carry.reducer.lower_tame(same); })
        if (!counts)
          return write([&](const A* p, std::int64_t) CENOTE_INLINED { return carry.reducer.lower_tame(load(p)); });
      return write([&](const A* p, std::int64_t i)
                       CENOTE_INLINED { return carry.reducer.lower_tame(load(p), count(i)); });
    }
  const auto state = [&](const A* p) CENOTE_INLINED { return carry.load_state(p, plane, 0); };
  if constexpr (requires { carry.reducer.lower(state(src), Divisor<A>(1)); })
    if (!counts) {
      const Divisor<A> divisor(call.count);
      return write([&](const A* p, std::int64_t) CENOTE_INLINED { return carry.reducer.lower(state(p), divisor); });
    }
  write([&](const A* p, std::int64_t i) CENOTE_INLINED { return carry.reducer.lower(state(p), count(i)); });
}

/// Cells become what tame sums are made of; whole packs are written.
template <class R, class T>
void tame_powers(const void* cells, std::int64_t plane, void* powers, std::int64_t n, std::int64_t ahead,
                 const Params& params) {
  const R reducer(params);
  const T* x = static_cast<const T*>(cells);
  Lane<T>* y = static_cast<Lane<T>*>(powers);
  const auto power = [&](const T* p, const auto& get) CENOTE_INLINED {
    if constexpr (requires { R::inputs; }) {
      __builtin_prefetch(p + plane + ahead, 0, 2);
      return reducer.tame_power(get(p), get(p + plane));
    } else {
      return reducer.tame_power(get(p));
    }
  };
  const std::int64_t L = lanes<T>();
  std::int64_t i = 0;
  for (; i + L <= n; i += L) {
    __builtin_prefetch(x + i + ahead, 0, 2);
    store(power(x + i, [](const T* p) CENOTE_INLINED { return load(p); }), y + i);
  }
  if (i < n) store(power(x + i, [&](const T* p) CENOTE_INLINED { return load_first(p, n - i); }), y + i);
}

template <class R, class T>
void range(const void* line, std::int64_t n, double& low, double& high) {
  using A = Lane<T>;
  constexpr int U = 4;
  const T* x = static_cast<const T*>(line);
  const std::int64_t L = lanes<A>();
  const Tag<A> tag;
  hn::Vec<Tag<A>> least[U], most[U], bad[U];
  each<U>([&](int u) CENOTE_INLINED { least[u] = most[u] = R::looked_at(load_every(x)).v, bad[u] = hn::Zero(tag); });
  const auto take = [&](Pack<A> elements, int u) CENOTE_INLINED {
    const Pack<A> cells = R::looked_at(elements);
    least[u] = hn::Min(least[u], cells.v);
    most[u] = hn::Max(most[u], cells.v);
    bad[u] = hn::MulAdd(cells.v, hn::Zero(tag), bad[u]);  // 0, and NaN from the first that is not finite on
  };
  std::int64_t i = 0;
  const std::int64_t ahead = cpu::asked_ahead() / std::int64_t{sizeof(T)};
  for (; i + U * L <= n; i += U * L)
    each<U>([&](int u) CENOTE_INLINED {
      __builtin_prefetch(x + i + u * L + ahead);
      take(load(x + i + u * L), u);
    });
  for (; i + L <= n; i += L) take(load(x + i), 0);
  if (i < n && n >= L) take(load(x + n - L), 0), i = n;
  for (; i < n; ++i) take(load_every(x + i), 0);
  each<U>([&](int u) CENOTE_INLINED {
    least[0] = hn::Min(least[0], least[u]);
    most[0] = hn::Max(most[0], most[u]);
    bad[0] = u == 0 ? bad[0] : hn::Add(bad[0], bad[u]);
  });
  const double from = hn::GetLane(hn::MinOfLanes(tag, least[0])), to = hn::GetLane(hn::MaxOfLanes(tag, most[0]));
  low = HWY_MIN(low, from);
  high = hn::AllTrue(tag, hn::Eq(bad[0], bad[0])) ? (to > high ? to : high) : std::numeric_limits<double>::quiet_NaN();
}

/// States are merged in the lane type, so halves that are widened leave that to f32.
template <class C, class T>
constexpr auto merger() -> void (*)(const Pass&) {
  if constexpr (sizeof(T) == sizeof(Lane<T>))
    return merge<C>;
  else
    return nullptr;
}

template <class C, class T>
constexpr auto joiner() -> void (*)(const Join&) {
  if constexpr (sizeof(T) == sizeof(Lane<T>))
    return join_rows<C>;
  else
    return nullptr;
}

/// A reducer whose states are made and joined in the same way: an average is a sum until it is lowered.
template <class R>
struct FoldsAs {
  using type = R;
};
template <>
struct FoldsAs<Avg> {
  using type = Sum;
};

/// How the values of a reducer are made: the reducer, and the type that elements are read as.
template <class R, class T>
struct Made {
  using Reducer = R;
  using Element = T;
};
template <bool Largest, class T>
requires(sizeof(T) == 2 && std::is_floating_point_v<Lane<T>>) struct Made<Extreme<Largest>, T> {
  using Reducer = KeyedExtreme<T, Largest>;
  using Element = Keyed<T, Largest>;
};

template <class C, class T>
constexpr auto plane_maker() -> void (*)(const Planes&) {
  // Winners among integers go row by row: each set of kernels costs time to compile.
  constexpr bool winner = C::is_winner && std::is_floating_point_v<Lane<T>>;
  if constexpr ((sizeof(typename C::State) == sizeof(typename C::N) || winner) && C::inputs == 1)
    return planes<C, T>;
  else
    return nullptr;
}

template <class C, class T>
HWY_INLINE Kernels kernels_of(int parts, void (*finish)(const Finish&)) {
  Kernels result{lines<C, T>,      rows<C, T>,     merger<C, T>(),      finish,
                 sweep_line<C, T>, joiner<C, T>(), plane_maker<C, T>(), parts};
  result.swept = LiftsAsIs<C>::value;
  return result;
}

template <class R, class T>
HWY_INLINE void add_tame(Kernels& kernels) {
  kernels.tame_planes = folded_planes<Carry<R, Lane<T>>, T>;
  kernels.tame_finish = finish<R, T>;
}

template <class R, class T>
HWY_INLINE void add_values(cpu::Table& table, Reducer reducer) {
  using A = Lane<T>;
  if constexpr (R::integers || std::is_floating_point_v<A>) {
    using Q = typename Made<R, T>::Reducer;
    using E = typename Made<R, T>::Element;
    table.at(Role::value, reducer) = kernels_of<Carry<typename FoldsAs<Q>::type, Lane<E>>, E>(R::parts, finish<Q, E>);
    if constexpr (requires { R::tames; }) {
      table.at(Role::value, reducer).range = range<R, T>;
      table.at(Role::value, reducer).powers = tame_powers<R, T>;
      add_tame<Tame<R>, T>(table.at(Role::value, reducer));
    }
    if constexpr (R::picks && sizeof(A) >= 4) {
      table.at(Role::winner, reducer) = kernels_of<Carry<Winner<R>, A>, T>(2, finish<R, T>);
      table.at(Role::winner, reducer).join_numbered = join_numbered<R, T>;
    }
  }
}

/// Writes the two numbers that a window's weights hang on.
template <class R, class T>
void finish_states(const Finish& call) {
  const Carry<R, T> carry(call.params);
  const std::int64_t L = lanes<T>();
  const T* counts = static_cast<const T*>(call.counts);
  for (std::int64_t i = 0; i < call.len; i += L) {
    const Pack<T> n = counts ? load(counts + i) : number<Pack<T>>(call.count);
    const auto state = carry.reducer.close(carry.load_state(static_cast<const T*>(call.src) + i, call.src_plane, 0), n);
    const std::int64_t count = HWY_MIN(L, call.len - i);
    const auto write = [&](Pack<T> part, void* dst) CENOTE_INLINED {
      T* to = static_cast<T*>(dst) + i;
      count == L ? store(part, to) : store_first(part, to, count);
    };
    write(state.part[0], call.dst);
    write(carry.reducer.spread(state.part[1]), call.second);
  }
}

/// What follows the cells that a reducer picks is made plane by plane, or not at all.
template <class R, class T>
HWY_INLINE void add_follower(cpu::Table& table, Reducer reducer) {
  if constexpr (R::picks) {
    Kernels& result = table.at(Role::follower, reducer);
    result.planes = folded_planes<Carry<Follower<R>, T>, T>;
    result.finish = finish<Follower<R>, T>;
    result.join = join_rows<Carry<Follower<R>, T>>;
    result.parts = Follower<R>::parts;
  }
}

/// Derivatives are computed in the lane types alone.
template <class R, class T>
HWY_INLINE void add_derivatives(cpu::Table& table, Reducer reducer) {
  if constexpr (R::weighs || R::picks) {
    using W = typename Weighing<R>::type;
    Kernels& states = table.at(Role::states, reducer);
    if constexpr (!R::weighs) states = kernels_of<Carry<W, T>, T>(2, nullptr);
    states.finish = finish_states<W, T>;
    table.at(Role::tangent, reducer) = kernels_of<Carry<Tangent<W>, T>, T>(3, finish<Tangent<W>, T>);
    table.at(Role::cotangent, reducer) = kernels_of<Carry<Cotangent<W>, T>, T>(2, finish<Cotangent<W>, T>);
    if constexpr (requires { W::tames; }) add_tame<TameTangent<W>, T>(table.at(Role::tangent, reducer));
    if constexpr (requires { Cotangent<W>::tames; })
      table.at(Role::cotangent, reducer).powers = tame_powers<Cotangent<W>, T>;
  }
}

template <class T>
const cpu::Table& make_table() {
  static const cpu::Table table = [] {
    cpu::Table result;
#define CENOTE_ITEM(name, struct_name) add_values<struct_name, T>(result, Reducer::name);
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
    return result;
  }();
  return table;
}

template <class T>
const cpu::Table& make_derivatives() {
  static const cpu::Table table = [] {
    cpu::Table result;
#define CENOTE_ITEM(name, struct_name)                    \
  add_derivatives<struct_name, T>(result, Reducer::name); \
  add_follower<struct_name, T>(result, Reducer::name);
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
