// Planes: lines and the rows across them in one go, for short windows. Rows are read, merged and written in turns so
// short that memory never waits.

#if defined(CENOTE_CPU_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_INL_H_
#undef CENOTE_CPU_PLANES_INL_H_
#else
#define CENOTE_CPU_PLANES_INL_H_
#endif

#include <bit>

#include "cpu/flat_planes-inl.h"
#include "cpu/lines-inl.h"
#include "cpu/outlet-inl.h"
#include "cpu/row_line-inl.h"
#include "cpu/rows-inl.h"
#include "cpu/rows_first-inl.h"
#include "cpu/swept_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// What joins planes, where states are of one part.
template <class C>
constexpr auto joiner() -> typename Outlet<typename LaneOf<typename C::N>::type>::Join {
  if constexpr (requires(typename C::State state) { state.part[0]; })
    if constexpr (sizeof(typename C::State) == sizeof(typename C::N)) return join_planes<C>;
  return nullptr;
}

/// Rows of a ring.
template <class A>
struct RingRows {
  const A* base;
  std::int64_t pitch, slots, plane;
  /// What the first row adds to its winners' numbers, and each further one.
  std::int64_t id, id_scale;
};

template <class C, class A, class Put>
HWY_INLINE void merge_few(const C& carry, const RingRows<A>& ring, std::int64_t first, std::int64_t count,
                          std::int64_t len, const Put& put) {
  const std::int64_t L = lanes<A>(), plane = ring.plane;
  for (std::int64_t i = 0; i < len; i += L) {
    typename C::State state[1];
    fold<1>(
        carry, count,
        [&](std::int64_t j, int) CENOTE_INLINED {
          return carry.load_state(ring.base + ((first + j) & (ring.slots - 1)) * ring.pitch + i, plane,
                                  ring.id + j * ring.id_scale);
        },
        state);
    put(state[0], i);
  }
}
/// `count` rows from `first` on, joined: `len` lanes of each. Calls put(states, i) with those from lane i on.
template <class C, class A, class Put>
HWY_INLINE void merge_ring(const C& carry, const RingRows<A>& ring, std::int64_t first, std::int64_t count,
                           std::int64_t len, const Put& put) {
  const std::int64_t L = lanes<A>(), plane = ring.plane, id = ring.id, scale = ring.id_scale;
  const auto row = [&](std::int64_t j)
                       CENOTE_INLINED { return ring.base + ((first + j) & (ring.slots - 1)) * ring.pitch; };
  const A *a = row(0), *b = row(1), *c = row(2), *d = row(3), *e = row(4);
  const auto read = [&](const A* p, int j) CENOTE_INLINED { return carry.load_state(p, plane, id + j * scale); };
  if (count == 3) {
    for (std::int64_t i = 0; i < len; i += L)
      put(carry.combine(carry.combine(read(a + i, 0), read(b + i, 1)), read(c + i, 2)), i);
  } else if (count == 2) {
    for (std::int64_t i = 0; i < len; i += L) put(carry.combine(read(a + i, 0), read(b + i, 1)), i);
  } else if (count == 4 || count == 5) {
    for (std::int64_t i = 0; i < len; i += L) {
      const auto three = carry.combine(carry.combine(read(a + i, 0), read(b + i, 1)), read(c + i, 2));
      const auto four = carry.combine(three, read(d + i, 3));
      put(count == 4 ? four : carry.combine(four, read(e + i, 4)), i);
    }
  } else {
    merge_few(carry, ring, first, count, len, put);
  }
}

/// All windows of a plane across rows that follow each other without a gap.
template <class Q, class A>
HWY_INLINE void merge_all(const Q& carry, const A* rows, std::int64_t width, const Axis& across, std::int64_t plane,
                          A* dst) {
  for (std::int64_t o = 0; o < across.out; ++o, rows += across.stride * width, dst += width)
    for (std::int64_t i = 0; i < width; i += lanes<A>()) {
      auto state = carry.load_state(rows + i, plane, 0);
      for (std::int64_t j = 1; j < across.size; ++j)
        state = carry.combine(state, carry.load_state(rows + j * width + i, plane, 0));
      carry.store_state(state, dst + i, plane);
    }
}

