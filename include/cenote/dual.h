// Dual numbers: a value with its derivative along one direction, for functions that are generic over the number type.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

namespace cenote {

template <class N>
struct Dual;

namespace detail {

/// True if a number is zero with all its derivatives.
template <class N>
constexpr bool vanishes(const N& number) {
  return number == N(0);
}
template <class N>
constexpr bool vanishes(const Dual<N>& number) {
  return vanishes(number.value) && vanishes(number.tangent);
}

}  // namespace detail

/// The number value + tangent * e with e * e = 0. N is float, double or a Dual itself, for higher derivatives.
/// A plain number converts to a Dual of tangent 0; there is no way back that would lose the derivative unseen.
/// Comparisons look at values alone, and max and min keep their first operand at ties. Functions are found by their
/// arguments: write `using std::exp;` and then `exp(a)` in code that serves plain numbers too.
template <class N>
struct Dual {
  N value, tangent;

  Dual() = default;
  constexpr Dual(const N& value, const N& tangent) : value(value), tangent(tangent) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr Dual(Number number) : value(static_cast<N>(number)), tangent(static_cast<N>(0)) {}
  constexpr Dual(const N& value) requires(!std::is_arithmetic_v<N>) : value(value), tangent(static_cast<N>(0)) {}

  friend constexpr Dual operator+(const Dual& a) { return a; }
  friend constexpr Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
  friend constexpr Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.tangent + b.tangent}; }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.tangent - b.tangent}; }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    const N ratio = a.value / b.value;
    return {ratio, (a.tangent - ratio * b.tangent) / b.value};
  }
  constexpr Dual& operator+=(const Dual& other) { return *this = *this + other; }
  constexpr Dual& operator-=(const Dual& other) { return *this = *this - other; }
  constexpr Dual& operator*=(const Dual& other) { return *this = *this * other; }
  constexpr Dual& operator/=(const Dual& other) { return *this = *this / other; }

  friend constexpr bool operator==(const Dual& a, const Dual& b) { return a.value == b.value; }
  friend constexpr bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend constexpr bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend constexpr bool operator<=(const Dual& a, const Dual& b) { return a.value <= b.value; }
  friend constexpr bool operator>=(const Dual& a, const Dual& b) { return a.value >= b.value; }

  friend constexpr Dual max(const Dual& a, const Dual& b) { return a.value < b.value ? b : a; }
  friend constexpr Dual min(const Dual& a, const Dual& b) { return b.value < a.value ? b : a; }
  /// As max and min, but a NaN loses to any number.
  friend Dual fmax(const Dual& a, const Dual& b) { return a.value < b.value || isnan(a) ? b : a; }
  friend Dual fmin(const Dual& a, const Dual& b) { return b.value < a.value || isnan(a) ? b : a; }

  /// The derivative at 0 is 0.
  friend Dual abs(const Dual& a) {
    using std::abs;
    const N zero(0);
    return {abs(a.value), a.value < zero ? -a.tangent : a.value == zero ? zero : a.tangent};
  }
  friend Dual fabs(const Dual& a) { return abs(a); }

  friend Dual sqrt(const Dual& a) {
    using std::sqrt;
    const N root = sqrt(a.value);
    return {root, a.tangent / (2 * root)};
  }
  friend Dual cbrt(const Dual& a) {
    using std::cbrt;
    const N root = cbrt(a.value);
    return {root, a.tangent / (3 * root * root)};
  }
  friend Dual hypot(const Dual& a, const Dual& b) {
    using std::hypot;
    const N length = hypot(a.value, b.value);
    return {length, a.tangent * (a.value / length) + b.tangent * (b.value / length)};
  }

  friend Dual exp(const Dual& a) {
    using std::exp;
    const N power = exp(a.value);
    return {power, power * a.tangent};
  }
  friend Dual exp2(const Dual& a) {
    using std::exp2;
    const N power = exp2(a.value);
    return {power, power * static_cast<N>(std::numbers::ln2) * a.tangent};
  }
  friend Dual expm1(const Dual& a) {
    using std::exp;
    using std::expm1;
    return {expm1(a.value), exp(a.value) * a.tangent};
  }
  friend Dual log(const Dual& a) {
    using std::log;
    return {log(a.value), a.tangent / a.value};
  }
  friend Dual log2(const Dual& a) {
    using std::log2;
    return {log2(a.value), a.tangent / (a.value * static_cast<N>(std::numbers::ln2))};
  }
  friend Dual log10(const Dual& a) {
    using std::log10;
    return {log10(a.value), a.tangent / (a.value * static_cast<N>(std::numbers::ln10))};
  }
  friend Dual log1p(const Dual& a) {
    using std::log1p;
    return {log1p(a.value), a.tangent / (1 + a.value)};
  }

  /// A power with a constant exponent, for which a base of 0 or below is fine.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  friend Dual pow(const Dual& a, Number exponent) {
    using std::pow;
    const N power = static_cast<N>(pow(a.value, exponent));
    if (exponent == Number{0}) return {power, N(0)};
    return {power, static_cast<N>(exponent) * static_cast<N>(pow(a.value, exponent - Number{1})) * a.tangent};
  }
  /// An operand without a tangent sends nothing, even where the slope in it does not exist.
  friend Dual pow(const Dual& a, const Dual& b) {
    using std::log;
    using std::pow;
    const N power = pow(a.value, b.value);
    N tangent(0);
    if (!detail::vanishes(a.tangent) && !detail::vanishes(b.value))
      tangent = b.value * pow(a.value, b.value - 1) * a.tangent;
    if (!detail::vanishes(b.tangent) && !(a.value == N(0))) tangent = tangent + log(a.value) * power * b.tangent;
    return {power, tangent};
  }

  friend Dual sin(const Dual& a) {
    using std::cos;
    using std::sin;
    return {sin(a.value), cos(a.value) * a.tangent};
  }
  friend Dual cos(const Dual& a) {
    using std::cos;
    using std::sin;
    return {cos(a.value), -sin(a.value) * a.tangent};
  }
  friend Dual tan(const Dual& a) {
    using std::tan;
    const N slope = tan(a.value);
    return {slope, (1 + slope * slope) * a.tangent};
  }
  friend Dual asin(const Dual& a) {
    using std::asin;
    using std::sqrt;
    return {asin(a.value), a.tangent / sqrt((1 - a.value) * (1 + a.value))};
  }
  friend Dual acos(const Dual& a) {
    using std::acos;
    using std::sqrt;
    return {acos(a.value), -a.tangent / sqrt((1 - a.value) * (1 + a.value))};
  }
  friend Dual atan(const Dual& a) {
    using std::atan;
    return {atan(a.value), a.tangent / (1 + a.value * a.value)};
  }
  friend Dual atan2(const Dual& y, const Dual& x) {
    using std::atan2;
    const N square = x.value * x.value + y.value * y.value;
    return {atan2(y.value, x.value), (y.tangent * x.value - x.tangent * y.value) / square};
  }
  friend Dual sinh(const Dual& a) {
    using std::cosh;
    using std::sinh;
    return {sinh(a.value), cosh(a.value) * a.tangent};
  }
  friend Dual cosh(const Dual& a) {
    using std::cosh;
    using std::sinh;
    return {cosh(a.value), sinh(a.value) * a.tangent};
  }
  friend Dual tanh(const Dual& a) {
    using std::tanh;
    const N height = tanh(a.value);
    return {height, (1 - height) * (1 + height) * a.tangent};
  }

  friend bool isnan(const Dual& a) { return a.value != a.value; }
  friend bool isinf(const Dual& a) {
    using std::isinf;
    return isinf(a.value);
  }
  friend bool isfinite(const Dual& a) {
    using std::isfinite;
    return isfinite(a.value);
  }
};

}  // namespace cenote

/// The limits of the values, as numbers of tangent 0.
template <class N>
struct std::numeric_limits<cenote::Dual<N>> : std::numeric_limits<N> {};
