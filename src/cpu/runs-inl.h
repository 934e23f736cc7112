// Short runs of short rows: several targets in one pack of lanes. Included once per target by segments-inl.h.

#if defined(CENOTE_CPU_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_RUNS_INL_H_
#undef CENOTE_CPU_RUNS_INL_H_
#else
#define CENOTE_CPU_RUNS_INL_H_
#endif

#include <bit>

#include "cpu/fold-inl.h"
#include "cpu/segments.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::RowPass;

/// Reduces targets whose rows lie one after the other in x, and whose results do in y, as many at once as a pack holds.
/// Where a target begins is known by one bit per lane, so nothing here branches on how many rows it has.
template <class C, class T>
class Runs {
 public:
  using N = typename C::N;
  using A = Lane<T>;
  using I = IndexLane<A>;
  using Bits = std::uint64_t;

  /// Whether a pack holds every target, none is empty, and rows are without gaps. A group is folded from its first row
  /// to its last, so longer targets, which are folded by groups, are not for here.
  static HWY_INLINE bool apply(const RowPass& pass) {
    return pass.segments.offsets && !pass.segments.source && pass.x_step == pass.width && pass.y_step == pass.width &&
           pass.segments.shortest >= 1 && pass.segments.longest <= group_cells &&
           pass.segments.longest * pass.width <= lanes<T>();
  }

  HWY_INLINE Runs(const C& carry, const RowPass& pass)
      : carry_(carry),
        pass_(pass),
        width_(pass.width),
        row_((Bits{1} << pass.width) - 1),
        before_{places(width_), places(2 * width_), places(4 * width_)} {}

  /// Reduces all targets of the pass.
  HWY_INLINE void operator()() {
    for (std::int64_t t = pass_.begin, n; t < pass_.end; t += n) {
      n = HWY_MIN(block, pass_.end - t);
      mark(t, n);
      reduce(t, n);
    }
  }

 private:
  static constexpr std::int64_t block = 256;
  static constexpr std::int64_t room = block * static_cast<std::int64_t>(64 / sizeof(A)) + 192;

  /// Marks the first lane of each of n targets, and of the one behind them.
  HWY_INLINE void mark(std::int64_t t, std::int64_t n) {
    const std::int64_t* offsets = pass_.segments.offsets + t;
    const hn::ScalableTag<std::uint8_t> bytes;
    const auto step = static_cast<std::int64_t>(hn::Lanes(bytes));
    const std::int64_t end = ((offsets[n] - offsets[0]) * width_ / 64 + 2) * 64;
    for (std::int64_t i = 0; i < end; i += step) hn::Store(hn::Zero(bytes), bytes, marks_ + i);
    for (std::int64_t k = 0; k <= n; ++k) marks_[(offsets[k] - offsets[0]) * width_] = 1;
    for (std::int64_t i = 0; i < end; i += step)
      hn::StoreMaskBits(bytes, hn::Ne(hn::Load(bytes, marks_ + i), hn::Zero(bytes)), bits_ + i / 8);
  }

  HWY_INLINE Bits bits_from(std::int64_t lane) const {
    Bits bits;
    std::memcpy(&bits, bits_ + lane / 8, sizeof bits);
    return bits >> (lane % 8);
  }
  /// All lanes of the rows whose first lanes are given.
  HWY_INLINE Flags<A> flags(Bits first) const {
    const Bits bits = first * row_;
    return {hn::LoadMaskBits(Tag<A>(), reinterpret_cast<const std::uint8_t*>(&bits))};
  }

  HWY_INLINE void reduce(std::int64_t t, std::int64_t n) {
    const std::int64_t* offsets = pass_.segments.offsets + t;
    const T* x = static_cast<const T*>(pass_.x) + offsets[0] * width_;
    T* y = static_cast<T*>(pass_.y) + t * width_;
    const std::int64_t L = lanes<T>(), end = (offsets[n] - offsets[0]) * width_;
    // Of x and of the results from here on. A pack is written as a whole where others are written behind it later.
    const std::int64_t readable = (pass_.segments.sources - offsets[0]) * width_;
    std::int64_t writable = (pass_.end - t) * width_;
    // The first lanes of the rows that a pack holds, and of one more.
    Bits rows = 1;
    for (std::int64_t lane = 0; lane + width_ <= L; lane += width_) rows = rows << width_ | 1;
    for (std::int64_t at = 0; at < end;) {
      const Bits begins = bits_from(at) & rows;
      // The last beginning in sight is that of a target which may not be whole.
      const int whole = 63 - std::countl_zero(begins);
      const Bits ends = begins >> width_;
      const N cells = HWY_LIKELY(at + L <= readable) ? load(x + at) : load_first(x + at, readable - at);
      const N value = folded(cells, begins, rows & ~begins);
      const N results{hn::Compress(value.v, flags(ends).m)};
      const std::int64_t count = std::popcount(ends) * width_;
      if (HWY_LIKELY(writable >= L))
        store(results, y);
      else
        store_first(results, y, count);
      y += count;
      writable -= count;
      at += whole;
    }
  }

  /// The value of every target, in the lanes of its last row.
  HWY_INLINE N folded(N x, Bits begins, Bits others) const {
    typename C::State state = carry_.lift(x, 0);
    if constexpr (decltype(C::reducer)::picks) {
      // In whatever order they are compared, the same row wins: twice as many at every step.
      Bits inside = others;
      each<3>([&](int s) CENOTE_INLINED {
        state = choose(flags(inside), carry_.combine(moved(state, s), state), state);
        inside &= inside << (width_ << s);
      });
      return carry_.reducer.lower(state, x);
    } else {
      Bits behind = begins;
      N count = number<N>(1);
      const auto step = [&](int j) CENOTE_INLINED {
        behind = behind << width_ & others;  // rows that are j behind the first of their target
        const Flags<A> here = flags(behind);
        state = choose(here, carry_.combine(moved(state, 0), state), state);
        count = select(here, number<N>(j + 1), count);
      };
      step(1), step(2), step(3);
      if ((behind << width_ & others) != 0) step(4), step(5), step(6), step(7);
      return carry_.reducer.lower(state, pass_.divides_by_edges ? count : number<N>(pass_.divisor));
    }
  }
  /// Every row's state moved to the row 2^s behind it.
  HWY_INLINE typename C::State moved(const typename C::State& state, int s) const {
    typename C::State result;
    for (int i = 0; i < C::State::count; ++i) result.part[i] = N{hn::TableLookupLanes(state.part[i].v, before_[s])};
    return result;
  }
  using Places = decltype(hn::IndicesFromVec(Tag<A>(), hn::Zero(Tag<I>())));
  static HWY_INLINE Places places(std::int64_t distance) {
    const Tag<I> tag;
    return hn::IndicesFromVec(
        Tag<A>(), hn::Max(hn::Sub(hn::Iota(tag, 0), hn::Set(tag, static_cast<I>(distance))), hn::Zero(tag)));
  }

  const C& carry_;
  const RowPass& pass_;
  std::int64_t width_;
  Bits row_;  // the lanes of one row
  Places before_[3];
  HWY_ALIGN std::uint8_t marks_[room];
  HWY_ALIGN std::uint8_t bits_[room / 8 + 64];
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