template <class C, class A>
HWY_NOINLINE void merge_careful(const C& carry, const RingRows<A>& ring, std::int64_t first, std::int64_t count,
                                std::int64_t len, A* dst) {
  merge_few(carry, ring, first, count, len,
            [&](const auto& state, std::int64_t i) CENOTE_INLINED { carry.store_state(state, dst + i, ring.plane); });
}

/// Whether values may leave as they are made, where packs of them are whole: they are aligned if they go past the
/// caches, and no window is empty.
template <class T, class A>
HWY_INLINE bool writes_straight(const Planes& call, bool raw) {
  const Axis& across = *call.across;
  const auto aligned = [&](std::intptr_t at) CENOTE_INLINED { return at % (lanes<A>() * sizeof(T)) == 0; };
  const bool filled =
      across.n > 0 && across.low < across.size && (across.out - 1) * across.stride - across.low < across.n;
  return filled && !raw && call.direct && call.depth == 1 && call.joins == 0 && !call.keep &&
         (!call.out.stream || (aligned(reinterpret_cast<std::intptr_t>(call.out.dst)) &&
                               aligned(call.out_row * call.out_size) && aligned(call.out_plane * call.out_size)));
}

/// Bytes of rows from which on a processor finds its own way in them.
constexpr std::int64_t least_unexpected = 4096;
/// Asks memory for the rows of windows [o, end) across, all of which there are: of those between, which none holds, a
/// processor does not know that they are left out.
template <class T>
HWY_INLINE void expect_rows(const T* plane, std::int64_t o, std::int64_t end, const Planes& call) {
  const Axis& across = *call.across;
  const std::int64_t bytes = call.line.axis->n * std::int64_t{sizeof(T)};
  for (; o < end; ++o)
    for (std::int64_t r = 0; r < across.size; ++r) {
      const T* const row = plane + (o * across.stride - across.low + r) * call.line.src_row;
      for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(reinterpret_cast<const char*>(row) + at);
    }
}

/// Outputs of a row from which on they are written as they are made: a row ends with a part of a pack.
constexpr std::int64_t least_direct = 256;

