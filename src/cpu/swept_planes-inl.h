// Planes whose windows lie at every place, swept along lines and across them.

#if defined(CENOTE_CPU_SWEPT_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SWEPT_PLANES_INL_H_
#undef CENOTE_CPU_SWEPT_PLANES_INL_H_
#else
#define CENOTE_CPU_SWEPT_PLANES_INL_H_
#endif

#include "cpu/outlet-inl.h"
#include "cpu/row_line-inl.h"
#include "cpu/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

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
      : carry_(carry), call_(call), line_(*call.line.axis), across_(*call.across), outlet_(call, nullptr) {
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
    // The lines of several small planes, too.
    const bool whole = joins_ && call_.begin == 0 && call_.end == across_.out && across_.n <= 2 * across_.size;
    const std::int64_t together = whole ? HWY_MAX(call_.batch / across_.n, 1) : 1;
    for (std::int64_t p = 0; p < call_.count; p += together) {
      const std::int64_t planes = HWY_MIN(together, call_.count - p);
      ring_ = static_cast<A*>(call_.ring);
      nan_[0] = nan_[1] = planes > 1 && make(src, across_.n, planes, ring_);
      for (std::int64_t i = 0; i < planes; ++i, src += call_.step, dst += call_.out_plane * call_.out_size) {
        if (!direct_) held_ = outlet_.go_on(held_, dst);
        ahead_ = len_ > 1     ? nullptr
                 : planes > 1 ? src + first_ + planes * call_.step
                              : src + first_ + 2 * across_.size * call_.line.src_row;
        plane(src, dst, planes > 1);
        ring_ += across_.n * pitch_;
      }
    }
    if (!direct_) outlet_.go_on(held_, nullptr);
  }

 private:
  /// Lanes of each row that are joined at a time.
  static HWY_INLINE std::int64_t strip() { return U * lanes<A>(); }
  HWY_INLINE A* row(std::int64_t p) const {
    const std::int64_t k = across_.size;
    return ring_ + (p / k % 2 * k + p % k) * pitch_;
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
    Watch<Q> watch;
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
    const Divisor<A> divisor(call_.divisor);
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

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
