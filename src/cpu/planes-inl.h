// Planes: lines and the rows across them in one go, for short windows. Rows are read, merged and written in turns so
// short that memory never waits.

#if defined(CENOTE_CPU_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_INL_H_
#undef CENOTE_CPU_PLANES_INL_H_
#else
#define CENOTE_CPU_PLANES_INL_H_
#endif

#include <bit>

#include "cpu/lines-inl.h"
#include "cpu/rows-inl.h"
#include "cpu/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Finish;
using cpu::Planes;

/// States on their way out: they wait until whole cache lines can be written.
template <class A>
class Outlet {
 public:
  /// Where they are bytes, winners' numbers are given apart.
  explicit HWY_INLINE Outlet(const Planes& call, int parts = 1, std::uint8_t* bytes = nullptr)
      : call_(call), finish_(call.out), parts_(parts), bytes_(bytes) {}
  HWY_INLINE A* states() const { return static_cast<A*>(const_cast<void*>(finish_.src)); }
  /// Of `held` states, writes those that end a cache line, and those before them. Returns how many are left.
  HWY_NOINLINE std::int64_t write_lines(std::int64_t held) {
    // A line of bytes ends where one of outputs does, as a rule.
    const std::int64_t size = bytes_ ? 1 : call_.out_size;
    const void* next = bytes_ ? static_cast<char*>(call_.indices) + done() : finish_.dst;
    const auto end = reinterpret_cast<std::uintptr_t>(next) + static_cast<std::uintptr_t>(held * size);
    return write(held, held - static_cast<std::int64_t>(end % 64) / size);
  }
  /// Writes all of them, and goes on at dst.
  HWY_NOINLINE void move(std::int64_t held, void* dst) {
    write(held, held);
    finish_.dst = dst;
  }

 private:
  HWY_INLINE std::int64_t write(std::int64_t held, std::int64_t count) {
    if (count <= 0) return held;
    const auto move = [&](auto* part) HWY_ATTR {
      std::memmove(part, part + count, static_cast<std::size_t>(held - count) * sizeof(*part));
    };
    finish_.len = count;
    call_.finish(finish_);
    char* indices = static_cast<char*>(call_.indices) + done() * call_.index_size;
    finish_.dst = static_cast<char*>(finish_.dst) + count * call_.out_size;
    for (int i = 0; i < parts_; ++i) move(states() + i * call_.line.dst_plane);
    if (bytes_) {
      copy_bytes(count, reinterpret_cast<std::uint8_t*>(indices));
      move(bytes_);
    } else if (call_.number) {
      A* numbers = states() + call_.line.dst_plane;
      call_.number(numbers, count, indices);
      move(numbers);
    }
    return held - count;
  }
  /// Outputs that have been written.
  HWY_INLINE std::int64_t done() const {
    return (static_cast<char*>(finish_.dst) - static_cast<char*>(call_.out.dst)) / call_.out_size;
  }
  /// Past the caches as well: else they would wait for each line of them.
  HWY_INLINE void copy_bytes(std::int64_t count, std::uint8_t* to) const {
    const Tag<std::uint8_t> tag;
    const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
    const auto copy = [&](std::int64_t i, std::int64_t n)
                          HWY_ATTR { std::memcpy(to + i, bytes_ + i, static_cast<std::size_t>(n)); };
    std::int64_t i = 0;
    if (finish_.stream) {
      i = HWY_MIN(-reinterpret_cast<std::intptr_t>(to) & (L - 1), count);
      copy(0, i);
      for (; i + L <= count; i += L) hn::Stream(hn::LoadU(tag, bytes_ + i), tag, to + i);
    }
    copy(i, count - i);
  }

  const Planes& call_;
  Finish finish_;
  const int parts_;
  std::uint8_t* const bytes_;
};

/// Rows of a ring.
template <class A>
struct RingRows {
  const A* base;
  std::int64_t pitch, slots, plane;
  /// What the first row adds to its winners' numbers, and each further one.
  std::int64_t id, id_scale;
};

