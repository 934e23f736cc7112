// Long windows in few steps: states of 1, 2, 4, … neighbours, each made of two of the ones before.

#if defined(CENOTE_CPU_SWEEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SWEEP_INL_H_
#undef CENOTE_CPU_SWEEP_INL_H_
#else
#define CENOTE_CPU_SWEEP_INL_H_
#endif

#include <bit>

#include "cpu/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Join;

/// dst = a joined with b, whose cells come after those of a; or a itself.
template <class C>
void join_rows(const Join& call) {
  using A = typename LaneOf<typename C::N>::type;
  Pass plain{};
  plain.params = call.params;
  const C carry(plain);
  const A *a = static_cast<const A*>(call.a), *b = static_cast<const A*>(call.b);
  A* dst = static_cast<A*>(call.dst);
  for (std::int64_t i = 0; i < call.len; i += lanes<A>()) {
    typename C::State state = carry.load_state(a + i, call.a_plane, 0);
    if (b) state = carry.combine(state, carry.load_state(b + i, call.b_plane, call.b_id));
    carry.store_state(state, dst + i, call.dst_plane);
  }
}

/// Whether windows that overlap may be joined.
template <class C>
struct Repeats {
  static constexpr bool value = false;
};
template <bool Largest, class A>
struct Repeats<Carry<Extreme<Largest>, A>> {
  static constexpr bool value = true;
};
template <bool Largest, class A>
struct Repeats<Carry<Winner<Extreme<Largest>>, A>> {
  static constexpr bool value = true;
};

/// One line, or rows that lie side by side: position p of lane c is element p * unit + c.
template <class C, class T>
class LineSweep {
  using A = typename LaneOf<typename C::N>::type;
  using State = typename C::State;

 public:
  explicit HWY_INLINE LineSweep(const Pass& pass)
      : pass_(pass),
        carry_(pass),
        axis_(*pass.axis),
        unit_(pass.len),
        step_(axis_.dilation * unit_),
        reach_((axis_.size - 1) * step_),
        plane_(pass.work_lanes),
        cells_(static_cast<A*>(pass.work)),
        sums_(cells_ + parts * plane_) {}

  HWY_INLINE void run() {
    const std::int64_t room = plane_ - lanes<A>() - reach_ - unit_;
    const std::int64_t together = room / (axis_.stride * unit_) + 1;
    for (std::int64_t row = 0; row < pass_.rows; ++row) {
      const T* src = static_cast<const T*>(pass_.src) + row * pass_.src_row - pass_.origin * unit_;
      A* dst = static_cast<A*>(pass_.dst) + row * pass_.dst_row;
      for (std::int64_t o = pass_.begin; o < pass_.end; o += together) {
        const std::int64_t stop = HWY_MIN(o + together, pass_.end);
        some(src, o, stop, dst + (o - pass_.begin) * unit_);
      }
    }
  }

 private:
  static constexpr int parts = sizeof(State) / sizeof(typename C::N);
  /// Several parts cost more to make and to join than to be read again.
  static constexpr bool lifts_once = parts > 1 && !C::is_winner;

  /// Outputs [begin, end).
  HWY_INLINE void some(const T* src, std::int64_t begin, std::int64_t end, A* dst) {
    const std::int64_t count = ((end - begin - 1) * axis_.stride + 1) * unit_;
    const std::int64_t first = (begin * axis_.stride - axis_.low) * unit_;
    const bool apart = axis_.stride > 1;
    A* to = apart ? sums_ : dst;
    const std::int64_t to_plane = apart ? plane_ : pass_.dst_plane;
    bool inside = false;
    if constexpr (!lifts_once) {
      inside = axis_.size > 4 && first >= 0 && first + count + reach_ <= axis_.n * unit_;
      if (inside) start_inside(src + first, count);
    }
    if (!inside) read(src, first, count + reach_);
    if constexpr (Repeats<C>::value)
      overlapping(inside ? 4 : 1, count, to, to_plane);
    else
      binary(inside ? 4 : 1, count, to, to_plane);
    for (std::int64_t i = 0; apart && i < end - begin; ++i)
      for (int k = 0; k < parts; ++k)
        std::copy_n(sums_ + k * plane_ + i * axis_.stride * unit_, unit_, dst + k * pass_.dst_plane + i * unit_);
    if constexpr (C::is_winner) renumber(pass_, begin, end, unit_, dst);
  }

