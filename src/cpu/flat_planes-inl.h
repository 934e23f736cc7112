// Small planes with short windows: each plane is one line of cells, wherever its rows end.

#if defined(CENOTE_CPU_FLAT_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_FLAT_PLANES_INL_H_
#undef CENOTE_CPU_FLAT_PLANES_INL_H_
#else
#define CENOTE_CPU_FLAT_PLANES_INL_H_
#endif

#include <numeric>

#include "cpu/outlet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// Planes without gaps, of whose rows each has as many outputs as cells, or half as many. Windows along rows are made
/// for all rows at once: lanes whose tap belongs to another row are told by masks, which are the same for every plane.
/// Windows across rows are then joined, for all rows at once that lie one behind the other, with empty ones around.
template <class C, class T>
class FlatPlanes {
  using A = typename LaneOf<typename C::N>::type;
  using Mask = hn::Mask<Tag<A>>;

 public:
  FlatPlanes(const C& carry, const Planes& call)
      : carry_(carry),
        call_(call),
        across_(*call.across),
        line_(*call.line.axis),
        L_(lanes<A>()),
        halves_(line_.stride == 2),
        cells_(across_.n * line_.n),
        states_(across_.n * line_.out),
        together_(cpu::flat_together(across_, line_)),
        pitch_(cpu::flat_pitch(across_, line_)),
        lines_(static_cast<A*>(call.ring) + across_.low * line_.out),
        masks_(static_cast<Mask*>(call.cells)),
        outlet_(call, nullptr) {
    // Rows that windows reach above and below a plane are nothing.
    const std::int64_t below = (across_.out - 1) * across_.stride - across_.low + across_.size - across_.n;
    for (std::int64_t i = 0; i < HWY_MIN(together_, call.count); ++i) {
      A* const lines = lines_ + i * pitch_;
      std::fill(lines - across_.low * line_.out, lines, C::template neutral<A>());
      std::fill_n(lines + states_, HWY_MAX(below, 0) * line_.out, C::template neutral<A>());
    }
    // After so many packs the first lane is in the first column again.
    const std::int64_t size = line_.size, again = line_.out / std::gcd(line_.out, L_) * size;
    Mask* mask = masks_;
    for (std::int64_t i = 0; i < states_; i += L_)
      for (std::int64_t tap = 0; tap < size; ++tap, ++mask)
        *mask = mask - masks_ >= again && i + L_ <= states_
                    ? mask[-again]
                    : inside_row(HWY_MIN(i, states_ - L_) % line_.out, tap - line_.low);
  }

  void run() {
    const auto* src = static_cast<const T*>(call_.line.src);
    auto* dst = static_cast<char*>(call_.out.dst);
    const std::int64_t outputs = across_.out * line_.out;
    std::int64_t held = 0;
    for (std::int64_t p = 0, count; p < call_.count; p += count, src += count * call_.step) {
      // Rows that were written just now cannot be read yet in parts of others.
      count = HWY_MIN(together_, call_.count - p);
      const auto make_lines = [&](const auto& carry) HWY_ATTR {
        // Beside the first and the last plane there may be none.
        const std::int64_t first = p == 0, last = p + count == call_.count && count > first;
        bool any = false;
        const auto part = [&](std::int64_t i, std::int64_t n, bool alone) HWY_ATTR {
          if (n > 0) any |= along_rows(carry, src + i * call_.step, n, alone, lines_ + i * pitch_);
        };
        part(0, first, true);
        part(first, count - first - last, false);
        part(count - last, last, true);
        return any;
      };
      const auto calm = Calm<C>::of(carry_);
      const bool careful = make_lines(calm) && Calm<C>::differs;
      if (HWY_UNLIKELY(careful)) make_lines(carry_);
      const std::int64_t planes = call_.out_plane == outputs ? count : 1;
      for (std::int64_t i = 0; i < count; i += planes, dst += planes * call_.out_plane * call_.out_size) {
        held = outlet_.go_on(held, dst);
        A* const states = outlet_.states() + held;
        HWY_UNLIKELY(careful) ? across_rows(carry_, lines_ + i * pitch_, planes, states)
                              : across_rows(calm, lines_ + i * pitch_, planes, states);
        held = outlet_.pass_on(held + planes * outputs);
      }
    }
    outlet_.go_on(held, nullptr);
  }