template <class C, class A>
HWY_NOINLINE void merge_few(const C& carry, const RingRows<A>& ring, std::int64_t first, std::int64_t count,
                            std::int64_t len, A* dst) {
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
    carry.store_state(state[0], dst + i, plane);
  }
}
/// `count` rows from `first` on, joined: `len` lanes of each.
template <class C, class A>
HWY_INLINE void merge_ring(const C& carry, const RingRows<A>& ring, std::int64_t first, std::int64_t count,
                           std::int64_t len, A* dst) {
  const std::int64_t L = lanes<A>(), plane = ring.plane, id = ring.id, scale = ring.id_scale;
  const auto row = [&](std::int64_t j)
                       CENOTE_INLINED { return ring.base + ((first + j) & (ring.slots - 1)) * ring.pitch; };
  const A *a = row(0), *b = row(1), *c = row(2), *d = row(3), *e = row(4);
  const auto read = [&](const A* p, int j) CENOTE_INLINED { return carry.load_state(p, plane, id + j * scale); };
  if (count == 3) {
    for (std::int64_t i = 0; i < len; i += L)
      carry.store_state(carry.combine(carry.combine(read(a + i, 0), read(b + i, 1)), read(c + i, 2)), dst + i, plane);
  } else if (count == 2) {
    for (std::int64_t i = 0; i < len; i += L)
      carry.store_state(carry.combine(read(a + i, 0), read(b + i, 1)), dst + i, plane);
  } else if (count == 5) {
    for (std::int64_t i = 0; i < len; i += L) {
      const auto three = carry.combine(carry.combine(read(a + i, 0), read(b + i, 1)), read(c + i, 2));
      carry.store_state(carry.combine(carry.combine(three, read(d + i, 3)), read(e + i, 4)), dst + i, plane);
    }
  } else {
    merge_few(carry, ring, first, count, len, dst);
  }
}

