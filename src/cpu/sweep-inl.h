// Sweeps: windows so long that they are made of parts they share, along lines and along rows.

#if defined(CENOTE_CPU_SWEEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SWEEP_INL_H_
#undef CENOTE_CPU_SWEEP_INL_H_
#else
#define CENOTE_CPU_SWEEP_INL_H_
#endif

#include <bit>
#include <utility>

#include "cpu/line_stream-inl.h"
#include "cpu/outlet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Join;

/// dst = a joined with b, whose cells come after those of a, and with c; or a itself.
template <class Q>
HWY_INLINE void join_rows(const Q& carry, const Join& call) {
  using A = typename LaneOf<typename Q::N>::type;
  // Copies, since a stored pack might alias the originals.
  const std::int64_t a_plane = call.a_plane, b_plane = call.b_plane, dst_plane = call.dst_plane, len = call.len;
  const std::int64_t L = lanes<A>(), id = call.b_id;
  const std::int64_t c_plane = call.c_plane, c_id = call.c_id;
  const A *a = static_cast<const A*>(call.a), *c = static_cast<const A*>(call.c);
  A *b = static_cast<A*>(call.b), *dst = static_cast<A*>(call.dst);
  if (c)
    for (std::int64_t i = 0; i < len; i += L) {
      const auto rest = carry.combine(carry.load_state(b + i, b_plane, 0), carry.load_state(c + i, c_plane, c_id));
      carry.store_state(rest, b + i, b_plane);
      carry.store_state(carry.combine(carry.load_state(a + i, a_plane, 0), carry.behind(rest, id)), dst + i, dst_plane);
    }
  else if (!b)
    for (std::int64_t i = 0; i < len; i += L)
      carry.store_state(carry.load_state(a + i, a_plane, 0), dst + i, dst_plane);
  else
    for (std::int64_t i = 0; i < len; i += L)
      carry.store_state(carry.combine(carry.load_state(a + i, a_plane, 0), carry.load_state(b + i, b_plane, id)),
                        dst + i, dst_plane);
}
template <class C>
void join_rows(const Join& call) {
  Pass plain{};
  plain.params = call.params;
  const C carry(plain);
  if (Calm<C>::differs && call.calm) return join_rows(Calm<C>::of(carry), call);
  join_rows(carry, call);
}

template <class R, class T>
void join_numbered(const cpu::NumberedRows& call) {
  using A = Lane<T>;
  const Carry<ByteWinner<R>, A> carry(nullptr, nullptr);
  const cpu::NumberedRows rows = call;
  HWY_ALIGN std::uint8_t numbers[cpu::most_numbered + 64];
  write_values(static_cast<T*>(rows.dst), rows.len, rows.stream, [&](std::int64_t i) CENOTE_INLINED {
    const auto row = [&](std::int64_t k) CENOTE_INLINED {
      const std::int64_t at = k * rows.step + i;
      return carry.behind({load(static_cast<const T*>(rows.cells) + at), Bytes<A>::load(rows.numbers + at)},
                          rows.first + k * rows.id);
    };
    auto state = row(0);
    for (std::int64_t k = 1; k < rows.count; ++k) state = carry.combine(state, row(k));
    state.number.store(numbers + i);
    return state.value;
  });
  copy_bytes(numbers, rows.len, rows.dst_numbers, rows.stream_numbers);
}

/// Some outputs of one line, or of rows that lie side by side: position p of lane c is element p * unit + c. Q is how
/// states are joined.
template <class Q, class T>
class LineSweep {
  using A = typename LaneOf<typename Q::N>::type;
  using State = typename Q::State;

 public:
  HWY_INLINE LineSweep(const Q& carry, const Pass& pass)
      : pass_(pass),
        carry_(carry),
        axis_(*pass.axis),
        unit_(pass.len),
        step_(axis_.dilation * unit_),
        reach_((axis_.size - 1) * step_),
        plane_(pass.work_lanes),
        cells_(static_cast<A*>(pass.work)),
        sums_(cells_ + parts * plane_) {}

