// Rows of few lanes that lie side by side, as lines of short windows: the rows of each are joined first.

#if defined(CENOTE_CPU_JOINED_LINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_JOINED_LINE_INL_H_
#undef CENOTE_CPU_JOINED_LINE_INL_H_
#else
#define CENOTE_CPU_JOINED_LINE_INL_H_
#endif

#include "cpu/line_rows-inl.h"
#include "cpu/rows_first-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

/// The first lanes of a pack, and a pack of such, in registers.
template <class Part, class D>
HWY_INLINE auto first_part(Part part, D, hn::Vec<D> whole) {
  if constexpr (hn::MaxLanes(Part()) == hn::MaxLanes(D()))
    return whole;
  else
    return first_part(part, hn::Half<D>(), hn::LowerHalf(hn::Half<D>(), whole));
}
template <class Part, class D>
HWY_INLINE hn::Vec<D> filled_up(D whole, hn::Vec<Part> part) {
  if constexpr (hn::MaxLanes(Part()) == hn::MaxLanes(D()))
    return part;
  else
    return hn::ZeroExtendVector(whole, filled_up<Part>(hn::Half<D>(), part));
}

/// Columns and their lanes are one line, so the rows of windows are joined in whole packs, however few lanes a column
/// has. What they leave lies in L1, where windows along the line are packs that begin with their first lane: what one
/// writes too much the next one writes over.
template <class C, class T>
class JoinedLine {
  using A = typename LaneOf<typename C::N>::type;

 public:
  /// Whether that is faster than to fold windows column by column. `far`: the rows lie beyond the caches.
  static HWY_INLINE bool suits(const Pass& pass, bool far) {
    const Axis& axis = *pass.axis;
    const std::int64_t most = far || pass.len % lanes<A>() == 0 ? most_whole : most_packs;
    return pass.step == pass.len && pass.len < most * lanes<A>() && axis.stride > 1 && axis.stride <= axis.size &&
           axis.size * pass.len <= cpu::joined_cells - lanes<A>();
  }
  HWY_INLINE JoinedLine(const Pass& pass, bool far)
      : axis_(*pass.axis),
        len_(pass.len),
        most_(((cpu::joined_cells - lanes<A>()) / len_ - axis_.size) / axis_.stride + 1),
        ahead_(pass.ahead),
        asks_(far || pass.ahead > 0),
        interior_(axis_.interior()) {}

  /// Outputs [from, to) of line `row`, in lanes. True if the order of cells may have mattered.
  template <class Q>
  HWY_NOINLINE bool operator()(const Q& carry, const Rows<T, A>& rows, std::int64_t row, std::int64_t from,
                               std::int64_t to) const {
    auto watch = watch_order<C>();
    const std::int64_t len = len_, end = to / len;
    const T* const line = rows.src + row * rows.src_row;
    A* dst = rows.dst + row * rows.dst_row;
    for (std::int64_t o = from / len, stop; o < end; dst += (stop - o) * len, o = stop) {
      stop = HWY_MIN(o + most_, end);
      const std::int64_t first = HWY_MAX(o * axis_.stride - axis_.low, 0);
      const std::int64_t last = HWY_MIN((stop - 1) * axis_.stride - axis_.low + axis_.size, axis_.n);
      if (first < last) {
        const T* const cells = line + first * len;
        const std::int64_t count = (last - first) * len;
        rows.fold == 3   ? join<3>(carry, watch, rows, cells, count)
        : rows.fold == 2 ? join<2>(carry, watch, rows, cells, count)
        : rows.fold == 1 ? join<1>(carry, watch, rows, cells, count)
                         : join<0>(carry, watch, rows, cells, count);
      }
      along(carry, rows.spare, first, o, stop, dst);
    }
    return watch.any();
  }

 private:
  // Packs of a column from which on its cells are better folded in registers, in the order of memory: where they are
  // whole, or far, sooner.
  static constexpr std::int64_t most_packs = 4, most_whole = 2;

