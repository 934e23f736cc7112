// Rows that lie side by side, as lines of short windows.

#if defined(CENOTE_CPU_ROW_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROW_LINE_INL_H_
#undef CENOTE_CPU_ROW_LINE_INL_H_
#else
#define CENOTE_CPU_ROW_LINE_INL_H_
#endif

#include "cpu/joined_line-inl.h"

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
  static constexpr bool writes_values = LiftsAsIs<C>::value || C::inputs == 2 || writes_numbers || IsTame<C>;
  /// `far`: the rows lie beyond the caches.
  HWY_INLINE RowLine(const C& carry, const Pass& pass, bool far)
      : carry_(carry),
        pass_(pass),
        is_long_(far && pass.len > short_row * lanes<A>()),
        is_plain_(!is_long_ || (pass.axis->stride == 1 && pass.step == pass.len)),
        ahead_(far || pass.ahead > 0 || pass.len <= short_row * lanes<A>() ? 0 : 2 * pass.axis->stride * pass.step),
        joins_(joins(pass, far)),
        far_(far),
        keeps_(!joins_ && C::inputs * pass.len > (far ? short_row : 1) * lanes<A>()) {}
  /// Whether the rows of a window are joined first, in Rows::spare: any number of them, none of which are kept.
  static HWY_INLINE bool joins(const Pass& pass, bool far) {
    if constexpr (LiftsAsIs<C>::value)
      return JoinedLine<C, T>::suits(pass, far);
    else
      return false;
  }
  HWY_INLINE bool joins() const { return joins_; }
  /// Whether the states of a row that two windows share are kept for the second. Where rows are so short that two lines
  /// of windows fit the registers, and far or of one pack, it is faster to read them again for those: what is written
  /// again and again drives them from L1.
  HWY_INLINE bool keeps() const { return keeps_; }
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    return make_rows(*this, carry_, rows, from, to);
  }
  /// Lines from `row` on, up to and with the first that has NaN or may have one, and says which that was.
  template <class Q>
  HWY_INLINE std::int64_t make(const Q& carry, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                               std::int64_t to) const {
    // Where the order of cells matters, windows along rows come first.
    if constexpr (LiftsAsIs<C>::value && !(Calm<C>::differs && std::is_same_v<Q, C>))
      if (joins_) {
        const JoinedLine<C, T> line(pass_, far_);
        while (row < rows.count && HWY_LIKELY(!line(carry, rows, row, from, to))) ++row;
        return row;
      }
    const bool alone = rows.fold == 1 && !rows.last && !rows.values.dst;
    const auto make_lines = [&](std::int64_t count) CENOTE_INLINED {
      if (alone && is_plain_) return plain_line(carry, rows, row, from, to);
      if (is_long_) return long_line(carry, rows, row, from, to);
      return count == 1 ? short_lines<1>(carry, rows, row, from, to)
                        : short_lines<most_lines>(carry, rows, row, from, to);
    };
    for (std::int64_t count; row < rows.count; row += count) {
      count = most_lines > 1 && rows.apart > 0 && row + 1 < rows.count ? 2 : 1;
      if (HWY_UNLIKELY(make_lines(count))) break;
    }
    return row;
  }

 private:
  /// Packs of a row whose cells are folded in registers at a time; longer rows that lie beyond the caches are added up
  /// in L1, in the order of memory.
  static constexpr int short_row = 4;
  /// Lines of windows that there may be at a time: winners whose numbers do not fit bytes come one row by one.
  static constexpr bool narrow = !C::is_winner || requires(const C& carry) { carry.numbers; };
  static constexpr int most_lines = narrow ? 2 : 1;

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

  /// The way out of whole states, from that of an output on.
  struct Way {
    A* dst;
    T* y = nullptr;
    std::uint8_t* numbers = nullptr;
    const std::int64_t plane;
    const bool straight, divides, past;
    const Divisor<A> divisor;
    const Pack<A> count;
    HWY_INLINE Way(const Rows<T, A>& rows, std::int64_t row, std::int64_t plane)
        : dst(rows.dst + row * rows.dst_row),
          plane(plane),
          straight(rows.values.dst != nullptr),
          divides(rows.values.divides),
          past(rows.values.past_caches),
          divisor(rows.values.divisor),
          count(number<Pack<A>>(rows.values.divisor)) {
      if (straight) y = rows.values.dst + row * rows.dst_row;
      if (writes_numbers && straight) numbers = rows.values.numbers + row * rows.dst_row;
    }
    HWY_INLINE void go_on(std::int64_t len) {
      dst += len;
      if (straight) y += len;
      if (writes_numbers && straight) numbers += len;
    }
    template <class Q>
    HWY_INLINE void put(const Q& carry, const typename Q::State& state, std::int64_t i) const {
      if constexpr (writes_values)
        if (straight) {
          Pack<A> value;
          if constexpr (writes_numbers) {
            value = state.value;
            past ? state.number.stream(numbers + i) : state.number.store(numbers + i);
          } else if constexpr (IsTame<C>) {
            value = carry.reducer.lower(state, count);
          } else {
            value = state.part[C::inputs - 1];
          }
          if (divides) value = value / divisor;
          return past ? stream(value, y + i) : store(value, y + i);
        }
      carry.store_state(state, dst + i, plane);
    }
  };

  /// The state of the cells at p, of which a watch for tame ones sees the numbers that they are made of.
  template <class Q, class Read>
  static HWY_INLINE typename Q::State watched_cell(const Q& carry, Watch<Q>& watch, const T* p, std::int64_t id,
                                                   const Read& read) {
    if constexpr (!IsTame<Q>) {
      return carry.cell(p, id, read);
    } else {
      const Pack<A> x = read(p);
      watch.add(x);
      if constexpr (Q::inputs == 1) {
        return carry.reducer.lift(x);
      } else {
        const Pack<A> dx = read(p + carry.src_plane);
        watch.add_tangents(dx);
        return carry.reducer.lift(x, dx);
      }
    }
  }

  /// R lines that share rows, in registers, or one of which the last row may be kept. True if it met NaN.
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
    const std::int64_t kept_step = kept_len(), ahead = ahead_, behind = ahead > 0 ? 0 : pass_.ahead / (apart + fold);
    const std::int64_t turn = row + R < rows.count || rows.beyond == 0 ? R * rows.src_row : rows.beyond;
    A* last = R == 1 && rows.last ? rows.last + (from / len - pass_.begin) * kept_step : nullptr;
    const bool shared = R == 1 && rows.shared;
    Way way(rows, row, plane);
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
    const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
    for (std::int64_t o = from / len; o < to / len; ++o, way.go_on(len), last += last ? kept_step : 0) {
      const Window window(axis, o, step, scale, line);
      const std::int64_t count = window.count;
      if (HWY_UNLIKELY(count <= 0)) {
        for (std::int64_t r = 0; r < R; ++r)
          for (std::int64_t i = 0; i < len; i += L) way.put(carry, carry.identity(), r * dst_row + i);
        if (last) fill_identity(carry, len, last, plane);
        continue;
      }
      // Behind the end of a row it goes on with those of the next turn.
      const std::int64_t left = axis.n * step - (window.cells - line);
      const std::int64_t soon = behind + (behind < left ? 0 : turn - axis.n * step);
      // U packs from lane i on. Memory is read in its order: it is several times slower else.
      const auto packs = [&]<int U>(std::int64_t i, const auto& read, std::integral_constant<int, U>) CENOTE_INLINED {
        typename Q::State state[R][U], cells[U], more[U];
        const auto get = [&](auto& states, const T* q, std::int64_t id) CENOTE_INLINED {
          if (behind > 0)
            each<U>([&](int u) CENOTE_INLINED {
              __builtin_prefetch(q + u * L + soon);
              if constexpr (C::inputs == 2) __builtin_prefetch(q + carry.src_plane + u * L + soon);
            });
          each<U>([&](int u) CENOTE_INLINED { states[u] = watched_cell(carry, watch, q + u * L, id, read); });
        };
        const auto look_at = [&](const auto& a, const auto& b) CENOTE_INLINED {
          if constexpr (Calm<C>::differs && !IsTame<C>)
            each<U>([&](int u) CENOTE_INLINED { watch.add(cells_of(a[u]), cells_of(b[u])); }), watch.stay();
        };
        const auto join = [&](auto& a, const auto& b) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { a[u] = carry.combine(a[u], b[u]); });
        };
        // The cells of row j of a line, behind those before it.
        const auto add = [&](auto& states, std::int64_t j) CENOTE_INLINED {
          each<U>([&](int u) CENOTE_INLINED { more[u] = carry.behind(cells[u], row_id + j * row_scale); });
          if (j > 0 || shared)
            join(states, more);
          else
            each<U>([&](int u) CENOTE_INLINED { states[u] = more[u]; });
        };
        if (shared) each<U>([&](int u) CENOTE_INLINED { state[0][u] = carry.load_state(last + i + u * L, plane, 0); });
        const T* q = window.cells + i;
        for (std::int64_t j = 0; j < apart + fold; ++j, q += fold_row) {
          // Of long rows, which are read a few packs at a time, what comes later is asked for in the order of memory.
          if (U == short_row && ahead > 0)
            for (std::int64_t k = 0; k < U * count; ++k) __builtin_prefetch(q + ahead + i * (count - 1) + k * L, 0, 3);
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
          each<U>([&](int u) CENOTE_INLINED { way.put(carry, state[r][u], r * dst_row + i + u * L); });
        });
        if (last) each<U>([&](int u) CENOTE_INLINED { carry.store_state(cells[u], last + i + u * L, plane); });
      };
      std::int64_t i = 0;
      if (R == 1 || len == short_row * L)
        for (; i + short_row * L <= len; i += short_row * L) packs(i, whole, std::integral_constant<int, short_row>());
      if (R > 1 && i + 2 * L <= len) packs(0, whole, std::integral_constant<int, R>()), i = 2 * L;
      for (; i + L <= len; i += L) packs(i, whole, std::integral_constant<int, 1>());
      if (i < len) packs(i, part, std::integral_constant<int, 1>());
    }
    return watch.any();
  }

  /// One line of windows in one row. True if it met NaN.
  template <class Q>
  HWY_NOINLINE bool plain_line(const Q& like, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                               std::int64_t to) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Axis axis = *pass_.axis;
    const std::int64_t L = lanes<A>(), len = pass_.len, step = pass_.step, scale = pass_.id_scale;
    const std::int64_t plane = pass_.dst_plane, row_id = rows.id, begin = from / len, end = to / len;
    const std::int64_t next = pass_.src_row;
    const T* const line = rows.src + row * rows.src_row;
    A* const dst = rows.dst + row * rows.dst_row;
    auto [inside, outside] = axis.interior();
    inside = HWY_MIN(HWY_MAX(inside, begin), end);
    outside = HWY_MAX(HWY_MIN(outside, end), inside);
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto get = [&](const T* p, std::int64_t id, const auto& read) CENOTE_INLINED {
      const auto state = watched_cell(carry, watch, p, id, read);
      if constexpr (Calm<C>::differs && !IsTame<C>) watch.add(cells_of(state), cells_of(state)), watch.stay();
      return state;
    };
    const auto whole = [](const T* q) CENOTE_INLINED { return load(q); };
    // Lanes [0, n) from `out` on, of `count` cells whose first is at p. Those of the last pack overlap the one before.
    const auto fold_lanes = [&](const T* p, std::int64_t n, auto count, std::int64_t id, A* out) CENOTE_INLINED {
      const auto pack = [&](std::int64_t i, const auto& read) CENOTE_INLINED {
        // Memory would idle while rows are joined: it is asked for the next one.
        __builtin_prefetch(p + i + (count - 1) * step + next, 0, 2);
        auto state = get(p + i, id, read);
        for (std::int64_t j = 1; j < count; ++j)
          state = carry.combine(state, get(p + i + j * step, id + j * scale, read));
        carry.store_state(state, out + i, plane);
      };
      std::int64_t i = 0;
      for (; i + L <= n; i += L) pack(i, whole);
      if (i == n) return;
      n >= L ? pack(n - L, whole) : pack(0, [&](const T* q) CENOTE_INLINED { return load_first(q, n); });
    };
    const auto at_border = [&](std::int64_t o, std::int64_t stop) CENOTE_INLINED {
      for (; o < stop; ++o) {
        const Window window(axis, o, step, scale, line);
        A* const out = dst + (o - begin) * len;
        if (window.count > 0)
          fold_lanes(window.cells, len, window.count, row_id + window.id, out);
        else
          fill_identity(carry, len, out, plane);
      }
    };
    at_border(begin, inside);
    const auto within = [&](auto count) CENOTE_INLINED {
      const T* p = line + (inside * axis.stride - axis.low) * step;
      A* out = dst + (inside - begin) * len;
      // Windows at every place of cells side by side are one long row.
      if (axis.stride == 1 && step == len) return fold_lanes(p, (outside - inside) * len, count, row_id, out);
      for (std::int64_t o = inside; o < outside; ++o, p += axis.stride * step, out += len)
        fold_lanes(p, len, count, row_id, out);
    };
    if (axis.size == 2)
      within(std::integral_constant<std::int64_t, 2>());
    else if (axis.size == 3)
      within(std::integral_constant<std::int64_t, 3>());
    else
      within(axis.size);
    at_border(outside, end);
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
    // What comes next in each row is far from what is read next of others: the next turn is asked for instead.
    const std::int64_t turn = row + 1 < rows.count || rows.beyond == 0 ? rows.src_row : rows.beyond;
    const std::int64_t ahead = pass_.ahead > 0 ? HWY_MAX(pass_.ahead, turn) : 0;
    const bool shared = rows.shared;
    const T* const line = rows.src + row * rows.src_row;
    const std::int64_t kept_step = kept_len();
    A* last = rows.last ? rows.last + (from / len - pass_.begin) * kept_step : nullptr;
    Way way(rows, row, plane);
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
    const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
    for (std::int64_t o = from / len; o < to / len; ++o, way.go_on(len), last += last ? kept_step : 0) {
      const Window window(axis, o, step, scale, line);
      const std::int64_t count = window.count;
      if (HWY_UNLIKELY(count <= 0)) {
        for (std::int64_t i = 0; i < len; i += L) way.put(carry, carry.identity(), i);
        if (last) fill_identity(carry, len, last, plane);
        continue;
      }
      // What is under way: the cells of one row of a window, and the rows so far.
      A *const cells_here = rows.spare, *const rows_here = way.straight ? rows.spare + kept_step : way.dst;
      if constexpr (IsTame<C>)
        if (!last) {
          // Sums of cells that are not tame are those of rows, too.
          for (std::int64_t r = 0; r < fold; ++r) {
            const T* const q = window.cells + r * fold_row;
            const auto add = [&](std::int64_t i, const auto& read) CENOTE_INLINED {
              const auto cell = [&](std::int64_t j) CENOTE_INLINED {
                __builtin_prefetch(q + j * step + i + ahead);
                return watched_cell(carry, watch, q + j * step + i, 0, read);
              };
              auto state = cell(0);
              for (std::int64_t j = 1; j < count; ++j) state = carry.combine(state, cell(j));
              if (r > 0) state = carry.combine(carry.load_state(rows_here + i, plane, 0), state);
              r + 1 == fold ? way.put(carry, state, i) : carry.store_state(state, rows_here + i, plane);
            };
            std::int64_t i = 0;
            for (; i + L <= len; i += L) add(i, whole);
            if (i < len) add(i, part);
          }
          continue;
        }
      for (std::int64_t r = 0; r < fold; ++r)
        for (std::int64_t j = 0; j < count; ++j) {
          const A* before = r > 0 ? rows_here : shared ? last : nullptr;
          const bool ends = r + 1 == fold && j + 1 == count;
          const T* q = window.cells + r * fold_row + j * step;
          const auto cell = [&](std::int64_t i, const auto& read) CENOTE_INLINED {
            __builtin_prefetch(q + i + ahead);
            const auto lifted = [&](std::int64_t id) CENOTE_INLINED {
              const auto result = watched_cell(carry, watch, q + i, id, read);
              if constexpr (Calm<C>::differs && !IsTame<C>) watch.add(cells_of(result), cells_of(result)), watch.stay();
              return result;
            };
            if (!last) {
              auto state = lifted(row_id + r * row_scale + window.id + j * scale);
              if (r + j > 0) state = carry.combine(carry.load_state(rows_here + i, plane, 0), state);
              return ends ? way.put(carry, state, i) : carry.store_state(state, rows_here + i, plane);
            }
            auto cells = lifted(window.id + j * scale);
            if (j > 0) cells = carry.combine(carry.load_state(cells_here + i, plane, 0), cells);
            if (j + 1 < count) return carry.store_state(cells, cells_here + i, plane);
            auto state = carry.behind(cells, row_id + r * row_scale);
            if (before) state = carry.combine(carry.load_state(before + i, plane, 0), state);
            if (!ends) return carry.store_state(state, rows_here + i, plane);
            way.put(carry, state, i);
            carry.store_state(cells, last + i, plane);
          };
          std::int64_t i = 0;
          for (; i + L <= len; i += L) cell(i, whole);
          if (i < len) cell(i, part);
        }
    }
    return watch.any();
  }

  /// Lanes between rows that are kept: whole packs, so that none is written over before it is read.
  HWY_INLINE std::int64_t kept_len() const { return (pass_.len + lanes<A>() - 1) / lanes<A>() * lanes<A>(); }

  const C& carry_;
  const Pass& pass_;
  const bool is_long_, is_plain_;
  const std::int64_t ahead_;
  const bool joins_, far_, keeps_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
