// Names and sizes of element types, and the conversions of half precision.
#include <array>
#include <string>

#include <cenote/types.h>
#include <cenote/version.h>

#include "core/half.h"
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

std::uint16_t f16_from_float(float value) noexcept { return half_bits(value); }
float f16_to_float(std::uint16_t bits) noexcept { return half_value(bits); }

}  // namespace detail
}  // namespace cenote