/// Whether the state of a cell is the cell.
template <class C>
struct LiftsAsIs {
  static constexpr bool value = false;
};
template <bool Largest, class A>
struct LiftsAsIs<Carry<Extreme<Largest>, A>> {
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
    NanWatch<A> watch;
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

/// Outputs of a row from which on they are written as they are made: a row ends with a part of a pack.
constexpr std::int64_t least_direct = 256;

template <class C, class T, class Make>
HWY_NOINLINE void make_planes(const C& like, const Make& make, const Planes& call) {
  using A = typename LaneOf<typename C::N>::type;
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
  const std::int64_t piece = call.piece, least_written = cpu::plane_piece;
  const std::int64_t together = folded && !apart ? piece / width + 1 : 1;
  const std::int64_t plane = call.line.dst_plane, row_id = call.line.fold_id_scale;
  A* const ring = static_cast<A*>(call.ring);
  Outlet<A> outlet(call);
  const bool raw = call.finish == nullptr;
  bool writes = false;
  if constexpr (requires { make.writes(); })
    writes = folded && call.direct && (width >= least_direct || !call.line.work) && make.writes();
  A* const stage = raw ? static_cast<A*>(call.out.dst) : outlet.states();
  std::int64_t held = 0;
  bool any_nan = false;
  const auto* src = static_cast<const T*>(call.line.src);
  auto* dst = static_cast<char*>(call.out.dst);
  for (std::int64_t p = 0; p < call.count; ++p, src += call.step, dst += call.out_plane * call.out_size) {
    if (p > 0 && (apart || call.out_plane != (call.end - call.begin) * width)) {
      outlet.move(held, dst);
      held = 0;
    }
    std::int64_t made = 0, nan = -1;  // rows, and the last that may hold NaN
    if (joined) {
      if (make(Rows<T, A>{src, ring}, begin, end)) nan = across.n;
      made = across.n;
      if (inside) {
        nan < 0 ? merge_all(calm, ring, width, across, plane, stage + held)
                : merge_all(carry, ring, width, across, plane, stage + held);
        held += across.out * width;
        any_nan |= nan >= 0;
        if (held >= least_written && !raw) held = outlet.write_lines(held);
        continue;
      }
    }
    for (std::int64_t o = call.begin, rows = 1; o < call.end; o += rows) {
      if (apart && o > call.begin) {
        outlet.move(held, dst + (o - call.begin) * call.out_row * call.out_size);
        held = 0;
      }
      const std::int64_t start = o * across.stride - across.low;
      const std::int64_t first = HWY_MAX(start, 0), last = HWY_MIN(start + across.size, across.n);
      if (folded)
        rows = HWY_MIN(call.end - o, together);
      else
        for (made = HWY_MAX(made, first); made < last;) {
          const std::int64_t slot = made & (slots - 1), count = HWY_MIN(last - made, slots - slot);
          Rows<T, A> fresh{src + made * src_row, ring + slot * pitch, count, src_row, pitch};
          fresh.spare = ring + slots * pitch;
          const bool any = make(fresh, begin, end);
          made += count;
          if (HWY_UNLIKELY(any)) nan = made - 1;
        }
      if constexpr (requires { make.writes(); })
        if (writes) {
          for (std::int64_t r = 0; r < rows; ++r) {
            T* y = reinterpret_cast<T*>(dst) + (o + r - call.begin) * call.out_row - begin;
            any_nan |= make.write(src + (start + r * across.stride) * src_row, begin, end,
                                  {y, call.divisor, call.divisor != 0, call.out.stream});
          }
          continue;
        }
      for (std::int64_t from = 0; from < width;) {
        const std::int64_t until = width - from < 2 * piece ? width : from + piece;
        A* states = stage + held;
        const RingRows<A> kept_rows{ring + from, pitch, slots, plane, (first - start) * row_id, row_id};
        if (folded)
          any_nan |= make(Rows<T, A>{src + start * src_row, states, rows, across.stride * src_row, width}, begin + from,
                          begin + until);
        else if (HWY_UNLIKELY(first >= last))
          fill_identity(carry, until - from, states, plane);
        else if (!Calm<C>::differs || HWY_UNLIKELY(nan >= first))
          merge_ring(carry, kept_rows, first, last - first, until - from, states);
        else
          merge_ring(calm, kept_rows, first, last - first, until - from, states);
        held += rows * (until - from);
        if (held >= least_written && !raw) held = outlet.write_lines(held);
        from = until;
      }
    }
    any_nan |= nan >= 0;
  }
  if (!raw) outlet.move(held, nullptr);
  if (call.line.nan && any_nan) *call.line.nan = true;
}

/// Planes whose windows share at most one row: rows are folded as they are read, and the states of the one that is
/// shared wait for the next window.
template <class C, class T, class Make>
HWY_NOINLINE void fold_planes(const C& carry, const Make& make, const Planes& call, std::uint8_t* bytes) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis across = *call.across;
  const bool shares = across.size > across.stride, raw = call.finish == nullptr;
  // In lanes, of which an output has several where rows lie side by side.
  const std::int64_t begin = call.line.begin * call.line.len, width = call.line.end * call.line.len - begin;
  const std::int64_t src_row = call.line.src_row, row_id = call.line.fold_id_scale, plane = call.line.dst_plane;
  const bool apart = call.out_row != width;
  const std::int64_t piece = call.piece, together = apart ? 1 : piece / width + 1;
  const auto [inside, outside] = across.interior();
  A *const last_row = static_cast<A*>(call.ring), *const spare = last_row + (shares ? 2 * width + 64 : 0);
  Outlet<A> outlet(call, C::inputs, bytes);
  A* const stage = raw ? static_cast<A*>(call.out.dst) : outlet.states();
  std::int64_t held = 0;
  bool any_nan = false;
  const auto* src = static_cast<const T*>(call.line.src);
  auto* dst = static_cast<char*>(call.out.dst);
  // Values may leave as they are made where packs of them are whole, and aligned if they go past the caches.
  const auto aligned = [&](std::intptr_t at) CENOTE_INLINED { return at % (lanes<A>() * sizeof(T)) == 0; };
  const bool filled = across.low < across.size && (across.out - 1) * across.stride - across.low < across.n;
  const bool straight =
      Make::writes_values && filled && !raw && call.direct && call.line.len % lanes<A>() == 0 &&
      (!call.out.stream || (aligned(reinterpret_cast<std::intptr_t>(dst)) && aligned(call.out_row * call.out_size) &&
                            aligned(call.out_plane * call.out_size)));
  for (std::int64_t p = 0; p < call.count; ++p, src += call.step, dst += call.out_plane * call.out_size) {
    if (p > 0 && (apart || call.out_plane != (call.end - call.begin) * width)) {
      outlet.move(held, dst);
      held = 0;
    }
    std::int64_t kept_row = -1;
    bool doubt = false;
    for (std::int64_t o = call.begin, count = 1; o < call.end; o += count) {
      if (apart && o > call.begin) {
        outlet.move(held, dst + (o - call.begin) * call.out_row * call.out_size);
        held = 0;
      }
      const std::int64_t start = o * across.stride - across.low;
      const std::int64_t first = HWY_MAX(start, 0), end = HWY_MIN(start + across.size, across.n);
      const bool shared = shares && start >= 0 && first + 1 < end;
      const auto each_piece = [&](const auto& use) CENOTE_INLINED {
        for (std::int64_t from = 0; from < width;) {
          const std::int64_t until = width - from < 2 * piece ? width : from + piece;
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
      Rows<T, A> rows{src + fresh * src_row, nullptr, count, across.stride * src_row, width, end - fresh, src_row};
      rows.shared = shared;
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
          if (straight)
            rows.values = {reinterpret_cast<T*>(dst) + (o - call.begin) * call.out_row + from, call.divisor,
                           call.divisor != 0, call.out.stream};
          doubt |= make(rows, begin + from, begin + until);
          if (straight) return;
        }
        held += count * (until - from);
        if (held >= cpu::plane_piece && !raw) held = outlet.write_lines(held);
      });
      any_nan |= doubt;
      kept_row = first < end && shares ? end - 1 + (count - 1) * across.stride : -1;
    }
  }
  if (!raw) outlet.move(held, nullptr);
  if (call.line.nan && any_nan) *call.line.nan = true;
}

