// Derivatives against finite differences, and second order: of a pooling, and of a pullback as an operation itself.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/differences.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

/// A smooth problem with numbers near 1, so that differences tell something.
struct Smooth {
  Pooling pooling;
  Array x, dx, v, gy, dgy;
  /// How large derivatives get: by the sharpness, and by how many windows hold a cell.
  double size = 1;
};

rc::Gen<Smooth> smooth_problems(Reducer reducer, Type type) {
  const auto any = slope_cases(reducer, Ties::first, Region::small);
  return rc::gen::exec([=] {
    SlopeCase c = *any;
    Smooth s{c.pooling, {}, {}, {}, {}, {}};
    s.pooling.beta = detail::one_of<double>({1, 0.5, -2, 3});
    s.pooling.p = detail::one_of<double>({2, 3, 1.5, 2.3, 4});
    if (auto* window = std::get_if<Window>(&s.pooling.region)) {
      window->exact = false;
      window->allow_empty = true;
    }
    const Extents out = plan(s.pooling, type, c.shape).output_shape();
    s.x = drawn(c.shape, type, Data::unit, c.seed);
    // The second derivative of lp has a pole at 0, to be kept away from.
    Numbers values = numbers(s.x);
    for (double& value : values) value += value < 0 ? -0.5 : 0.5;
    s.x = like(s.x, values);
    s.dx = drawn(c.shape, type, Data::unit, c.seed + 1);
    s.v = drawn(c.shape, type, Data::unit, c.seed + 2);
    s.gy = drawn(out, type, Data::unit, c.seed + 3);
    s.dgy = drawn(out, type, Data::unit, c.seed + 4);
    const Array ones = like(s.gy, Numbers(static_cast<std::size_t>(s.gy.size()), 1));
    Pooling sum = s.pooling;
    sum.reducer = Reducer::sum;
    sum.dtype.reset();
    s.size = 50 * (1 + largest_of(vjp(sum, s.x).pullback(ones)));
    return s;
  });
}

std::ostream& operator<<(std::ostream& out, const Smooth& s) {
  return out << plan(s.pooling, s.x.type(), s.x.shape()).explain();
}

class SmoothDerivative : public testing::TestWithParam<Reducer> {
 protected:
  template <class F>
  void holds_for(int count, const F& property, Type type = Type::f64) {
    const auto problems = smooth_problems(GetParam(), type);
    check(count, [&] { property(*problems); });
  }
};
std::string label_of(const testing::TestParamInfo<Reducer>& info) { return std::string(name(info.param)); }
INSTANTIATE_TEST_SUITE_P(Of, SmoothDerivative, testing::Values(Reducer::smooth_max, Reducer::lp), label_of);

TEST_P(SmoothDerivative, EqualsTheDifferenceQuotient) {
  holds_for(150, [](const Smooth& s) {
    const Array dy = jvp(s.pooling, s.x, s.dx).dy;
    check_difference(pool(moved(s.x, -step, s.dx), s.pooling), pool(moved(s.x, step, s.dx), s.pooling), step, dy,
                     s.size);
  });
}

TEST_P(SmoothDerivative, OfSecondOrderEqualsTheDifferenceQuotientOfTheFirst) {
  holds_for(150, [](const Smooth& s) {
    const auto gradient = [&](double by) { return vjp(s.pooling, moved(s.x, by, s.v)).pullback(s.gy); };
    check_difference(gradient(-step), gradient(step), step, hvp(s.pooling, s.x, s.gy, s.v), s.size);
  });
}

TEST_P(SmoothDerivative, OfSecondOrderIsSymmetric) {
  holds_for(150, [](const Smooth& s) {
    const long double left = inner(s.dx, hvp(s.pooling, s.x, s.gy, s.v));
    const long double right = inner(s.v, hvp(s.pooling, s.x, s.gy, s.dx));
    RC_ASSERT(std::fabs(left - right) <= 1e-13L * s.size * static_cast<long double>(s.x.size()));
  });
}

