// The kernels behind collect.h, compiled for every SIMD target.
#include "cpu/collect.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/collect.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/strided_line-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

/// A line of cells. Those whose numbers leave the same rest when divided by the stride form a phase: windows lie at the
/// same distances from all of them. A place of the line is one cell of each of `Stride` phases, of which there are one
/// or two; together they ask `Reach` neighbouring outputs, or any number if that is 0.
template <int Stride, int Reach, bool Offsets, class T>
class Line {
 public:
  using A = Lane<T>;
  static constexpr std::int64_t turn = 4 * Stage::room;
  static constexpr bool ends_rows = true;

  explicit Line(const Collect& call)
      : len_(call.len),
        out_(call.out),
        length_((call.len + Stride - 1) / Stride),
        first_(call.first),
        reach_(call.reach),
        step_(call.inner * call.dilation),
        far_(!call.crossing) {
    for (std::int64_t e = 0; e < reach_; ++e)
      for (std::int64_t k = 0; k < Stride; ++k) {
        const std::int64_t t = (call.phases[k].window - first_) / call.dilation - e;
        held_[e * Stride + k] = t >= 0 && t < call.phases[k].count;
        taps_[e * Stride + k] = hn::Set(ByteTag<A>(), static_cast<std::uint8_t>(call.phases[k].tap + t * Stride));
      }
    if (call.crossing) {
      // All outputs that are asked exist, from the first that place 0 asks.
      first_ = 0;
      out_ = std::numeric_limits<std::int64_t>::max() / 2;
      return;
    }
    begin_.move(*this, 0);
    end_.move(*this, HWY_MAX(length_ - lanes<A>(), 0));
  }
  std::int64_t length() const { return length_; }
  /// A pack may overlap the one before it.
  HWY_INLINE void operator()(const Rows<A>& rows) const {
    if constexpr (Reach > 0) {
      if (rows.asks.count == 1) return fill<1>(rows);
      if (rows.asks.count == 2) return fill<2>(rows);
      if (rows.asks.count == 4) return fill<4>(rows);
      if constexpr (Reach == 3)
        if (rows.asks.count == 3) return fill<3>(rows);
    }
    fill<0>(rows);
  }

 private:
  // A line that is crossed asks for as many outputs as a window has taps.
  static constexpr int most_reach = cpu::most_crossed;
  static_assert(most_reach > cpu::most_on_lines);

  /// Which lanes of a pack at place m have outputs.
  struct Border {
    std::int64_t m = -1;
    LaneRange<T> ranges[most_reach];
    void move(const Line& line, std::int64_t place) {
      m = place;
      const std::int64_t L = lanes<A>();
      for (std::int64_t e = 0; e < line.reach_; ++e) {
        const std::int64_t o = m + line.first_ + e * line.step_;
        ranges[e] = LaneRange<T>(HWY_MIN(HWY_MAX(-o, 0), L), HWY_MIN(HWY_MAX(line.out_ - o, 0), L));
      }
    }
    HWY_INLINE const LaneRange<T>& operator[](std::int64_t e) const { return ranges[e]; }
  };
  struct Everywhere {
    HWY_INLINE AllLanes operator[](std::int64_t) const { return {}; }
  };

  /// To the stage, or on past the caches.
  struct Output {
    bool streams;
    Divisor<A> divisor;
    HWY_INLINE void operator()(Pack<A> x, A* dst) const {
      if constexpr (!Offsets) x = x / divisor;
      streams ? stream(x, dst) : store(x, dst);
    }
    /// To the stage.
    HWY_INLINE void some(Pack<A> x, A* dst, std::int64_t count) const {
      if constexpr (!Offsets) x = x / divisor;
      hn::BlendedStore(x.v, hn::FirstN(Tag<A>(), static_cast<std::size_t>(count)), Tag<A>(), dst);
    }
  };