 private:
  /// The lanes, whose outputs begin with `first`, that have a cell `apart` behind their own in the same row.
  HWY_INLINE Mask inside_row(std::int64_t first, std::int64_t apart) const {
    // Outputs [low, high) of each row.
    const std::int64_t stride = line_.stride, out = line_.out;
    const std::int64_t low = HWY_MIN(apart < 0 ? (stride - 1 - apart) / stride : 0, out);
    const std::int64_t high = HWY_MAX(HWY_MIN((line_.n - apart + stride - 1) / stride, out), low);
    const auto below = [](std::int64_t lane) {
      return lane <= 0 ? std::uint64_t{0} : lane >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lane) - 1;
    };
    std::uint64_t lanes = 0;
    for (std::int64_t row = -first; row < L_; row += out) lanes |= below(row + high) & ~below(row + low);
    std::uint8_t bits[8];
    for (int i = 0; i < 8; ++i) bits[i] = static_cast<std::uint8_t>(lanes >> 8 * i);
    return hn::LoadMaskBits(Tag<A>(), bits);
  }

  /// Windows along the rows of some planes. True if it met NaN.
  template <class Q>
  HWY_NOINLINE bool along_rows(const Q& carry, const T* src, std::int64_t count, bool alone, A* lines) const {
    const bool centred = !alone && line_.size == 2 * line_.low + 1;
    const auto each_plane = [&](const auto& make) CENOTE_INLINED {
      bool any = false;
      for (std::int64_t i = 0; i < count; ++i) any |= make(src + i * call_.step, lines + i * pitch_);
      return any;
    };
    const auto with_size = [&](auto size) CENOTE_INLINED {
      return each_plane([&](const T* from, A* to) CENOTE_INLINED { return along<size>(carry, from, alone, to); });
    };
    if (halves_)
      return each_plane([&](const T* from, A* to) CENOTE_INLINED { return along_halves(carry, from, alone, to); });
    return centred && line_.size == 3   ? with_size(std::integral_constant<int, 3>())
           : centred && line_.size == 5 ? with_size(std::integral_constant<int, 5>())
                                        : with_size(std::integral_constant<int, 0>());
  }
  /// And across them: all rows of outputs at once, where they lie one behind the other.
  template <class Q>
  HWY_NOINLINE void across_rows(const Q& carry, const A* lines, std::int64_t planes, A* states) const {
    const auto with_size = [&](auto size) CENOTE_INLINED {
      const std::int64_t together = across_.stride == 1 ? across_.out : 1;
      for (std::int64_t p = 0; p < planes; ++p, lines += pitch_, states += across_.out * line_.out) {
        const A* from = lines - across_.low * line_.out;
        for (std::int64_t row = 0; row < across_.out; row += together, from += across_.stride * line_.out)
          join<size>(carry, from, together, states + row * line_.out);
      }
    };
    switch (across_.size) {
      case 2: return with_size(std::integral_constant<int, 2>());
      case 3: return with_size(std::integral_constant<int, 3>());
      case 5: return with_size(std::integral_constant<int, 5>());
      default: return with_size(std::integral_constant<int, 0>());
    }
  }

  /// Windows along the rows of a plane, of Size cells around each if that is not 0.
  template <int Size, class Q>
  HWY_INLINE bool along(const Q& like, const T* src, bool alone, A* const lines) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const std::int64_t L = L_, cells = cells_, size = Size > 0 ? Size : line_.size,
                       low = Size > 0 ? Size / 2 : line_.low;
    const std::int64_t next = call_.step + L;
    const Mask* masks = masks_;
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto tap = [&](std::int64_t at, std::int64_t j) CENOTE_INLINED {
      const std::int64_t first = at + j - low;
      const Pack<A> x = HWY_LIKELY(!alone)
                            ? load(src + first)
                            : load_between(src + first, LaneRange<T>(HWY_MIN(HWY_MAX(-first, 0), L),
                                                                     HWY_MAX(HWY_MIN(cells - first, L), 0)));
      return carry.lift(Size > 0 && j == Size / 2 ? x : Pack<A>{hn::IfThenElse(masks[j], x.v, nothing.v)}, 0);
    };
    for (std::int64_t i = 0; i < cells; i += L, masks += size) {
      const std::int64_t at = HWY_MIN(i, cells - L);
      // Memory would idle while rows are joined.
      __builtin_prefetch(src + at + next);
      auto state = tap(at, 0);
      if constexpr (Size > 0)
        each<Size - 1>([&](int j) CENOTE_INLINED { state = carry.combine(state, tap(at, j + 1)); });
      else
        for (std::int64_t j = 1; j < size; ++j) state = carry.combine(state, tap(at, j));
      if constexpr (Q::is_calm) {
        const Pack<A> here = load(src + at);
        watch.add(here, here);
      }
      carry.store_state(state, lines + at, 0);
    }
    return watch.any();
  }

  /// The same of two or three cells, two apart, in rows of an even number of cells.
  template <class Q>
  HWY_INLINE bool along_halves(const Q& like, const T* src, bool alone, A* const lines) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    const std::int64_t L = L_, cells = cells_, states = states_, size = line_.size, low = line_.low;
    const std::int64_t next = call_.step + 2 * L, third = size == 2 ? 0 : low == 1 ? -1 : 2;
    const Mask* mask = masks_ + (low == 1 ? 0 : 2);
    const Pack<A> nothing = broadcast<A>(C::template neutral<A>());
    Watch<Q> watch = WatchFor<Q>::of(carry);
    const auto read = [&](std::int64_t first) CENOTE_INLINED {
      if (HWY_LIKELY(!alone)) return load(src + first);
      return load_between(src + first,
                          LaneRange<T>(HWY_MIN(HWY_MAX(-first, 0), L), HWY_MAX(HWY_MIN(cells - first, L), 0)));
    };
    for (std::int64_t i = 0; i < states; i += L, mask += size) {
      const std::int64_t at = HWY_MIN(i, states - L);
      // Memory would idle while rows are joined.
      __builtin_prefetch(src + 2 * at + next);
      __builtin_prefetch(src + 2 * at + next + L);
      const auto a = kept(read(2 * at)), b = kept(read(2 * at + L));
      const Pack<A> even{hn::ConcatEven(Tag<A>(), b.v, a.v)}, odd{hn::ConcatOdd(Tag<A>(), b.v, a.v)};
      if constexpr (Q::is_calm) watch.add(even, odd);
      auto state = carry.combine(carry.lift(even, 0), carry.lift(odd, 0));
      if (third != 0) {
        const auto c = read(2 * at + third), d = read(2 * at + third + L);
        const Pack<A> beside{hn::IfThenElse(*mask, hn::ConcatEven(Tag<A>(), d.v, c.v), nothing.v)};
        if (third < 0)
          state = carry.combine(carry.combine(carry.lift(beside, 0), carry.lift(even, 0)), carry.lift(odd, 0));
        else
          state = carry.combine(state, carry.lift(beside, 0));
      }
      carry.store_state(state, lines + at, 0);
    }
    return watch.any();
  }

  /// The rows of windows, which are Size if that is not 0, joined for `count` rows of outputs.
  template <int Size, class Q>
  HWY_INLINE void join(const Q& like, const A* from, std::int64_t count, A* to) const {
    const Q carry = like;
    const std::int64_t L = L_, n = line_.out, rows = Size > 0 ? Size : across_.size, len = count * n;
    for (std::int64_t i = 0; i < len; i += L) {
      auto state = carry.load_state(from + i, 0, 0);
      for (std::int64_t r = 1; r < rows; ++r) state = carry.combine(state, carry.load_state(from + r * n + i, 0, 0));
      carry.store_state(state, to + i, 0);
    }
  }

  const C& carry_;
  const Planes& call_;
  const Axis across_, line_;
  const std::int64_t L_;
  const bool halves_;
  const std::int64_t cells_, states_;    // of a plane, before windows across rows are joined
  const std::int64_t together_, pitch_;  // planes whose rows are made together, and how far apart those lie
  A* const lines_;
  Mask* const masks_;
  Outlet<A> outlet_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