TEST_P(SmoothDerivative, OfAPullbackEqualsTheDifferenceQuotient) {
  holds_for(150, [](const Smooth& s) {
    const auto way = vjp(s.pooling, s.x).pullback;
    const auto [gx, dgx] = jvp(way, s.gy, s.dx, s.dgy);
    RC_ASSERT(numbers(gx) == numbers(way(s.gy)));
    const auto at = [&](double by) { return vjp(s.pooling, moved(s.x, by, s.dx)).pullback(moved(s.gy, by, s.dgy)); };
    check_difference(at(-step), at(step), step, dgx, s.size);
  });
}

TEST_P(SmoothDerivative, OfAPullbackIsAdjointInBothModes) {
  holds_for(150, [](const Smooth& s) {
    const auto way = vjp(s.pooling, s.x).pullback;
    const auto [gx, second] = vjp(way, s.gy);
    RC_ASSERT(numbers(gx) == numbers(way(s.gy)));
    const Cotangents back = second(s.v);
    RC_ASSERT(back.x.shape() == s.x.shape());
    RC_ASSERT(back.gy.shape() == s.gy.shape());
    const long double left = inner(s.v, jvp(way, s.gy, s.dx, s.dgy).dgx);
    const long double right = inner(back.x, s.dx) + inner(back.gy, s.dgy);
    RC_ASSERT(std::fabs(left - right) <= 1e-13L * s.size * static_cast<long double>(s.x.size() + 1));
  });
}

/// hx must be the oracle's second derivative, up to 300 rounding units of the compute type and one rounding.
void check_second(const Smooth& s, const View& hx) {
  const Type type = s.x.type();
  const Slopes oracle(s.pooling, type, s.x.shape(), s.x);
  const reference::Tensor<double> x{to_shape(s.x.shape()), numbers(s.x)};
  const auto y = reference::lp_pool(x, oracle.windows(), s.pooling.p).values;
  const auto expected =
      s.pooling.reducer == Reducer::lp
          ? reference::lp_hvp(oracle.jacobian(), s.pooling.p, x.values, y, numbers(s.gy), numbers(s.v))
          : reference::smooth_max_hvp(oracle.jacobian(), s.pooling.beta, numbers(s.gy), numbers(s.v));
  std::vector<Element> elements;
  for (const reference::Slope& h : expected) elements.push_back(near(type, h.value, 300 * unit(type) * h.error));
  const std::string wrong = mismatch(elements, hx);
  if (!wrong.empty()) RC_FAIL(wrong);
}

TEST_P(SmoothDerivative, OfSecondOrderEqualsTheOracleWithOneRoundingOfHalves) {
  for (const Type type : {Type::f64, Type::f32, Type::f16, Type::bf16}) {
    holds_for(
        80, [](const Smooth& s) { check_second(s, hvp(s.pooling, s.x, s.gy, s.v)); }, type);
  }
}

TEST_P(SmoothDerivative, OfSecondOrderGoesIntoAnyLayout) {
  holds_for(100, [](const Smooth& s) {
    const auto strided = [](const Array& a, bool may_repeat) {
      return Strided(a.type(), a.shape(), detail::layout(a.rank(), may_repeat));
    };
    Strided x = strided(s.x, false), gy = strided(s.gy, true), v = strided(s.v, true), hx = strided(s.x, false);
    fill(x, Data::unit, 1);
    fill(gy, Data::unit, 2);
    fill(v, Data::unit, 3);
    plan(s.pooling, s.x.type(), s.x.shape())
        .hvp(std::as_const(x).view(), std::as_const(gy).view(), std::as_const(v).view(), hx.view());
    const Array plain =
        hvp(s.pooling, Array(std::as_const(x).view()), Array(std::as_const(gy).view()), Array(std::as_const(v).view()));
    // Sums may be grouped otherwise where axes cannot be merged.
    const auto made = doubles(hx.view()), expected = numbers(plain);
    for (std::size_t i = 0; i < made.size(); ++i)
      RC_ASSERT(made[i] == expected[i] || std::fabs(made[i] - expected[i]) <= 1e-9 * (1 + std::fabs(expected[i])));
    RC_ASSERT(hx.gaps_untouched());
  });
}

