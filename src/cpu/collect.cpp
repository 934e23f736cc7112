// The kernels behind collect.h, compiled for every SIMD target.
#include "cpu/collect.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/collect.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/collect-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

/// Lanes of some rows; a pack may overlap the one before it.
template <int Count, bool Offsets, class T>
HWY_NOINLINE void add_lanes(const Rows<Lane<T>>& rows) {
  using A = Lane<T>;
  const std::int64_t L = lanes<A>(), n = Count > 0 ? Count : rows.asks.count, from = rows.from, to = rows.to;
  // Copies: stores might change what they are copies of.
  const std::int64_t gy_step = rows.gy_step, offset_step = rows.offset_step, dst_step = rows.dst_step;
  const bool streams = rows.stream;
  const Scale<A> scale(rows.stage);
  const T* gy[Count > 0 ? Count : most_windows];
  const std::uint8_t* offsets[Count > 0 ? Count : most_windows];
  Bytes<A> wanted[Count > 0 ? Count : most_windows];
  each<Count>(n, [&](std::int64_t g) CENOTE_INLINED {
    gy[g] = reinterpret_cast<const T*>(rows.asks.of[g].gy);
    offsets[g] = rows.asks.of[g].offsets;
    wanted[g] = rows.asks.of[g].wanted;
  });
  const auto sum = [&](std::int64_t i, const auto& range) CENOTE_INLINED {
    Pack<A> result = number<Pack<A>>(0);
    each<Count>(n, [&](std::int64_t g) CENOTE_INLINED {
      const Pack<A> all = read(gy[g] + i, range);
      if constexpr (Offsets)
        result = result + where_equal(read_bytes<A>(offsets[g] + i, range), wanted[g], all);
      else
        result = result + all;
    });
    return result;
  };
  A* dst = rows.dst - from;
  if (to - from < L) return store(sum(from, LaneRange<T>(0, to - from)), dst + from);
  for (std::int64_t row = rows.count; row > 0; --row) {
    std::int64_t i = from;
    if (streams)
      for (; i + L <= to; i += L) stream(Offsets ? sum(i, AllLanes()) : scale(sum(i, AllLanes())), dst + i);
    for (; i + L <= to; i += L) store(sum(i, AllLanes()), dst + i);
    if (i < to) store(sum(to - L, AllLanes()), dst + (to - L));
    dst += dst_step;
    each<Count>(n, [&](std::int64_t g) CENOTE_INLINED {
      gy[g] += gy_step;
      offsets[g] += offset_step;
    });
  }
}

/// Rows of lanes that no window reaches across.
template <bool Offsets, class T>
struct FreeLanes {
  static constexpr bool streams = true;
  HWY_INLINE void operator()(const Rows<Lane<T>>& rows) const {
    switch (rows.asks.count) {
      case 1: return add_lanes<1, Offsets, T>(rows);
      case 2: return add_lanes<2, Offsets, T>(rows);
      case 4: return add_lanes<4, Offsets, T>(rows);
      default: return add_lanes<0, Offsets, T>(rows);
    }
  }
};

template <bool Offsets, class T>
void collect_lanes(const Collect& call) {
  walk<T>(call, 1, call.len, FreeLanes<Offsets, T>());
}