  template <int Count>
  HWY_INLINE void fill(const Rows<A>& rows) const {
    const std::int64_t L = lanes<A>(), from = rows.from, to = rows.to;
    const std::int64_t last = rows.stream ? from + (to - from - 1) / L * L : HWY_MAX(to - L, from);
    // Places whose outputs all exist
    const std::int64_t inside = -first_, outside = out_ - first_ - (reach_ - 1) * step_;
    std::int64_t m = from;
    for (; m < inside; m = HWY_MIN(m + L, last)) {
      at_border<Count>(rows, m);
      if (m == last) return;
    }
    if (m + L <= outside) {
      const std::int64_t stop = last + L <= outside ? last : m + (outside - L - m) / L * L;
      make<Count>(rows, m, stop, Everywhere());
      if (stop == last) return;
      m = HWY_MIN(stop + L, last);
    }
    for (;; m = HWY_MIN(m + L, last)) {
      at_border<Count>(rows, m);
      if (m == last) return;
    }
  }
  template <int Count>
  HWY_INLINE void at_border(const Rows<A>& rows, std::int64_t m) const {
    if (m == end_.m) return make<Count>(rows, m, m, end_);
    if (m == begin_.m) return make<Count>(rows, m, m, begin_);
    Border border;
    border.move(*this, m);
    make<Count>(rows, m, m, border);
  }

  /// Packs at places begin, begin + L, … and at `last`, given by `Count` rows of outputs, or any number.
  template <int Count, class Ranges>
  HWY_NOINLINE void make(const Rows<A>& rows, std::int64_t begin, std::int64_t last, const Ranges& ranges) const {
    constexpr bool known = Count > 0 && Reach > 0;
    const std::int64_t L = lanes<A>(), stride = Stride, reach = Reach > 0 ? Reach : reach_;
    const std::int64_t step = Stride == 1 ? step_ : 1;
    // Copies: stores might change what they are copies of.
    const std::int64_t count = rows.asks.count, first = first_;
    const std::int64_t gy_step = rows.gy_step, offset_step = rows.offset_step, dst_step = rows.dst_step;
    const std::int64_t cells = HWY_MIN(rows.to * stride, len_);
    const Output output{rows.stream, Divisor<A>(rows.stage.divisor, true)};
    const T* gy[Count > 0 ? Count : most_windows];
    const std::uint8_t* offsets[Count > 0 ? Count : most_windows];
    Bytes<A> wanted[known ? Count * Reach * Stride : 1];
    bool held[known ? Reach * Stride : 1];
    each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
      gy[g] = reinterpret_cast<const T*>(rows.asks.of[g].gy) + first;
      offsets[g] = rows.asks.of[g].offsets + first;
      if constexpr (known)
        each<Reach * Stride>(0, [&](std::int64_t i) CENOTE_INLINED {
          wanted[g * Reach * Stride + i] = hn::Add(rows.asks.of[g].wanted, taps_[i]);
          held[i] = held_[i];
        });
    });
    A* dst = rows.dst - rows.from * stride;
    for (std::int64_t row = rows.count; row > 0; --row) {
      std::int64_t m = begin;
      if constexpr (Stride == 1 && std::is_same_v<Ranges, Everywhere>)
        for (; m + 4 * L <= last; m += 4 * L) add_packs<4>(rows.asks, gy, offsets, m, dst, output);
      for (;; m = HWY_MIN(m + L, last)) {
        if constexpr (Count > 0 && std::is_same_v<Ranges, Everywhere>) __builtin_prefetch(gy[Count - 1] + m + ahead);
        Pack<A> sums[Stride];
        each<Stride>(stride, [&](std::int64_t k) CENOTE_INLINED { sums[k] = number<Pack<A>>(0); });
        each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
          each<Reach>(reach, [&](std::int64_t e) CENOTE_INLINED {
            const Pack<A> all = read(gy[g] + m + e * step, ranges[e]);
            Bytes<A> bytes;
            if constexpr (Offsets) bytes = read_bytes<A>(offsets[g] + m + e * step, ranges[e]);
            each<Stride>(stride, [&](std::int64_t k) CENOTE_INLINED {
              const std::int64_t i = e * stride + k;
              if (Reach != 1 && Stride != 1 && !(known ? held[i] : held_[i])) return;
              if constexpr (!Offsets)
                sums[k] = sums[k] + all;
              else if constexpr (known)
                sums[k] = add_where_equal(bytes, wanted[g * Reach * Stride + i], sums[k], all);
              else
                sums[k] = add_where_equal(bytes, hn::Add(rows.asks.of[g].wanted, taps_[i]), sums[k], all);
            });
          });
        });
        weave(sums, dst + m * stride, cells - m * stride, output);
        if (m == last) break;
      }
      dst += dst_step;
      each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
        gy[g] += gy_step;
        offsets[g] += offset_step;
      });
    }
  }
  /// Windows one cell apart: `N` packs at once share what is known about each of them.
  template <int N>
  HWY_INLINE void add_packs(const Asks<A>& asks, const T* const* gy, const std::uint8_t* const* offsets, std::int64_t m,
                            A* dst, const Output& output) const {
    Pack<A> sums[N];
    each<N>(0, [&](std::int64_t j) CENOTE_INLINED { sums[j] = number<Pack<A>>(0); });
    const std::int64_t L = lanes<A>(), count = asks.count, reach = reach_, step = step_;
    if (far_) each<N>(0, [&](std::int64_t j) CENOTE_INLINED { __builtin_prefetch(gy[0] + m + j * L + ahead); });
    for (std::int64_t g = 0; g < count; ++g)
      for (std::int64_t e = 0; e < reach; ++e) {
        const T* from = gy[g] + m + e * step;
        const std::uint8_t* bytes = offsets[g] + m + e * step;
        const auto wanted = hn::Add(asks.of[g].wanted, taps_[e]);
        each<N>(0, [&](std::int64_t j) CENOTE_INLINED {
          const Pack<A> all = load(from + j * L);
          if constexpr (Offsets)
            sums[j] = add_where_equal(read_bytes<A>(bytes + j * L, AllLanes()), wanted, sums[j], all);
          else
            sums[j] = sums[j] + all;
        });
      }
    each<N>(0, [&](std::int64_t j) CENOTE_INLINED { output(sums[j], dst + m + j * L); });
  }
  /// The cells of one pack of places, of which `count` belong to the row, at least one.
  HWY_INLINE void weave(const Pack<A>* sums, A* dst, std::int64_t count, const Output& output) const {
    if constexpr (Stride == 1) {
      output(sums[0], dst);
    } else {
      const std::int64_t L = lanes<A>();
      const Pack<A> first = interleaved<false>(sums[0], sums[1]), second = interleaved<true>(sums[0], sums[1]);
      if (HWY_LIKELY(count >= L))
        output(first, dst);
      else
        output.some(first, dst, count);
      if (HWY_LIKELY(count >= 2 * L))
        output(second, dst + L);
      else if (count > L)
        output.some(second, dst + L, count - L);
    }
  }

  std::int64_t len_, out_, length_;
  std::int64_t first_, reach_, step_;  // outputs that place 0 asks, and lanes from each to the next
  bool far_;                           // they come from memory
  Border begin_, end_;                 // the first pack and the last
  bool held_[most_reach * Stride];     // whether a phase asks an output, and at which tap
  Bytes<A> taps_[most_reach * Stride];
};

