// Derivatives of graphs: the adjoint law, known values, exact zeros, second order.
#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "autodiff/eager.h"
#include "autodiff/pool_ops.h"
#include "support/arrays.h"
#include "support/graphs.h"
#include "support/property.h"
#include "support/show.h"

namespace cenote::test {
namespace {

using graph::Builder;
using graph::Program;
using graph::Var;

// A program of some of the values of a random graph.
Program some_of(RandomGraph& g) {
  std::vector<Var> outputs;
  for (std::int64_t n = detail::between(1, 3); n > 0; --n)
    outputs.push_back(g.values[g.values.size() - static_cast<std::size_t>(n)].first);
  return g.builder.compile(outputs);
}

std::vector<Array> random_like(const std::vector<Signature>& signatures, std::uint64_t seed) {
  std::vector<Array> arrays;
  for (const Signature& s : signatures) arrays.push_back(eighths(s.type, s.shape, seed++));
  return arrays;
}

template <class To>
To as(const std::vector<Array>& arrays) {
  return To(arrays.begin(), arrays.end());
}

using Views = std::vector<View>;
using Seeds = std::vector<std::optional<View>>;

double dot_all(const std::vector<std::optional<Array>>& a, const std::vector<Array>& b, double& size) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += dot(*a[i], b[i]);
    size += magnitude(*a[i], b[i]);
  }
  return sum;
}

TEST(GraphDerivatives, JvpAndVjpAreAdjointOnRandomGraphs) {
  check(300, [] {
    RandomGraph g(Type::f64, static_cast<int>(detail::between(4, 20)), false);
    const Program p = some_of(g);
    const auto dx = random_like(p.inputs(), 100), gy = random_like(p.outputs(), 200);
    const auto forward = p.jvp(g.views(), as<Seeds>(dx));
    const auto reverse = p.vjp(g.views(), as<Seeds>(gy));
    double size = 1e-300;
    const double left = dot_all(forward.tangents, gy, size), right = dot_all(reverse.cotangents, dx, size);
    RC_ASSERT(std::fabs(left - right) <= 1e-11 * size + 1e-12);
    for (std::size_t i = 0; i < forward.outputs.size(); ++i)
      RC_ASSERT(same_bits(forward.outputs[i], reverse.outputs[i]));
    const std::vector<Array> alone = p.forward(g.views());
    for (std::size_t i = 0; i < alone.size(); ++i) RC_ASSERT(same_bits(alone[i], forward.outputs[i]));
  });
}

// The same, one order up: the pullback is a program with derivatives of its own.
TEST(GraphDerivatives, PullbacksHaveAdjointDerivatives) {
  check(100, [] {
    RandomGraph g(Type::f64, static_cast<int>(detail::between(4, 10)), true);
    const Program p = some_of(g).vjp_program();
    const auto x = random_like(p.inputs(), 1), dx = random_like(p.inputs(), 100), gy = random_like(p.outputs(), 200);
    const auto forward = p.jvp(as<Views>(x), as<Seeds>(dx));
    const auto reverse = p.vjp(as<Views>(x), as<Seeds>(gy));
    double size = 1e-300;
    const double left = dot_all(forward.tangents, gy, size), right = dot_all(reverse.cotangents, dx, size);
    RC_ASSERT(std::fabs(left - right) <= 1e-10 * size + 1e-11);
  });
}

// Central differences, where everything is smooth.
TEST(GraphDerivatives, TangentsAreSlopes) {
  check(100, [] {
    RandomGraph g(Type::f64, static_cast<int>(detail::between(4, 10)), true);
    for (const auto& [var, value] : g.values)
      for (const double v : numbers(value)) RC_PRE(std::fabs(v) < 100);
    const Program p = g.builder.compile({g.values.back().first});
    const auto dx = random_like(p.inputs(), 100);
    const double h = 1e-5;
    const auto moved = [&](double by) {
      std::vector<Array> x = g.inputs;
      for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t k = 0; k < x[i].values<double>().size(); ++k)
          x[i].values<double>()[k] += by * dx[i].values<double>()[k];
      return numbers(p.forward(as<Views>(x))[0]);
    };
    const auto up = moved(h), down = moved(-h), slope = numbers(*p.jvp(g.views(), as<Seeds>(dx)).tangents[0]);
    for (std::size_t i = 0; i < up.size(); ++i) {
      const double expected = (up[i] - down[i]) / (2 * h);
      RC_ASSERT(std::fabs(slope[i] - expected) <= 1e-4 * (1 + std::fabs(expected)));
    }
  });
}

