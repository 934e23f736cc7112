// Half precision to float and back, without branches, so that loops over them become vector code.
#pragma once

#include <bit>
#include <cstdint>

namespace cenote {

namespace detail {
/// a where the condition holds, else b. As bits, because compilers turn ?: over floating-point work into branches.
inline std::int32_t pick(bool condition, std::int32_t a, std::int32_t b) noexcept {
  const std::int32_t mask = -static_cast<std::int32_t>(condition);
  return (a & mask) | (b & ~mask);
}
}  // namespace detail

/// The bits of the half nearest to a float, to even at ties; a NaN stays a NaN.
inline std::uint16_t half_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude = bits & 0x7fffffff;
  const std::int32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 0.5 puts a rounded subnormal into the low mantissa bits.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::int32_t subnormal = std::bit_cast<std::int32_t>(shifted) - 0x3f000000;
  std::int32_t half = detail::pick(magnitude < 0x38800000, subnormal, normal);
  half = detail::pick(magnitude >= 0x477ff000, 0x7c00, half);  // 65520 and more round to infinity
  half = detail::pick(magnitude > 0x7f800000, 0x7e00 | ((magnitude >> 13) & 0x3ff), half);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000) | half);
}

/// The float that is the half with these bits.
inline float half_value(std::uint16_t bits) noexcept {
  const std::int32_t magnitude = bits & 0x7fff, mantissa = magnitude << 13;
  const auto subnormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const std::int32_t exponent = detail::pick(magnitude >= 0x7c00, 224 << 23, 112 << 23);
  const std::int32_t wide = detail::pick(magnitude < 0x400, subnormal, mantissa + exponent);
  return std::bit_cast<float>(static_cast<std::uint32_t>(wide) | static_cast<std::uint32_t>(bits & 0x8000) << 16);
}

}  // namespace cenote