  /// States of four cells, and where lengths are made of their bits, those of the first one to three of each window.
  HWY_INLINE void start_inside(const T* line, std::int64_t count) {
    const std::int64_t rest = axis_.size % 4;
    if (!Repeats<C>::value && rest > 0) gather(line, rest, count, count + reach_, sums_);
    gather(line, 4, count + reach_ - 3 * step_, count + reach_, cells_);
  }
  /// to[i] = the fold of `taps` cells from line[i] on; `end` elements may be read.
  HWY_NOINLINE void gather(const T* line, std::int64_t taps, std::int64_t count, std::int64_t end, A* to) {
    const std::int64_t L = lanes<A>(), safe = end - (taps - 1) * step_ - L;
    std::int64_t i = 0;
    const auto whole = [&](std::int64_t j) CENOTE_INLINED {
      return carry_.cell(line + i + j * step_, j * pass_.id_scale, [](const T* p) CENOTE_INLINED { return load(p); });
    };
    const auto part = [&](std::int64_t j) CENOTE_INLINED {
      const std::int64_t room = HWY_MAX(HWY_MIN(end - i - j * step_, L), 0);
      return carry_.cell(line + i + j * step_, j * pass_.id_scale,
                         [&](const T* p) CENOTE_INLINED { return load_first(p, room); });
    };
    if (taps == 4)
      for (; i < count && i <= safe; i += L) carry_.store_state(few(4, whole), to + i, plane_);
    for (; i < count; i += L) carry_.store_state(few(taps, part), to + i, plane_);
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
    for (std::int64_t i = 0; i < low; i += L) carry_.store_state(carry_.identity(), cells_ + i, plane_);
    std::int64_t i = low;
    for (; i + L <= high; i += L)
      put(carry_.cell(src + first + i, 0, [](const T* p) CENOTE_INLINED { return load(p); }), i);
    if (i < high)
      put(carry_.cell(src + first + i, 0, [&](const T* p) CENOTE_INLINED { return load_first(p, high - i); }), i);
    for (i = high; i < count; i += L) put(carry_.identity(), i);
  }
  HWY_INLINE void put(const State& state, std::int64_t i) { carry_.store_state(state, cells_ + i, plane_); }

  /// to[i] = a[i] joined with b[i + shift], which lies `taps` taps after it.
  HWY_NOINLINE void join(const A* a, const A* b, std::int64_t shift, std::int64_t taps, std::int64_t count, A* to,
                         std::int64_t to_plane) {
    const std::int64_t L = lanes<A>(), id = taps * pass_.id_scale;
    std::int64_t i = 0;
    for (; i + 2 * L <= count; i += 2 * L) {
      const State first =
          carry_.combine(carry_.load_state(a + i, plane_, 0), carry_.load_state(b + i + shift, plane_, id));
      const State second =
          carry_.combine(carry_.load_state(a + i + L, plane_, 0), carry_.load_state(b + i + L + shift, plane_, id));
      carry_.store_state(first, to + i, to_plane);
      carry_.store_state(second, to + i + L, to_plane);
    }
    for (; i < count; i += L)
      carry_.store_state(
          carry_.combine(carry_.load_state(a + i, plane_, 0), carry_.load_state(b + i + shift, plane_, id)), to + i,
          to_plane);
  }
  /// From states of `width` cells to those of twice as many, in place.
  HWY_INLINE void twice(std::int64_t width, std::int64_t count) {
    const std::int64_t valid = count + reach_ - (2 * width - 1) * step_;
    join(cells_, cells_, width * step_, width, valid, cells_, plane_);
  }

  /// The longest power of two below the window, twice: from both of its ends.
  HWY_INLINE void overlapping(std::int64_t width, std::int64_t count, A* to, std::int64_t to_plane) {
    for (; 2 * width < axis_.size; width *= 2) twice(width, count);
    join(cells_, cells_, (axis_.size - width) * step_, axis_.size - width, count, to, to_plane);
  }
  /// One piece for each bit of the window's length, the short ones first.
  HWY_INLINE void binary(std::int64_t width, std::int64_t count, A* to, std::int64_t to_plane) {
    if (std::has_single_bit(static_cast<std::uint64_t>(axis_.size))) return overlapping(width, count, to, to_plane);
    std::int64_t done = axis_.size % width;
    for (; 2 * width <= axis_.size; width *= 2) {
      if (axis_.size & width) {
        if (done > 0)
          join(sums_, cells_, done * step_, done, count, sums_, plane_);
        else
          copy(count, sums_, plane_);
        done += width;
      }
      twice(width, count);
    }
    join(sums_, cells_, done * step_, done, count, to, to_plane);
  }
  HWY_NOINLINE void copy(std::int64_t count, A* to, std::int64_t to_plane) {
    for (std::int64_t i = 0; i < count; i += lanes<A>())
      carry_.store_state(carry_.load_state(cells_ + i, plane_, 0), to + i, to_plane);
  }

  const Pass& pass_;
  const C carry_;
  const Axis axis_;
  const std::int64_t unit_, step_, reach_, plane_;
  A *const cells_, *const sums_;
};

template <class C, class T>
void sweep_line(const Pass& pass) {
  LineSweep<C, T>(pass).run();
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
