// Rows of lanes that no window reaches across, as channels are that lie beside each other.
// Included once per target, inside the toggle of the translation unit that includes it.

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
  const Divisor<A> divisor(rows.stage.divisor, true);
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
        result = add_where_equal(read_bytes<A>(offsets[g] + i, range), wanted[g], result, all);
      else
        result = result + all;
    });
    return Offsets ? result : result / divisor;
  };
  A* dst = rows.dst - from;
  if (to - from < L) return store(sum(from, LaneRange<T>(0, to - from)), dst + from);
  for (std::int64_t row = rows.count; row > 0; --row) {
    std::int64_t i = from;
    if (streams)
      for (; i + L <= to; i += L) {
        if constexpr (Count > 0) __builtin_prefetch(gy[Count - 1] + i + ahead);
        stream(sum(i, AllLanes()), dst + i);
      }
    for (; i + L <= to; i += L) store(sum(i, AllLanes()), dst + i);
    if (i < to) store(sum(to - L, AllLanes()), dst + (to - L));
    if (!Offsets && gy_step == 0 && !streams) {
      for (A* copy = dst; --row > 0;) std::copy(dst + from, dst + to, (copy += dst_step) + from);
      return;
    }
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
  static constexpr std::int64_t turn = 4 * Stage::room;
  static constexpr bool in_place = true, repeats = !Offsets;
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();
