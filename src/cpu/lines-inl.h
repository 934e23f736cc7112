// Lines: the axis is contiguous, and lanes run along outputs.

#if defined(CENOTE_CPU_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_LINES_INL_H_
#undef CENOTE_CPU_LINES_INL_H_
#else
#define CENOTE_CPU_LINES_INL_H_
#endif

#include "cpu/apart_line-inl.h"
#include "cpu/paired_line-inl.h"
#include "cpu/regular_line-inl.h"
#include "cpu/single-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// One output after the other: bins, and windows that are long for the outputs there are. Windows of one length that
/// lie in lines are folded a pack of outputs at a time.
template <class C, class T>
class SingleLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
  HWY_INLINE SingleLine(const C& carry, const Pass& pass) : carry_(carry), pass_(pass) {}
  HWY_NOINLINE bool operator()(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    const std::int64_t width = to - from, all = rows.count * width;
    std::int64_t done = 0;
    if constexpr (packs_in_flight<C>() > 1 && C::inputs == 1)
      if (rows.count == 1 || rows.dst_row == width) done = make_packs(rows, from, to);
    for (; done < all; ++done) {
      const std::int64_t row = done / width, o = from + done % width;
      single_output<true>(carry_, pass_, *pass_.axis, rows.src + row * rows.src_row, o,
                          rows.dst + row * rows.dst_row + (o - from));
    }
    return true;
  }

 private:
  /// As many outputs as make whole packs; says how many those are. None where windows differ or may reach over an end.
  HWY_INLINE std::int64_t make_packs(const Rows<T, A>& rows, std::int64_t from, std::int64_t to) const {
    const Axis axis = *pass_.axis;
    const auto [inside, outside] = axis.interior();
    if (axis.irregular() || from < inside || to > outside || axis.size < least_across || pass_.fold > 1) return 0;
    constexpr int L = static_cast<int>(hn::MaxLanes(Tag<A>()));
    const std::int64_t width = to - from, all = rows.count * width / L * L, packs = axis.size / L;
    const Cut<1, T> rest(0, axis.size - packs * L);
    const T* line = rows.src + from * axis.stride - axis.low;
    std::int64_t o = 0;
    HWY_ALIGN A partial[L * L];
    for (std::int64_t i = 0; i < all; i += L) {
      const T* cells[L];
      for (int g = 0; g < L; ++g) {
        cells[g] = line + o * axis.stride;
        store(fold_packs(carry_, cells[g], packs, rest).part[0], partial + g * L);
        if (++o == width) o = 0, line += rows.src_row;
      }
      const Pack<A> sums = across_many<L>(carry_, partial);
      store(sums, rows.dst + i);
      if constexpr (looks_up_zeros<C>) {
        if (HWY_LIKELY(!any_zero(carry_, sums))) continue;
        for (int g = 0; g < L; ++g) carry_.store_one(fold_across(carry_, cells[g], axis.size), rows.dst + i + g, 0);
      }
    }
    return all;
  }

  const C& carry_;
  const Pass& pass_;
};

/// Calls use(maker of lines) with the one that suits a pass.
template <class C, class T, class Use>
HWY_INLINE void with_line(const C& carry, const Pass& pass, const Use& use) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& axis = *pass.axis;
  const bool regular = !axis.irregular();
  if (regular && axis.stride == 1) return use(RegularLine<1, C, T>(carry, pass));
  if constexpr (C::has_neutral && C::inputs == 1 && !C::is_winner && loads_masked<T>)
    if (regular && pass.fold == 1 && PairedLine<C, T>::applies(pass)) return use(PairedLine<C, T>(carry, pass));
  if (regular && axis.stride == 2) return use(RegularLine<2, C, T>(carry, pass));
  if constexpr (ApartLine<C, T>::exists)
    if (ApartLine<C, T>::applies(axis)) return use(ApartLine<C, T>(carry, pass));
  const std::int64_t long_enough = axis.out < lanes<A>() ? least_across : lanes<A>() * 3 / 4;
  const bool across = !C::is_winner && C::inputs == 1 && axis.dilation == 1 && axis.size >= long_enough;
  if (regular && !across) return use(RegularLine<3, C, T>(carry, pass));
  use(SingleLine<C, T>(carry, pass));
}

