// Rows that lie side by side, as lines of short windows.

#if defined(CENOTE_CPU_ROW_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROW_LINE_INL_H_
#undef CENOTE_CPU_ROW_LINE_INL_H_
#else
#define CENOTE_CPU_ROW_LINE_INL_H_
#endif

#include "cpu/line_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Whether the state of a cell is the cell.
template <class C>
struct LiftsAsIs {
  static constexpr bool value = false;
};
template <bool Largest, class A>
struct LiftsAsIs<Carry<Extreme<Largest>, A>> {
  static constexpr bool value = true;
};
template <class Half, bool Largest, class A>
struct LiftsAsIs<Carry<KeyedExtreme<Half, Largest>, A>> {
  static constexpr bool value = true;
};
template <class A>
struct LiftsAsIs<Carry<Sum, A>> {
  static constexpr bool value = true;
};

/// Rows that lie side by side, of at least a pack: lanes run along them. Positions count lanes, whole rows of them.
template <class C, class T>
class RowLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
  /// Whether Rows::values may be asked for.
  static constexpr bool writes_values = LiftsAsIs<C>::value || C::inputs == 2;
  HWY_INLINE RowLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass) {}
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return make_rows(*this, carry_, rows, from, to);
  }
  /// Lines from `row` on, up to and with the first that has NaN, and says which that was.
  template <class Q>
  HWY_NOINLINE std::int64_t make(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                 std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Rows<T, A> all = rows;
    const Axis axis = *pass_.axis;
    const std::int64_t L = lanes<A>(), len = pass_.len, step = pass_.step, plane = pass_.dst_plane;
    const std::int64_t scale = pass_.id_scale;
    // Rows that are kept are whole packs, so that none is written over before it is read.
    const std::int64_t apart = (len + L - 1) / L * L;
    const Pack<A> divisor = number<Pack<A>>(all.values.divisor);
    const bool straight = all.values.dst != nullptr, divides = all.values.divides, past = all.values.past_caches;
    Watch<Q> watch;
    const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
    const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
    for (; row < all.count; ++row) {
      A *dst = all.dst + row * all.dst_row, *last = all.last;
      T* y = straight ? all.values.dst + row * all.dst_row : nullptr;
      if (last) last += (from / len - pass_.begin) * apart;
      watch = {};
      for (std::int64_t o = from / len; o < to / len;
           ++o, dst += len, y += straight ? len : 0, last += last ? apart : 0) {
        const std::int64_t start = o * axis.stride - axis.low;
        const std::int64_t first = HWY_MAX(start, 0), count = HWY_MIN(start + axis.size, axis.n) - first;
        const std::int64_t id = (first - start) * scale;
        const T* p = all.src + row * all.src_row + first * step;
        // A state that is whole, on its way out.
        const auto put = [&](const typename Q::State& state, std::int64_t i) CENOTE_INLINED {
          if constexpr (writes_values)
            if (straight) {
              Pack<A> value = state.part[C::inputs - 1];
              if (divides) value = quotient(value, divisor);
              return past ? stream(value, y + i) : store(value, y + i);
            }
          carry.store_state(state, dst + i, plane);
        };
        if (HWY_UNLIKELY(count <= 0)) {
          for (std::int64_t i = 0; i < len; i += L) put(carry.identity(), i);
          if (last) fill_identity(carry, len, last, plane);
          continue;
        }
        if (len > short_row * L) {
          // What is under way: the cells of one row of a window, and the rows so far.
          A *const cells_here = all.spare, *const rows_here = straight ? all.spare + apart : dst;
          for (std::int64_t r = 0; r < all.fold; ++r)
            for (std::int64_t j = 0; j < count; ++j) {
              const A* before = r > 0 ? rows_here : all.shared ? last : nullptr;
              const bool ends = r + 1 == all.fold && j + 1 == count;
              const T* q = p + r * all.fold_row + j * step;
              const auto cell = [&](std::int64_t i, const auto& read) CENOTE_INLINED {
                const auto lifted = [&](std::int64_t at) CENOTE_INLINED {
                  const auto result = carry.cell(q + i, at, read);
                  if constexpr (Calm<C>::differs) watch.add(cells_of(result), cells_of(result));
                  return result;
                };
                if (!last) {
                  auto state = lifted(all.id + r * all.id_scale + id + j * scale);
                  if (r + j > 0) state = carry.combine(carry.load_state(rows_here + i, plane, 0), state);
                  return ends ? put(state, i) : carry.store_state(state, rows_here + i, plane);
                }
                auto cells = lifted(id + j * scale);
                if (j > 0) cells = carry.combine(carry.load_state(cells_here + i, plane, 0), cells);
                if (j + 1 < count) return carry.store_state(cells, cells_here + i, plane);
                auto state = carry.behind(cells, all.id + r * all.id_scale);
                if (before) state = carry.combine(carry.load_state(before + i, plane, 0), state);
                if (!ends) return carry.store_state(state, rows_here + i, plane);
                put(state, i);
                carry.store_state(cells, last + i, plane);
              };
              std::int64_t i = 0;
              for (; i + L <= len; i += L) cell(i, whole);
              if (i < len) cell(i, part);
            }
          continue;
        }
        // U packs from lane i on. Memory is read in its order: it is several times slower else.
        const auto packs = [&]<int U>(std::int64_t i, const auto& read, std::integral_constant<int, U>) CENOTE_INLINED {
          typename Q::State state[U], cells[U], more[U];
          const auto get = [&](auto& states, const T* q, std::int64_t at) CENOTE_INLINED {
            each<U>([&](int u) CENOTE_INLINED { states[u] = carry.cell(q + u * L, at, read); });
          };
          const auto look_at = [&](const auto& a, const auto& b) CENOTE_INLINED {
            if constexpr (Calm<C>::differs)
              each<U>([&](int u) CENOTE_INLINED { watch.add(cells_of(a[u]), cells_of(b[u])); });
          };
          const auto join = [&](auto& a, const auto& b) CENOTE_INLINED {
            each<U>([&](int u) CENOTE_INLINED { a[u] = carry.combine(a[u], b[u]); });
          };
          for (std::int64_t r = 0; r < all.fold; ++r) {
            const T* q = p + r * all.fold_row + i;
            get(cells, q, id);
            if (count == 1) look_at(cells, cells);
            for (std::int64_t j = 1; j < count; ++j) {
              get(more, q + j * step, id + j * scale);
              j == 1 ? look_at(cells, more) : look_at(more, more);
              join(cells, more);
            }
            each<U>([&](int u) CENOTE_INLINED { more[u] = carry.behind(cells[u], all.id + r * all.id_scale); });
            if (r == 0 && all.shared)
              each<U>([&](int u) CENOTE_INLINED { state[u] = carry.load_state(last + i + u * L, plane, 0); });
            if (r > 0 || all.shared)
              join(state, more);
            else
              each<U>([&](int u) CENOTE_INLINED { state[u] = more[u]; });
          }
          each<U>([&](int u) CENOTE_INLINED {
            put(state[u], i + u * L);
            if (last) carry.store_state(cells[u], last + i + u * L, plane);
          });
        };
        std::int64_t i = 0;
        if (len == short_row * L) packs(0, whole, std::integral_constant<int, short_row>()), i = len;
        for (; i + L <= len; i += L) packs(i, whole, std::integral_constant<int, 1>());
        if (i < len) packs(i, part, std::integral_constant<int, 1>());
      }
      if (HWY_UNLIKELY(watch.any())) break;
    }
    return row;
  }

 private:
  /// Packs of a row whose cells are folded in registers; longer ones are added up in L1, in the order of memory.
  static constexpr int short_row = 4;

  const C& carry_;
  const Pass& pass_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