/// Whether there are kernels for small planes: not for halves, since each set costs time to compile.
template <class C, class T>
constexpr bool makes_small = LiftsAsIs<C>::value&& std::is_same_v<T, Lane<T>>;

/// What has been folded so far, of rows one after the other: where rounding adds up, in groups.
template <class Q>
class Tally {
  using State = typename Q::State;

 public:
  explicit HWY_INLINE Tally(const Q& carry, const State& nothing) : carry_(carry), group_(nothing), whole_(nothing) {}
  /// One more row, behind the others or before them.
  template <bool Before>
  HWY_INLINE State add(const State& row) {
    if constexpr (Repeats<Q>::value) return group_ = join<Before>(group_, row);
    if (size_ == group_cells) {
      whole_ = join<Before>(whole_, group_);
      group_ = row;
      size_ = 0;
    } else {
      group_ = join<Before>(group_, row);
    }
    ++size_;
    return join<Before>(whole_, group_);
  }

 private:
  template <bool Before>
  HWY_INLINE State join(const State& a, const State& b) const {
    return Before ? carry_.combine(b, a) : carry_.combine(a, b);
  }
  const Q& carry_;
  State group_, whole_;
  std::int64_t size_ = 0;
};

/// Small planes whose windows lie at every place: their rows with padding are one long line, which is swept; windows
/// across are the end of one block of rows and the beginning of the next. Rows are whole packs, so that no sweep
/// writes behind them.
template <class C, class T>
class SmallPlanes {
  using A = typename LaneOf<typename C::N>::type;

 public:
  HWY_INLINE SmallPlanes(const C& carry, const Planes& call)
      : carry_(carry), call_(call), line_(*call.line.axis), across_(*call.across), outlet_(call) {
    width_ = call.piece;
    // Columns and rows that some window reaches.
    columns_ = HWY_MIN(line_.n, line_.out + line_.size - 1 - line_.low);
    rows_ = HWY_MIN(across_.n, across_.out + across_.size - 1 - across_.low);
    const std::int64_t room = across_.n * width_ + cpu::small_plane_slack;
    cells_ = static_cast<A*>(call.ring);
    swept_ = cells_ + room;
    ends_ = swept_ + room;
    for (std::int64_t i = 0; i < room; i += lanes<A>()) store(broadcast<A>(C::template neutral<A>()), cells_ + i);
  }
  HWY_NOINLINE void run() {
    const auto* src = static_cast<const T*>(call_.line.src);
    auto* dst = static_cast<char*>(call_.out.dst);
    std::int64_t held = 0;
    for (std::int64_t p = 0; p < call_.count; ++p, src += call_.step, dst += call_.out_plane * call_.out_size) {
      if (p > 0 && call_.out_plane != across_.out * line_.out) {
        outlet_.move(held, dst);
        held = 0;
      }
      A* states = outlet_.states() + held;
      copy(src) ? make(carry_, states) : make(Calm<C>::of(carry_), states);
      held += across_.out * line_.out;
      if (held >= cpu::plane_piece) held = outlet_.write_lines(held);
    }
    outlet_.move(held, nullptr);
  }

