// Copies between layouts, as plain loops that the compiler vectorises.
#include "core/copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/half.h"

namespace cenote {
namespace {

template <class To, class From>
To convert(From value) noexcept {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<From, f16>)
    return convert<To>(half_value(value.bits));
  else if constexpr (std::is_same_v<From, bf16>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, f16>)
    return std::bit_cast<f16>(half_bits(static_cast<float>(value)));
  else if constexpr (std::is_same_v<To, bf16>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From{};
  else
    return static_cast<To>(value);
}

template <class T>
void convert_strided(T* dst, const T* src, std::int64_t stride, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = src[i * stride];
}

// A bool is read as a byte: any value but 0 is true.
template <class To, class From>
void convert_loop(To* dst, const From* src, std::int64_t stride, std::int64_t n) noexcept {
  using Stored = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
  const Stored* from = reinterpret_cast<const Stored*>(src);
  const auto read = [&](std::int64_t i) {
    if constexpr (std::is_same_v<From, bool>)
      return from[i] != 0;
    else
      return from[i];
  };
  if (stride == 1)
    for (std::int64_t i = 0; i < n; ++i) dst[i] = convert<To>(read(i));
  else
    for (std::int64_t i = 0; i < n; ++i) dst[i] = convert<To>(read(i * stride));
}

template <class Unit>
void gather(void* dst, const void* src, std::int64_t stride, std::int64_t n) noexcept {
  convert_strided(static_cast<Unit*>(dst), static_cast<const Unit*>(src), stride, n);
}

template <class Unit>
void scatter(void* dst, std::int64_t stride, const void* src, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) static_cast<Unit*>(dst)[i * stride] = static_cast<const Unit*>(src)[i];
}

// One line of one type: only its size matters.
void gather_line(std::size_t bytes, void* dst, const void* src, std::int64_t stride, std::int64_t n) noexcept {
  if (stride == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * bytes);
    return;
  }
  switch (bytes) {
    case 1: return gather<std::uint8_t>(dst, src, stride, n);
    case 2: return gather<std::uint16_t>(dst, src, stride, n);
    case 4: return gather<std::uint32_t>(dst, src, stride, n);
    default: return gather<std::uint64_t>(dst, src, stride, n);
  }
}

}  // namespace

void convert_line(Type to, void* dst, Type from, const void* src, std::int64_t stride, std::int64_t n) noexcept {
  if (n <= 0) return;
  if (to == from && to != Type::boolean) return gather_line(size_of(to), dst, src, stride, n);
  visit(to, [&]<class To>(To) {
    visit(from,
          [&]<class From>(From) { convert_loop(static_cast<To*>(dst), static_cast<const From*>(src), stride, n); });
  });
}

namespace {

// Between lines that both lie apart, a few elements at a time.
void convert_apart(Type to, std::byte* dst, std::int64_t to_step, Type from, const std::byte* src, std::int64_t step,
                   std::int64_t n) noexcept {
  if (to_step == 1) return convert_line(to, dst, from, src, step, n);
  std::array<std::uint64_t, 64> some;
  const auto bytes = static_cast<std::int64_t>(size_of(to)), from_bytes = static_cast<std::int64_t>(size_of(from));
  for (std::int64_t i = 0; i < n; i += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, n - i);
    convert_line(to, some.data(), from, src + i * step * from_bytes, step, count);
    scatter_line(to, dst + i * to_step * bytes, to_step, some.data(), count);
  }
}

}  // namespace

void narrow_line(Type to, void* dst, Type from, const void* src, std::int64_t n) noexcept {
  visit(to, [&]<class To>(To) {
    visit(from, [&]<class From>(From) {
      const From* values = static_cast<const From*>(src);
      To* narrowed = static_cast<To*>(dst);
      if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && std::is_integral_v<From> &&
                    sizeof(To) < sizeof(From)) {
        constexpr auto low = static_cast<From>(std::numeric_limits<To>::lowest());
        constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
        for (std::int64_t i = 0; i < n; ++i) narrowed[i] = static_cast<To>(std::clamp(values[i], low, high));
      } else {
        convert_loop(narrowed, values, 1, n);
      }
    });
  });
}

void scatter_line(Type type, void* dst, std::int64_t stride, const void* src, std::int64_t n) noexcept {
  switch (size_of(type)) {
    case 1: return scatter<std::uint8_t>(dst, stride, src, n);
    case 2: return scatter<std::uint16_t>(dst, stride, src, n);
    case 4: return scatter<std::uint32_t>(dst, stride, src, n);
    default: return scatter<std::uint64_t>(dst, stride, src, n);
  }
}

void copy_strided(const View& from, const MutableView& to) {
  if (element_count(from.shape) == 0) return;
  const auto bytes = static_cast<std::int64_t>(size_of(from.type)),
             to_bytes = static_cast<std::int64_t>(size_of(to.type));
  const int last = from.rank() - 1;
  const std::int64_t n = last < 0 ? 1 : from.shape[last];
  const std::int64_t step = last < 0 ? 1 : from.strides[last], to_step = last < 0 ? 1 : to.strides[last];
  Extents index = Extents::filled(last < 0 ? 0 : last, 0);
  for (;;) {
    std::int64_t source = 0, target = 0;
    for (int i = 0; i < index.size(); ++i) {
      source += index[i] * from.strides[i];
      target += index[i] * to.strides[i];
    }
    const auto* src = static_cast<const std::byte*>(from.data) + source * bytes;
    auto* dst = static_cast<std::byte*>(to.data) + target * to_bytes;
    if (from.type != to.type)
      convert_apart(to.type, dst, to_step, from.type, src, step, n);
    else if (to_step == 1)
      gather_line(static_cast<std::size_t>(bytes), dst, src, step, n);
    else
      for (std::int64_t i = 0; i < n; ++i)
        std::memcpy(dst + i * to_step * bytes, src + i * step * bytes, static_cast<std::size_t>(bytes));
    int axis = index.size() - 1;
    while (axis >= 0 && ++index[axis] == from.shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

}  // namespace cenote