TEST(SecondDerivative, IsZeroInCellsThatNoWindowHolds) {
  Pooling norm{.reducer = Reducer::lp, .region = Window{.size = {2}, .stride = 2}};
  const Array x = array<double>({3}, {1, 2, nan}), gy = full<double>({1}, 1), v = full<double>({3}, 1);
  for (const double p : {2.0, 3.0}) {
    norm.p = p;
    EXPECT_EQ(numbers(hvp(norm, x, gy, v))[2], 0) << p;
  }
}

TEST(BetaDerivative, EqualsTheDifferenceQuotient) {
  const auto problems = smooth_problems(Reducer::smooth_max, Type::f64);
  check(200, [&] {
    const Smooth s = *problems;
    const auto at = [&](double by) {
      Pooling other = s.pooling;
      other.beta += by;
      return pool(s.x, other);
    };
    check_difference(at(-step), at(step), step, beta_derivative(s.pooling, s.x), s.size);
  });
}

TEST(BetaDerivative, IsRoundedOnceForHalves) {
  const Pooling line{.reducer = Reducer::smooth_max, .region = Window{.size = {3}}};
  EXPECT_TRUE(holds(beta_derivative(line, array<f16>({3}, {1, 2, 3})), {1}, {static_cast<float>(f16(-.8323955818f))}));
  EXPECT_TRUE(
      holds(beta_derivative(line, array<bf16>({3}, {1, 2, 3})), {1}, {static_cast<float>(bf16(-.8323955818f))}));
}

TEST(BetaDerivative, IsZeroWhereAnInfiniteCellIsTheValue) {
  Pooling line{.reducer = Reducer::smooth_max, .region = Window{.size = {3}}};
  for (const double sign : {1.0, -1.0}) {
    line.beta = sign * 2;
    const double far = sign * inf;
    EXPECT_TRUE(holds(beta_derivative(line, array<double>({3}, {far, 1, 2})), {1}, {0}));
    EXPECT_TRUE(holds(beta_derivative(line, array({3}, {1, far, far})), {1}, {0}));
    EXPECT_TRUE(holds(beta_derivative(line, array<double>({3}, {-far, -far, -far})), {1}, {0}));
    EXPECT_TRUE(holds(beta_derivative(line, array<double>({3}, {-far, 1, 1})), {1}, {-std::log(2.0) / 4}, 1e-12));
    EXPECT_TRUE(holds(beta_derivative(line, array<double>({3}, {far, nan, 1})), {1}, {nan}));
  }
}

TEST(BetaDerivative, IsOfSmoothMaxAlone) {
  const Array x = array({3}, {1, 2, 3});
  EXPECT_TRUE(
      rejects([&] { beta_derivative({.region = Window{.size = {3}}}, x); }, {"[max_pool]", "beta", "smooth_max"}));
}

struct Flat {
  Reducer reducer;
  Ties ties = Ties::first;
  double p = 2;
};
constexpr Flat flats[] = {{Reducer::max},
                          {Reducer::max, Ties::split},
                          {Reducer::min},
                          {Reducer::min, Ties::split},
                          {Reducer::sum},
                          {Reducer::avg},
                          {Reducer::lp, Ties::first, 1},
                          {Reducer::lp, Ties::first, inf}};

class FlatDerivative : public testing::TestWithParam<Flat> {};
std::string label_of_flat(const testing::TestParamInfo<Flat>& info) {
  return std::string(name(info.param.reducer)) + (info.param.ties == Ties::split ? "_split" : "") +
         (info.param.p == 2   ? ""
          : info.param.p == 1 ? "_1"
                              : "_inf");
}
INSTANTIATE_TEST_SUITE_P(Of, FlatDerivative, testing::ValuesIn(flats), label_of_flat);