 private:
  /// The cells of one plane into its padding. True if some are NaN.
  HWY_INLINE bool copy(const T* src) {
    const std::int64_t L = lanes<A>(), src_row = call_.line.src_row, columns = columns_, width = width_;
    A* to = cells_ + line_.low;
    NanWatch<A> watch;
    const auto put = [&](Pack<A> cells, A* at) CENOTE_INLINED {
      if constexpr (Calm<C>::differs) watch.add(cells, cells);
      store(cells, at);
    };
    for (std::int64_t r = 0; r < rows_; ++r, src += src_row, to += width) {
      std::int64_t i = 0;
      for (; i + L <= columns; i += L) put(load(src + i), to + i);
      if (i < columns && columns >= L) put(load(src + columns - L), to + columns - L);
      if (columns < L)
        for (; i < columns; ++i) to[i] = static_cast<A>(src[i]);
    }
    if (Calm<C>::differs && columns < L) return true;
    return watch.any();
  }
  template <class Q>
  HWY_NOINLINE void make(const Q& carry, A* states) {
    const std::int64_t places = rows_ * width_;
    const Axis along{places, line_.size, 1, 1, 0, line_.size - 1, places};
    Pass pass = call_.line;
    pass.axis = &along;
    pass.len = 1;
    if (LineStream<Q, A>::applies(pass))
      LineStream<Q, A>(carry, pass, along, static_cast<A*>(pass.work))(cells_, 0, places, swept_, {});
    else
      LineSweep<Q, A>(carry, pass)(cells_, 0, places, swept_);
    // The last pack of a row runs over into the next row, which is why that comes later.
    for (std::int64_t i = (line_.out - 1) / lanes<A>() * lanes<A>(); i >= 0; i -= lanes<A>())
      across(carry, swept_ + i, states + i);
  }
  /// One pack of every row of outputs.
  template <class Q>
  HWY_INLINE void across(const Q& like, const A* rows, A* states) {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const std::int64_t L = lanes<A>(), k = across_.size, n = rows_, low = across_.low, out = across_.out;
    const std::int64_t width = width_, step = line_.out;
    A* const ends = ends_;
    const auto nothing = carry.lift(broadcast<A>(C::template neutral<A>()), 0);
    const auto row = [&](std::int64_t p) CENOTE_INLINED { return carry.load_state(rows + p * width, 0, 0); };
    std::int64_t o = 0;
    for (std::int64_t edge = low > 0 ? 0 : k; o < out; edge += k) {
      Tally<Q> before(carry, nothing), behind(carry, nothing);
      for (std::int64_t p = HWY_MIN(edge, n) - 1; p >= HWY_MAX(edge - k, 0); --p)
        carry.store_state(before.template add<true>(row(p)), ends + p * L, 0);
      auto beginning = nothing;
      std::int64_t reached = edge;
      for (; o < HWY_MIN(out, edge + low); ++o) {
        const std::int64_t start = o - low, last = HWY_MIN(start + k, n);
        for (; reached < last; ++reached) beginning = behind.template add<false>(row(reached));
        const bool inside = start >= 0 && start < n;
        carry.store_state(inside ? carry.combine(carry.load_state(ends + start * L, 0, 0), beginning) : beginning,
                          states + o * step, 0);
      }
    }
  }

  const C& carry_;
  const Planes& call_;
  const Axis line_, across_;
  Outlet<A> outlet_;
  std::int64_t width_, columns_, rows_;
  A *cells_, *swept_, *ends_;
};

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

/// Makes planes whose windows share at most one row where there is a maker for them; says whether.
template <class C, class T>
HWY_INLINE bool fold_planes(const C& wide, const Planes& call) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& across = *call.across;
  if (call.joined > 0 || across.size > across.stride + 1) return false;
  // Ring and stage lie behind each other, each of two parts: bytes for all fit the second one of the ring.
  A* const values = static_cast<A*>(call.ring);
  auto* const bytes = C::is_winner ? reinterpret_cast<std::uint8_t*>(values + call.line.dst_plane) : nullptr;
  auto* const staged = C::is_winner ? bytes + (static_cast<const A*>(call.out.src) - values) : nullptr;
  const auto carry = Few<C, A>::of(wide, values, bytes);
  using Q = std::remove_const_t<decltype(carry)>;
  if (call.line.len > 1) {
    fold_planes<Q, T>(carry, RowLine<Q, T>(carry, call.line), call, staged);
    return true;
  }
  if constexpr (C::has_neutral) {
    if ((C::is_winner || C::inputs == 2 || across.size > across.stride) && PairedLine<Q, T>::applies(call.line)) {
      fold_planes<Q, T>(carry, PairedLine<Q, T>(carry, call.line), call, staged);
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
  if constexpr (makes_small<C, T>)
    if (call.small) return SmallPlanes<C, T>(carry, call).run();
  // Short windows too where values are written at once; whether they are must not depend on where a line is cut.
  const bool streams = call.direct && call.folded && call.line.fold == 1 && call.line.axis->out >= least_direct &&
                       SweptLine<C, T>::writes_short(call.line);
  if ((call.line.work && call.line.len == 1) || streams)
    return make_planes<C, T>(carry, SweptLine<C, T>(carry, call.line), call);
  if (fold_planes<C, T>(carry, call)) return;
  if (call.line.len > 1) return make_planes<C, T>(carry, RowLine<C, T>(carry, call.line), call);
  with_line<C, T>(carry, call.line, [&](const auto& make) HWY_ATTR { make_planes<C, T>(carry, make, call); });
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