/// Outputs of an irregular axis that are worked on together.
constexpr std::int64_t scattered_outputs = 256;

/// Lines whose windows are no shifted copies of each other: every lane gathers the cells of its own window.
template <class C, class T>
HWY_INLINE void scattered_lines(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  using I = IndexLane<A>;
  const C carry(pass);
  const Axis axis = *pass.axis;
  const std::int64_t L = lanes<A>(), step = axis.step();
  I first[scattered_outputs + 64 / sizeof(A)], count[scattered_outputs + 64 / sizeof(A)];
  for (std::int64_t begin = pass.begin; begin < pass.end; begin += scattered_outputs) {
    const std::int64_t outputs = HWY_MIN(scattered_outputs, pass.end - begin);
    for (std::int64_t i = 0; i < outputs; ++i) {
      const Axis::Span span = axis.span(begin + i);
      first[i] = static_cast<I>(span.count > 0 ? span.first - pass.origin : 0);
      count[i] = static_cast<I>(span.count);
    }
    std::fill(first + outputs, first + outputs + L, I{0});
    std::fill(count + outputs, count + outputs + L, I{0});
    for (std::int64_t i = 0; i < outputs; i += L) {
      const I most = *std::max_element(count + i, count + i + L);
      const Pack<I> starts = load(first + i), counts = load(count + i);
      for (std::int64_t row = 0; row < pass.rows; ++row) {
        const T* line = static_cast<const T*>(pass.src) + row * pass.src_row;
        A* dst = static_cast<A*>(pass.dst) + row * pass.dst_row + (begin + i - pass.begin);
        typename C::State state[1] = {carry.identity()};
        const auto tap = [&](std::int64_t r, std::int64_t j, int) CENOTE_INLINED {
          const Pack<I> number = broadcast<I>(static_cast<I>(j));
          const auto outside = hn::RebindMask(Tag<A>(), (counts <= number).m);
          const Pack<I> at{
              hn::IfThenElseZero(hn::Gt(counts.v, number.v), (starts + broadcast<I>(static_cast<I>(j * step))).v)};
          const auto cells = carry.cell(line + r * pass.fold_step, 0, [&](const T* p) CENOTE_INLINED {
            return Pack<A>{hn::GatherIndex(Tag<A>(), p, at.v)};
          });
          return choose(Flags<A>{outside}, carry.identity(), cells);
        };
        if (most > 0) fold_rows<1>(carry, pass.fold, most, tap, state);
        if (HWY_LIKELY(i + L <= outputs)) {
          carry.store_state(state[0], dst, pass.dst_plane);
        } else {
          // Rows may touch: the next one's first outputs are made already.
          HWY_ALIGN A part[C::State::count * (64 / sizeof(A))];
          carry.store_state(state[0], part, L);
          for (int k = 0; k < C::State::count; ++k)
            std::copy(part + k * L, part + k * L + (outputs - i), dst + k * pass.dst_plane);
        }
      }
    }
  }
}

template <class C, class T>
void lines(const Pass& pass) {
  using A = typename LaneOf<typename C::N>::type;
  const Axis& axis = *pass.axis;
  if constexpr (!C::is_winner && std::is_same_v<T, A> && std::is_floating_point_v<T>)
    if ((axis.transposed || (axis.adaptive && axis.size < 2 * lanes<T>())) &&
        axis.n < std::numeric_limits<std::int32_t>::max()) {
      if (pass.nan) *pass.nan = true;
      return scattered_lines<C, T>(pass);
    }
  const C carry(pass);
  with_line<C, T>(carry, pass, [&](const auto& make) HWY_ATTR {
    const bool any = make(Rows<T, A>{static_cast<const T*>(pass.src) - pass.origin, static_cast<A*>(pass.dst),
                                     pass.rows, pass.src_row, pass.dst_row},
                          pass.begin, pass.end);
    if (pass.nan && any) *pass.nan = true;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
