// The kernels behind collect.h, compiled for every SIMD target.
#include "cpu/collect.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/collect.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::Collect;
using cpu::Giver;
using cpu::most_phases;
using cpu::most_windows;
using cpu::Stage;

/// Offsets beside the lanes of A.
template <class A>
using ByteTag = hn::Rebind<std::uint8_t, Tag<A>>;
template <class A>
using Bytes = hn::Vec<ByteTag<A>>;

/// A giver made ready: what an offset must be, less the tap along a line, in all lanes.
template <class A>
struct Ask {
  const std::byte* gy;
  const std::uint8_t* offsets;
  Bytes<A> wanted;
};

/// Masks of AVX-512 have a bit per lane, however wide lanes are.
template <class To, class From>
HWY_INLINE hn::Mask<To> same_bits(To, From from) {
  return hn::Mask<To>{static_cast<decltype(hn::Mask<To>::raw)>(from.raw)};
}

template <class A>
HWY_INLINE Pack<A> where_equal(Bytes<A> a, Bytes<A> b, Pack<A> x) {
  if constexpr (HWY_TARGET == HWY_AVX3) {
    return {hn::IfThenElseZero(same_bits(Tag<A>(), hn::Eq(a, b)), x.v)};
  } else {
    const auto widen = [](Bytes<A> bytes) CENOTE_INLINED {
      const auto words = hn::PromoteTo(hn::Rebind<std::uint32_t, Tag<A>>(), bytes);
      if constexpr (sizeof(A) == 8)
        return hn::PromoteTo(hn::Rebind<std::uint64_t, Tag<A>>(), words);
      else
        return words;
    };
    return {hn::IfThenElseZero(hn::RebindMask(Tag<A>(), hn::Eq(widen(a), widen(b))), x.v)};
  }
}

/// Which lanes are read: all, or some.
struct AllLanes {};
template <class T>
HWY_INLINE Pack<Lane<T>> read(const T* p, AllLanes) {
  return load(p);
}
template <class T>
HWY_INLINE Pack<Lane<T>> read(const T* p, const LaneRange<T>& range) {
  return load_between(p, range);
}
template <class A>
HWY_INLINE Bytes<A> read_bytes(const std::uint8_t* p, AllLanes) {
  return hn::LoadU(ByteTag<A>(), p);
}
template <class A, class T>
HWY_INLINE Bytes<A> read_bytes(const std::uint8_t* p, const LaneRange<T>& range) {
  const ByteTag<A> tag;
  if constexpr (HWY_TARGET == HWY_AVX3) return hn::MaskedLoad(same_bits(tag, range.m), tag, p);
  std::uint8_t bytes[64 / sizeof(A)] = {};
  if (range.from < range.to)
    std::memcpy(bytes + range.from, p + range.from, static_cast<std::size_t>(range.to - range.from));
  return hn::LoadU(tag, bytes);
}

