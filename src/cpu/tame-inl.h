// Carries of tame sums, and the watch that tells whether cells were tame. Included once per target.

#if defined(CENOTE_CPU_TAME_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_TAME_INL_H_
#undef CENOTE_CPU_TAME_INL_H_
#else
#define CENOTE_CPU_TAME_INL_H_
#endif

#include "cpu/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

template <class C>
concept IsTame = requires {
  decltype(C::reducer)::is_tame;
};

/// Remembers the least and the greatest magnitude of numbers that are not 0. NaN is greater than any.
template <class T>
class Magnitudes {
  using Bits = hwy::MakeUnsigned<T>;

 public:
  HWY_INLINE Magnitudes() : least_(hn::Set(Tag<Bits>(), ~Bits{0})), most_(hn::Zero(Tag<Bits>())) {}
  HWY_INLINE void add(Pack<T> x) {
    // Bits of magnitudes are in their order; those of 0, less one, are beyond all others.
    const auto bits = hn::ShiftLeft<1>(hn::BitCast(Tag<Bits>(), x.v));
    least_ = hn::Min(least_, hn::Sub(bits, hn::Set(Tag<Bits>(), Bits{1})));
    most_ = hn::Max(most_, bits);
  }
  HWY_INLINE bool within(const Bounds& bounds) const {
    const auto bits = [](double x) HWY_ATTR {
      return hn::ShiftLeft<1>(hn::BitCast(Tag<Bits>(), hn::Set(Tag<T>(), static_cast<T>(x))));
    };
    const auto low = hn::Sub(hn::Max(bits(bounds.low), hn::Set(Tag<Bits>(), Bits{1})), hn::Set(Tag<Bits>(), Bits{1}));
    return hn::AllTrue(Tag<Bits>(), hn::Eq(hn::Max(least_, low), least_)) &&
           hn::AllTrue(Tag<Bits>(), hn::Eq(hn::Min(most_, bits(bounds.high)), most_));
  }

 private:
  hn::Vec<Tag<Bits>> least_, most_;
};

/// Remembers whether a cell, or its tangent, was not tame.
template <class C>
class TameWatch {
  using N = typename C::N;
  using T = typename LaneOf<N>::type;

 public:
  explicit HWY_INLINE TameWatch(const C& carry) : carry_(&carry) {}
  HWY_INLINE void add(N x) { cells_.add(x); }
  HWY_INLINE void add(N a, N b) { cells_.add(a), cells_.add(b); }
  HWY_INLINE void add_tangents(N dx) { tangents_.add(dx); }
  HWY_INLINE void add_tangents(N a, N b) { tangents_.add(a), tangents_.add(b); }
  HWY_INLINE bool any() const {
    const bool tangents = C::inputs == 2;
    return !cells_.within(carry_->reducer.base.template tame_cells<T>(tangents)) ||
           (tangents && !tangents_.within(tame_tangents<T>()));
  }

 private:
  const C* carry_;
  Magnitudes<T> cells_, tangents_;
};

template <IsTame C>
struct WatchFor<C> {
  using type = TameWatch<C>;
  static HWY_INLINE type of(const C& carry) { return type(carry); }
};
/// There is no other carry for cells that are not tame: whoever asked is told, and makes them in another way.
template <IsTame C>
struct Calm<C> {
  static constexpr bool differs = true;
  static HWY_INLINE C of(const C& carry) { return carry; }
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
