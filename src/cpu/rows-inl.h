// Rows: lanes run along a row, and an output row is a list of source rows combined lane by lane.

#if defined(CENOTE_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_INL_H_
#undef CENOTE_CPU_ROWS_INL_H_
#else
#define CENOTE_CPU_ROWS_INL_H_
#endif

#include "cpu/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// One output row of `len` lanes, `Packs` of them at a time, from lane i on. Returns the first lane not made.
template <int Packs, class C, class A, class Source>
HWY_INLINE std::int64_t fold_packs(const C& carry, std::int64_t i, std::int64_t len, A* dst, std::int64_t plane,
                                   const Source& source) {
  const std::int64_t L = lanes<A>();
  for (; i + Packs * L <= len; i += Packs * L) {
    typename C::State state[Packs];
    fold_rows<Packs>(
        carry, source.rows, source.count,
        [&](std::int64_t r, std::int64_t j, int u) CENOTE_INLINED { return source.whole(r, j, i + u * L); }, state);
    each<Packs>([&](int u) CENOTE_INLINED { carry.store_state(state[u], dst + i + u * L, plane); });
  }
  return i;
}

/// Lanes that add_rows works on at a time.
constexpr std::int64_t long_row = 1024;

/// Cells [begin, end) of row r, lanes [from, to), one cell after the other into `sum`: memory is read in the order of
/// its addresses.
template <class C, class A, class Source>
HWY_INLINE void add_cells(const C& carry, std::int64_t r, std::int64_t begin, std::int64_t end, std::int64_t from,
                          std::int64_t to, A* sum, const Source& source) {
  const std::int64_t L = lanes<A>();
  // Four at a time, so that sums are read and written a quarter as often.
  constexpr std::int64_t together = 4;
  for (std::int64_t j = begin; j < end; j += together) {
    const std::int64_t last = HWY_MIN(j + together, end) - 1;
    for (std::int64_t i = from; i < to; i += L) {
      const auto cells = [&](std::int64_t k) CENOTE_INLINED {
        // Rows may be pages of memory, at each of which a processor would begin anew to read ahead.
        if constexpr (Source::is_raw)
          if (k + together < source.count) __builtin_prefetch(source.cell(r, k + together, i));
        return HWY_LIKELY(i + L <= to) ? source.whole(r, k, i) : source.rest(r, k, i, to);
      };
      auto state = cells(j);
      if (j > begin) state = carry.combine(carry.load_state(sum + (i - from), 0, 0), state);
      if (j < last) state = carry.combine(state, cells(j + 1));
      if (j + 1 < last) state = carry.combine(state, cells(j + 2));
      if (j + 2 < last) state = carry.combine(state, cells(j + 3));
      carry.store_state(state, sum + (i - from), 0);
    }
  }
}
/// dst = the states of a, and behind them those of b.
template <class C, class A>
HWY_INLINE void join_sums(const C& carry, const A* a, const A* b, std::int64_t len, A* dst) {
  for (std::int64_t i = 0; i < len; i += lanes<A>())
    carry.store_state(carry.combine(carry.load_state(a + i, 0, 0), carry.load_state(b + i, 0, 0)), dst + i, 0);
}

/// Few long rows of states with one part.
template <class C, class A, class Source>
HWY_INLINE void add_rows(const C& carry, std::int64_t len, A* dst, const Source& source) {
  HWY_ALIGN A other[long_row + 64];
  for (std::int64_t from = 0; from < len; from += long_row) {
    const std::int64_t to = HWY_MIN(len, from + long_row);
    add_cells(carry, 0, 0, source.count, from, to, dst + from, source);
    for (std::int64_t r = 1; r < source.rows; ++r) {
      add_cells(carry, r, 0, source.count, from, to, other, source);
      join_sums(carry, dst + from, other, to - from, dst + from);
    }
  }
}

/// Levels of groups that are added up in L1, and the cells of a window that those are enough for.
constexpr int most_levels = 14;
constexpr std::int64_t most_grouped = group_cells << (most_levels - 1);

