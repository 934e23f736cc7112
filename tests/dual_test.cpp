// Dual numbers: every function against its difference quotient, nested ones against second differences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include <cenote/dual.h>

namespace cenote::test {
namespace {

using First = Dual<double>;
using Second = Dual<First>;

/// f, its first and its second derivative at x against central differences.
template <class F>
void check_derivatives(const char* name, F f, double x) {
  const double h = 1e-4, low = f(x - h), high = f(x + h), here = f(x);
  const First first = f(First(x, 1.0));
  const Second second = f(Second(First(x, 1.0), First(1.0, 0.0)));
  EXPECT_EQ(first.value, here) << name;
  EXPECT_EQ(second.value.value, here) << name;
  EXPECT_NEAR(first.tangent, (high - low) / (2 * h), 1e-6 * (1 + std::fabs(first.tangent))) << name << " at " << x;
  EXPECT_NEAR(second.tangent.value, first.tangent, 1e-12 * (1 + std::fabs(first.tangent))) << name;
  const double bend = second.tangent.tangent;
  EXPECT_NEAR(bend, (high - 2 * here + low) / (h * h), 1e-5 * (1 + std::fabs(bend))) << name << " at " << x;
}

#define CHECK_FUNCTION(name, x)      \
  check_derivatives(                 \
      #name,                         \
      [](auto a) {                   \
        using std::name;             \
        return decltype(a)(name(a)); \
      },                             \
      x)

TEST(Dual, FunctionsHaveTheirDerivatives) {
  for (const double x : {0.3, 0.7, 0.95}) {
    CHECK_FUNCTION(abs, x);
    CHECK_FUNCTION(fabs, -x);
    CHECK_FUNCTION(sqrt, x);
    CHECK_FUNCTION(cbrt, x);
    CHECK_FUNCTION(exp, x);
    CHECK_FUNCTION(exp2, -x);
    CHECK_FUNCTION(expm1, x);
    CHECK_FUNCTION(log, x);
    CHECK_FUNCTION(log2, x);
    CHECK_FUNCTION(log10, x);
    CHECK_FUNCTION(log1p, -x / 2);
    CHECK_FUNCTION(sin, x);
    CHECK_FUNCTION(cos, x);
    CHECK_FUNCTION(tan, x);
    CHECK_FUNCTION(asin, x / 2);
    CHECK_FUNCTION(acos, x / 2);
    CHECK_FUNCTION(atan, x);
    CHECK_FUNCTION(sinh, x);
    CHECK_FUNCTION(cosh, x);
    CHECK_FUNCTION(tanh, -x);
  }
}

TEST(Dual, ArithmeticFollowsTheRules) {
  for (const double x : {-1.3, 0.4, 2.0}) {
    check_derivatives(
        "polynomial", [](auto a) { return 3 * a * a - a / 2 + 1.5; }, x);
    check_derivatives(
        "quotient", [](auto a) { return (a + 1) / (a * a + 2) - 1 / (3 - a); }, x);
    check_derivatives(
        "compound",
        [](auto a) {
          auto b = -a;
          b += 2 * a;
          b *= b;
          b -= 0.5f;
          b /= +a;
          return b;
        },
        x);
  }
}

TEST(Dual, FunctionsOfTwoNumbersHaveTheirDerivatives) {
  for (const double x : {0.4, 1.7}) {
    check_derivatives(
        "base", [](auto a) { return pow(a, decltype(a)(2.5)); }, x);
    check_derivatives(
        "constant power", [](auto a) { return decltype(a)(pow(a, 3)) + decltype(a)(pow(a, -1.5)); }, x);
    check_derivatives(
        "exponent", [](auto a) { return pow(decltype(a)(1.3), a); }, x);
    check_derivatives(
        "both", [](auto a) { return pow(a, a); }, x);
    check_derivatives(
        "hypot", [](auto a) { return hypot(a, a * a); }, x);
    check_derivatives(
        "atan2", [](auto a) { return atan2(a, 1 - a * a); }, x);
  }
}

TEST(Dual, PowersOfZeroAndBelowAreFine) {
  EXPECT_EQ(pow(First(-2.0, 1.0), 3).tangent, 12);
  EXPECT_EQ(pow(First(0.0, 1.0), 2).tangent, 0);
  EXPECT_EQ(pow(First(0.0, 1.0), 0).tangent, 0);
  EXPECT_EQ(pow(First(0.0, 1.0), 1).tangent, 1);
  EXPECT_EQ(pow(First(-2.0, 1.0), First(3)).tangent, 12);
  EXPECT_EQ(pow(First(0), First(2.0, 1.0)).tangent, 0);
  EXPECT_EQ(pow(Second(First(0.0, 1.0), First(1)), 2).tangent.tangent, 2);
}

TEST(Dual, TiesKeepTheFirstOperand) {
  const First a(2.0, 10.0), b(2.0, 20.0), c(3.0, 30.0);
  EXPECT_EQ(max(a, b).tangent, 10);
  EXPECT_EQ(min(a, b).tangent, 10);
  EXPECT_EQ(fmax(b, a).tangent, 20);
  EXPECT_EQ(fmin(b, a).tangent, 20);
  EXPECT_EQ(std::max(a, b).tangent, 10);
  EXPECT_EQ(std::min(a, b).tangent, 10);
  EXPECT_EQ(max(a, c).tangent, 30);
  EXPECT_EQ(min(c, a).tangent, 10);
  EXPECT_EQ(max(a, 5).tangent, 0);
  EXPECT_EQ(abs(First(-0.0, 7.0)).tangent, 0);
}

TEST(Dual, ANaNIsOne) {
  const First bad = std::numeric_limits<First>::quiet_NaN(), good(1.0, 4.0);
  EXPECT_TRUE(isnan(bad) && bad != bad && !(bad == bad) && !(bad < good) && !(bad >= good));
  EXPECT_FALSE(isnan(good) || isinf(good));
  EXPECT_TRUE(isfinite(good));
  EXPECT_EQ(fmax(bad, good).tangent, 4);
  EXPECT_EQ(fmin(good, bad).tangent, 4);
  EXPECT_TRUE(isinf(Second(std::numeric_limits<Second>::infinity())));
  EXPECT_TRUE(isnan(abs(bad)));
}

TEST(Dual, ComparesByValueWithPlainNumbersToo) {
  const First a(2.0, 1.0);
  EXPECT_TRUE(a == First(2.0, 5.0) && a == 2 && a > 1.5f && 3 > a && a != 4 && a <= 2 && a >= 2u && !(a < 2));
  EXPECT_TRUE(Second(a) < 3 && Second(a) == a);
}

TEST(Dual, ConvertsFromNumbersButNeverBack) {
  static_assert(std::is_convertible_v<int, First> && std::is_convertible_v<float, Second>);
  static_assert(std::is_convertible_v<First, Second>);
  static_assert(!std::is_convertible_v<First, double> && !std::is_constructible_v<double, First>);
  static_assert(std::is_trivially_copyable_v<Second>);
  constexpr First a = First(3.0, 1.0) * 2 - 1;
  static_assert(a.value == 5 && a.tangent == 2);
  EXPECT_EQ(First{}.value, 0);
  EXPECT_EQ(First{}.tangent, 0);
  EXPECT_EQ(Second(7).tangent.tangent, 0);
}

}  // namespace
}  // namespace cenote::test