template <int Stride, int Reach, bool Offsets, class T>
void collect_line(const Collect& call) {
  const Line<Stride, Reach, Offsets, T> line(call);
  walk<T>(call, Stride, line.length(), line);
}

/// A line whose windows lie one cell apart, in two steps. A winner's tap along the row it lies in depends on that row
/// and on where windows begin along it, not on the row where they begin. So windows above each other whose winners lie
/// in the row under way are added up first, and share one tap; the sums are a single row of outputs for the second
/// step.
template <class T>
class CrossedLine {
 public:
  using A = Lane<T>;
  static constexpr std::int64_t turn = Stage::room;

  explicit CrossedLine(const Collect& call)
      : line_(call),
        crossing_(*call.crossing),
        first_(call.first * call.inner),
        out_(call.out * call.inner),
        halo_((call.reach - 1) * call.inner * call.dilation),
        step_(call.inner * call.dilation) {}
  std::int64_t length() const { return line_.length(); }

  HWY_INLINE void operator()(const Rows<A>& rows) const {
    if (rows.count > 1 && out_ == length() && rows.gy_step == out_ && rows.offset_step == out_ &&
        rows.dst_step == out_) {
      // Winners are cells of their row: rows that touch are one.
      const std::int64_t all = rows.count * out_;
      std::fill_n(crossing_.taps + crossing_.lead + all, halo_, std::uint8_t{255});
      return make(Rows<A>{rows.asks, 1, 0, 0, rows.dst, 0, 0, all, rows.stage, rows.stream}, all);
    }
    make(rows, out_);
  }

