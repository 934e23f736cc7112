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
  explicit HWY_INLINE Outlet(const Planes& call, std::uint8_t* bytes = nullptr)
      : call_(call), finish_(call.out), bytes_(bytes) {}
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
    move(states());
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

/// Rows that lie side by side, of at least a pack: lanes run along them. Positions count lanes, whole rows of them.
template <class C, class T>
class RowLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
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
    NanWatch<A> watch;
    for (; row < all.count; ++row) {
      A *dst = all.dst + row * all.dst_row, *last = all.last;
      if (last) last += (from / len - pass_.begin) * apart;
      watch = {};
      for (std::int64_t o = from / len; o < to / len; ++o, dst += len, last += last ? apart : 0) {
        const std::int64_t start = o * axis.stride - axis.low;
        const std::int64_t first = HWY_MAX(start, 0), count = HWY_MIN(start + axis.size, axis.n) - first;
        const std::int64_t id = (first - start) * scale;
        const T* p = all.src + row * all.src_row + first * step;
        if (HWY_UNLIKELY(count <= 0)) {
          fill_identity(carry, len, dst, plane);
          if (last) fill_identity(carry, len, last, plane);
          continue;
        }
        const auto lift = [&](Pack<A> x, std::int64_t at) CENOTE_INLINED {
          if constexpr (Calm<C>::differs) watch.add(x, x);
          return carry.lift(x, at);
        };
        if (len > short_row * L) {
          for (std::int64_t r = 0; r < all.fold; ++r)
            for (std::int64_t j = 0; j < count; ++j) {
              const A* before = r > 0 ? dst : all.shared ? last : nullptr;
              const auto cell = [&](Pack<A> x, std::int64_t i) CENOTE_INLINED {
                if (!last) {
                  auto state = lift(x, all.id + r * all.id_scale + id + j * scale);
                  if (r + j > 0) state = carry.combine(carry.load_state(dst + i, plane, 0), state);
                  return carry.store_state(state, dst + i, plane);
                }
                auto cells = lift(x, id + j * scale);
                if (j > 0) cells = carry.combine(carry.load_state(all.spare + i, plane, 0), cells);
                if (j + 1 < count) return carry.store_state(cells, all.spare + i, plane);
                auto state = carry.behind(cells, all.id + r * all.id_scale);
                if (before) state = carry.combine(carry.load_state(before + i, plane, 0), state);
                carry.store_state(state, dst + i, plane);
                if (r + 1 == all.fold) carry.store_state(cells, last + i, plane);
              };
              const T* q = p + r * all.fold_row + j * step;
              std::int64_t i = 0;
              for (; i + L <= len; i += L) cell(kept(load(q + i)), i);
              if (i < len) cell(load_first(q + i, len - i), i);
            }
          continue;
        }
        // U packs from lane i on.
        const auto packs = [&]<int U>(std::int64_t i, const auto& read, std::integral_constant<int, U>) CENOTE_INLINED {
          typename Q::State state[U], cells[U];
          for (std::int64_t r = 0; r < all.fold; ++r) {
            const T* q = p + r * all.fold_row + i;
            each<U>([&](int u) CENOTE_INLINED { cells[u] = lift(read(q + u * L), id); });
            for (std::int64_t j = 1; j < count; ++j)
              each<U>([&](int u) CENOTE_INLINED {
                cells[u] = carry.combine(cells[u], lift(read(q + j * step + u * L), id + j * scale));
              });
            const std::int64_t behind = all.id + r * all.id_scale;
            each<U>([&](int u) CENOTE_INLINED {
              const auto more = carry.behind(cells[u], behind);
              state[u] = r > 0        ? carry.combine(state[u], more)
                         : all.shared ? carry.combine(carry.load_state(last + i + u * L, plane, 0), more)
                                      : more;
            });
          }
          each<U>([&](int u) CENOTE_INLINED {
            carry.store_state(state[u], dst + i + u * L, plane);
            if (last) carry.store_state(cells[u], last + i + u * L, plane);
          });
        };
        const auto whole = [](const T* q) CENOTE_INLINED { return kept(load(q)); };
        const auto part = [&](const T* q) CENOTE_INLINED { return load_first(q, len % L); };
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
  Outlet<A> outlet(call, bytes);
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
        else
          doubt |= make(rows, begin + from, begin + until);
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

/// Whether there are kernels for planes that are swept: not for halves, since each set costs time to compile.
template <class C, class T>
constexpr bool sweeps_planes = LiftsAsIs<C>::value&& std::is_same_v<T, Lane<T>>;

/// What has been folded so far, of U packs of rows one after the other: where rounding adds up, in groups.
template <int U, class Q>
class Tally {
  using State = typename Q::State;

 public:
  HWY_INLINE Tally(const Q& carry, const State& nothing) : carry_(carry) {
    each<U>([&](int u) CENOTE_INLINED { group_[u] = whole_[u] = all_[u] = nothing; });
  }
  /// One more row, behind the others or before them.
  template <bool Before, class Row>
  HWY_INLINE void add(const Row& row) {
    if constexpr (Repeats<Q>::value) {
      each<U>([&](int u) CENOTE_INLINED { all_[u] = join<Before>(all_[u], row(u)); });
    } else {
      const bool full = size_ == group_cells;
      each<U>([&](int u) CENOTE_INLINED {
        if (full) whole_[u] = join<Before>(whole_[u], group_[u]);
        group_[u] = full ? row(u) : join<Before>(group_[u], row(u));
        all_[u] = join<Before>(whole_[u], group_[u]);
      });
      size_ = full ? 1 : size_ + 1;
    }
  }
  HWY_INLINE const State& operator[](int u) const { return all_[u]; }

 private:
  template <bool Before>
  HWY_INLINE State join(const State& a, const State& b) const {
    return Before ? carry_.combine(b, a) : carry_.combine(a, b);
  }
  const Q& carry_;
  State group_[U], whole_[U], all_[U];
  std::int64_t size_ = 0;
};

/// Planes whose windows lie at every place and are swept both ways. The lines of several rows with their padding are
/// one long line. Windows across are the end of one block of rows and the beginning of the next: blocks are as long as
/// a window and lie at multiples of that, whatever is asked for, so that sums do not depend on where work is cut. As
/// many rows as two blocks have wait for that; a few packs of each are then read from the last to the first, and on in
/// order, with nothing but the ends of the block in memory. Where rows lie side by side, lines are made so, too.
template <class C, class T>
class SweptPlanes {
  using A = typename LaneOf<typename C::N>::type;
  static constexpr int U = 2;

 public:
  HWY_INLINE SweptPlanes(const C& carry, const Planes& call)
      : carry_(carry), call_(call), line_(*call.line.axis), across_(*call.across), outlet_(call) {
    const std::int64_t begin = call.line.begin, end = call.line.end;
    pitch_ = call.piece;
    len_ = call.line.len;
    padded_len_ = len_ > 1 ? (len_ + strip() - 1) / strip() * strip() : 1;
    width_ = end - begin;
    // Columns that some window reaches.
    first_ = std::clamp<std::int64_t>(begin - line_.low, 0, line_.n);
    columns_ = std::clamp<std::int64_t>(end - 1 - line_.low + line_.size, first_, line_.n) - first_;
    pad_ = first_ - (begin - line_.low);
    // What is written there is aligned.
    cells_ = static_cast<A*>(call.cells) + (-pad_ & (lanes<A>() - 1));
    ends_ = static_cast<A*>(call.ends);
    // Chains of long sums are counted from a line's beginning.
    joins_ = len_ == 1 && (Repeats<C>::value || line_.size < 4 * lanes<A>() || !LineStream<C, A>::exists);
    if (joins_)
      for (std::int64_t i = 0; i < call.batch * pitch_ + pad_; i += lanes<A>())
        store(broadcast<A>(C::template neutral<A>()), cells_ + i);
    const auto aligned = [&](std::int64_t elements) HWY_ATTR { return elements * std::int64_t{sizeof(T)} % 64 == 0; };
    const bool even = reinterpret_cast<std::uintptr_t>(call.out.dst) % 64 == 0 && aligned(call.out_row) &&
                      aligned(call.out_plane) && (len_ == 1 || aligned(call.out_step));
    streams_ = call.out.stream && even;
    direct_ = call.direct && (std::is_floating_point_v<A> || call.divisor == 0) &&
              (len_ > 1 || streams_ || !call.out.stream || call.out_row != width_);
  }
  HWY_NOINLINE void run() {
    const auto* src = static_cast<const T*>(call_.line.src);
    auto* dst = static_cast<char*>(call_.out.dst);
    const bool touch = call_.out_row == width_ && call_.out_plane == (call_.end - call_.begin) * width_;
    // The lines of several small planes, too.
    const bool whole = joins_ && call_.begin == 0 && call_.end == across_.out && across_.n <= 2 * across_.size;
    const std::int64_t together = whole ? HWY_MAX(call_.batch / across_.n, 1) : 1;
    for (std::int64_t p = 0; p < call_.count; p += together) {
      const std::int64_t planes = HWY_MIN(together, call_.count - p);
      ring_ = static_cast<A*>(call_.ring);
      nan_[0] = nan_[1] = planes > 1 && make(src, across_.n, planes, ring_);
      for (std::int64_t i = 0; i < planes; ++i, src += call_.step, dst += call_.out_plane * call_.out_size) {
        if (p + i > 0 && !touch) flush(dst);
        ahead_ = len_ > 1     ? nullptr
                 : planes > 1 ? src + first_ + planes * call_.step
                              : src + first_ + 2 * across_.size * call_.line.src_row;
        plane(src, dst, planes > 1);
        ring_ += across_.n * pitch_;
      }
    }
    flush(nullptr);
  }

 private:
  /// Lanes of each row that are joined at a time.
  static HWY_INLINE std::int64_t strip() { return U * lanes<A>(); }
  HWY_INLINE A* row(std::int64_t p) const {
    const std::int64_t k = across_.size;
    return ring_ + (p / k % 2 * k + p % k) * pitch_;
  }
  HWY_INLINE void flush(void* dst) {
    if (direct_) return;
    outlet_.move(held_, dst);
    held_ = 0;
  }
  /// One plane, whose lines may be made already.
  HWY_INLINE void plane(const T* src, char* dst, bool swept) {
    const std::int64_t k = across_.size, low = across_.low, n = across_.n;
    const std::int64_t needed = HWY_MIN(call_.end - 1 - low + k, n);
    std::int64_t made = swept ? n : std::clamp<std::int64_t>(call_.begin - low, 0, n);
    for (std::int64_t o = call_.begin; o < call_.end;) {
      const std::int64_t start = o - low, edge = start < 0 ? 0 : (start / k + 1) * k;
      const std::int64_t stop = HWY_MIN(call_.end, edge + low), last = HWY_MIN(HWY_MAX(edge, k) + k, needed);
      for (std::int64_t count; made < last; made += count) {
        count = HWY_MIN(HWY_MIN(last - made, call_.batch), 2 * k - made % (2 * k));
        const bool any = make(src + made * call_.line.src_row, count, 1, row(made));
        const std::int64_t first = made / k, second = (made + count - 1) / k;
        nan_[first % 2] = any || (nan_[first % 2] && made % k != 0);
        if (second != first) nan_[second % 2] = any;
      }
      const bool doubt = Calm<C>::differs && (nan_[0] || nan_[1]);
      doubt ? join(carry_, edge, o, stop, dst) : join(Calm<C>::of(carry_), edge, o, stop, dst);
      o = stop;
    }
  }

  /// The windows along the lines of some rows of each of some planes. True if NaN was met.
  HWY_INLINE bool make(const T* src, std::int64_t count, std::int64_t planes, A* to) {
    if (joins_)
      for (std::int64_t i = 0; i < planes; ++i) copy(src + i * call_.step, count, cells_ + i * count * pitch_ + pad_);
    const bool any = sweep(Calm<C>::of(carry_), src, count * planes, to);
    if (Calm<C>::differs && any) sweep(carry_, src, count * planes, to);
    return any;
  }
  template <class Q>
  HWY_NOINLINE bool sweep(const Q& carry, const T* src, std::int64_t count, A* to) {
    if (len_ > 1) return side_by_side(carry, src, count, to);
    Pass pass = call_.line;
    A* const work = static_cast<A*>(pass.work);
    if constexpr (LineStream<Q, T>::exists)
      if (!joins_) {
        const LineStream<Q, T> lines(carry, pass, line_, work);
        bool any = false;
        for (std::int64_t r = 0; r < count; ++r)
          any |= lines(src + r * pass.src_row, pass.begin, pass.end, to + r * pitch_, {}) < pass.end;
        return any;
      }
    const std::int64_t places = count * pitch_;
    const Axis along{places, line_.size, 1, 1, 0, line_.size - 1, places};
    pass.axis = &along;
    if (LineStream<Q, A>::applies(pass))
      return LineStream<Q, A>(carry, pass, along, work)(cells_, 0, places, to, {}) < places;
    return LineSweep<Q, A>(carry, pass)(cells_, 0, places, to);
  }
  /// The cells of some rows into their padding.
  HWY_INLINE void copy(const T* src, std::int64_t count, A* to) const {
    const std::int64_t L = lanes<A>(), src_row = call_.line.src_row, pitch = pitch_;
    const std::int64_t whole = columns_ / L * L, rest = columns_ - whole;
    const Cut<1, T> cut(0, rest);
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    src += first_;
    for (std::int64_t r = 0; r < count; ++r, src += src_row, to += pitch) {
      for (std::int64_t i = 0; i < whole; i += L) store(load(src + i), to + i);
      // What is written behind the cells is padding, of the next row too.
      if (rest > 0) store(select(cut.inside, load_between(src + whole, cut.low), nothing), to + whole);
    }
  }
  /// Lines whose cells are rows of lanes.
  template <class Q>
  HWY_INLINE bool side_by_side(const Q& like, const T* src, std::int64_t count, A* to) {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const std::int64_t L = lanes<A>(), k = line_.size, low = line_.low, step = call_.line.step, len = len_;
    const std::int64_t begin = call_.line.begin, end = call_.line.end, padded_len = padded_len_;
    NanWatch<A> watch;
    for (std::int64_t r = 0; r < count; ++r, src += call_.line.src_row, to += pitch_)
      for (std::int64_t c = 0; c < len; c += strip()) {
        const bool whole = c + strip() <= len;
        const auto cells = [&](std::int64_t p, int u) CENOTE_INLINED {
          const std::int64_t i = c + u * L;
          const T* at = src + p * step + i;
          const Pack<A> x = HWY_LIKELY(whole) ? load(at) : load_first(at, std::clamp<std::int64_t>(len - i, 0, L));
          if constexpr (Q::is_calm) watch.add(x, x);
          return carry.lift(x, 0);
        };
        // Rows are so far apart that memory has to be asked.
        const auto fresh = [&](std::int64_t p, int u) CENOTE_INLINED {
          __builtin_prefetch(src + call_.line.src_row + p * step + c + u * L, 0, 2);
          return cells(p, u);
        };
        const auto put = [&](std::int64_t o, const auto& states) CENOTE_INLINED {
          A* const at = to + (o - begin) * padded_len + c;
          each<U>([&](int u) CENOTE_INLINED { carry.store_state(states[u], at + u * L, 0); });
        };
        for (std::int64_t o = begin; o < end;) {
          const std::int64_t start = o - low, edge = start < 0 ? 0 : (start / k + 1) * k;
          const std::int64_t stop = HWY_MIN(end, edge + low);
          join_blocks(carry, line_, edge, o, stop, ends_, cells, fresh, put);
          o = stop;
        }
      }
    return watch.any();
  }

  /// Outputs [begin, end) across, whose windows reach over `edge` or end there, in all lanes.
  template <class Q>
  HWY_NOINLINE void join(const Q& like, std::int64_t edge, std::int64_t begin, std::int64_t end, char* to) {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const std::int64_t L = lanes<A>(), pitch = pitch_, row_lanes = len_ > 1 ? len_ : width_;
    const std::int64_t out_row = direct_ ? call_.out_row : width_;
    constexpr bool may_divide = std::is_floating_point_v<A> && !Repeats<C>::value;
    const bool direct = direct_, streams = streams_, divides = may_divide && call_.divisor != 0;
    const Pack<A> divisor = number<Pack<A>>(call_.divisor);
    T* const y = direct ? reinterpret_cast<T*>(to) - call_.begin * out_row : nullptr;
    A* const stage = direct ? nullptr : outlet_.states() + held_ - begin * out_row;
    // What a pack writes behind its row is written again by the next one.
    const T* const limit = direct && len_ == 1 && out_row == width_ ? y + call_.end * out_row : nullptr;
    const std::int64_t k = across_.size, odd = edge / k % 2;
    const A* const before = ring_ + (odd ? k - edge : 2 * k - edge) * pitch;
    const A* const behind = ring_ + (odd ? k - edge : -edge) * pitch;
    // Memory would idle while rows are joined: it is asked for those that come next.
    const T* const ahead = ahead_ ? ahead_ : reinterpret_cast<const T*>(ends_);
    const std::int64_t src_row = ahead_ ? call_.line.src_row : 0;
    const std::int64_t last_strip = (row_lanes - 1) / strip() * strip();
    for (std::int64_t column = len_ > 1 ? width_ - 1 : 0; column >= 0; --column)
      for (std::int64_t c = last_strip; c >= 0; c -= strip()) {
        const std::int64_t at = column * padded_len_ + c, out_at = column * call_.out_step + c, left = row_lanes - c;
        const std::int64_t next = c > 0 ? -strip() : last_strip - call_.out_step;
        const auto upper = [&](std::int64_t p, int u) CENOTE_INLINED {
          __builtin_prefetch(ahead + p * src_row + c + u * L, 0, 2);
          return carry.load_state(before + p * pitch + at + u * L, 0, 0);
        };
        const auto lower = [&](std::int64_t p, int u)
                               CENOTE_INLINED { return carry.load_state(behind + p * pitch + at + u * L, 0, 0); };
        const auto put = [&](std::int64_t o, const auto& states) CENOTE_INLINED {
          if (!direct)
            return each<U>([&](int u)
                               CENOTE_INLINED { carry.store_state(states[u], stage + o * out_row + c + u * L, 0); });
          T* const out = y + o * out_row + out_at;
          Pack<A> values[U];
          each<U>([&](int u) CENOTE_INLINED {
            values[u] = states[u].part[0];
            if constexpr (may_divide)
              if (divides) values[u] = values[u] / divisor;
          });
          if (streams && left >= L)
            return each<U>([&](int u) CENOTE_INLINED {
              if (HWY_LIKELY(left >= (u + 1) * L))
                HWY_NAMESPACE::stream(values[u], out + u * L);
              else if (left > u * L)
                store_first(values[u], out + u * L, left - u * L);
            });
          if (HWY_LIKELY(left >= strip() || (!streams && out + strip() <= limit)))
            return each<U>([&](int u) CENOTE_INLINED {
              __builtin_prefetch(out + next + u * L, 1, 3);
              store(values[u], out + u * L);
            });
          each<U>([&](int u) CENOTE_INLINED {
            if (left > u * L) store_first(values[u], out + u * L, HWY_MIN(left - u * L, L));
          });
        };
        join_blocks(carry, across_, edge, begin, end, ends_, upper, lower, put);
      }
    if (direct) return;
    held_ += (end - begin) * width_;
    if (held_ >= cpu::plane_piece) held_ = outlet_.write_lines(held_);
  }
  /// The windows [begin, end) of an axis, which are what is left of the block before `edge` and the beginning of the
  /// one behind it.
  template <class Q, class Upper, class Lower, class Put>
  HWY_INLINE void join_blocks(const Q& carry, const Axis& axis, std::int64_t edge, std::int64_t begin, std::int64_t end,
                              A* ends, const Upper& upper, const Lower& lower, const Put& put) const {
    const std::int64_t L = lanes<A>(), k = axis.size, low = axis.low, n = axis.n;
    const auto nothing = carry.lift(broadcast<A>(C::template neutral<A>()), 0);
    A* const from = ends - (edge - k) * U * L;
    Tally<U, Q> rest(carry, nothing), more(carry, nothing);
    for (std::int64_t p = HWY_MIN(edge, n) - 1; p >= HWY_MAX(begin - low, 0); --p) {
      rest.template add<true>([&](int u) CENOTE_INLINED { return upper(p, u); });
      each<U>([&](int u) CENOTE_INLINED { carry.store_state(rest[u], from + (p * U + u) * L, 0); });
    }
    std::int64_t reached = edge;
    for (std::int64_t o = begin; o < end; ++o) {
      const std::int64_t start = o - low, last = HWY_MIN(start + k, n);
      for (; reached < last; ++reached)
        more.template add<false>([&](int u) CENOTE_INLINED { return lower(reached, u); });
      const bool inside = start >= 0 && start < n;
      typename Q::State states[U];
      each<U>([&](int u) CENOTE_INLINED {
        states[u] = inside ? carry.combine(carry.load_state(from + (start * U + u) * L, 0, 0), more[u]) : more[u];
      });
      put(o, states);
    }
  }

  const C& carry_;
  const Planes& call_;
  const Axis line_, across_;
  Outlet<A> outlet_;
  std::int64_t pitch_, len_, padded_len_, width_, first_, columns_, pad_, held_ = 0;
  A *cells_, *ends_, *ring_ = nullptr;
  const T* ahead_ = nullptr;
  bool joins_, streams_, direct_, nan_[2] = {};
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
    if ((C::is_winner || across.size > across.stride) && PairedLine<Q, T>::applies(call.line)) {
      fold_planes<Q, T>(carry, PairedLine<Q, T>(carry, call.line), call, staged);
      return true;
    }
  }
  return false;
}

template <class C, class T>
void planes(const Planes& call) {
  const C carry(call.line);
  if constexpr (sweeps_planes<C, T>)
    if (call.swept) return SweptPlanes<C, T>(carry, call).run();
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
