// Derivatives by difference quotients: arrays moved a little, and what is left of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "arrays.h"
#include "strided.h"

namespace cenote::test {

using Numbers = std::vector<double>;

/// An array of the model's type and shape.
inline Array like(const Array& model, const Numbers& values) {
  Array result(model.type(), model.shape());
  visit(model.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<Carrier<T>, double>) {
      using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (std::size_t i = 0; i < values.size(); ++i)
        result.values<T>()[i] = static_cast<T>(static_cast<Number>(values[i]));
    }
  });
  return result;
}

/// a + step * b.
inline Array moved(const Array& a, double step, const Array& b) {
  Numbers values = numbers(a);
  const Numbers along = numbers(b);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * along[i];
  return like(a, values);
}

inline long double inner(const Array& a, const Array& b) {
  const Numbers x = numbers(a), y = numbers(b);
  long double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<long double>(x[i]) * y[i];
  return sum;
}

inline double largest_of(const Array& a) {
  double most = 0;
  for (const double value : numbers(a)) most = std::max(most, std::fabs(value));
  return most;
}

/// (high - low) / (2 step) must be `slope`, with an error of truncation and one of rounding.
inline void check_difference(const Array& low, const Array& high, double step, const Array& slope, double size) {
  const Numbers a = numbers(low), b = numbers(high), c = numbers(slope);
  RC_ASSERT(a.size() == c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (a[i] == b[i] && c[i] == 0) continue;  // infinite where a window has no cell
    const double difference = (b[i] - a[i]) / (2 * step);
    if (!(std::fabs(difference - c[i]) <= 1e-8 * size))
      RC_FAIL("element " + std::to_string(i) + " is " + std::to_string(c[i]) + ", its difference quotient " +
              std::to_string(difference));
  }
}
inline constexpr double step = 1e-5;

}  // namespace cenote::test