 private:
  HWY_INLINE void make(const Rows<A>& rows, std::int64_t out) const {
    // Parts of one row follow each other.
    if (rows.from == 0) made_ = 0, clear_ = true;
    const std::int64_t stop = HWY_MIN(out, HWY_MAX(rows.to + first_ + halo_, 0));
    if (made_ < stop) {
      clear_ = join(rows, out, made_, stop) && clear_;
      made_ = stop;
    }
    if (!clear_) return add_each(rows, out);
    Asks<A> sums;
    sums.count = 1;
    sums.of[0] = {reinterpret_cast<const std::byte*>(static_cast<const A*>(crossing_.sums) + crossing_.lead + first_),
                  crossing_.taps + crossing_.lead + first_, hn::Zero(ByteTag<A>())};
    line_(Rows<A>{sums, rows.count, crossing_.pitch, crossing_.pitch, rows.dst, rows.dst_step, rows.from, rows.to,
                  rows.stage, rows.stream});
  }

  /// The first step. False if windows above each other have different taps in the same row, which those of one array
  /// never do.
  HWY_NOINLINE bool join(const Rows<A>& rows, std::int64_t out, std::int64_t begin, std::int64_t end) const {
    constexpr int together = HWY_TARGET == HWY_AVX3 ? 4 : 2;
    const ByteTag<A> tag;
    const std::int64_t L = lanes<A>(), count = rows.asks.count;
    const Bytes<A> width = hn::Set(tag, static_cast<std::uint8_t>(halo_ / step_ + 1));
    const Ask<A>* asks = rows.asks.of;
    Bytes<A> doubt = hn::Zero(tag);
    std::int64_t gy_shift = 0, offset_shift = 0;
    A* sums = static_cast<A*>(crossing_.sums) + crossing_.lead;
    std::uint8_t* taps = crossing_.taps + crossing_.lead;
    const auto add = [&]<int N>(std::integral_constant<int, N>, std::int64_t o, const auto& range) CENOTE_INLINED {
      Pack<A> sum[N];
      Bytes<A> least[N], most[N];
      each<N>(0, [&](std::int64_t j) CENOTE_INLINED {
        sum[j] = number<Pack<A>>(0);
        least[j] = hn::Set(tag, 255);
        most[j] = hn::Zero(tag);
      });
      for (std::int64_t g = 0; g < count; ++g) {
        const T* gy = reinterpret_cast<const T*>(asks[g].gy) + gy_shift + o;
        const std::uint8_t* offsets = asks[g].offsets + offset_shift + o;
        const Bytes<A> wanted = asks[g].wanted;
        each<N>(0, [&](std::int64_t j) CENOTE_INLINED {
          // Taps of other rows wrap around, or lie beyond the last.
          const Bytes<A> tap = hn::Sub(read_bytes<A>(offsets + j * L, range), wanted);
          const auto here = hn::Lt(tap, width);
          sum[j] = add_where(here, sum[j], read(gy + j * L, range));
          least[j] = hn::Min(least[j], tap);
          most[j] = hn::IfThenElse(here, hn::Max(most[j], tap), most[j]);
        });
      }
      if constexpr (N > 1)
        if (count > 0) {
          const T* next = reinterpret_cast<const T*>(asks[count - 1].gy) + gy_shift + o + ahead;
          each<N>(0, [&](std::int64_t j) CENOTE_INLINED { __builtin_prefetch(next + j * L); });
          __builtin_prefetch(asks[count - 1].offsets + offset_shift + o + ahead);
        }
      each<N>(0, [&](std::int64_t j) CENOTE_INLINED {
        store(sum[j], sums + o + j * L);
        hn::StoreU(least[j], tag, taps + o + j * L);
        doubt = hn::Or(doubt, hn::SaturatedSub(most[j], least[j]));
      });
    };
    for (std::int64_t row = rows.count; row > 0; --row) {
      std::int64_t o = begin;
      for (; o + together * L <= end; o += together * L) add(std::integral_constant<int, together>(), o, AllLanes());
      if (out < L)
        add(std::integral_constant<int, 1>(), 0, LaneRange<T>(0, out));
      else
        for (; o < end; o += L) add(std::integral_constant<int, 1>(), HWY_MIN(o, out - L), AllLanes());
      gy_shift += rows.gy_step;
      offset_shift += rows.offset_step;
      sums += crossing_.pitch;
      taps += crossing_.pitch;
    }
    return hn::AllTrue(tag, hn::Eq(doubt, hn::Zero(tag)));
  }