/// Lanes of a and b in turn, the first half of them and the second.
template <bool Upper, class T>
HWY_INLINE Pack<T> interleaved(Pack<T> a, Pack<T> b) {
  using Raw = decltype(a.v.raw);
  using Lanes [[gnu::vector_size(sizeof(Raw))]] = T;
  constexpr int L = sizeof(Raw) / sizeof(T);
  return [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED {
    return Pack<T>{hn::Vec<Tag<T>>{
        (Raw)__builtin_shufflevector((Lanes)a.v.raw, (Lanes)b.v.raw, (I / 2 + I % 2 * L + (Upper ? L / 2 : 0))...)}};
  }
  (std::make_integer_sequence<int, L>());
}

/// A line of cells. Those whose numbers leave the same rest when divided by the stride form a phase: windows lie at the
/// same distances from all of them. A place of the line is one cell of each phase; together they ask `Reach`
/// neighbouring outputs. Both are known to the compiler, or 0.
template <int Stride, int Reach, bool Offsets, class T>
class Line {
 public:
  using A = Lane<T>;
  static constexpr bool streams = Stride == 1 || Stride == 2;

  explicit Line(const Collect& call)
      : stride_(call.stride),
        out_(call.out),
        length_((call.len + call.stride - 1) / call.stride),
        first_(call.first),
        reach_(call.reach) {
    for (std::int64_t e = 0; e < reach_; ++e)
      for (std::int64_t k = 0; k < stride_; ++k) {
        const std::int64_t t = call.phases[k].window - first_ - e;
        held_[e * stride_ + k] = t >= 0 && t < call.phases[k].count;
        taps_[e * stride_ + k] = hn::Set(ByteTag<A>(), static_cast<std::uint8_t>(call.phases[k].tap + t * stride_));
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
    }
    fill<0>(rows);
  }

 private:
  static constexpr int most_reach = cpu::most_on_lines + 1;

  /// Which lanes of a pack at place m have outputs.
  struct Border {
    std::int64_t m = -1;
    LaneRange<T> ranges[most_reach];
    void move(const Line& line, std::int64_t place) {
      m = place;
      const std::int64_t L = lanes<A>();
      for (std::int64_t e = 0; e < line.reach_; ++e) {
        const std::int64_t o = m + line.first_ + e;
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
    Scale<A> scale;
    HWY_INLINE void operator()(Pack<A> x, A* dst) const {
      streams ? stream(Offsets ? x : scale(x), dst) : store(x, dst);
    }
  };

  template <int Count>
  HWY_INLINE void fill(const Rows<A>& rows) const {
    const std::int64_t L = lanes<A>(), from = rows.from, to = rows.to;
    const std::int64_t last = rows.stream ? from + (to - from - 1) / L * L : HWY_MAX(to - L, from);
    // Places whose outputs all exist
    const std::int64_t inside = -first_, outside = out_ - first_ - reach_ + 1;
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
    const std::int64_t L = lanes<A>(), stride = Stride > 0 ? Stride : stride_, reach = Reach > 0 ? Reach : reach_;
    // Copies: stores might change what they are copies of.
    const std::int64_t count = rows.asks.count, first = first_;
    const std::int64_t gy_step = rows.gy_step, offset_step = rows.offset_step, dst_step = rows.dst_step;
    const std::int64_t to = rows.to;
    const Output output{rows.stream, Scale<A>(rows.stage)};
    const Scale<A> scale(rows.stage);
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
        Pack<A> sums[Stride > 0 ? Stride : most_phases];
        each<Stride>(stride, [&](std::int64_t k) CENOTE_INLINED { sums[k] = number<Pack<A>>(0); });
        each<Count>(count, [&](std::int64_t g) CENOTE_INLINED {
          each<Reach>(reach, [&](std::int64_t e) CENOTE_INLINED {
            const Pack<A> all = read(gy[g] + m + e, ranges[e]);
            Bytes<A> bytes;
            if constexpr (Offsets) bytes = read_bytes<A>(offsets[g] + m + e, ranges[e]);
            each<Stride>(stride, [&](std::int64_t k) CENOTE_INLINED {
              const std::int64_t i = e * stride + k;
              if (Reach != 1 && Stride != 1 && !(known ? held[i] : held_[i])) return;
              if constexpr (!Offsets)
                sums[k] = sums[k] + all;
              else if constexpr (known)
                sums[k] = sums[k] + where_equal(bytes, wanted[g * Reach * Stride + i], all);
              else
                sums[k] = sums[k] + where_equal(bytes, hn::Add(rows.asks.of[g].wanted, taps_[i]), all);
            });
          });
        });
        weave(sums, dst + m * stride, (to - m) * stride, output);
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
    const std::int64_t L = lanes<A>(), count = asks.count, reach = reach_;
    for (std::int64_t g = 0; g < count; ++g)
      for (std::int64_t e = 0; e < reach; ++e) {
        const T* from = gy[g] + m + e;
        const std::uint8_t* bytes = offsets[g] + m + e;
        const auto wanted = hn::Add(asks.of[g].wanted, taps_[e]);
        each<N>(0, [&](std::int64_t j) CENOTE_INLINED {
          const Pack<A> all = load(from + j * L);
          if constexpr (Offsets)
            sums[j] = sums[j] + where_equal(read_bytes<A>(bytes + j * L, AllLanes()), wanted, all);
          else
            sums[j] = sums[j] + all;
        });
      }
    each<N>(0, [&](std::int64_t j) CENOTE_INLINED { output(sums[j], dst + m + j * L); });
  }
  /// The cells of one pack of places, of which `count` belong to the row.
  HWY_INLINE void weave(const Pack<A>* sums, A* dst, std::int64_t count, const Output& output) const {
    if constexpr (Stride == 0) {
      for (std::int64_t k = 0; k < stride_; ++k) {
        HWY_ALIGN A cells[64 / sizeof(A)];
        store(sums[k], cells);
        for (std::int64_t i = 0; i < lanes<A>(); ++i) dst[k + i * stride_] = cells[i];
      }
    } else if constexpr (Stride == 1) {
      output(sums[0], dst);
    } else if constexpr (Stride == 2) {
      output(interleaved<false>(sums[0], sums[1]), dst);
      if (count > lanes<A>()) output(interleaved<true>(sums[0], sums[1]), dst + lanes<A>());
    } else if constexpr (Stride == 3) {
      hn::StoreInterleaved3(sums[0].v, sums[1].v, sums[2].v, Tag<A>(), dst);
    } else {
      hn::StoreInterleaved4(sums[0].v, sums[1].v, sums[2].v, sums[3].v, Tag<A>(), dst);
    }
  }

  std::int64_t stride_, out_, length_;
  std::int64_t first_, reach_;           // outputs that place 0 asks
  Border begin_, end_;                   // the first pack and the last
  bool held_[most_reach * most_phases];  // whether a phase asks an output, and at which tap
  Bytes<A> taps_[most_reach * most_phases];
};

template <int Stride, int Reach, bool Offsets, class T>
void collect_line(const Collect& call) {
  const Line<Stride, Reach, Offsets, T> line(call);
  walk<T>(call, Stride > 0 ? Stride : call.stride, line.length(), line);
}

template <bool Offsets, class T>
void collect_lines(const Collect& call) {
  switch (call.stride) {
    case 1: return collect_line<1, 0, Offsets, T>(call);
    case 2:
      // A reach of 1 is that of all phases. Halves do without: every form costs time to compile.
      if constexpr (std::is_same_v<T, Lane<T>>) {
        if (call.reach == 1 && call.phases[0].count == call.phases[1].count)
          return collect_line<2, 1, Offsets, T>(call);
        if (call.reach == 2) return collect_line<2, 2, Offsets, T>(call);
      }
      return collect_line<2, 0, Offsets, T>(call);
    default: return collect_line<0, 0, Offsets, T>(call);
  }
}

template <class T>
cpu::Collecting functions_of(bool lines, bool offsets) {
  const auto rows = lines     ? offsets ? collect_lines<true, T> : collect_lines<false, T>
                        : offsets ? collect_lanes<true, T>
                              : collect_lanes<false, T>;
  return {rows, [](Stage& stage) { flush<T>(stage, true); }};
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
