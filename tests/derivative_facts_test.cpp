// The derivative facts of the semantics, one by one.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/autodiff.h>

#include "support/arrays.h"
#include "support/machine.h"

namespace cenote::test {
namespace {

/// gx of a cotangent of ones.
Array gradient(const Pooling& pooling, const Array& x) {
  const auto [y, pullback] = vjp(pooling, x);
  Array gy(y.type(), y.shape());
  visit(y.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_same_v<T, bool>)
      for (T& g : gy.values<T>()) g = static_cast<T>(1.0f);
  });
  return pullback(gy);
}

Pooling of(Reducer reducer, const Window& window) { return {.reducer = reducer, .region = window}; }
Pooling max_of(const Window& window) { return of(Reducer::max, window); }

TEST(MaxDerivative, GoesToTheFirstOfEqualCells) {
  const Array x = array({3, 3}, {0, 10, 8, 2, 7, 3, 5, 7, 20});
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}}), x), {3, 3}, {0, 2, 0, 0, 1, 0, 0, 0, 1}));
  const Array sevens = full({3, 3}, 7);
  const std::vector<double> firsts{1, 1, 0, 1, 1, 0, 0, 0, 0};
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}}), sevens), {3, 3}, firsts));
  EXPECT_TRUE(holds(gradient(of(Reducer::min, {.size = {2, 2}}), sevens), {3, 3}, firsts));
}

TEST(MaxDerivative, FollowsTheSelectedBranchInBothModes) {
  const Array x = array({2, 2}, {1, 0, 5, 3}), dx = array({2, 2}, {10, 20, 30, 40});
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}}), x), {2, 2}, {0, 0, 1, 0}));
  EXPECT_TRUE(holds(jvp(max_of({.size = {2, 2}}), x, dx).dy, {1, 1}, {30}));
  const Array tied = array({2, 2}, {2, 2, 1, 2});
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}}), tied), {2, 2}, {1, 0, 0, 0}));
  EXPECT_TRUE(holds(jvp(max_of({.size = {2, 2}}), tied, dx).dy, {1, 1}, {10}));
}

TEST(MaxDerivative, LeavesPaddingOut) {
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}, .padding = 1}), array({1, 1}, {-3})), {1, 1}, {4}));
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2, 2}, .padding = 1}), array({1, 1, 1}, {-3})), {1, 1, 1}, {8}));
  EXPECT_TRUE(
      holds(gradient(max_of({.size = {3, 3}, .padding = 1}), array({2, 2}, {-3, -1, -2, -5})), {2, 2}, {0, 4, 0, 0}));
}

TEST(MaxDerivative, HoldsForChannelsLastAndDilation) {
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}, .channels_last = true}), counting({1, 3, 3, 1})), {1, 3, 3, 1},
                    {0, 0, 0, 0, 1, 1, 0, 1, 1}));
  std::vector<double> expected(16, 0);
  for (const std::size_t i : {10u, 11u, 14u, 15u}) expected[i] = 1;
  EXPECT_TRUE(holds(gradient(max_of({.size = {2, 2}, .dilation = 2}), counting({4, 4}, 1)), {4, 4}, expected));
}

TEST(MaxDerivative, KnowsInfinitiesAndNaN) {
  EXPECT_TRUE(holds(gradient(max_of({.size = {2}}), array({2}, {-inf, -inf})), {2}, {1, 0}));
  EXPECT_TRUE(holds(gradient(max_of({.size = {4}}), array({4}, {1, nan, 5, 6})), {4}, {0, 1, 0, 0}));
  EXPECT_TRUE(holds(gradient(max_of({.size = {3}}), array({3}, {nan, 1, nan})), {3}, {1, 0, 0}));
}

TEST(MaxDerivative, CanBeSharedByEqualCells) {
  Pooling shared = max_of({.size = {3}});
  shared.ties = Ties::split;
  EXPECT_TRUE(holds(gradient(shared, array({3}, {2, 2, 1})), {3}, {.5, .5, 0}));
  EXPECT_TRUE(holds(gradient(shared, array({3}, {nan, 1, nan})), {3}, {.5, 0, .5}));
  EXPECT_TRUE(holds(jvp(shared, array({3}, {2, 2, 1}), array({3}, {10, 20, 30})).dy, {1}, {15}));
}

TEST(MaxDerivative, IsZeroWhereAWindowHasNoCell) {
  const Pooling gap = max_of({.size = {2}, .dilation = 2, .padding = 1});
  EXPECT_TRUE(holds(gradient(gap, array({1}, {5})), {1}, {0}));
  EXPECT_TRUE(holds(jvp(gap, array({1}, {5}), array({1}, {7})).dy, {1}, {0}));
}

TEST(AvgDerivative, IsTheCotangentOverTheDivisor) {
  EXPECT_TRUE(holds(gradient(of(Reducer::avg, {.size = {2, 2}}), full({3, 3}, 2)), {3, 3},
                    {.25, .5, .25, .5, 1, .5, .25, .5, .25}));
  Pooling same_size = of(Reducer::avg, {.size = {2, 2}, .padding = same});
  EXPECT_TRUE(holds(gradient(same_size, counting({2, 2}, 1)), {2, 2}, {.25, .5, .5, 1}));
  same_size.divisor = Divisor::Rule::valid;
  EXPECT_TRUE(holds(gradient(same_size, counting({2, 2}, 1)), {2, 2}, {.25, .75, .75, 2.25}));
}

