// Exact fractions, to show that the oracle needs nothing of floating point.
#pragma once

#include <cstdint>
#include <numeric>
#include <ostream>

namespace cenote::test {

/// A fraction in lowest terms with a positive denominator. Small numbers only: nothing guards against overflow.
class Rational {
 public:
  Rational(std::int64_t numerator = 0, std::int64_t denominator = 1) : over_(numerator), under_(denominator) {
    const std::int64_t common = std::gcd(over_, under_) * (under_ < 0 ? -1 : 1);
    over_ /= common;
    under_ /= common;
  }

  friend Rational operator+(Rational a, Rational b) {
    return {a.over_ * b.under_ + b.over_ * a.under_, a.under_ * b.under_};
  }
  friend Rational operator*(Rational a, Rational b) { return {a.over_ * b.over_, a.under_ * b.under_}; }
  friend Rational operator/(Rational a, Rational b) { return {a.over_ * b.under_, a.under_ * b.over_}; }
  friend Rational operator-(Rational a) { return {-a.over_, a.under_}; }
  friend bool operator==(Rational a, Rational b) { return a.over_ == b.over_ && a.under_ == b.under_; }
  friend bool operator<(Rational a, Rational b) { return a.over_ * b.under_ < b.over_ * a.under_; }
  friend std::ostream& operator<<(std::ostream& out, Rational a) { return out << a.over_ << '/' << a.under_; }

 private:
  std::int64_t over_, under_;
};

}  // namespace cenote::test