  /// How many outputs there is room for.
  HWY_INLINE std::int64_t together() const { return (plane_ - slack() - reach_ - unit_) / (axis_.stride * unit_) + 1; }
  /// Outputs [begin, end). True if NaN was met, as far as it is looked for.
  HWY_NOINLINE bool operator()(const T* src, std::int64_t begin, std::int64_t end, A* dst) {
    const std::int64_t count = ((end - begin - 1) * axis_.stride + 1) * unit_;
    const std::int64_t first = (begin * axis_.stride - axis_.low) * unit_;
    const bool apart = axis_.stride > 1;
    A* to = apart ? sums_ : dst;
    const std::int64_t to_plane = apart ? plane_ : pass_.dst_plane;
    nan_ = false;
    const bool inside = first >= 0 && first + count + reach_ <= axis_.n * unit_;
    if (!lifts_once && axis_.size <= 4 && inside && apart) {
      gather(src + first, axis_.size, count, count + reach_, sums_);
    } else if (!apart || !stream(src, begin * axis_.stride, count)) {
      const std::int64_t width = start(src, first, count, inside);
      if constexpr (Repeats<Q>::value)
        overlapping(width, count, to, to_plane);
      else
        binary(width, count, to, to_plane);
    }
    if (apart) pick(end - begin, dst);
    if constexpr (Q::is_winner) renumber(pass_, begin, end, unit_, dst);
    return nan_;
  }

 private:
  static constexpr int parts = sizeof(State) / sizeof(typename Q::N);
  /// Several parts cost more to make and to join than to be read again.
  static constexpr bool lifts_once = parts > 1 && !Q::is_winner;
  /// Lanes that may be written behind the states.
  static HWY_INLINE std::int64_t slack() { return lanes<A>(); }

  /// Every stride-th of the windows that were made at every place.
  HWY_INLINE void pick(std::int64_t count, A* dst) const {
    for (int k = 0; k < parts; ++k) pick_lanes(sums_ + k * plane_, count, dst + k * pass_.dst_plane);
  }
  /// The first `unit` of every `step` lanes: those of each pack that are wanted, moved together.
  HWY_NOINLINE void pick_lanes(const A* from, std::int64_t count, A* to) const {
    const std::int64_t unit = unit_, step = axis_.stride * unit_;
    std::int64_t i = 0;
    if constexpr (sizeof(A) >= 4) {
      constexpr std::int64_t L = static_cast<std::int64_t>(hn::MaxLanes(Tag<A>())), most = 2 * L;
      if (step <= most) {
        // As many packs as steps have the same lanes again, L outputs later.
        hn::Mask<Tag<A>> wanted[most];
        std::int64_t place[most];
        std::uint64_t pattern = 0;
        for (std::int64_t lane = 0; lane < 64; lane += step) pattern |= ((std::uint64_t{1} << unit) - 1) << lane;
        for (std::int64_t p = 0, taken = 0, phase = 0; p < step; ++p, phase = (phase + L) % step) {
          const std::uint64_t bits = pattern >> phase & ((std::uint64_t{1} << L) - 1);
          wanted[p] = hn::LoadMaskBits(Tag<A>(), reinterpret_cast<const std::uint8_t*>(&bits));
          place[p] = taken;
          taken += std::popcount(bits);
        }
        // What is written behind those is written again.
        for (; i + 2 * L <= count; i += L)
          for (std::int64_t p = 0; p < step; ++p)
            hn::StoreU(hn::Compress(load(from + i * step + p * L).v, wanted[p]), Tag<A>(), to + i * unit + place[p]);
      }
    }
    for (; i < count; ++i) std::copy_n(from + i * step, unit, to + i * unit);
  }
  /// The windows at places [begin, begin + count) of a line, if they can be streamed.
  HWY_INLINE bool stream(const T* line, std::int64_t begin, std::int64_t count) {
    if constexpr (LineStream<Q, T>::exists && !Q::is_winner) {
      if (!LineStream<Q, T>::applies(pass_)) return false;
      Axis dense = axis_;
      dense.stride = 1;
      Pass pass = pass_;
      pass.dst_plane = plane_;
      nan_ = LineStream<Q, T>(carry_, pass, dense, cells_)(line, begin, begin + count, sums_, {}) < begin + count;
      return true;
    }
    return false;
  }
  /// States of as many cells as is returned, and where lengths are made of their bits, in `sums` those of the first
  /// (size modulo that) cells of each window.
  HWY_INLINE std::int64_t start(const T* src, std::int64_t first, std::int64_t count, bool inside) {
    if (!lifts_once && axis_.size > 4 && inside) {
      start_inside(src + first, count);
      return 4;
    }
    read(src, first, count + reach_);
    return 1;
  }

