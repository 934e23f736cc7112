// What the kernels of collect.cpp have in common: what rows ask, how they are walked, and the stage that sums leave by.
// Included once per target, inside the toggle of the translation unit that includes it.

#include "cpu/collect.h"
#include "cpu/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {

using cpu::Collect;
using cpu::Giver;
using cpu::most_period;
using cpu::most_phases;
using cpu::most_windows;
using cpu::Stage;

/// Elements of gy after which the next are asked from memory, which otherwise waits while results are written.
constexpr std::int64_t ahead = 1024;

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

/// sum + x where a byte says so. Sums begin at 0 and are never -0, so that elsewhere 0 may be added or nothing.
template <class A>
HWY_INLINE Pack<A> add_where(hn::Mask<ByteTag<A>> here, Pack<A> sum, Pack<A> x) {
  if constexpr (HWY_TARGET == HWY_AVX3) {
    return {hn::IfThenElse(same_bits(Tag<A>(), here), hn::Add(sum.v, x.v), sum.v)};
  } else {
    const hn::Rebind<std::int8_t, Tag<A>> narrow;
    const hn::Rebind<std::int32_t, Tag<A>> wide;
    const auto words = hn::PromoteTo(wide, hn::BitCast(narrow, hn::VecFromMask(ByteTag<A>(), here)));
    const auto add = [&](auto bits)
                         CENOTE_INLINED { return Pack<A>{hn::Add(sum.v, hn::And(hn::BitCast(Tag<A>(), bits), x.v))}; };
    if constexpr (sizeof(A) == 8)
      return add(hn::PromoteTo(hn::Rebind<std::int64_t, Tag<A>>(), words));
    else
      return add(words);
  }
}
template <class A>
HWY_INLINE Pack<A> add_where_equal(Bytes<A> a, Bytes<A> b, Pack<A> sum, Pack<A> x) {
  return add_where<A>(hn::Eq(a, b), sum, x);
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

/// f(0), …, f(N - 1) in a row, or f of all below n where N is 0.
template <int N, class F>
HWY_INLINE void each(std::int64_t n, const F& f) {
  if constexpr (N == 0)
    for (std::int64_t i = 0; i < n; ++i) f(i);
  else
    [&]<int... I>(std::integer_sequence<int, I...>) CENOTE_INLINED { (f(I), ...); }
  (std::make_integer_sequence<int, N>());
}

/// Writes what is staged: all, or the units that are complete.
template <class T>
HWY_NOINLINE void flush(Stage& stage, bool all) {
  using A = Lane<T>;
  constexpr std::int64_t unit = 64 / sizeof(A);
  const std::int64_t L = lanes<A>(), stop = all ? stage.end : stage.end / unit * unit;
  if (stage.begin >= stop) return;
  A* src = static_cast<A*>(stage.memory);
  T* dst = reinterpret_cast<T*>(stage.to);
  std::int64_t i = stage.begin;
  const std::int64_t aligned = HWY_MIN((i + unit - 1) / unit * unit, stop);
  for (; i < aligned; i += L) store_first(load(src + i), dst + i, HWY_MIN(L, aligned - i));
  i = aligned;
  if (stage.stream)
    for (; i + L <= stop; i += L) stream(load(src + i), dst + i);
  else
    for (; i + L <= stop; i += L) store(load(src + i), dst + i);
  if (i < stop) store_first(load(src + i), dst + i, stop - i);
  for (i = 0; stop + i < stage.end; i += L) store(load(src + stop + i), src + i);
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
        const std::int64_t output = place.window - back * call.axis.dilation, tap = place.tap + back * call.axis.stride;
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
  const bool whole_lines = len % unit == 0 && reinterpret_cast<std::uintptr_t>(begin) % 64 == 0;
  const bool direct = std::is_same_v<T, A> && call.cell_step == len &&
                      (call.stage->stream ? Make::turn > 0 && whole_lines : requires { Make::in_place; } && len >= L);
  const bool streams = direct && call.stage->stream;
  // Rows whose last pack does not reach into the next
  const bool out_of_turn = (length * stride == len || requires { Make::ends_rows; }) && length >= L;
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
    if (apart >= Stage::room || stage.end + HWY_MIN(len * apart, Stage::room) > Stage::room) flush<T>(stage, false);
    const std::int64_t left = (call.axis.out - place.window) * apart - place.tap;  // until the last window is behind
    const std::int64_t room = !direct ? Stage::room - stage.end : Make::turn > 0 ? Make::turn : 16 * Stage::room;
    std::int64_t n = HWY_MIN(HWY_MIN(call.end - r, left), room / len);
    const std::int64_t first = place.window - (place.count - 1) * call.axis.dilation;
    const bool inside = apart <= kept && first >= 0 && call.cell_step == len && n > 0;
    if (inside) {
      const std::int64_t turns = out_of_turn ? HWY_MIN(n, apart) : n;
      for (std::int64_t q = 0; q < turns; ++q, advance(place)) {
        Asks<A>& asks = phases[place.tap];
        if (asks.count < 0) asks.template find<T>(call, place);
        const std::int64_t count = out_of_turn ? (n - q + apart - 1) / apart : 1;
        A* dst = direct ? reinterpret_cast<A*>(cells) : memory + stage.end;
        make(Rows<A>{asks, count, call.gy_step, call.offset_step, dst + q * len, apart * len, 0, length, stage,
                     streams});
        asks.advance(count * call.gy_step * static_cast<std::int64_t>(sizeof(T)), count * call.offset_step);
      }
      if (direct)
        stage.to = reinterpret_cast<std::byte*>(cells + n * len);
      else
        stage.end += n * len;
    } else {
      // Sums of a single window are the same for all of its rows.
      std::int64_t same = 1;
      if constexpr (requires { Make::repeats; })
        if (Make::repeats && apart > kept && call.axis.size <= apart && out_of_turn && call.cell_step == len)
          same = HWY_MIN(n, call.axis.size - place.tap);
      n = HWY_MAX(same, 1);
      other.template find<T>(call, place);
      if (apart <= kept) phases[place.tap].count = -1;
      for (std::int64_t from = 0; from < length;) {
        // No part is shorter than a pack, unless the row is.
        const std::int64_t to = length - from < part + L ? length : from + part;
        if (stage.end + (to - from) * stride > Stage::room) flush<T>(stage, false);
        A* dst = direct ? reinterpret_cast<A*>(cells) + from * stride : memory + stage.end;
        make(Rows<A>{other, n, 0, 0, dst, len, from, to, stage, streams});
        if (!direct) stage.end += n * (HWY_MIN(to * stride, len) - from * stride);
        from = to;
      }
      if (direct) stage.to = reinterpret_cast<std::byte*>(cells + n * len);
      advance(place);
    }
    r += n;
    if (n > 1 && out_of_turn) place = call.axis.place(r);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();
