// Names and sizes of element types, and the conversions of half precision.
#include <array>
#include <string>

#include <cenote/types.h>
#include <cenote/version.h>

#include "core/reject.h"

namespace cenote {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeInfo, type_count> infos{{{"f16", 2},
                                                  {"bf16", 2},
                                                  {"f32", 4},
                                                  {"f64", 8},
                                                  {"i8", 1},
                                                  {"i16", 2},
                                                  {"i32", 4},
                                                  {"i64", 8},
                                                  {"u8", 1},
                                                  {"u16", 2},
                                                  {"u32", 4},
                                                  {"u64", 8},
                                                  {"bool", 1}}};

}  // namespace

const char* version() noexcept { return CENOTE_VERSION; }

std::size_t size_of(Type type) noexcept { return infos[static_cast<std::size_t>(type)].bytes; }

std::string_view name(Type type) noexcept { return infos[static_cast<std::size_t>(type)].name; }

Type parse_type(std::string_view text) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].name == text) return static_cast<Type>(i);
  std::string known;
  for (const auto& info : infos) known += (known.empty() ? "" : ", ") + std::string(info.name);
  reject("type", "'", text, "': the element types are ", known);
}

namespace detail {

std::uint16_t f16_from_float(float value) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | static_cast<std::uint16_t>(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 puts the rounded result into the low mantissa bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

float f16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t wide = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

}  // namespace detail
}  // namespace cenote