template <class C, class T, class A>
HWY_NOINLINE void make_planes(const C& like, const Maker<T, A>& make, const Planes& call) {
  // Copies, since a stored pack might alias the originals.
  const C carry = like;
  const auto calm = Calm<C>::of(like);
  const Axis across = *call.across;
  const bool folded = call.folded;
  // In lanes, of which an output has several where rows lie side by side.
  const std::int64_t begin = call.line.begin * call.line.len, end = call.line.end * call.line.len;
  const bool joined = call.joined > 0;
  const std::int64_t width = joined ? call.joined : end - begin, src_row = call.line.src_row;
  const bool apart = call.out_row != width;
  const bool inside = joined && !apart && call.begin == 0 && call.end == across.out && across.low == 0 &&
                      (across.out - 1) * across.stride + across.size <= across.n;
  const std::int64_t pitch = joined ? width : (width + 127) / 64 * 64 + 16, held_rows = joined ? across.n : across.size;
  const auto slots = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(held_rows)));
  const std::int64_t piece = call.piece;
  const std::int64_t together = folded && !apart ? Outlet<A>::least_written() / width + 1 : 1;
  const std::int64_t plane = call.line.dst_plane, row_id = call.line.fold_id_scale;
  A* const ring = static_cast<A*>(call.ring);
  Outlet<A> outlet(call, joiner<C>());
  const bool writes = folded && call.direct && (width >= least_direct || !call.line.work) && make.writes();
  const bool straight = LiftsAsIs<C>::value && !folded && !joined &&
                        (call.line.len > 1 ? call.line.len : width) % lanes<A>() == 0 &&
                        writes_straight<T, A>(call, outlet.is_raw());
  const bool divides = call.divisor != 0, past = call.out.stream;
  const bool skips = past && call.line.len == 1 && across.size < across.stride &&
                     call.line.axis->n < least_unexpected / std::int64_t{sizeof(T)};
  const Divisor<A> divisor(call.divisor);
  A* const stage = outlet.states();
  Seam<T> seam;
  std::int64_t held = 0;
  bool any_nan = false;
  const auto* src = static_cast<const T*>(call.line.src);
  auto* dst = static_cast<char*>(call.out.dst);
  for (std::int64_t p = 0; p < call.count; ++p, src += call.step, dst += call.out_plane * call.out_size) {
    if (!straight) held = outlet.go_on(held, dst);
    std::int64_t made = 0, nan = -1;  // rows, and the last that may hold NaN
    if (joined) {
      if (make(Rows<T, A>{src, ring}, begin, end)) nan = across.n;
      made = across.n;
      if (inside) {
        nan < 0 ? merge_all(calm, ring, width, across, plane, stage + held)
                : merge_all(carry, ring, width, across, plane, stage + held);
        held += across.out * width;
        any_nan |= nan >= 0;
        held = outlet.pass_on(held);
        continue;
      }
    }
    for (std::int64_t o = call.begin, rows = 1; o < call.end; o += rows) {
      if (apart && !straight) held = outlet.go_on(held, dst + (o - call.begin) * call.out_row * call.out_size);
      const std::int64_t start = o * across.stride - across.low;
      const std::int64_t first = HWY_MAX(start, 0), last = HWY_MIN(start + across.size, across.n);
      if (folded) {
        rows = HWY_MIN(call.end - o, together);
        if (skips) expect_rows(src, o + rows, HWY_MIN(o + 2 * rows, call.end), call);
      } else
        for (made = HWY_MAX(made, first); made < last;) {
          const std::int64_t slot = made & (slots - 1), count = HWY_MIN(last - made, slots - slot);
          Rows<T, A> fresh{src + made * src_row, ring + slot * pitch, count, src_row, pitch};
          fresh.spare = ring + slots * pitch;
          const bool any = make(fresh, begin, end);
          made += count;
          if (HWY_UNLIKELY(any)) nan = made - 1;
        }
      if (writes) {
        for (std::int64_t r = 0; r < rows; ++r) {
          T* y = reinterpret_cast<T*>(dst) + (o + r - call.begin) * call.out_row - begin;
          any_nan |= make.write(src + (start + r * across.stride) * src_row, begin, end,
                                {y, call.divisor, call.divisor != 0, past, nullptr, past ? &seam : nullptr});
        }
        continue;
      }
      for (std::int64_t from = 0; from < width;) {
        const std::int64_t until = width - from <= 2 * piece ? width : from + piece;
        A* states = stage + held;
        const RingRows<A> kept_rows{ring + from, pitch, slots, plane, (first - start) * row_id, row_id};
        if (folded)
          any_nan |= make(Rows<T, A>{src + start * src_row, states, rows, across.stride * src_row, width}, begin + from,
                          begin + until);
        else if (HWY_UNLIKELY(first >= last))
          fill_identity(carry, until - from, states, plane);
        else if (Calm<C>::differs && HWY_UNLIKELY(nan >= first)) {
          if (straight) {
            held = outlet.go_on(held, dst + ((o - call.begin) * call.out_row + from) * call.out_size);
            states = stage + held;
          }
          merge_careful(carry, kept_rows, first, last - first, until - from, states);
        } else if (straight) {
          if constexpr (LiftsAsIs<C>::value) {
            T* const y = reinterpret_cast<T*>(dst) + (o - call.begin) * call.out_row + from;
            merge_ring(calm, kept_rows, first, last - first, until - from,
                       [&](const auto& state, std::int64_t i) CENOTE_INLINED {
                         const Pack<A> value = divides ? state.part[0] / divisor : state.part[0];
                         past ? stream(value, y + i) : store(value, y + i);
                       });
            from = until;
            continue;
          }
        } else {
          merge_ring(calm, kept_rows, first, last - first, until - from,
                     [&](const auto& state, std::int64_t i)
                         CENOTE_INLINED { carry.store_state(state, states + i, plane); });
        }
        held += rows * (until - from);
        held = outlet.pass_on(held);
        from = until;
      }
    }
    any_nan |= nan >= 0;
  }
  outlet.go_on(held, nullptr);
  if (call.line.nan && any_nan) *call.line.nan = true;
}

/// Joins states to those that lie at `before`, in place.
template <class C, class A>
HWY_INLINE void join_states(const C& carry, A* before, const A* states, std::int64_t count) {
  if constexpr (C::inputs == 1 && !C::is_winner)
    for (std::int64_t i = 0; i < count; i += lanes<A>())
      carry.store_state(carry.combine(carry.load_state(before + i, 0, 0), carry.load_state(states + i, 0, 0)),
                        before + i, 0);
}

