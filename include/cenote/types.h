// Element types: the list of them, half-precision numbers, and the map from C++ types.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cenote {

/// The type of an array's elements.
enum class Type : std::uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

inline constexpr int type_count = 13;

namespace detail {
std::uint16_t f16_from_float(float value) noexcept;
float f16_to_float(std::uint16_t bits) noexcept;
}  // namespace detail

/// IEEE binary16, a storage type: arithmetic happens in float.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  /// Rounds to nearest even.
  explicit f16(float value) noexcept : bits(detail::f16_from_float(value)) {}
  explicit operator float() const noexcept { return detail::f16_to_float(bits); }
};

/// bfloat16, the upper half of a float; a storage type.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  /// Rounds to nearest even; a NaN stays a NaN.
  explicit bf16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
                          : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

namespace detail {
template <class T>
struct TypeOf;
// clang-format off
template <> struct TypeOf<f16> { static constexpr Type value = Type::f16; };
template <> struct TypeOf<bf16> { static constexpr Type value = Type::bf16; };
template <> struct TypeOf<float> { static constexpr Type value = Type::f32; };
template <> struct TypeOf<double> { static constexpr Type value = Type::f64; };
template <> struct TypeOf<std::int8_t> { static constexpr Type value = Type::i8; };
template <> struct TypeOf<std::int16_t> { static constexpr Type value = Type::i16; };
template <> struct TypeOf<std::int32_t> { static constexpr Type value = Type::i32; };
template <> struct TypeOf<std::int64_t> { static constexpr Type value = Type::i64; };
template <> struct TypeOf<std::uint8_t> { static constexpr Type value = Type::u8; };
template <> struct TypeOf<std::uint16_t> { static constexpr Type value = Type::u16; };
template <> struct TypeOf<std::uint32_t> { static constexpr Type value = Type::u32; };
template <> struct TypeOf<std::uint64_t> { static constexpr Type value = Type::u64; };
template <> struct TypeOf<bool> { static constexpr Type value = Type::boolean; };
// clang-format on
}  // namespace detail

/// The Type of a C++ element type.
template <class T>
inline constexpr Type type_of = detail::TypeOf<std::remove_cv_t<T>>::value;

/// Bytes of one element.
std::size_t size_of(Type type) noexcept;

/// The name as written in problem strings: f16, bf16, f32, …, u64, bool.
std::string_view name(Type type) noexcept;

/// The type with that name; throws std::invalid_argument for any other.
Type parse_type(std::string_view name);

constexpr bool is_float(Type type) noexcept { return type <= Type::f64; }
constexpr bool is_half(Type type) noexcept { return type <= Type::bf16; }
constexpr bool is_integer(Type type) noexcept { return type > Type::f64 && type < Type::boolean; }

/// Calls f with a value-initialised element of the C++ type that `type` stands for.
template <class F>
decltype(auto) visit(Type type, F&& f) {
  switch (type) {
    case Type::f16: return f(f16{});
    case Type::bf16: return f(bf16{});
    case Type::f32: return f(float{});
    case Type::f64: return f(double{});
    case Type::i8: return f(std::int8_t{});
    case Type::i16: return f(std::int16_t{});
    case Type::i32: return f(std::int32_t{});
    case Type::i64: return f(std::int64_t{});
    case Type::u8: return f(std::uint8_t{});
    case Type::u16: return f(std::uint16_t{});
    case Type::u32: return f(std::uint32_t{});
    case Type::u64: return f(std::uint64_t{});
    case Type::boolean: break;
  }
  return f(bool{});
}

}  // namespace cenote
