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
  explicit HWY_INLINE Outlet(const Planes& call) : call_(call), finish_(call.out) {}
  HWY_INLINE A* states() const { return static_cast<A*>(const_cast<void*>(finish_.src)); }
  /// Of `held` states, writes those that end a cache line, and those before them. Returns how many are left.
  HWY_NOINLINE std::int64_t write_lines(std::int64_t held) {
    const auto end = reinterpret_cast<std::uintptr_t>(finish_.dst) + static_cast<std::uintptr_t>(held * call_.out_size);
    return write(held, held - static_cast<std::int64_t>(end % 64) / call_.out_size);
  }
  /// Writes all of them, and goes on at dst.
  HWY_NOINLINE void move(std::int64_t held, void* dst) {
    write(held, held);
    finish_.dst = dst;
  }

 private:
  HWY_INLINE std::int64_t write(std::int64_t held, std::int64_t count) {
    if (count <= 0) return held;
    const auto move = [&](A* part) HWY_ATTR {
      std::memmove(part, part + count, static_cast<std::size_t>(held - count) * sizeof(A));
    };
    finish_.len = count;
    call_.finish(finish_);
    const auto done = (static_cast<char*>(finish_.dst) - static_cast<char*>(call_.out.dst)) / call_.out_size;
    finish_.dst = static_cast<char*>(finish_.dst) + count * call_.out_size;
    move(states());
    if (call_.number) {
      A* numbers = states() + call_.line.dst_plane;
      call_.number(numbers, count, static_cast<char*>(call_.indices) + done * call_.index_size);
      move(numbers);
    }
    return held - count;
  }

  const Planes& call_;
  Finish finish_;
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
    bool any = !Calm<C>::differs;
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const T* line = rows.src + row * rows.src_row;
      A* dst = rows.dst + row * rows.dst_row;
      if (HWY_LIKELY(!make(Calm<C>::of(carry_), line, from, to, dst))) continue;
      any = true;
      if constexpr (Calm<C>::differs) make(carry_, line, from, to, dst);
    }
    return any;
  }

 private:
  /// Packs of a row whose cells are folded in registers; longer ones are added up in L1, in the order of memory.
  static constexpr std::int64_t short_row = 4;

  template <class Q>
  HWY_NOINLINE bool make(const Q& like, const T* line, std::int64_t from, std::int64_t to, A* dst) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const Axis axis = *pass_.axis;
    const std::int64_t L = lanes<A>(), len = pass_.len, step = pass_.step, fold = pass_.fold;
    const std::int64_t fold_step = pass_.fold_step, plane = pass_.dst_plane;
    const std::int64_t scale = pass_.id_scale, fold_scale = pass_.fold_id_scale;
    NanWatch<A> watch;
    const auto lift = [&](Pack<A> x, std::int64_t id) CENOTE_INLINED {
      if constexpr (Q::is_calm) watch.add(x, x);
      return carry.lift(x, id);
    };
    for (std::int64_t o = from / len; o < to / len; ++o, dst += len) {
      const std::int64_t start = o * axis.stride - axis.low;
      const std::int64_t first = HWY_MAX(start, 0), count = HWY_MIN(start + axis.size, axis.n) - first;
      const T* p = line + first * step;
      const std::int64_t id = (first - start) * scale;
      if (HWY_UNLIKELY(count <= 0)) {
        fill_identity(carry, len, dst, plane);
        continue;
      }
      const auto each_pack = [&](const auto& make) CENOTE_INLINED {
        std::int64_t i = 0;
        for (; i + L <= len; i += L) make(i, [](const T* q) CENOTE_INLINED { return kept(load(q)); });
        if (i < len) make(i, [&](const T* q) CENOTE_INLINED { return load_first(q, len - i); });
      };
      if (len > short_row * L) {
        for (std::int64_t r = 0; r < fold; ++r)
          for (std::int64_t j = 0; j < count; ++j)
            each_pack([&](std::int64_t i, const auto& read) CENOTE_INLINED {
              auto state = lift(read(p + r * fold_step + j * step + i), id + r * fold_scale + j * scale);
              if (r + j > 0) state = carry.combine(carry.load_state(dst + i, plane, 0), state);
              carry.store_state(state, dst + i, plane);
            });
        continue;
      }
      each_pack([&](std::int64_t i, const auto& read) CENOTE_INLINED {
        const auto cells = [&](const T* q, std::int64_t at) CENOTE_INLINED {
          auto state = lift(read(q), at);
          if (count >= 2) state = carry.combine(state, lift(read(q + step), at + scale));
          if (count >= 3) state = carry.combine(state, lift(read(q + 2 * step), at + 2 * scale));
          for (std::int64_t j = 3; j < count; ++j)
            state = carry.combine(state, lift(read(q + j * step), at + j * scale));
          return state;
        };
        auto state = cells(p + i, id);
        for (std::int64_t r = 1; r < fold; ++r)
          state = carry.combine(state, cells(p + r * fold_step + i, id + r * fold_scale));
        carry.store_state(state, dst + i, plane);
      });
    }
    return watch.any();
  }

  const C& carry_;
  const Pass& pass_;
};

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
    if (p > 0 && call.out_plane != (call.end - call.begin) * width) {
      outlet.move(held, dst);
      held = 0;
    }
    std::int64_t made = 0, nan = -1;  // rows, and the last that may hold NaN
    if (joined) {
      if (make(Rows<T, A>{src, ring}, begin, end)) nan = across.n;
      made = across.n;
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
          const bool any =
              make(Rows<T, A>{src + made * src_row, ring + slot * pitch, count, src_row, pitch}, begin, end);
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

/// Whether there are kernels for small planes: not for halves, since each set costs time to compile.
template <class C, class T>
constexpr bool makes_small = LiftsAsIs<C>::value&& std::is_same_v<T, Lane<T>>;

/// Small planes whose windows lie at every place: a plane with its padding is one long line, swept along and across.
/// Rows are whole packs, so that no sweep writes behind them.
template <class C, class T>
class SmallPlanes {
  using A = typename LaneOf<typename C::N>::type;

 public:
  HWY_INLINE SmallPlanes(const C& carry, const Planes& call)
      : carry_(carry), call_(call), line_(*call.line.axis), across_(*call.across), outlet_(call) {
    width_ = call.piece;
    height_ = across_.out + across_.size - 1;
    // Columns and rows that some window reaches.
    columns_ = HWY_MIN(line_.n, line_.out + line_.size - 1 - line_.low);
    rows_ = HWY_MIN(across_.n, height_ - across_.low);
    const std::int64_t room = height_ * width_ + cpu::small_plane_slack;
    cells_ = static_cast<A*>(call.ring);
    swept_ = cells_ + room;
    sums_ = swept_ + room;
    for (A* part : {cells_, swept_})
      for (std::int64_t i = 0; i < room; i += lanes<A>()) store(broadcast<A>(C::template neutral<A>()), part + i);
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
      const bool nan = copy(src);
      nan ? sweep(carry_) : sweep(Calm<C>::of(carry_));
      for (std::int64_t o = 0; o < across_.out; ++o) {
        A* states = outlet_.states() + held;
        for (std::int64_t i = 0; i < line_.out; i += lanes<A>()) store(load(sums_ + o * width_ + i), states + i);
        held += line_.out;
        if (held >= cpu::plane_piece) held = outlet_.write_lines(held);
      }
    }
    outlet_.move(held, nullptr);
  }

 private:
  /// The cells of one plane into its padding. True if some are NaN.
  HWY_INLINE bool copy(const T* src) {
    const std::int64_t L = lanes<A>(), src_row = call_.line.src_row, columns = columns_, width = width_;
    A* to = cells_ + across_.low * width + line_.low;
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
  HWY_NOINLINE void sweep(const Q& carry) {
    const std::int64_t skipped = across_.low * width_;
    const std::int64_t places = rows_ * width_;
    const Axis along{places, line_.size, 1, 1, 0, line_.size - 1, places};
    Pass pass = call_.line;
    pass.axis = &along;
    pass.len = 1;
    if (LineStream<Q, A>::applies(pass))
      LineStream<Q, A>(carry, pass, along, static_cast<A*>(pass.work))(cells_ + skipped, 0, places, swept_ + skipped,
                                                                       {});
    else
      LineSweep<Q, A>(carry, pass)(cells_ + skipped, 0, places, swept_ + skipped);
    const Axis down{height_, across_.size, 1, 1, 0, 0, across_.out};
    pass.axis = &down;
    pass.len = width_;
    LineSweep<Q, A>(carry, pass)(swept_, 0, across_.out, sums_);
  }

  const C& carry_;
  const Planes& call_;
  const Axis line_, across_;
  Outlet<A> outlet_;
  std::int64_t width_, height_, columns_, rows_;
  A *cells_, *swept_, *sums_;
};

template <class C, class T>
void planes(const Planes& call) {
  const C carry(call.line);
  if constexpr (makes_small<C, T>)
    if (call.small) return SmallPlanes<C, T>(carry, call).run();
  if (call.line.len > 1) return make_planes<C, T>(carry, RowLine<C, T>(carry, call.line), call);
  // Short windows too where values are written at once; whether they are must not depend on where a line is cut.
  const bool streams = call.direct && call.folded && call.line.fold == 1 && call.line.axis->out >= least_direct &&
                       SweptLine<C, T>::writes_short(call.line);
  if (call.line.work || streams) return make_planes<C, T>(carry, SweptLine<C, T>(carry, call.line), call);
  with_line<C, T>(carry, call.line, [&](const auto& make) HWY_ATTR { make_planes<C, T>(carry, make, call); });
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