  /// States of four cells, and where lengths are made of their bits, those of the first one to three of each window.
  HWY_INLINE void start_inside(const T* line, std::int64_t count) {
    const std::int64_t rest = axis_.size % 4;
    if (!Repeats<Q>::value && rest > 0) gather(line, rest, count, count + reach_, sums_);
    gather(line, 4, count + reach_ - 3 * step_, count + reach_, cells_);
  }
  /// to[i] = the fold of `taps` cells from line[i] on; `end` elements may be read.
  HWY_NOINLINE void gather(const T* line, std::int64_t taps, std::int64_t count, std::int64_t end, A* to) {
    const Q carry = carry_;
    const std::int64_t L = lanes<A>(), step = step_, plane = plane_, id = pass_.id_scale;
    const std::int64_t safe = end - (taps - 1) * step - L;
    Watch<Q> watch;
    std::int64_t i = 0;
    const auto cell = [&](std::int64_t j, const auto& get) CENOTE_INLINED {
      return carry.cell(line + i + j * step, j * id, [&](const T* p) CENOTE_INLINED {
        const auto cells = get(p);
        if constexpr (Q::is_calm) watch.add(cells, cells);
        return cells;
      });
    };
    const auto whole = [&](std::int64_t j)
                           CENOTE_INLINED { return cell(j, [](const T* p) CENOTE_INLINED { return load(p); }); };
    const auto part = [&](std::int64_t j) CENOTE_INLINED {
      const std::int64_t room = HWY_MAX(HWY_MIN(end - i - j * step, L), 0);
      return cell(j, [&](const T* p) CENOTE_INLINED { return load_first(p, room); });
    };
    const auto run = [&]<int Taps>(std::integral_constant<int, Taps>) CENOTE_INLINED {
      for (; i < count && i <= safe; i += L) carry.store_state(few(Taps, whole), to + i, plane);
    };
    if (taps == 4) run(std::integral_constant<int, 4>());
    if (taps == 3) run(std::integral_constant<int, 3>());
    if (taps == 2) run(std::integral_constant<int, 2>());
    for (; i < count; i += L) carry.store_state(few(taps, part), to + i, plane);
    nan_ = nan_ || watch.any();
  }
  /// One to four cells, joined as doubling joins them: bits must not depend on where a line is cut.
  template <class Cell>
  HWY_INLINE State few(std::int64_t taps, const Cell& cell) const {
    if (taps == 1) return cell(0);
    if (taps == 2) return carry_.combine(cell(0), cell(1));
    if (taps == 3) return carry_.combine(cell(0), carry_.combine(cell(1), cell(2)));
    return carry_.combine(carry_.combine(cell(0), cell(1)), carry_.combine(cell(2), cell(3)));
  }

  /// States of single cells from `first` on; outside the line they are those of nothing.
  HWY_NOINLINE void read(const T* src, std::int64_t first, std::int64_t count) {
    const std::int64_t L = lanes<A>(), low = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(axis_.n * unit_ - first, low, count);
    Watch<Q> watch;
    const auto put = [&](const State& state, std::int64_t i) CENOTE_INLINED {
      if constexpr (Q::is_calm) watch.add(cells_of(state), cells_of(state));
      carry_.store_state(state, cells_ + i, plane_);
    };
    for (std::int64_t i = 0; i < low; i += L) put(carry_.identity(), i);
    std::int64_t i = low;
    for (; i + L <= high; i += L) {
      // Memory would idle while states are joined: it is asked for the next row.
      __builtin_prefetch(src + first + i + pass_.src_row, 0, 2);
      put(carry_.cell(src + first + i, 0, [](const T* p) CENOTE_INLINED { return load(p); }), i);
    }
    if (i < high)
      put(carry_.cell(src + first + i, 0, [&](const T* p) CENOTE_INLINED { return load_first(p, high - i); }), i);
    for (i = high; i < count; i += L) put(carry_.identity(), i);
    nan_ = nan_ || watch.any();
  }

