// The abstract number at its simplest: plain scalars, on the host and in CUDA. SIMD packs offer the same functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define CENOTE_SCALAR_FN __host__ __device__ inline
#else
#define CENOTE_SCALAR_FN inline
#endif

namespace cenote::scalar {

/// The element type behind a number.
template <class N>
struct LaneOf {
  using type = N;
};

/// The integer that travels beside a number to say where it came from.
template <class N>
struct IndexOf {
  using type = std::conditional_t<sizeof(N) == 8, std::int64_t, std::int32_t>;
};

template <class N>
CENOTE_SCALAR_FN N number(double value) {
  return static_cast<N>(value);
}

/// The least and greatest values of the type, infinities where it has them.
template <class N>
CENOTE_SCALAR_FN N lowest() {
  using Limits = std::numeric_limits<N>;
  return Limits::has_infinity ? static_cast<N>(-Limits::infinity()) : Limits::lowest();
}
template <class N>
CENOTE_SCALAR_FN N highest() {
  using Limits = std::numeric_limits<N>;
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

template <class N>
CENOTE_SCALAR_FN bool is_nan(N x) {
  return x != x;
}
template <class N>
CENOTE_SCALAR_FN N select(bool yes, N a, N b) {
  return yes ? a : b;
}

/// b where it lies beyond a, or is NaN and a is not; a otherwise, also when they are equal.
template <bool Upwards, class N>
CENOTE_SCALAR_FN N further(N a, N b) {
  return (Upwards ? b <= a : a <= b) || is_nan(a) ? a : b;
}

/// Addition that wraps for integers, as the SIMD lanes do.
template <class N>
CENOTE_SCALAR_FN N add(N a, N b) {
  if constexpr (std::is_integral_v<N>) {
    using U = std::make_unsigned_t<N>;
    return static_cast<N>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

CENOTE_SCALAR_FN bool all(bool flag) { return flag; }

/// a * b + c, rounded once or twice.
template <class N>
CENOTE_SCALAR_FN N mul_add(N a, N b, N c) {
  return std::fma(a, b, c);
}
/// a * b + c, rounded once; c takes away most of the product.
template <class N>
CENOTE_SCALAR_FN N fused(N a, N b, N c) {
  return std::fma(a, b, c);
}
/// 2^n for a whole number n that is not too large; 0 where that is below all normal numbers.
template <class N>
CENOTE_SCALAR_FN N two_to_whole(N n) {
  using Limits = std::numeric_limits<N>;
  const bool normal = n >= static_cast<N>(Limits::min_exponent - 1) && n < static_cast<N>(Limits::max_exponent);
  return normal ? std::ldexp(N{1}, static_cast<int>(n)) : N{0};
}

/// x * 2^(to - from) where that is a normal number, as x is; `from` and `to` are so large that their last digits stand
/// for 1.
template <class N>
CENOTE_SCALAR_FN N moved(N x, N from, N to) {
  return std::ldexp(x, static_cast<int>(to - from));
}

/// The power of two at or below a positive number, at least the first normal one; infinity of infinity.
template <class N>
CENOTE_SCALAR_FN N binade(N x) {
  using Limits = std::numeric_limits<N>;
  if (!(x <= Limits::max())) return Limits::infinity();
  int exponent = 0;
  std::frexp(x, &exponent);
  return x < Limits::min() ? Limits::min() : std::ldexp(N{1}, exponent - 1);
}

template <class N>
CENOTE_SCALAR_FN N magnitude(N x) {
  return std::fabs(x);
}
template <class N>
CENOTE_SCALAR_FN N minus_magnitude(N x) {
  return -std::fabs(x);
}
template <class N>
CENOTE_SCALAR_FN N square_root(N x) {
  return std::sqrt(x);
}
template <class N>
CENOTE_SCALAR_FN N exponential(N x) {
  return std::exp(x);
}
template <class N>
CENOTE_SCALAR_FN N logarithm(N x) {
  return std::log(x);
}

/// factor * log(x * 2^whole) for a positive number and a whole one; `doubling` is factor * log(2). Of others it is
/// anything.
template <class N>
CENOTE_SCALAR_FN N scaled_logarithm(N x, N whole, N factor, N doubling) {
  int exponent = 0;
  N digits = std::frexp(x, &exponent);
  // About 1, so that little is taken from the doublings again, and nothing of 1 itself.
  if (digits < static_cast<N>(0.7071067811865476)) digits *= 2, --exponent;
  return mul_add(static_cast<N>(exponent) + whole, doubling, std::log(digits) * factor);
}

}  // namespace cenote::scalar
