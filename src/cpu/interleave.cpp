// The kernel behind interleave.h, compiled for every SIMD target.
#include "cpu/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/interleave.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class A>
void weave(const A* lines, std::int64_t apart, std::int64_t count, std::int64_t n, A* dst) {
  const hn::ScalableTag<A> tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto from = [&](std::int64_t k, std::int64_t i) HWY_ATTR { return hn::LoadU(tag, lines + k * apart + i); };
  if (count == 2) {
    for (std::int64_t i = 0; 2 * i < n; i += L) hn::StoreInterleaved2(from(0, i), from(1, i), tag, dst + 2 * i);
    return;
  }
  if (count == 3) {
    for (std::int64_t i = 0; 3 * i < n; i += L)
      hn::StoreInterleaved3(from(0, i), from(1, i), from(2, i), tag, dst + 3 * i);
    return;
  }
  if (count == 4) {
    for (std::int64_t i = 0; 4 * i < n; i += L)
      hn::StoreInterleaved4(from(0, i), from(1, i), from(2, i), from(3, i), tag, dst + 4 * i);
    return;
  }
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t i = 0; i * count + k < n; ++i) dst[i * count + k] = lines[k * apart + i];
}

/// Of 16 bytes that each lane of u64 belongs to, those of a and b in turn: the even ones, or the odd ones, `Apart` at a
/// time.
template <int Apart, bool Odd, class V>
HWY_INLINE V blocks_in_turn(V a, V b) {
  using Raw = decltype(a.raw);
  constexpr int count = sizeof(Raw) / 8, width = 2 * Apart;
  using Lanes [[gnu::vector_size(sizeof(Raw))]] = std::uint64_t;
  return [&]<int... I>(std::integer_sequence<int, I...>) HWY_ATTR __attribute__((always_inline)) {
    return V{(Raw)__builtin_shufflevector((Lanes)a.raw, (Lanes)b.raw,
                                          (I / width % 2 == 0 ? I + Odd * width : count + I - !Odd * width)...)};
  }
  (std::make_integer_sequence<int, count>());
}

/// A square of as many rows as a pack has lanes, at most 16.
template <class T>
HWY_INLINE void turn_square(const T* src, std::int64_t src_row, T* dst, std::int64_t dst_row, std::int64_t src_next,
                            std::int64_t dst_next) {
  const hn::CappedTag<T, 16> tag;
  using V = hn::Vec<decltype(tag)>;
  constexpr int n = static_cast<int>(hn::MaxLanes(tag)), block = 16 / sizeof(T), blocks = n / block;
  V rows[n], next[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (src_next > 0) __builtin_prefetch(src + i * src_row + src_next, 0, 2);
    rows[i] = hn::LoadU(tag, src + i * src_row);
  }
  // Within every 16 bytes, the squares of as many rows: shuffled until each row is a column.
#pragma GCC unroll 4
  for (int width = block; width > 1; width /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      const int at = i / (block / 2) * block + i % (block / 2), to = i / (block / 2) * block + i % (block / 2) * 2;
      next[to] = hn::InterleaveLower(tag, rows[at], rows[at + block / 2]);
      next[to + 1] = hn::InterleaveUpper(tag, rows[at], rows[at + block / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
  // And then those squares.
  const auto swap = [&]<int Apart>(std::integral_constant<int, Apart>) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      if (i / block & Apart) continue;
      const V a = rows[i], b = rows[i + Apart * block];
      rows[i] = blocks_in_turn<Apart, false>(a, b);
      rows[i + Apart * block] = blocks_in_turn<Apart, true>(a, b);
    }
  };
  if constexpr (blocks > 1) swap(std::integral_constant<int, 1>());
  if constexpr (blocks > 2) swap(std::integral_constant<int, 2>());
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (dst_next > 0) __builtin_prefetch(dst + i * dst_row + dst_next, 1, 2);
    hn::StoreU(rows[i], tag, dst + i * dst_row);
  }
}

template <class T>
void turn(const T* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns, T* dst, std::int64_t dst_row,
          std::int64_t src_next, std::int64_t dst_next) {
  const auto n = static_cast<std::int64_t>(hn::MaxLanes(hn::CappedTag<T, 16>()));
  if (rows < n || columns < n) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) dst[j * dst_row + i] = src[i * src_row + j];
    return;
  }
  // The last squares overlap those before them. The longer side comes first, for as few streams as can be.
  const bool wide = columns >= rows;
  const std::int64_t outer = wide ? rows : columns, inner = wide ? columns : rows;
  for (std::int64_t a = 0; a < outer; a += n)
    for (std::int64_t b = 0; b < inner; b += n) {
      const std::int64_t s = HWY_MIN(a, outer - n), t = HWY_MIN(b, inner - n), i = wide ? s : t, j = wide ? t : s;
      turn_square(src + i * src_row + j, src_row, dst + j * dst_row + i, dst_row, src_next, dst_next);
    }
}

}  // namespace

void transpose_in(std::int64_t bytes, const void* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns,
                  void* dst, std::int64_t dst_row, std::int64_t src_next, std::int64_t dst_next) {
  const auto as = [&]<class T>(T) {
    turn(static_cast<const T*>(src), src_row, rows, columns, static_cast<T*>(dst), dst_row, src_next, dst_next);
  };
  if (bytes == 1) as(std::uint8_t{});
  if (bytes == 2) as(std::uint16_t{});
  if (bytes == 4) as(std::uint32_t{});
  if (bytes == 8) as(std::uint64_t{});
}

void interleave_in(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                   void* dst) {
  if (bytes == 4)
    weave(static_cast<const float*>(lines), apart, count, n, static_cast<float*>(dst));
  else
    weave(static_cast<const double*>(lines), apart, count, n, static_cast<double*>(dst));
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(interleave_in);
HWY_EXPORT(transpose_in);
void cpu::transpose(std::int64_t bytes, const void* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns,
                    void* dst, std::int64_t dst_row, std::int64_t src_next, std::int64_t dst_next) noexcept {
  HWY_DYNAMIC_DISPATCH(transpose_in)(bytes, src, src_row, rows, columns, dst, dst_row, src_next, dst_next);
}
void cpu::interleave(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                     void* dst) noexcept {
  HWY_DYNAMIC_DISPATCH(interleave_in)(bytes, lines, apart, count, n, dst);
}
}  // namespace cenote
#endif