TEST_P(FlatDerivative, OfSecondOrderIsZeroInXAndTheFirstInTheCotangent) {
  const auto any = slope_cases(GetParam().reducer, GetParam().ties, Region::small);
  check(150, [&] {
    SlopeCase c = *any;
    c.pooling.p = GetParam().p;
    if (auto* window = std::get_if<Window>(&c.pooling.region)) {
      window->exact = false;
      window->allow_empty = true;
    }
    const Plan planned = plan(c.pooling, c.type, c.shape);
    const Array x = drawn(c.shape, c.type, c.data, c.seed), v = drawn(c.shape, c.type, Data::unit, 1);
    const Array gy = drawn(planned.output_shape(), planned.output_type(), Data::unit, 2);
    const Array dgy = drawn(planned.output_shape(), planned.output_type(), Data::unit, 3);
    for (const double h : numbers(hvp(c.pooling, x, gy, v))) RC_ASSERT(h == 0);
    const auto way = vjp(c.pooling, x).pullback;
    const auto same = [](const Array& a, const Array& b) {
      RC_ASSERT(a.shape() == b.shape());
      const Numbers left = numbers(a), right = numbers(b);
      for (std::size_t i = 0; i < left.size(); ++i)
        RC_ASSERT(left[i] == right[i] || (left[i] != left[i] && right[i] != right[i]));
    };
    same(jvp(way, gy, v, dgy).dgx, way(dgy));
    const Cotangents back = vjp(way, gy).pullback(v);
    for (const double h : numbers(back.x)) RC_ASSERT(h == 0);
    same(back.gy, jvp(c.pooling, x, v).dy);
  });
}

TEST(SecondDerivative, OfLpTakesAPowerOfZeroAsZero) {
  const Pooling two{.reducer = Reducer::lp, .region = Window{.size = {2}}};
  const Array one = full<double>({1}, 1), v = array<double>({2}, {1, 1});
  EXPECT_TRUE(holds(hvp(two, array<double>({2}, {0, 0}), one, v), {2}, {0, 0}));
  EXPECT_TRUE(holds(hvp(two, array<double>({2}, {0, 2}), one, v), {2}, {0, 0}));
  EXPECT_TRUE(holds(hvp(two, array<double>({2}, {3, 4}), one, array<double>({2}, {1, 0})), {2}, {.128, -.096}, 1e-15));
  Pooling low = two;
  low.p = 1.5;
  EXPECT_TRUE(holds(hvp(low, array<double>({2}, {0, 2}), one, v), {2}, {0, 0}));
}

TEST(SecondDerivative, OfLpKnowsSubnormalCells) {
  Pooling norm{.reducer = Reducer::lp, .region = Window{.size = {2}}};
  const auto check = [&](auto one, double unit, double bound) {
    using T = decltype(one);
    const Array x = array<T>({2}, {3 * unit, 4 * unit}), gy = full<T>({1}, 1);
    EXPECT_TRUE(holds(hvp(norm, x, gy, array<T>({2}, {unit, 0})), {2}, {.128, -.096}, bound));
    EXPECT_TRUE(holds(hvp(norm, x, gy, array<T>({2}, {1, 0})), {2}, {inf, -inf}));
  };
  check(1.0, 0x1p-1040, 1e-6);
  check(1.0f, 0x1p-136, 1e-2);
}

TEST(SecondDerivative, IsZeroForAnExponentThatIsInfiniteInItsType) {
  const Pooling steep{.reducer = Reducer::lp, .region = Window{.size = {2}}, .p = 1e39};
  EXPECT_TRUE(holds(vjp(steep, array({2}, {3, -4})).pullback(full({1}, 1)), {2}, {0, -1}));
  EXPECT_TRUE(holds(hvp(steep, array({2}, {3, 4}), full({1}, 1), full({2}, 1)), {2}, {0, 0}));
}

}  // namespace
}  // namespace cenote::test
