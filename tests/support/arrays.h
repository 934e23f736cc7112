// Small arrays and what is expected of them, written so that a test reads like the rule it checks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/array.h>

namespace cenote::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// An array of T from a list of numbers.
template <class T = float>
Array array(const Extents& shape, const std::vector<double>& values) {
  Array result(type_of<T>, shape);
  EXPECT_EQ(static_cast<std::size_t>(result.size()), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    result.values<T>()[i] = static_cast<T>(static_cast<Number>(values[i]));
  }
  return result;
}

/// 0, 1, 2, … times `step`, after `first`.
template <class T = float>
Array counting(const Extents& shape, double first = 0, double step = 1) {
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<double>(i);
  return array<T>(shape, values);
}

template <class T = float>
Array full(const Extents& shape, double value) {
  return counting<T>(shape, value, 0);
}

/// Any array's elements as doubles.
inline std::vector<double> numbers(const Array& a) {
  std::vector<double> result;
  visit(a.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, bool>) {
      const auto* bytes = static_cast<const unsigned char*>(a.data());
      for (std::int64_t i = 0; i < a.size(); ++i) result.push_back(bytes[i]);
    } else {
      for (const T& value : a.values<T>()) {
        if constexpr (std::is_arithmetic_v<T>)
          result.push_back(static_cast<double>(value));
        else
          result.push_back(static_cast<float>(value));
      }
    }
  });
  return result;
}

/// The elements' bytes in row-major order.
inline std::vector<std::byte> bytes_of(const Array& a) {
  const auto* begin = static_cast<const std::byte*>(a.data());
  return {begin, begin + a.bytes()};
}

/// Type, shape and every byte.
inline bool same_bits(const Array& a, const Array& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// Shape and elements, each within `tolerance`; NaN equals NaN and zeros must have the same sign.
inline testing::AssertionResult holds(const Array& a, const Extents& shape, const std::vector<double>& expected,
                                      double tolerance = 0) {
  if (!(a.shape() == shape)) {
    return testing::AssertionFailure() << "the shape is " << to_string(a.shape()) << ", not " << to_string(shape);
  }
  const std::vector<double> actual = numbers(a);
  if (actual.size() != expected.size()) return testing::AssertionFailure() << actual.size() << " elements";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double x = actual[i], e = expected[i];
    const bool exact = x == e ? std::signbit(x) == std::signbit(e) : x != x && e != e;
    if (exact || (tolerance > 0 && std::fabs(x - e) <= tolerance)) continue;
    return testing::AssertionFailure() << "element " << i << " is " << x << ", not " << e;
  }
  return testing::AssertionSuccess();
}

/// The text of the std::invalid_argument that f throws; empty if it throws nothing.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

/// f must throw std::invalid_argument whose text holds every one of the given parts.
template <class F>
testing::AssertionResult rejects(F&& f, const std::vector<std::string>& parts) {
  const std::string text = error_of(f);
  if (text.empty()) return testing::AssertionFailure() << "nothing was thrown";
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << '"' << part << "\" is not in: " << text;
  }
  return testing::AssertionSuccess();
}

}  // namespace cenote::test