  /// Tap by tap, in the same order.
  HWY_NOINLINE void add_each(const Rows<A>& rows, std::int64_t out) const {
    for (std::int64_t row = 0; row < rows.count; ++row)
      for (std::int64_t i = rows.from; i < rows.to; ++i) {
        A all = 0;
        for (std::int64_t e = 0; e <= halo_; e += step_) {
          const std::int64_t o = i + first_ + e;
          if (o < 0 || o >= out) continue;
          A sum = 0;
          for (std::int64_t g = 0; g < rows.asks.count; ++g) {
            const Ask<A>& ask = rows.asks.of[g];
            const auto tap = static_cast<std::uint8_t>((halo_ - e) / step_ + hn::GetLane(ask.wanted));
            if (ask.offsets[row * rows.offset_step + o] == tap)
              sum += static_cast<A>(reinterpret_cast<const T*>(ask.gy)[row * rows.gy_step + o]);
          }
          all += sum;
        }
        rows.dst[row * rows.dst_step + i - rows.from] = all;
      }
  }

  Line<1, 0, true, A> line_;
  const cpu::Crossing& crossing_;
  std::int64_t first_, out_, halo_, step_;  // lanes
  mutable std::int64_t made_ = 0;           // lanes of the row under way,
  mutable bool clear_ = true;               // in which no two taps meet
};

template <bool Offsets, class T>
void collect_lines(const Collect& call) {
  if constexpr (Offsets)
    if (call.crossing) {
      const CrossedLine<T> line(call);
      return walk<T>(call, 1, line.length(), line);
    }
  if constexpr (!Offsets)
    if (call.stride > most_phases) return collect_wide<T>(call);
  if (call.stride > 2 || call.inner > 1) return collect_strided<Offsets, T>(call);
  if (call.stride == 1) return collect_line<1, 0, Offsets, T>(call);
  // A reach of 1 is that of all phases.
  if (call.reach == 1 && call.phases[0].count == call.phases[1].count) return collect_line<2, 1, Offsets, T>(call);
  if (call.reach == 2) return collect_line<2, 2, Offsets, T>(call);
  if (call.reach == 3) return collect_line<2, 3, Offsets, T>(call);
  collect_line<2, 0, Offsets, T>(call);
}

template <class T>
cpu::Collecting functions_of(bool lines, bool offsets) {
  const auto rows = lines     ? offsets ? collect_lines<true, T> : collect_lines<false, T>
                        : offsets ? collect_lanes<true, T>
                              : collect_lanes<false, T>;
  return {rows, [](Stage& stage) { flush<T>(stage, true); }, lanes<Lane<T>>()};
}

}  // namespace

cpu::Collecting collecting_in(Type type, bool lines, bool offsets) {
  switch (type) {
    case Type::f16: return functions_of<f16>(lines, offsets);
    case Type::bf16: return functions_of<bf16>(lines, offsets);
    case Type::f64: return functions_of<double>(lines, offsets);
    default: return functions_of<float>(lines, offsets);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(collecting_in);
cpu::Collecting cpu::collecting(Type type, bool lines, bool offsets) noexcept {
  return HWY_DYNAMIC_DISPATCH(collecting_in)(type, lines, offsets);
}
}  // namespace cenote
#endif
