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

/// Whether winners' numbers are bytes of which a pack can be written past the caches.
template <class C>
struct StreamsNumbers {
  static constexpr bool value = false;
};
template <class R, class A>
struct StreamsNumbers<Carry<ByteWinner<R>, A>> {
  static constexpr bool value = sizeof(A) == 4 && Bytes<A>::narrow;
};

/// Rows that lie side by side, of at least a pack: lanes run along them. Positions count lanes, whole rows of them.
template <class C, class T>
class RowLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
  /// Whether Rows::values may be asked for, with the numbers of winners.
  static constexpr bool writes_numbers = StreamsNumbers<C>::value;
  static constexpr bool writes_values = LiftsAsIs<C>::value || C::inputs == 2 || writes_numbers;
  HWY_INLINE RowLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass) {}
  /// Whether the states of a row that two windows share are kept for the second. Where rows are short it is faster to
  /// read those again, for two lines of windows at a time: what is written again and again drives them from L1.
  HWY_INLINE bool keeps() const { return pass_.len > short_row * lanes<A>(); }
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return make_rows(*this, carry_, rows, from, to);
  }
  /// Lines from `row` on, up to and with the first that has NaN or may have one, and says which that was.
  template <class Q>
  HWY_INLINE std::int64_t make(const Q& carry, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                               std::int64_t to) const {
    for (std::int64_t count; row < rows.count; row += count) {
      count = rows.apart > 0 && row + 1 < rows.count ? 2 : 1;
      if (HWY_UNLIKELY(keeps()      ? long_line(carry, rows, row, from, to)
                       : count == 2 ? short_lines<2>(carry, rows, row, from, to)
                                    : short_lines<1>(carry, rows, row, from, to)))
        break;
    }
    return row;
  }

 private:
  /// Packs of a row whose cells are folded in registers; longer ones are added up in L1, in the order of memory.
  static constexpr int short_row = 4;

  /// The cells of an output, in the first of its rows.
  struct Window {
    std::int64_t count, id;
    const T* cells;
    HWY_INLINE Window(const Axis& axis, std::int64_t o, std::int64_t step, std::int64_t id_scale, const T* line) {
      const std::int64_t start = o * axis.stride - axis.low, first = HWY_MAX(start, 0);
      count = HWY_MIN(start + axis.size, axis.n) - first;
      id = (first - start) * id_scale;
      cells = line + first * step;
    }
  };
  template <class State>
  static HWY_INLINE Pack<A> value_of(const State& state) {
    if constexpr (writes_numbers)
      return state.value;
    else
      return state.part[C::inputs - 1];
  }

  /// R lines that share rows, in registers. True if it met NaN.
  template <int R, class Q>
  HWY_NOINLINE bool short_lines(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                                std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Axis axis = *pass_.axis;
    const std::int64_t L = lanes<A>(), len = pass_.len, step = pass_.step, scale = pass_.id_scale;
    const std::int64_t fold = rows.fold, fold_row = rows.fold_row, apart = R > 1 ? rows.apart : 0;
    const std::int64_t row_id = rows.id, row_scale = rows.id_scale, dst_row = rows.dst_row, plane = pass_.dst_plane;
    const T* const line = rows.src + row * rows.src_row;
    const bool straight = rows.values.dst != nullptr, divides = rows.values.divides, past = rows.values.past_caches;
    const Pack<A> divisor = number<Pack<A>>(rows.values.divisor);
    A* dst = rows.dst + row * dst_row;
    T* y = straight ? rows.values.dst + row * dst_row : nullptr;
    std::uint8_t* numbers = writes_numbers && straight ? rows.values.numbers + row * dst_row : nullptr;
    Watch<Q> watch;
    // A state that is whole, on its way out.
    const auto put = [&](const typename Q::State& state, std::int64_t i) CENOTE_INLINED {
      if constexpr (writes_values)
        if (straight) {
          Pack<A> value = value_of(state);
          if (divides) value = quotient(value, divisor);
          if constexpr (writes_numbers) past ? state.number.stream(numbers + i) : state.number.store(numbers + i);
          return past ? stream(value, y + i) : store(value, y + i);
        }
      carry.store_state(state, dst + i, plane);
    };
    const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
    const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
    for (std::int64_t o = from / len; o < to / len;
         ++o, dst += len, y += straight ? len : 0, numbers += writes_numbers && straight ? len : 0) {
      const Window window(axis, o, step, scale, line);
      const std::int64_t count = window.count;
      if (HWY_UNLIKELY(count <= 0)) {
        for (std::int64_t r = 0; r < R; ++r)
          for (std::int64_t i = 0; i < len; i += L) put(carry.identity(), r * dst_row + i);
        continue;
      }
      // U packs from lane i on. Memory is read in its order: it is several times slower else.
      const auto packs = [&]<int U>(std::int64_t i, const auto& read, std::integral_constant<int, U>) CENOTE_INLINED {
        typename Q::State state[R][U], cells[U], more[U];
        const auto get = [&](auto& states, const T* q, std::int64_t id) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { states[u] = carry.cell(q + u * L, id, read); });
        };
        const auto look_at = [&](const auto& a, const auto& b) CENOTE_INLINED {
          if constexpr (Calm<C>::differs)
            each<U>([&](int u) CENOTE_INLINED { watch.add(cells_of(a[u]), cells_of(b[u])); }), watch.stay();
        };
        const auto join = [&](auto& a, const auto& b) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { a[u] = carry.combine(a[u], b[u]); });
        };
        // The cells of row j of a line, behind those before it.
        const auto add = [&](auto& states, std::int64_t j) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { more[u] = carry.behind(cells[u], row_id + j * row_scale); });
          if (j > 0)
            join(states, more);
          else
            each<U>([&](int u) CENOTE_INLINED { states[u] = more[u]; });
        };
        const T* q = window.cells + i;
        for (std::int64_t j = 0; j < apart + fold; ++j, q += fold_row) {
          get(cells, q, window.id);
          if (count == 1) look_at(cells, cells);
          for (std::int64_t k = 1; k < count; ++k) {
            get(more, q + k * step, window.id + k * scale);
            k == 1 ? look_at(cells, more) : look_at(more, more);
            join(cells, more);
          }
          if (R == 1 || j < fold) add(state[0], j);
          if constexpr (R > 1)
            if (j >= apart) add(state[1], j - apart);
        }
        each<R>([&](int r) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { put(state[r][u], r * dst_row + i + u * L); });
        });
      };
      std::int64_t i = 0;
      if (len == short_row * L) packs(0, whole, std::integral_constant<int, short_row>()), i = len;
      if (R > 1 && i + 2 * L <= len) packs(0, whole, std::integral_constant<int, R>()), i = 2 * L;
      for (; i + L <= len; i += L) packs(i, whole, std::integral_constant<int, 1>());
      if (i < len) packs(i, part, std::integral_constant<int, 1>());
    }
    return watch.any();
  }

  /// One line, of rows that wait in L1. True if it met NaN.
  template <class Q>
  HWY_NOINLINE bool long_line(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                              std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Axis axis = *pass_.axis;
    const std::int64_t L = lanes<A>(), len = pass_.len, step = pass_.step, scale = pass_.id_scale;
    const std::int64_t fold = rows.fold, fold_row = rows.fold_row, plane = pass_.dst_plane;
    const std::int64_t row_id = rows.id, row_scale = rows.id_scale;
    const bool shared = rows.shared;
    // Rows that are kept are whole packs, so that none is written over before it is read.
    const std::int64_t apart = (len + L - 1) / L * L;
    const T* const line = rows.src + row * rows.src_row;
    const bool straight = rows.values.dst != nullptr, divides = rows.values.divides, past = rows.values.past_caches;
    const Pack<A> divisor = number<Pack<A>>(rows.values.divisor);
    A *dst = rows.dst + row * rows.dst_row, *last = rows.last;
    T* y = straight ? rows.values.dst + row * rows.dst_row : nullptr;
    std::uint8_t* numbers = writes_numbers && straight ? rows.values.numbers + row * rows.dst_row : nullptr;
    if (last) last += (from / len - pass_.begin) * apart;
    Watch<Q> watch;
    // A state that is whole, on its way out.
    const auto put = [&](const typename Q::State& state, std::int64_t i) CENOTE_INLINED {
      if constexpr (writes_values)
        if (straight) {
          Pack<A> value = value_of(state);
          if (divides) value = quotient(value, divisor);
          if constexpr (writes_numbers) past ? state.number.stream(numbers + i) : state.number.store(numbers + i);
          return past ? stream(value, y + i) : store(value, y + i);
        }
      carry.store_state(state, dst + i, plane);
    };
    const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
    const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
    for (std::int64_t o = from / len; o < to / len; ++o, dst += len, y += straight ? len : 0,
                      numbers += writes_numbers && straight ? len : 0, last += last ? apart : 0) {
      const Window window(axis, o, step, scale, line);
      const std::int64_t count = window.count;
      if (HWY_UNLIKELY(count <= 0)) {
        for (std::int64_t i = 0; i < len; i += L) put(carry.identity(), i);
        if (last) fill_identity(carry, len, last, plane);
        continue;
      }
      // What is under way: the cells of one row of a window, and the rows so far.
      A *const cells_here = rows.spare, *const rows_here = straight ? rows.spare + apart : dst;
      for (std::int64_t r = 0; r < fold; ++r)
        for (std::int64_t j = 0; j < count; ++j) {
          const A* before = r > 0 ? rows_here : shared ? last : nullptr;
          const bool ends = r + 1 == fold && j + 1 == count;
          const T* q = window.cells + r * fold_row + j * step;
          const auto cell = [&](std::int64_t i, const auto& read) CENOTE_INLINED {
            const auto lifted = [&](std::int64_t id) CENOTE_INLINED {
              const auto result = carry.cell(q + i, id, read);
              if constexpr (Calm<C>::differs) watch.add(cells_of(result), cells_of(result)), watch.stay();
              return result;
            };
            if (!last) {
              auto state = lifted(row_id + r * row_scale + window.id + j * scale);
              if (r + j > 0) state = carry.combine(carry.load_state(rows_here + i, plane, 0), state);
              return ends ? put(state, i) : carry.store_state(state, rows_here + i, plane);
            }
            auto cells = lifted(window.id + j * scale);
            if (j > 0) cells = carry.combine(carry.load_state(cells_here + i, plane, 0), cells);
            if (j + 1 < count) return carry.store_state(cells, cells_here + i, plane);
            auto state = carry.behind(cells, row_id + r * row_scale);
            if (before) state = carry.combine(carry.load_state(before + i, plane, 0), state);
            if (!ends) return carry.store_state(state, rows_here + i, plane);
            put(state, i);
            carry.store_state(cells, last + i, plane);
          };
          std::int64_t i = 0;
          for (; i + L <= len; i += L) cell(i, whole);
          if (i < len) cell(i, part);
        }
    }
    return watch.any();
  }

  const C& carry_;
  const Pass& pass_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