/// Planes whose windows share at most one row, or whose rows are joined first: rows are folded as they are read, and
/// the states of one that is shared may wait for the next window.
template <class C, class T, class A>
HWY_NOINLINE void fold_planes(const C& carry, const Maker<T, A>& make, const Planes& call, std::uint8_t* bytes) {
  const Axis across = *call.across;
  const bool overlaps = across.size > across.stride, shares = overlaps && make.keeps;
  // In lanes, of which an output has several where rows lie side by side.
  const std::int64_t begin = call.line.begin * call.line.len, width = call.line.end * call.line.len - begin;
  const std::int64_t src_row = call.line.src_row, row_id = call.line.fold_id_scale, plane = call.line.dst_plane;
  const bool apart = call.out_row != width;
  const std::int64_t piece = call.piece;
  const auto [inside, outside] = across.interior();
  A* const last_row = static_cast<A*>(call.ring);
  A* const spare = last_row + (make.joins ? (plane - cpu::joined_cells) / 64 * 64 : shares ? 2 * width + 64 : 0);
  Outlet<A> outlet(call, joiner<C>(), C::inputs, bytes);
  A* const stage = outlet.states();
  std::int64_t held = 0;
  bool any_nan = false;
  const auto* src = static_cast<const T*>(call.line.src);
  auto* dst = static_cast<char*>(call.out.dst);
  const bool straight =
      make.writes_values && call.line.len % lanes<A>() == 0 && writes_straight<T, A>(call, outlet.is_raw()) &&
      (!C::is_winner || !call.out.stream || reinterpret_cast<std::uintptr_t>(call.indices) % lanes<A>() == 0);
  const std::int64_t together = outlet.is_raw() || (straight && !shares) ? across.out
                                : apart                                  ? 1
                                                                         : Outlet<A>::least_written() / width + 1;
  for (std::int64_t p = 0; p < call.count; ++p, src += call.step, dst += call.out_plane * call.out_size) {
    held = outlet.go_on(held, dst);
    std::int64_t kept_row = -1;
    bool doubt = false;
    for (std::int64_t o = call.begin, count = 1; o < call.end; o += count) {
      if (apart) held = outlet.go_on(held, dst + (o - call.begin) * call.out_row * call.out_size);
      const std::int64_t start = o * across.stride - across.low;
      const std::int64_t first = HWY_MAX(start, 0), end = HWY_MIN(start + across.size, across.n);
      const bool shared = shares && start >= 0 && first + 1 < end;
      const auto each_piece = [&](const auto& use) CENOTE_INLINED {
        for (std::int64_t from = 0; from < width;) {
          // States that stay where they are made lie line by line.
          const bool whole = straight || outlet.is_raw() || width - from <= 2 * piece;
          const std::int64_t until = whole ? width : from + piece;
          use(from, until);
          from = until;
        }
      };
      // Where work begins, too: bits must not depend on where it is cut.
      if (shared && kept_row != start) {
        Rows<T, A> one{src + first * src_row, stage + held};
        one.last = last_row;
        one.spare = spare;
        doubt = false;
        each_piece([&](std::int64_t from, std::int64_t until)
                       CENOTE_INLINED { doubt |= make(one, begin + from, begin + until); });
      }
      const std::int64_t fresh = first + shared;
      // Those that lie inside are alike.
      count = o >= inside && o < outside && shared == shares ? HWY_MIN(together, HWY_MIN(outside, call.end) - o) : 1;
      Rows<T, A> rows{src + fresh * src_row,           nullptr,     count,  across.stride * src_row,
                      straight ? call.out_row : width, end - fresh, src_row};
      rows.shared = shared;
      // The last pack of one line must not reach into another that is made already.
      rows.apart = overlaps && !shares && call.line.len % lanes<A>() == 0 ? across.stride : 0;
      rows.doubt = shared && doubt;
      rows.id = (fresh - start) * row_id;
      rows.id_scale = row_id;
      rows.last = shares ? last_row : nullptr;
      rows.spare = spare;
      doubt = false;
      each_piece([&](std::int64_t from, std::int64_t until) CENOTE_INLINED {
        rows.dst = stage + held;
        if (HWY_UNLIKELY(first >= end))
          fill_identity(carry, until - from, rows.dst, plane);
        else {
          if (straight) {
            T* const y = reinterpret_cast<T*>(dst) + (o - call.begin) * call.out_row + from;
            rows.values = {y, call.divisor, call.divisor != 0, call.out.stream};
            if (C::is_winner)
              rows.values.numbers = static_cast<std::uint8_t*>(call.indices) + (y - static_cast<T*>(call.out.dst));
          }
          if (call.depth > 1) rows.beyond = call.depth_step - (count - 1) * rows.src_row;
          doubt |= make(rows, begin + from, begin + until);
          if (straight) return;
          // A few rows of each plane in turn, so that nothing has to wait long.
          for (std::int64_t q = 1; q < call.depth; ++q) {
            Rows<T, A> deeper = rows;
            deeper.src += q * call.depth_step;
            deeper.dst = last_row;
            if (q + 1 == call.depth) deeper.beyond = rows.src_row - q * call.depth_step;
            doubt |= make(deeper, begin + from, begin + until);
            join_states(carry, rows.dst, last_row, count * (until - from));
          }
        }
        held += count * (until - from);
        held = outlet.pass_on(held);
      });
      any_nan |= doubt;
      kept_row = first < end && shares ? end - 1 + (count - 1) * across.stride : -1;
    }
  }
  outlet.go_on(held, nullptr);
  if (call.line.nan && any_nan) *call.line.nan = true;
}