// A pooling in a graph, against its rules run at once.
TEST(GraphDerivatives, APoolingGivesTheBitsOfItsRulesAlone) {
  for (const Reducer reducer : all_reducers) {
    check(60, [&] {
      Case c = *cases(reducer, Region::small);
      c.pooling.indices.reset();
      c.pooling.dtype.reset();
      const Type type = detail::one_of<Type>({Type::f16, Type::bf16, Type::f32, Type::f64});
      const Array x = eighths(type, c.shape, c.seed);
      Builder b;
      std::optional<Program> p;
      try {
        p = b.compile({pool(b.input(type, c.shape), c.pooling)});
      } catch (const std::invalid_argument&) {
        return;  // not a pooling that can be planned
      }
      const Array dx = eighths(type, c.shape, 5), gy = eighths(type, p->outputs()[0].shape, 6);
      const autodiff::OpPtr op = autodiff::pool_op(c.pooling);
      autodiff::EagerTracer t;
      const std::vector<autodiff::Value> in{t.borrow(x)}, out = t.apply(op, in);
      const auto tangent = op->jvp(t, in, out, std::vector<autodiff::Maybe>{t.borrow(dx)}).front();
      const auto cotangent = op->vjp(t, in, out, std::vector<autodiff::Maybe>{t.borrow(gy)}).front();
      RC_ASSERT(tangent && cotangent);
      RC_ASSERT(same_bits(*p->jvp({x}, {dx}).tangents[0], t.take(*tangent)));
      RC_ASSERT(same_bits(*p->vjp({x}, {gy}).cotangents[0], t.take(*cotangent)));
    });
  }
}

TEST(GraphDerivatives, ADiamondSumsItsPaths) {
  Builder b;
  const Var x = b.input(Type::f64, {2});
  const Var s = x * x;
  const Program p = b.compile({s * x + scale(s, 2)});
  const Array at = array<double>({2}, {3, -1});
  EXPECT_TRUE(holds(*p.vjp({at}, {full<double>({2}, 1)}).cotangents[0], {2}, {27 + 12, 3 - 4}));
  EXPECT_TRUE(holds(*p.jvp({at}, {full<double>({2}, 1)}).tangents[0], {2}, {27 + 12, 3 - 4}));
}

TEST(GraphDerivatives, ConstantsDetachedValuesAndUnusedInputsGiveExactZeros) {
  Builder b;
  const Var x = b.input(Type::f32, {2}), unused = b.input(Type::f32, {3}), c = b.constant(array({2}, {nan, inf}));
  const Program p = b.compile({detach(exp(x)), c, x + detach(x)});
  const Array at = array({2}, {inf, nan}), rest = counting({3});
  const auto forward = p.jvp({at, rest}, {array({2}, {1, 2}), rest});
  EXPECT_TRUE(holds(*forward.tangents[0], {2}, {0, 0}));
  EXPECT_TRUE(holds(*forward.tangents[1], {2}, {0, 0}));
  EXPECT_TRUE(holds(*forward.tangents[2], {2}, {1, 2}));
  const auto reverse = p.vjp({at, rest}, {array({2}, {5, 5}), array({2}, {5, 5}), array({2}, {1, 2})});
  EXPECT_TRUE(holds(*reverse.cotangents[0], {2}, {1, 2}));
  EXPECT_TRUE(holds(*reverse.cotangents[1], {3}, {0, 0, 0}));
  (void)unused;
}

TEST(GraphDerivatives, MaxPoolingSendsCotangentsToTheFirstWinner) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 2, 4});
  const Program p = b.compile({max_pool2d(x, {2, 2}, 2)});
  const Array at = array({1, 2, 4}, {1, 5, 2, 0, 5, 4, 9, 9});
  const auto v = p.vjp({at}, {array({1, 1, 2}, {10, 20})});
  EXPECT_TRUE(holds(v.outputs[0], {1, 1, 2}, {5, 9}));
  EXPECT_TRUE(holds(*v.cotangents[0], {1, 2, 4}, {0, 10, 0, 0, 0, 0, 20, 0}));
  const auto j = p.jvp({at}, {counting({1, 2, 4})});
  EXPECT_TRUE(holds(*j.tangents[0], {1, 1, 2}, {1, 6}));
}

TEST(GraphDerivatives, AveragesShareByTheWindowAsTorchLeanDoes) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 2, 2});
  const Program p = b.compile({avg_pool2d_pad(x, {2, 2}, 2, 1)});
  const auto v = p.vjp({counting({1, 2, 2})}, {full({1, 2, 2}, 4)});
  EXPECT_TRUE(holds(*v.cotangents[0], {1, 2, 2}, {1, 1, 1, 1}));
}