  /// States of some cells of every window, the first of which is its cell `tap`.
  struct Piece {
    const A* states;
    std::int64_t tap;
  };
  /// to[i] = the pieces of window i, joined in pairs of which the second may be missing, and those one after the other.
  template <int Pairs>
  HWY_NOINLINE void join(const Piece (&piece)[2 * Pairs], std::int64_t count, A* to, std::int64_t to_plane) {
    // Copies, since a stored pack might alias the originals.
    const Q carry = carry_;
    const std::int64_t L = lanes<A>(), plane = plane_, scale = pass_.id_scale;
    const A* from[2 * Pairs];
    for (int k = 0; k < 2 * Pairs; ++k) from[k] = piece[k].states ? piece[k].states + piece[k].tap * step_ : nullptr;
    const auto get = [&](int k, std::int64_t i)
                         CENOTE_INLINED { return carry.load_state(from[k] + i, plane, piece[k].tap * scale); };
    for (std::int64_t i = 0; i < count; i += L) {
      State state;
      each<Pairs>([&](int k) CENOTE_INLINED {
        State pair = get(2 * k, i);
        if (from[2 * k + 1]) pair = carry.combine(pair, get(2 * k + 1, i));
        state = k == 0 ? pair : carry.combine(state, pair);
      });
      carry.store_state(state, to + i, to_plane);
    }
  }
  /// From states of `width` cells to those of twice as many, in place, or of four times as many.
  HWY_INLINE void twice(std::int64_t width, std::int64_t count) {
    const std::int64_t valid = count + reach_ - (2 * width - 1) * step_;
    join<1>({{cells_, 0}, {cells_, width}}, valid, cells_, plane_);
  }
  HWY_INLINE void four_times(std::int64_t width, std::int64_t count) {
    const std::int64_t valid = count + reach_ - (4 * width - 1) * step_;
    join<2>({{cells_, 0}, {cells_, width}, {cells_, 2 * width}, {cells_, 3 * width}}, valid, cells_, plane_);
  }

  /// Powers of two below the window, which overlap.
  HWY_INLINE void overlapping(std::int64_t width, std::int64_t count, A* to, std::int64_t to_plane) {
    const std::int64_t size = axis_.size;
    for (; 8 * width < size; width *= 4) four_times(width, count);
    if (4 * width < size) {
      twice(width, count);
      width *= 2;
    }
    if (2 * width < size)
      join<2>({{cells_, 0}, {cells_, width}, {cells_, HWY_MIN(2 * width, size - width)}, {cells_, size - width}}, count,
              to, to_plane);
    else
      join<1>({{cells_, 0}, {cells_, size - width}}, count, to, to_plane);
  }
  /// One piece for each bit of the window's length, the short ones first.
  HWY_INLINE void binary(std::int64_t width, std::int64_t count, A* to, std::int64_t to_plane) {
    const std::int64_t size = axis_.size;
    std::int64_t done = 0;
    const A* sum = nullptr;
    const auto add = [&](std::int64_t cells, const A* piece) HWY_ATTR {
      if (sum) join<1>({{sum, 0}, {piece, done}}, count, sums_, plane_);
      sum = sum ? sums_ : piece;
      done += cells;
    };
    if (size % width > 0) add(size % width, sums_);
    // Up to half of the longest piece, whose two halves are joined as it is added.
    while (4 * width <= size) {
      if (size & width) {
        if (!sum) copy(count, sums_, plane_);
        add(width, sum ? cells_ : sums_);
      }
      const bool four = 8 * width <= size && !(size & (2 * width));
      four ? four_times(width, count) : twice(width, count);
      width *= four ? 4 : 2;
    }
    const bool odd = size & width && 2 * width <= size;
    if (2 * width > size)
      return join<1>({{sum ? sum : cells_, 0}, {sum ? cells_ : nullptr, done}}, count, to, to_plane);
    const std::int64_t last = odd ? done + width : done;
    const Piece half{cells_, last}, other{cells_, last + width};
    if (odd && sum)
      join<2>({{sum, 0}, {cells_, done}, half, other}, count, to, to_plane);
    else if (odd || sum)
      join<2>({{odd ? cells_ : sum, 0}, {nullptr, 0}, half, other}, count, to, to_plane);
    else
      join<1>({half, other}, count, to, to_plane);
  }
  HWY_NOINLINE void copy(std::int64_t count, A* to, std::int64_t to_plane) {
    for (std::int64_t i = 0; i < count; i += lanes<A>())
      carry_.store_state(carry_.load_state(cells_ + i, plane_, 0), to + i, to_plane);
  }

