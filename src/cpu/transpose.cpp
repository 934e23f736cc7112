// The kernel behind transpose.h, compiled for every SIMD target.
#include "cpu/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/transpose.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Two to four rows, woven into one. Returns how many columns that was done for.
template <class T>
std::int64_t weave(const T* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns, T* dst) {
  const hn::ScalableTag<T> tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto row = [&](std::int64_t i, std::int64_t j) HWY_ATTR { return hn::LoadU(tag, src + i * src_row + j); };
  std::int64_t j = 0;
  if (rows == 2)
    for (; j + L <= columns; j += L) hn::StoreInterleaved2(row(0, j), row(1, j), tag, dst + 2 * j);
  if (rows == 3)
    for (; j + L <= columns; j += L) hn::StoreInterleaved3(row(0, j), row(1, j), row(2, j), tag, dst + 3 * j);
  if (rows == 4)
    for (; j + L <= columns; j += L)
      hn::StoreInterleaved4(row(0, j), row(1, j), row(2, j), row(3, j), tag, dst + 4 * j);
  return j;
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

/// f(0), …, f(N - 1), each a constant: arrays that are indexed by those stay in registers.
template <int N, class F>
HWY_INLINE void each(const F& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) HWY_ATTR __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>()), ...);
  }
  (std::make_integer_sequence<int, N>());
}
#define CENOTE_EACH [&]<int I>(std::integral_constant<int, I>) HWY_ATTR __attribute__((always_inline))

/// p + step, when it is wanted and not before: addresses of all rows of a square do not fit the registers.
template <class T>
HWY_INLINE T* following(T* p, std::int64_t step) {
  p += step;
  asm("" : "+r"(p));
  return p;
}

/// A square of as many rows as a pack has lanes, at most 16.
template <class T>
HWY_INLINE void turn_square(const T* src, std::int64_t src_row, T* dst, std::int64_t dst_row, std::int64_t src_next,
                            std::int64_t dst_next) {
  const hn::CappedTag<T, 16> tag;
  using V = hn::Vec<decltype(tag)>;
  constexpr int n = static_cast<int>(hn::MaxLanes(tag)), block = 16 / sizeof(T), blocks = n / block, half = block / 2;
  V rows[n], next[n];
  each<n>(CENOTE_EACH {
    if (src_next > 0) __builtin_prefetch(src + src_next, 0, 2);
    rows[I] = hn::LoadU(tag, src);
    src = following(src, src_row);
  });
  // Within every 16 bytes, the squares of as many rows: shuffled until each row is a column.
  const auto shuffle = [&](const V* from, V* to) HWY_ATTR __attribute__((always_inline)) {
    each<n / 2>(CENOTE_EACH {
      constexpr int at = I / half * block + I % half, into = I / half * block + I % half * 2;
      to[into] = hn::InterleaveLower(tag, from[at], from[at + half]);
      to[into + 1] = hn::InterleaveUpper(tag, from[at], from[at + half]);
    });
  };
  constexpr int rounds = block == 2 ? 1 : block == 4 ? 2 : block == 8 ? 3 : 4;
  shuffle(rows, next);
  if constexpr (rounds > 1) shuffle(next, rows);
  if constexpr (rounds > 2) shuffle(rows, next);
  if constexpr (rounds > 3) shuffle(next, rows);
  V* const turned = rounds % 2 ? next : rows;
  // And then those squares.
  const auto swap = [&]<int Apart>(std::integral_constant<int, Apart>) HWY_ATTR __attribute__((always_inline)) {
    each<n>(CENOTE_EACH {
      if constexpr ((I / block & Apart) == 0) {
        const V a = turned[I], b = turned[I + Apart * block];
        turned[I] = blocks_in_turn<Apart, false>(a, b);
        turned[I + Apart * block] = blocks_in_turn<Apart, true>(a, b);
      }
    });
  };
  if constexpr (blocks > 1) swap(std::integral_constant<int, 1>());
  if constexpr (blocks > 2) swap(std::integral_constant<int, 2>());
  each<n>(CENOTE_EACH {
    if (dst_next > 0) __builtin_prefetch(dst + dst_next, 1, 2);
    hn::StoreU(turned[I], tag, dst);
    dst = following(dst, dst_row);
  });
}

template <class T>
void turn(const T* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns, T* dst, std::int64_t dst_row,
          std::int64_t src_next, std::int64_t dst_next) {
  const auto n = static_cast<std::int64_t>(hn::MaxLanes(hn::CappedTag<T, 16>()));
  if (rows < n || columns < n) {
    const std::int64_t woven = dst_row == rows ? weave(src, src_row, rows, columns, dst) : 0;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = woven; j < columns; ++j) dst[j * dst_row + i] = src[i * src_row + j];
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

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(transpose_in);
void cpu::transpose(std::int64_t bytes, const void* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns,
                    void* dst, std::int64_t dst_row, std::int64_t src_next, std::int64_t dst_next) noexcept {
  HWY_DYNAMIC_DISPATCH(transpose_in)(bytes, src, src_row, rows, columns, dst, dst_row, src_next, dst_next);
}
}  // namespace cenote
#endif
