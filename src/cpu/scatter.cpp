// The kernel behind scatter.h, compiled for every SIMD target.
#include "cpu/scatter.h"

#include <algorithm>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scatter.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/collect-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {
using cpu::Dense;
using cpu::Scatter;

constexpr std::int64_t together = 256;  // outputs whose winners are found before they are visited

/// floor(offset / taps) is offset * inverse / 2^16: offsets and taps are at most 256.
std::int32_t inverse(std::int32_t taps) { return ((1 << 16) + taps - 1) / taps; }

/// The cells that outputs [from, from + n) win; a pack may overlap the one before it.
template <bool Flat>
HWY_INLINE void find_winners(const Scatter& call, std::int64_t from, std::int64_t n, std::int32_t* winners) {
  const std::uint8_t* const offsets = call.offsets + from;
  const std::int32_t* const starts = call.starts + from;
  const Scatter::Level first = call.level[0];
  const auto find = [&](auto tag, std::int64_t i) HWY_ATTR {
    const hn::Rebind<std::uint8_t, decltype(tag)> bytes;
    const auto offset = hn::PromoteTo(tag, hn::LoadU(bytes, offsets + i));
    auto cell = hn::Add(hn::LoadU(tag, starts + i), offset);
    const auto add = [&](const Scatter::Level& level) HWY_ATTR {
      const auto rows = hn::ShiftRight<16>(hn::Mul(offset, hn::Set(tag, inverse(level.taps))));
      cell = hn::Add(cell, hn::Mul(rows, hn::Set(tag, level.more)));
    };
    if constexpr (Flat)
      add(first);
    else
      for (int l = 0; l < call.levels; ++l) add(call.level[l]);
    hn::StoreU(cell, tag, winners + i);
  };
  const hn::ScalableTag<std::int32_t> packs;
  const hn::CappedTag<std::int32_t, 1> single;
  const auto L = static_cast<std::int64_t>(hn::Lanes(packs));
  if (n < L)
    for (std::int64_t i = 0; i < n; ++i) find(single, i);
  else
    for (std::int64_t i = 0; i < n; i += L) find(packs, HWY_MIN(i, n - L));
}

template <class A>
void scatter_planes(const Scatter& call) {
  const hn::ScalableTag<A> tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  HWY_ALIGN std::int32_t winners[together];
  A* const gx = static_cast<A*>(call.gx);
  const std::int64_t cells = call.cells, outputs = call.outputs;
  if (cells < L)
    std::fill_n(gx, cells, A{0});
  else
    for (std::int64_t i = 0; i < cells; i += L) hn::StoreU(hn::Zero(tag), tag, gx + HWY_MIN(i, cells - L));
  for (std::int64_t o = 0; o < outputs; o += together) {
    const std::int64_t n = HWY_MIN(together, outputs - o);
    call.levels == 1 ? find_winners<true>(call, o, n, winners) : find_winners<false>(call, o, n, winners);
    const A* const gy = static_cast<const A*>(call.gy) + o;
    std::int64_t i = 0;
    // Sums are never -0. Several in a row are faster only where none waits for another.
    if (call.apart)
      for (; i + 8 <= n; i += 8)
#pragma GCC unroll 8
        for (std::int64_t k = i; k < i + 8; ++k) gx[winners[k]] = A{0} + gy[k];
    for (; i < n; ++i) gx[winners[i]] += gy[i];
  }
}

constexpr std::int64_t staged_cells = 512;  // that are written together

/// Calls use with the last of the numbers first, unrolled.
template <class Use, int... I>
HWY_INLINE void backwards(const Use& use, std::integer_sequence<int, I...>) {
  (use(static_cast<int>(sizeof...(I)) - 1 - I), ...);
}

/// Taps: how many there are, or 0.
template <int Taps, class A>
void gather_cells(const Dense& call) {
  const Dense all = call;
  const std::int64_t L = lanes<A>();
  const A* const gy = static_cast<const A*>(all.gy);
  A* const gx = static_cast<A*>(all.gx);
  // Windows in their order: those that begin first have the cell as their last tap.
  const auto one = [&](std::int64_t cell) HWY_ATTR {
    A sum{0};
    for (int tap = all.taps; tap-- > 0;) {
      const std::int64_t window = cell - all.shift[static_cast<std::size_t>(tap)];
      if (window >= 0 && window < all.total && all.offsets[window] == tap) sum += gy[window];
    }
    return sum;
  };
  const auto pack = [&](std::int64_t cell) CENOTE_INLINED {
    Pack<A> sum = broadcast<A>(0);
    const auto ask = [&](int tap) CENOTE_INLINED {
      const std::int64_t window = cell - all.shift[static_cast<std::size_t>(tap)];
      const ByteTag<A> bytes;
      sum = add_where_equal<A>(hn::LoadU(bytes, all.offsets + window), hn::Set(bytes, static_cast<std::uint8_t>(tap)),
                               sum, load(gy + window));
    };
    if constexpr (Taps > 0)
      backwards(ask, std::make_integer_sequence<int, Taps>());
    else
      for (int tap = all.taps; tap-- > 0;) ask(tap);
    return sum;
  };
  // Cells whose windows exist all, or are read from where others lie.
  const std::int64_t last = all.shift[static_cast<std::size_t>(all.taps - 1)], first = all.shift[0];
  const std::int64_t lowest = HWY_MIN(HWY_MAX(last, all.begin), all.end);
  const std::int64_t highest = HWY_MAX(HWY_MIN(HWY_MIN(all.total, all.total + first) - L + 1, all.end), lowest);
  std::int64_t cell = all.begin;
  const auto aligned = [&](std::int64_t at) {
    return reinterpret_cast<std::uintptr_t>(gx + at) % (static_cast<std::uintptr_t>(L) * sizeof(A)) == 0;
  };
  while (cell < lowest || (all.stream && cell < highest && !aligned(cell))) gx[cell] = one(cell), ++cell;
  // Sums wait until there are some: where gx lies like gy in its pages, loads would wait for each store behind them.
  HWY_ALIGN A sums[staged_cells];
  while (cell < highest && cell + L <= all.end) {
    const std::int64_t count = HWY_MIN(HWY_MIN(all.end - cell, highest + L - 1 - cell), staged_cells) / L * L;
    for (std::int64_t i = 0; i < count; i += L) store(pack(cell + i), sums + i);
    for (std::int64_t i = 0; i < count; i += L)
      all.stream ? stream(load(sums + i), gx + cell + i) : store(load(sums + i), gx + cell + i);
    cell += count;
  }
  for (; cell < all.end; ++cell) gx[cell] = one(cell);
}

}  // namespace

void gather_in(Type type, const Dense& call) {
  const auto gather = [&](auto cell) HWY_ATTR {
    using A = decltype(cell);
    call.taps == 9 ? gather_cells<9, A>(call) : gather_cells<0, A>(call);
  };
  type == Type::f64 ? gather(double{}) : gather(float{});
}
void scatter_in(Type type, const Scatter& call) {
  type == Type::f64 ? scatter_planes<double>(call) : scatter_planes<float>(call);
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(scatter_in);
HWY_EXPORT(gather_in);
void cpu::scatter(Type type, const Scatter& call) noexcept { HWY_DYNAMIC_DISPATCH(scatter_in)(type, call); }
void cpu::gather(Type type, const Dense& call) noexcept { HWY_DYNAMIC_DISPATCH(gather_in)(type, call); }
}  // namespace cenote
#endif