  const Pass& pass_;
  const Q carry_;
  const Axis axis_;
  const std::int64_t unit_, step_, reach_, plane_;
  A *const cells_, *const sums_;
  bool nan_ = false;
};

/// Lines with long windows: as if there were no NaN, and again where there is.
template <class C, class T>
class SweptLine {
  using A = typename LaneOf<typename C::N>::type;
  using Q = decltype(Calm<C>::of(std::declval<const C&>()));

 public:
  HWY_INLINE SweptLine(const C& carry, const Pass& pass)
      : carry_(carry), pass_(pass), streams_(LineStream<Q, T>::applies(pass) && pass.axis->stride == 1) {}
  /// Outputs [from, to). True if NaN was met.
  HWY_INLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    bool any = !Calm<C>::differs;
    for (std::int64_t row = 0; row < rows.count; ++row) {
      const T* src = rows.src + row * rows.src_row;
      A* dst = rows.dst + row * rows.dst_row;
      any |= streams_ ? stream(src, from, to, dst, {}) : sweep(src, from, to, dst);
    }
    return any;
  }
  /// Whether it can write the values of windows so short that it needs no memory.
  static HWY_INLINE bool writes_short(const Pass& pass) {
    return !C::is_winner && LineStream<Q, T>::applies(pass) && pass.axis->stride == 1 && pass.axis->size <= 8;
  }
  /// Whether it can write values.
  HWY_INLINE bool writes() const { return streams_ && !C::is_winner; }
  HWY_INLINE bool write(const T* src, std::int64_t from, std::int64_t to, const Values<T>& values) const {
    return stream(src, from, to, nullptr, values);
  }

 private:
  static constexpr std::int64_t careful_outputs = 4096;

  HWY_NOINLINE bool stream(const T* src, std::int64_t from, std::int64_t to, A* dst, const Values<T>& values) const {
    bool any = false;
    if constexpr (LineStream<Q, T>::exists) {
      const Axis& axis = *pass_.axis;
      A* const block = static_cast<A*>(pass_.work);
      const LineStream<Q, T> calm(Calm<C>::of(carry_), pass_, axis, block);
      for (std::int64_t o = from;;) {
        o = calm(src, o, to, dst + (o - from), values);
        if (HWY_LIKELY(o == to)) break;
        any = true;
        if constexpr (Calm<C>::differs) {
          const std::int64_t stop = HWY_MIN(to, o + HWY_MAX(careful_outputs, 4 * axis.size));
          LineStream<C, T>(carry_, pass_, axis, block)(src, o, stop, dst + (o - from), values);
          o = stop;
          if (o == to) break;
        }
      }
    }
    return any;
  }
  HWY_NOINLINE bool sweep(const T* src, std::int64_t from, std::int64_t to, A* dst) const {
    LineSweep<Q, T> calm(Calm<C>::of(carry_), pass_);
    const std::int64_t together = calm.together(), unit = pass_.len;
    bool any = false;
    for (std::int64_t o = from; o < to; o += together) {
      const std::int64_t stop = HWY_MIN(o + together, to);
      if (!calm(src, o, stop, dst + (o - from) * unit)) continue;
      any = true;
      if constexpr (Calm<C>::differs) LineSweep<C, T>(carry_, pass_)(src, o, stop, dst + (o - from) * unit);
    }
    return any;
  }

  const C& carry_;
  const Pass& pass_;
  const bool streams_;
};

template <class C, class T>
void sweep_line(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(pass);
  const bool any =
      SweptLine<C, T>(carry, pass)(Rows<T, A>{static_cast<const T*>(pass.src) - pass.origin * pass.len,
                                              static_cast<A*>(pass.dst), pass.rows, pass.src_row, pass.dst_row},
                                   pass.begin, pass.end);
  if (pass.nan && any) *pass.nan = true;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