/// f(0), …, f(N - 1) in a row, or f of all below n where N is 0.
template <int N, class F>
HWY_INLINE void each(std::int64_t n, const F& f) {
  if constexpr (N == 0)
    for (std::int64_t i = 0; i < n; ++i) f(i);
  else
    [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED { (f(I), ...); }
  (std::make_integer_sequence<int, N>());
}

/// Division by the same number everywhere. By a power of 2 it is a product, which gives the same bits sooner.
template <class A>
struct Scale {
  Pack<A> by;
  bool divides;
  HWY_INLINE explicit Scale(const Stage& stage)
      : by(number<Pack<A>>(stage.factor != 0 ? stage.factor : stage.divisor)), divides(stage.factor == 0) {}
  HWY_INLINE Pack<A> operator()(Pack<A> x) const { return divides ? x / by : x * by; }
};

/// Writes what is staged: all, or the units that are complete.
template <class T>
HWY_NOINLINE void flush(Stage& stage, bool all) {
  using A = Lane<T>;
  constexpr std::int64_t unit = 64 / sizeof(A);
  const std::int64_t L = lanes<A>(), stop = all ? stage.end : stage.end / unit * unit;
  if (stage.begin >= stop) return;
  A* src = static_cast<A*>(stage.memory);
  T* dst = reinterpret_cast<T*>(stage.to);
  const auto write = [&](const auto& value) CENOTE_INLINED {
    std::int64_t i = stage.begin;
    const std::int64_t aligned = HWY_MIN((i + unit - 1) / unit * unit, stop);
    for (; i < aligned; i += L) store_first(value(i), dst + i, HWY_MIN(L, aligned - i));
    i = aligned;
    if (stage.stream)
      for (; i + L <= stop; i += L) stream(value(i), dst + i);
    else
      for (; i + L <= stop; i += L) store(value(i), dst + i);
    if (i < stop) store_first(value(i), dst + i, stop - i);
  };
  const Scale<A> scale(stage);
  if (stage.divisor == 1)
    write([&](std::int64_t i) CENOTE_INLINED { return load(src + i); });
  else
    write([&](std::int64_t i) CENOTE_INLINED { return scale(load(src + i)); });
  for (std::int64_t i = 0; stop + i < stage.end; i += L) store(load(src + stop + i), src + i);
  stage.to += stop * static_cast<std::int64_t>(sizeof(T));
  stage.begin = 0;
  stage.end -= stop;
}

/// The outputs that rows of one phase of the walked level ask: those of the next row of the phase lie a window further.
template <class A>
struct Asks {
  std::int64_t count = -1;  // not known yet
  Ask<A> of[most_windows];

  /// Finds those that exist.
  template <class T>
  void find(const Collect& call, const Axis::Place& place) {
    count = 0;
    for (std::int64_t g = 0; g < call.count; ++g)
      for (std::int64_t back = place.count; back-- > 0;) {
        const std::int64_t output = place.window - back, tap = place.tap + back * call.axis.stride;
        if (output < 0 || output >= call.axis.out) continue;
        const Giver& giver = call.givers[g];
        of[count++] = {reinterpret_cast<const std::byte*>(static_cast<const T*>(giver.gy) + output * call.gy_step),
                       giver.offsets + output * call.offset_step,
                       hn::Set(ByteTag<A>(), static_cast<std::uint8_t>(giver.offset + tap * call.scale))};
      }
  }
  void advance(std::int64_t gy, std::int64_t offsets) {
    for (std::int64_t i = 0; i < count; ++i) {
      of[i].gy += gy;
      of[i].offsets += offsets;
    }
  }
};

/// Some rows of one phase, or a part of a single one. Distances count elements of what they are distances in.
template <class A>
struct Rows {
  const Asks<A>& asks;
  std::int64_t count, gy_step, offset_step;
  A* dst;  // where the part belongs in the stage, or in gx itself
  std::int64_t dst_step;
  std::int64_t from, to;  // places of the row
  const Stage& stage;     // says how to write where dst is gx itself: past the caches,
  bool stream;            // aligned, and nothing twice
};

/// Calls make(rows) for all rows, several of one phase at a time where they may be made out of turn. A row has `length`
/// places of `stride` cells each.
template <class T, class Make>
HWY_INLINE void walk(const Collect& call, std::int64_t stride, std::int64_t length, const Make& make) {
  using A = Lane<T>;
  constexpr std::int64_t unit = 64 / sizeof(A), kept = 4;
  const std::int64_t L = lanes<A>(), part = HWY_MAX(L, Stage::room / stride / L * L);
  const std::int64_t apart = call.axis.stride, most = (call.axis.size - 1) / apart + 1, len = call.len;
  // Whole lines of the cache need no stage.
  T* const begin = static_cast<T*>(call.cells) + call.begin * call.cell_step;
  const bool direct = std::is_same_v<T, A> && Make::streams && call.stage->stream && len % unit == 0 &&
                      call.cell_step == len && reinterpret_cast<std::uintptr_t>(begin) % 64 == 0;
  // Rows whose last pack does not reach into the next
  const bool out_of_turn = length * stride == len && length >= L;
  Stage& stage = *call.stage;
  A* memory = static_cast<A*>(stage.memory);
  Asks<A> phases[kept], other;
  Axis::Place place = call.axis.place(call.begin);
  const auto advance = [&](Axis::Place& at) CENOTE_INLINED {
    // The window that ends here leaves, or a new one begins.
    if (++at.tap == apart)
      at = {at.window + 1, 0, most};
    else if (at.tap + (at.count - 1) * apart >= call.axis.size)
      --at.count;
  };
  for (std::int64_t r = call.begin; r < call.end;) {
    T* cells = static_cast<T*>(call.cells) + r * call.cell_step;
    if (reinterpret_cast<T*>(stage.to) + stage.end != cells || (direct && stage.end > 0)) {
      flush<T>(stage, true);
      const auto past = reinterpret_cast<std::uintptr_t>(cells) / sizeof(T) % unit;
      stage.to = reinterpret_cast<std::byte*>(cells) - past * sizeof(T);
      stage.begin = stage.end = static_cast<std::int64_t>(past);
    }
    if (stage.end + HWY_MIN(len * apart, Stage::room) > Stage::room) flush<T>(stage, false);
    const std::int64_t left = (call.axis.out - place.window) * apart - place.tap;  // until the last window is behind
    std::int64_t n = HWY_MIN(HWY_MIN(call.end - r, left), (Stage::room - stage.end) / len);
    const bool inside = apart <= kept && place.window - place.count + 1 >= 0 && call.cell_step == len && n > 0;
    if (inside) {
      const std::int64_t turns = out_of_turn ? HWY_MIN(n, apart) : n;
      for (std::int64_t q = 0; q < turns; ++q, advance(place)) {
        Asks<A>& asks = phases[place.tap];
        if (asks.count < 0) asks.template find<T>(call, place);
        const std::int64_t count = out_of_turn ? (n - q + apart - 1) / apart : 1;
        A* dst = direct ? reinterpret_cast<A*>(cells) : memory + stage.end;
        make(
            Rows<A>{asks, count, call.gy_step, call.offset_step, dst + q * len, apart * len, 0, length, stage, direct});
        asks.advance(count * call.gy_step * static_cast<std::int64_t>(sizeof(T)), count * call.offset_step);
      }
      if (direct)
        stage.to = reinterpret_cast<std::byte*>(cells + n * len);
      else
        stage.end += n * len;
    } else {
      n = 1;
      other.template find<T>(call, place);
      if (apart <= kept) phases[place.tap].count = -1;
      for (std::int64_t from = 0; from < length;) {
        // No part is shorter than a pack, unless the row is.
        const std::int64_t to = length - from < part + L ? length : from + part;
        if (stage.end + (to - from) * stride > Stage::room) flush<T>(stage, false);
        make(Rows<A>{other, 1, 0, 0, memory + stage.end, 0, from, to, stage, false});
        stage.end += HWY_MIN(to * stride, len) - from * stride;
        from = to;
      }
      advance(place);
    }
    r += n;
    if (inside && out_of_turn) place = call.axis.place(r);
  }
}

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
  static constexpr int most_reach = most_windows + 1;

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
      // A reach of 1 is that of all phases.
      if (call.reach == 1 && call.phases[0].count == call.phases[1].count) return collect_line<2, 1, Offsets, T>(call);
      if (call.reach == 2) return collect_line<2, 2, Offsets, T>(call);
      return collect_line<2, 0, Offsets, T>(call);
    case 3: return collect_line<3, 0, Offsets, T>(call);
    case 4: return collect_line<4, 0, Offsets, T>(call);
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