TEST(SmoothMaxDerivative, IsTheSoftmax) {
  Pooling smooth = of(Reducer::smooth_max, {.size = {2, 2}});
  smooth.beta = .5;
  EXPECT_TRUE(
      holds(gradient(smooth, counting<double>({3, 3}, 1)), {3, 3},
            {.0688730543, .1824255238, .1135524695, .3775406688, 1, .6224593312, .3086676145, .8175744762, .5089068617},
            1e-9));
  Pooling line = of(Reducer::smooth_max, {.size = {3}});
  const Array x = counting<double>({3}, 1);
  EXPECT_TRUE(holds(gradient(line, x), {3}, {.0900305732, .2447284711, .6652409558}, 1e-9));
  EXPECT_TRUE(holds(beta_derivative(line, x), {1}, {-.8323955818}, 1e-9));
  EXPECT_TRUE(holds(hvp(line, x, full<double>({1}, 1), array<double>({3}, {1, 0, 0})), {3},
                    {.0819250691, -.0220330446, -.0598920245}, 1e-9));
}

TEST(SmoothMaxDerivative, SurvivesHugeNumbersAndPadding) {
  Pooling steep = of(Reducer::smooth_max, {.size = {2}});
  steep.beta = 1e20;
  EXPECT_TRUE(holds(gradient(steep, array({2}, {1e20, -1e20})), {2}, {1, 0}));
  steep.beta = -1e20;
  EXPECT_TRUE(holds(gradient(steep, array({2}, {1e20, -1e20})), {2}, {0, 1}));
  const Pooling padded = of(Reducer::smooth_max, {.size = {2}, .padding = 1});
  EXPECT_TRUE(holds(gradient(padded, array<double>({1}, {-3})), {1}, {.0948517464}, 1e-9));
  EXPECT_TRUE(holds(gradient(of(Reducer::smooth_max, {.size = {4}}), full({4}, 1e20)), {4}, {.25, .25, .25, .25}));
}

TEST(SmoothMaxDerivative, IsANumberWhereCellsTimesBetaOverflow) {
  Pooling steep = of(Reducer::smooth_max, {.size = {3}});
  steep.beta = -7;
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const double huge : {2e37, 5e37, 8e37, 1.6e38, 3e38})
      for (const double other : {huge, 4e37, 1.0, -1e30}) {
        const Array x = array({3}, {huge, -huge, other});
        EXPECT_TRUE(holds(jvp(steep, x, array({3}, {3, 4, 5})).dy, {1}, {4})) << target << " " << huge << " " << other;
        EXPECT_TRUE(holds(gradient(steep, x), {3}, {0, 1, 0})) << target << " " << huge << " " << other;
      }
  }
}

TEST(LpDerivative, KeepsWeightsOfCellsBelowAnyRatio) {
  const auto check = [](auto one, const std::vector<double>& cells, double p, double tolerance) {
    using T = decltype(one);
    Pooling pooling = of(Reducer::lp, {.size = {static_cast<std::int64_t>(cells.size())}});
    pooling.p = p;
    const Array x = array<T>({static_cast<std::int64_t>(cells.size())}, cells);
    const double y = numbers(pool(x, pooling))[0];
    const std::vector<double> made = numbers(gradient(pooling, x));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double exact = std::copysign(
          std::exp2((p - 1) * (std::log2(std::fabs(static_cast<double>(x.values<T>()[i]))) - std::log2(y))), cells[i]);
      if (std::fabs(exact) < static_cast<double>(std::numeric_limits<T>::min())) continue;
      EXPECT_LE(std::fabs(made[i] - exact), tolerance * std::fabs(exact)) << p << " cell " << i << " of " << cells[0];
    }
  };
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const double p : {1.25, 1.5, 1.75, 1.875}) {
      check(1.0f, {1, -1e-42, 1e-38, 0.5}, p, 1e-4);
      check(1.0f, {1e30, 1e-30, -1e-44, 1e-8}, p, 1e-4);
      check(1.0, {1, -1e-312, 1e-308, 0.5}, p, 1e-10);
      check(1.0, {1e300, 1e-300, -1e-320, 1e-8}, p, 1e-10);
    }
  }
}

TEST(LpDerivative, IsTheUnitVectorOfTheNorm) {
  const Pooling two = of(Reducer::lp, {.size = {2}});
  EXPECT_TRUE(holds(gradient(two, array<double>({2}, {3, 4})), {2}, {.6, .8}, 1e-12));
  Pooling three = of(Reducer::lp, {.size = {3}});
  three.p = 3;
  EXPECT_TRUE(
      holds(gradient(three, array<double>({3}, {1, -2, 2})), {3}, {.1512518583, -.6050074331, .6050074331}, 1e-9));
  three.p = inf;
  EXPECT_TRUE(holds(gradient(three, array<double>({3}, {1, -2, 2})), {3}, {0, -1, 0}));
  three.p = 1;
  EXPECT_TRUE(holds(gradient(three, array<double>({3}, {1, -2, 0})), {3}, {1, -1, 0}));
  EXPECT_TRUE(holds(gradient(of(Reducer::lp, {.size = {2}}), array({2}, {0, 0})), {2}, {0, 0}));
}

}  // namespace
}  // namespace cenote::test