/// One row of many cells, of states with one part, in the groups of `fold`.
template <class C, class A, class Source>
HWY_NOINLINE void add_groups(const C& carry, std::int64_t len, A* dst, const Source& source) {
  // Sums are joined by one instruction, and so a processor looks far ahead by itself: as many packs as there is room
  // for in registers are read of each cell in turn. Of others it would see less, and waits.
  constexpr bool in_registers = std::is_same_v<C, Carry<Sum, A>>;
  constexpr int U = HWY_MAX_BYTES >= 64 ? 16 : 8;
  constexpr std::int64_t most = 4096 / sizeof(A);
  const std::int64_t L = lanes<A>();
  // sums[i] holds 2^i groups, as the bits of `groups` say. None lies a multiple of 4096 bytes behind another.
  HWY_ALIGN A sums[most_levels][most + 64];
  for (std::int64_t from = 0; from < len; from += most) {
    const std::int64_t to = HWY_MIN(len, from + most);
    std::int64_t groups = 0;
    for (std::int64_t j = 0; j < source.count; j += group_cells, ++groups) {
      const std::int64_t end = HWY_MIN(j + group_cells, source.count);
      const int level = static_cast<int>(hwy::Num0BitsBelowLS1Bit_Nonzero64(~static_cast<std::uint64_t>(groups)));
      A* const group = sums[level];
      const auto join = [&](typename C::State state, std::int64_t i) CENOTE_INLINED {
        for (int l = 0; l < level; ++l) state = carry.combine(carry.load_state(sums[l] + i, 0, 0), state);
        carry.store_state(state, group + i, 0);
      };
      std::int64_t i = from;
      if constexpr (in_registers)
        for (; i + U * L <= to; i += U * L) {
          typename C::State state[U];
          each<U>([&](int u) CENOTE_INLINED { state[u] = source.whole(0, j, i + u * L); });
          for (std::int64_t k = j + 1; k < end; ++k)
            each<U>([&](int u) CENOTE_INLINED { state[u] = carry.combine(state[u], source.whole(0, k, i + u * L)); });
          each<U>([&](int u) CENOTE_INLINED { join(state[u], i - from + u * L); });
        }
      if (i == to) continue;
      add_cells(carry, 0, j, end, i, to, group + (i - from), source);
      for (i -= from; level > 0 && i < to - from; i += L) join(carry.load_state(group + i, 0, 0), i);
    }
    for (std::int64_t i = 0; i < to - from; i += L) {
      int level = static_cast<int>(hwy::Num0BitsBelowLS1Bit_Nonzero64(static_cast<std::uint64_t>(groups)));
      auto state = carry.load_state(sums[level] + i, 0, 0);
      while (groups >> ++level)
        if (groups >> level & 1) state = carry.combine(carry.load_state(sums[level] + i, 0, 0), state);
      carry.store_state(state, dst + from + i, 0);
    }
  }
}

/// One output row of `len` lanes from all rows of a source.
template <class C, class A, class Source>
HWY_INLINE void fold_row(const C& carry, std::int64_t len, A* dst, std::int64_t plane, const Source& source) {
  constexpr int U = packs_in_flight<C>();
  const std::int64_t L = lanes<A>();
  if constexpr (U > 1 && Source::is_raw)
    if (source.rows * source.count > 1 && len > U * L) {
      if (source.count <= group_cells) return add_rows(carry, len, dst, source);
      if (source.count <= most_grouped && source.rows == 1) return add_groups(carry, len, dst, source);
    }
  std::int64_t i = 0;
  // Whole packs first; those of states may reach beyond the row.
  const std::int64_t whole = Source::is_raw ? len : (len + L - 1) / L * L;
  if constexpr (U > 1 && Source::in_flight) i = fold_packs<U>(carry, i, whole, dst, plane, source);
  for (; i < len; i += L) {
    typename C::State state[1];
    const std::int64_t at = source.place(i, len, L);
    fold_rows<1>(
        carry, source.rows, source.count,
        [&](std::int64_t r, std::int64_t j, int) CENOTE_INLINED { return source.one(r, j, at, len); }, state);
    carry.store_state(state[0], dst + at, plane);
  }
}

/// Rows of raw elements: nothing past a row may be read, so the last pack overlaps the one before it.
template <class C, class T>
struct RawRows {
  static constexpr bool is_raw = true, in_flight = true;
  const C& carry;
  const T* first;
  std::int64_t count, distance, id_scale;
  std::int64_t rows, row_distance, row_id_scale;

  HWY_INLINE const T* cell(std::int64_t r, std::int64_t j, std::int64_t i) const {
    return first + r * row_distance + j * distance + i;
  }
  HWY_INLINE std::int64_t id(std::int64_t r, std::int64_t j) const { return r * row_id_scale + j * id_scale; }
  HWY_INLINE typename C::State whole(std::int64_t r, std::int64_t j, std::int64_t i) const {
    return carry.cell(cell(r, j, i), id(r, j), [](const T* p) CENOTE_INLINED { return load(p); });
  }
  HWY_INLINE typename C::State one(std::int64_t r, std::int64_t j, std::int64_t i, std::int64_t len) const {
    return carry.cell(cell(r, j, i), id(r, j), [&](const T* p) CENOTE_INLINED {
      return HWY_LIKELY(len >= lanes<T>()) ? load(p) : load_first(p, len);
    });
  }
  /// The lanes from i on, fewer than a pack.
  HWY_INLINE typename C::State rest(std::int64_t r, std::int64_t j, std::int64_t i, std::int64_t len) const {
    return carry.cell(cell(r, j, i), id(r, j), [&](const T* p) CENOTE_INLINED { return load_first(p, len - i); });
  }
  HWY_INLINE std::int64_t place(std::int64_t i, std::int64_t len, std::int64_t L) const {
    return i + L <= len ? i : HWY_MAX(len - L, 0);
  }
};