  /// `count` lanes of all rows; Count of them if that is not 0.
  template <int Count, class Q, class W>
  HWY_INLINE void join(const Q& like, W& watched, const Rows<T, A>& all, const T* from, std::int64_t count) const {
    // Copies, since a stored pack might alias the originals.
    const Q carry = like;
    W watch = watched;
    const std::int64_t L = lanes<A>(), rows = Count > 0 ? Count : all.fold, row = all.fold_row;
    A* const to = all.spare;
    // Some way ahead in each row, or the rows behind those in the order of memory.
    const std::int64_t beyond = ahead_ > 0 ? ahead_ : (rows - 1) * row;
    const bool asks = asks_;
    const std::int64_t asked_row = ahead_ > 0 ? row : L, asked_step = ahead_ > 0 ? 1 : rows;
    const auto put = [&](std::int64_t i, const auto& get) CENOTE_INLINED {
      if (asks)
        for (std::int64_t r = 0; r < rows; ++r) __builtin_prefetch(from + beyond + r * asked_row + i * asked_step);
      const T* p = from + i;
      const Pack<A> first = get(p);
      auto state = carry.lift(first, 0);
      std::int64_t left = rows - 1;
      for (; left > 1; left -= 2) {
        const Pack<A> a = get(p += row), b = get(p += row);
        watch.add(a, b);
        state = carry.combine(carry.combine(state, carry.lift(a, 0)), carry.lift(b, 0));
      }
      const Pack<A> last = left > 0 ? get(p += row) : first;
      if (left > 0) state = carry.combine(state, carry.lift(last, 0));
      watch.add(first, last);
      store(state.part[0], to + i);
    };
    const auto whole = [](const T* p) CENOTE_INLINED { return kept(load(p)); };
    std::int64_t i = 0;
    for (; i + L <= count; i += L) put(i, whole);
    if (i < count && count >= L)
      put(count - L, whole);
    else if (i < count)
      put(i, [&](const T* p) CENOTE_INLINED { return load_first(p, count - i); });
    watched = watch;
  }

  /// Outputs [begin, end) of what was joined, from column `first` on.
  template <class Q>
  HWY_INLINE void along(const Q& carry, const A* line, std::int64_t first, std::int64_t begin, std::int64_t end,
                        A* dst) const {
    auto [inside, outside] = interior_;
    inside = HWY_MIN(HWY_MAX(inside, begin), end);
    outside = HWY_MAX(HWY_MIN(outside, end), inside);
    at_border(carry, line, first, begin, inside, dst);
    const A* const p = line + (inside * axis_.stride - axis_.low - first) * len_;
    A* const out = dst + (inside - begin) * len_;
    if (axis_.size == 2)
      within(carry, p, outside - inside, std::integral_constant<std::int64_t, 2>(), out);
    else if (axis_.size == 3)
      within(carry, p, outside - inside, std::integral_constant<std::int64_t, 3>(), out);
    else
      within(carry, p, outside - inside, axis_.size, out);
    at_border(carry, line, first, outside, end, dst + (outside - begin) * len_);
  }
  template <class Q, class Size>
  HWY_INLINE void within(const Q& like, const A* p, std::int64_t outputs, Size size, A* out) const {
    const Q carry = like;
    const std::int64_t L = lanes<A>(), len = len_, step = axis_.stride * len;
    const auto columns = [&](auto width) CENOTE_INLINED {
      for (; outputs > 0; --outputs, p += step, out += len) put<width>(carry, p, size, len, out);
    };
    if (len > L) {
      for (; outputs > 0; --outputs, p += step, out += len)
        for (std::int64_t i = 0; i < len; i += L) put(carry, p + i, size, len, out + i);
      return;
    }
    // A part of a pack where that holds a column: it crosses fewer cache lines.
    const std::int64_t bytes = len * std::int64_t{sizeof(A)};
    bytes <= 16   ? columns(std::integral_constant<int, 16>())
    : bytes <= 32 ? columns(std::integral_constant<int, 32>())
                  : columns(std::integral_constant<int, HWY_MAX_BYTES>());
  }
  template <class Q>
  HWY_INLINE void at_border(const Q& carry, const A* line, std::int64_t first, std::int64_t o, std::int64_t end,
                            A* out) const {
    for (; o < end; ++o, out += len_) {
      const std::int64_t start = o * axis_.stride - axis_.low, begin = HWY_MAX(start, 0);
      const std::int64_t count = HWY_MIN(start + axis_.size, axis_.n) - begin;
      for (std::int64_t i = 0; i < len_; i += lanes<A>())
        count > 0 ? put(carry, line + (begin - first) * len_ + i, count, len_, out + i)
                  : carry.store_state(carry.identity(), out + i, 0);
    }
  }
  /// A pack of windows of `count` cells, or the first bytes of one.
  template <int Bytes = HWY_MAX_BYTES, class Q, class Size>
  static HWY_INLINE void put(const Q& carry, const A* p, Size count, std::int64_t len, A* out) {
    using Part = hn::CappedTag<A, Bytes / sizeof(A)>;
    const auto cells = [](const A* from)
                           CENOTE_INLINED { return Pack<A>{filled_up<Part>(Tag<A>(), hn::LoadU(Part(), from))}; };
    auto state = carry.lift(cells(p), 0);
    for (std::int64_t j = 1; j < count; ++j) state = carry.combine(state, carry.lift(cells(p + j * len), 0));
    hn::StoreU(first_part(Part(), Tag<A>(), state.part[0].v), Part(), out);
  }

  const Axis axis_;
  const std::int64_t len_, most_;  // outputs whose cells are joined at a time
  const std::int64_t ahead_;
  const bool asks_;  // memory for what comes next
  const std::pair<std::int64_t, std::int64_t> interior_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
