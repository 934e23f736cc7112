// Conversions between f64 and every other type.
#include "numbers.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

namespace cenote::cli {
namespace {

template <class T>
double to_double(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    const double whole = std::nearbyint(value);
    // As doubles the limits of 64-bit types are rounded up to what no longer fits.
    if (whole <= static_cast<double>(Limits::lowest())) return Limits::lowest();
    if (whole >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(whole);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

}  // namespace

Array to_doubles(std::string_view what, const View& x) {
  const Array rows(x);
  Array result(Type::f64, x.shape);
  const auto to = result.values<double>();
  visit(x.type, [&]<class T>(T) {
    const auto from = rows.values<T>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = to_double(from[i]);
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        constexpr auto most = static_cast<std::int64_t>(exact_integers);
        if (std::cmp_less_equal(from[i], most) && std::cmp_greater_equal(from[i], -most)) continue;
        const auto width = static_cast<std::size_t>(x.rank() > 1 ? x.shape[1] : 1);
        throw std::invalid_argument(
            fmt::format("{}: row {} has {}: integers must be within 2^53", what, i / width, from[i]));
      }
    }
  });
  return result;
}

Array from_doubles(const Array& x, Type type) {
  Array result(type, x.shape());
  const auto from = x.values<double>();
  visit(type, [&]<class T>(T) {
    const auto to = result.values<T>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_double<T>(from[i]);
  });
  return result;
}

}  // namespace cenote::cli