/// Rows of states, possibly in a ring, which come one pack at a time: long windows are swept. Their memory reaches a
/// pack beyond every row.
template <class C, class A>
struct StateRows {
  static constexpr bool is_raw = false, in_flight = false;
  static constexpr std::int64_t rows = 1;
  const C& carry;
  const A* base;
  std::int64_t first, count, dilation, wrap, step, plane, id_scale;

  HWY_INLINE const A* row(std::int64_t j) const {
    std::int64_t position = first + j * dilation;
    if (position >= wrap) position -= wrap;
    return base + position * step;
  }
  HWY_INLINE typename C::State whole(std::int64_t, std::int64_t j, std::int64_t i) const {
    return carry.load_state(row(j) + i, plane, j * id_scale);
  }
  HWY_INLINE typename C::State one(std::int64_t r, std::int64_t j, std::int64_t i, std::int64_t) const {
    return whole(r, j, i);
  }
  HWY_INLINE std::int64_t place(std::int64_t i, std::int64_t, std::int64_t) const { return i; }
};

/// As many as are folded without a stack, each found once.
template <class C, class A>
struct FewStateRows {
  static constexpr bool is_raw = false, in_flight = true;
  static constexpr std::int64_t rows = 1;
  const C& carry;
  const A* row[group_cells];
  std::int64_t count, plane, id_scale;

  explicit HWY_INLINE FewStateRows(const StateRows<C, A>& all)
      : carry(all.carry), count(all.count), plane(all.plane), id_scale(all.id_scale) {
    for (std::int64_t j = 0; j < count; ++j) row[j] = all.row(j);
  }
  HWY_INLINE typename C::State whole(std::int64_t, std::int64_t j, std::int64_t i) const {
    return carry.load_state(row[j] + i, plane, j * id_scale);
  }
  HWY_INLINE typename C::State one(std::int64_t r, std::int64_t j, std::int64_t i, std::int64_t) const {
    return whole(r, j, i);
  }
  HWY_INLINE std::int64_t place(std::int64_t i, std::int64_t, std::int64_t) const { return i; }
};

template <class C, class A>
HWY_INLINE void fill_identity(const C& carry, std::int64_t len, A* dst, std::int64_t plane) {
  for (std::int64_t i = 0; i < len; i += lanes<A>()) carry.store_state(carry.identity(), dst + i, plane);
}

template <class C, class T>
void rows(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass);
  const Axis axis = *pass.axis;
  if (pass.nan) *pass.nan = true;
  // Outputs at every position, side by side in source and result, are one long row.
  const auto [inside, outside] = axis.interior();
  const std::int64_t step = axis.step() * pass.step;
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
        fold_row(carry, len, dst, pass.dst_plane,
                 RawRows<C, T>{carry, src + (span.first - pass.origin) * pass.step, span.count, step, pass.id_scale,
                               pass.fold, pass.fold_step, pass.fold_id_scale});
      o += outputs;
      dst += outputs * pass.dst_step;
    }
  }
}

template <class C>
void merge(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass);
  const Axis axis = *pass.axis;
  const std::int64_t step = axis.step(), wrap = pass.wrap > 0 ? pass.wrap : INT64_MAX;
  A* dst = static_cast<A*>(pass.dst);
  for (std::int64_t o = pass.begin; o < pass.end; ++o, dst += pass.dst_step) {
    const Axis::Span span = axis.span(o);
    if (HWY_UNLIKELY(span.count == 0)) {
      fill_identity(carry, pass.len, dst, pass.dst_plane);
      continue;
    }
    const std::int64_t first = span.first - pass.origin;
    const StateRows<C, A> rows{carry,
                               static_cast<const A*>(pass.src),
                               first < wrap ? first : first % wrap,
                               span.count,
                               step,
                               wrap,
                               pass.step,
                               pass.src_plane,
                               pass.id_scale};
    if (span.count <= group_cells)
      fold_row(carry, pass.len, dst, pass.dst_plane, FewStateRows<C, A>(rows));
    else
      fold_row(carry, pass.len, dst, pass.dst_plane, rows);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