TEST(GraphDerivatives, GatherAndUnpoolMoveCotangentsAlongTheirIndices) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 1, 4}), at = b.input(Type::i64, {1, 1, 3}), y = b.input(Type::f32, {1, 1, 3});
  const Program p = b.compile({gather(x, at), max_unpool(y, at, {1, 1, 4})});
  const Array values = array({1, 1, 4}, {1, 2, 3, 4}), places = array<std::int64_t>({1, 1, 3}, {3, 0, 3});
  const auto v = p.vjp({values, places, array({1, 1, 3}, {7, 8, 9})},
                       {array({1, 1, 3}, {1, 10, 100}), array({1, 1, 4}, {1, 2, 3, 4})});
  EXPECT_TRUE(holds(v.outputs[0], {1, 1, 3}, {4, 1, 4}));
  EXPECT_TRUE(holds(v.outputs[1], {1, 1, 4}, {8, 0, 0, 9}));
  EXPECT_TRUE(holds(*v.cotangents[0], {1, 1, 4}, {10, 0, 0, 101}));
  EXPECT_FALSE(v.cotangents[1].has_value());
  EXPECT_TRUE(holds(*v.cotangents[2], {1, 1, 3}, {0, 1, 4}));
  const Array bad = array<std::int64_t>({1, 1, 3}, {3, 4, 0});
  EXPECT_TRUE(rejects(
      [&] {
        p.forward({values, bad, array({1, 1, 3}, {7, 8, 9})});
      },
      {"[graph] node 3 (gather)", "4"}));
}

TEST(GraphDerivatives, UnpoolingAPoolingPassesCotangentsOnlyThroughWinners) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 1, 4});
  const graph::Pooled y = max_pool_with_indices(x, {.size = {2}, .stride = 2});
  const Program p = b.compile({max_unpool(y.values, y.indices, {1, 1, 4}), gather(x, y.indices) - y.values});
  const auto v = p.vjp({array({1, 1, 4}, {1, 2, 4, 3})}, {array({1, 1, 4}, {1, 2, 3, 4}), array({1, 1, 2}, {5, 6})});
  EXPECT_TRUE(holds(v.outputs[0], {1, 1, 4}, {0, 2, 4, 0}));
  EXPECT_TRUE(holds(v.outputs[1], {1, 1, 2}, {0, 0}));
  EXPECT_TRUE(holds(*v.cotangents[0], {1, 1, 4}, {0, 2, 3, 0}));
}

TEST(GraphDerivatives, SecondOrderOfASmoothPool) {
  Builder b;
  const Var x = b.input(Type::f64, {1, 2});
  const Program p = b.compile({smooth_max_pool(x, {.size = {2}}, 2.0)});
  const Array at = array<double>({1, 2}, {0.25, 0.25}), one = full<double>({1, 1}, 1);
  // w = 1/2 each, so the second derivative is beta * (1/2 - 1/4) = 1/2 on the diagonal.
  const auto second = p.vjp_program().jvp({at, one}, {array<double>({1, 2}, {1, 0}), std::nullopt});
  EXPECT_TRUE(holds(*second.tangents[0], {1, 2}, {0.5, -0.5}, 1e-12));
  const auto reverse = p.vjp_program().vjp({at, one}, {array<double>({1, 2}, {1, 0})});
  EXPECT_TRUE(holds(*reverse.cotangents[0], {1, 2}, {0.5, -0.5}, 1e-12));
  EXPECT_TRUE(holds(*reverse.cotangents[1], {1, 1}, {0.5}, 1e-12));
}

TEST(GraphDerivatives, IntegersInsideAGraphAreConstants) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 4}), n = b.input(Type::i32, {1, 4});
  const Program p = b.compile({max_pool(n, {.size = {2}}), x + avg_pool(n, {.size = {1}})});
  const Array at = counting({1, 4}), ints = counting<std::int32_t>({1, 4});
  const auto j = p.jvp({at, ints}, {at, std::nullopt});
  EXPECT_FALSE(j.tangents[0].has_value());
  EXPECT_TRUE(holds(*j.tangents[1], {1, 4}, {0, 1, 2, 3}));
  const auto v = p.vjp({at, ints}, {std::nullopt, at});
  EXPECT_TRUE(holds(*v.cotangents[0], {1, 4}, {0, 1, 2, 3}));
  EXPECT_FALSE(v.cotangents[1].has_value());
}

}  // namespace
}  // namespace cenote::test