/// The carry of windows that are folded as they are read: they are so small that bytes number their cells.
template <class C, class A>
struct Few {
  static HWY_INLINE C of(const C& carry, A*, std::uint8_t*) { return carry; }
};
template <class R, class A>
struct Few<Carry<Winner<R>, A>, A> {
  static HWY_INLINE Carry<ByteWinner<R>, A> of(const Carry<Winner<R>, A>&, A* values, std::uint8_t* bytes) {
    return {values, bytes};
  }
};

/// Makes such planes where there is a maker for them; says whether.
template <class C, class T>
HWY_INLINE bool fold_planes(const C& wide, const Planes& call) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& across = *call.across;
  const bool joins = call.line.len > 1 && RowLine<C, T>::joins(call.line, call.out.stream);
  if (call.joined > 0 || (across.size > across.stride + 1 && !joins)) return false;
  // Ring and stage lie behind each other, each of two parts: bytes for all fit the second one of the ring.
  A* const values = static_cast<A*>(call.ring);
  auto* const bytes = C::is_winner ? reinterpret_cast<std::uint8_t*>(values + call.line.dst_plane) : nullptr;
  auto* const staged = C::is_winner ? bytes + (static_cast<const A*>(call.out.src) - values) : nullptr;
  const auto carry = Few<C, A>::of(wide, values, bytes);
  using Q = std::remove_const_t<decltype(carry)>;
  if (call.line.len > 1) {
    const RowLine<Q, T> line(carry, call.line, call.out.stream);
    fold_planes(carry, Maker<T, A>(line), call, staged);
    return true;
  }
  if constexpr (C::has_neutral) {
    if (PairedLine<Q, T>::applies(call.line)) {
      const PairedLine<Q, T> line(carry, call.line);
      fold_planes(carry, Maker<T, A>(line), call, staged);
      return true;
    }
  }
  return false;
}

/// Only those that fold_planes makes.
template <class C, class T>
void folded_planes(const Planes& call) {
  fold_planes<C, T>(C(call.line), call);
}

template <class C, class T>
void planes(const Planes& call) {
  const C carry(call.line);
  if constexpr (LiftsAsIs<C>::value) {
    if (call.way == PlaneWay::swept) return SweptPlanes<C, T>(carry, call).run();
    if (call.way == PlaneWay::flat) return FlatPlanes<C, T>(carry, call).run();
    if (call.way == PlaneWay::rows_first) return RowsFirst<C, T>(carry, call).run();
  }
  using A = typename LaneOf<typename C::N>::type;
  const auto make_with = [&](const auto& line) HWY_ATTR { make_planes(carry, Maker<T, A>(line), call); };
  // Short windows too where values are written at once; whether they are must not depend on where a line is cut.
  const bool streams = call.direct && !C::is_winner && call.folded && call.line.fold == 1 &&
                       call.line.axis->out >= least_direct && SweptLine<C, T>::writes_short(call.line);
  if ((call.line.work && call.line.len == 1) || streams) return make_with(SweptLine<C, T>(carry, call.line));
  if (fold_planes<C, T>(carry, call)) return;
  if (call.line.len > 1) return make_with(RowLine<C, T>(carry, call.line, call.out.stream));
  with_line<C, T>(carry, call.line, make_with);
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
