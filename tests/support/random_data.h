// Random elements of every type, each kind with its way to go wrong.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>

#include "strided.h"

namespace cenote::test {

/// What elements are like: ties, plain numbers, NaN and infinities, overflow, cancellation, rare huge values, ties with
/// very rare NaN.
enum class Data { few, unit, special, any_exponent, offset, spikes, rare };

namespace detail {

template <class T>
T float_element(Data data, std::mt19937_64& random) {
  using Limits = std::numeric_limits<double>;
  const auto pick = [&](std::initializer_list<double> from) { return from.begin()[random() % from.size()]; };
  const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  double value = unit;
  switch (data) {
    case Data::few: value = pick({-2, -1, -0.0, 0, 0, 1, 1, 2}); break;
    case Data::unit: break;
    case Data::special:
      value = pick({Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), -0.0, 0, 1, unit});
      break;
    case Data::any_exponent: {
      constexpr bool wide = std::is_same_v<T, double>, narrow = std::is_same_v<T, f16>;
      const int low = wide ? -1074 : narrow ? -24 : -149, high = wide ? 1023 : narrow ? 15 : 127;
      value = std::ldexp(unit, low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
      break;
    }
    case Data::offset: value = 1000 + unit; break;
    case Data::spikes:
      if (random() % 64 == 0) value = pick({Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), 6e4, -6e4});
      break;
    case Data::rare: value = random() % 2048 == 0 ? Limits::quiet_NaN() : pick({-1, -0.0, 0, 0, 1}); break;
  }
  return static_cast<T>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

template <class T>
T integer_element(Data data, std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  switch (data) {
    case Data::few: return static_cast<T>(random() % 4);
    case Data::special: {
      const T extremes[] = {Limits::lowest(), Limits::max(), T{0}, T{1}, static_cast<T>(Limits::max() - 1)};
      return extremes[random() % 5];
    }
    case Data::offset: return static_cast<T>(100 + random() % 20);
    default: return static_cast<T>(random());
  }
}

inline unsigned char bool_byte(Data data, std::mt19937_64& random) {
  if (data == Data::spikes) return random() % 64 == 0;
  const unsigned char bytes[] = {0, 1, 0, 1, 2, 255};
  return bytes[random() % (data == Data::special ? 6 : 4)];
}

}  // namespace detail

/// Writes the elements of a case into an array of its type.
inline void fill(Strided& x, Data data, std::uint64_t seed) {
  const reference::Shape shape = to_shape(x.shape());
  if (reference::count(shape) == 0) return;
  std::mt19937_64 random(seed);
  reference::Shape index(shape.size(), 0);
  visit(x.type(), [&](auto element) {
    using T = decltype(element);
    do {
      if constexpr (std::is_same_v<T, bool>) {
        *static_cast<unsigned char*>(x.element(index)) = detail::bool_byte(data, random);
      } else if constexpr (std::is_integral_v<T>) {
        *static_cast<T*>(x.element(index)) = detail::integer_element<T>(data, random);
      } else {
        *static_cast<T*>(x.element(index)) = detail::float_element<T>(data, random);
      }
    } while (reference::next(index, shape));
  });
}

}  // namespace cenote::test
