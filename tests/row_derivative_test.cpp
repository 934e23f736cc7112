// Derivatives of row poolings: both modes against the oracle and each other, second order, NaN, ties, empty rows.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/differences.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_rows.h"
#include "support/sparse_line.h"

namespace cenote::test {
namespace {

using detail::between;
using detail::one_of;

/// Tangents and cotangents of a case.
struct Along {
  Strided dx, gy;

  Along(const RowCase& c, const RowGiven& given)
      : dx(c.type, {given.input->rows(), c.channels}, c.dx), gy(c.type, given.output_shape(c), c.gy) {
    fill(dx, c.slopes, c.number + 1);
    fill(gy, c.slopes, c.number + 2);
  }
  View tangent() const { return dx.view(); }
  View cotangent() const { return gy.view(); }
};

void check_both_are_adjoint(const RowCase& c, const RowOracle& oracle, const Along& along, const Array& dy,
                            const Array& gx) {
  const auto dx = doubles(along.tangent()), gy = doubles(along.cotangent());
  const bool integers = c.slopes == Data::few;
  const long double error =
      inner_error(oracle.tangents(dx, integers), gy, c.type) + inner_error(oracle.cotangents(gy, integers), dx, c.type);
  const bool adjoint = check_adjoint(numbers(dy), gy, numbers(gx), dx, integers && oracle.exact() ? 0 : 2 * error);
  RC_ASSERT(adjoint || !oracle.routed());
}

struct Both {
  Array dy, gx;
};

Both both_modes(const RowGiven& given, const Along& along) {
  const Array y = (*given.pooling)(given.features());
  Linearized forward = jvp(*given.pooling, given.features(), along.tangent());
  const DifferentiatedRows back = vjp(*given.pooling, given.features());
  RC_ASSERT(same_bits(forward.y, y));
  RC_ASSERT(same_bits(back.y, y));
  return {std::move(forward.dy), back.pullback(along.cotangent())};
}

void obeys_the_laws(RowCase c) {
  const RowGiven given(c);
  const RowOracle oracle = given.oracle(c);
  const Along along(c, given);
  const bool integers = c.slopes == Data::few;
  const auto dy = oracle.jvp(doubles(along.tangent()), integers), gx = oracle.vjp(doubles(along.cotangent()), integers);
  for (const std::string& target : targets_under_test()) {
    std::optional<Both> first;
    for (const int count : {1, 2, 5}) {
      const Machine machine(target, count);
      Both both = both_modes(given, along);
      const std::string where = " on " + target + " with " + std::to_string(count) + " threads";
      if (first && !(same_bits(first->dy, both.dy) && same_bits(first->gx, both.gx)))
        RC_FAIL("other bits than with one thread" + where);
      const std::string wrong_dy = mismatch(dy, both.dy), wrong_gx = mismatch(gx, both.gx);
      if (!wrong_dy.empty()) RC_FAIL("dy " + wrong_dy + where);
      if (!wrong_gx.empty()) RC_FAIL("gx " + wrong_gx + where);
      first = std::move(both);
    }
    check_both_are_adjoint(c, oracle, along, first->dy, first->gx);
  }
}

class RowDerivativeLaws : public testing::TestWithParam<RowKind> {};
INSTANTIATE_TEST_SUITE_P(Every, RowDerivativeLaws, testing::ValuesIn(row_kinds), row_label);

TEST_P(RowDerivativeLaws, BothModesEqualTheOracleAndAreAdjointWithAnyTargetAndThreads) {
  const auto drawn = row_cases(GetParam().reducer, GetParam().ties);
  check(120, [&] { obeys_the_laws(*drawn); });
}

/// A case of numbers near 1, where differences tell something and the pole of lp at 0 is far away.
struct SmoothRows {
  std::optional<RowGiven> given;
  Reduction reduction;
  Array x, dx, gy, v;
  double size = 1;

  SmoothRows(Reducer reducer, Type type) {
    RowCase c = *row_cases(reducer, Ties::first);
    c.type = type;
    c.channels = between(1, 5);
    c.reduction.beta = one_of<double>({1, 0.5, -2, 3});
    c.reduction.p = one_of<double>({2, 3, 1.5, 2.5, 4});
    given.emplace(c);
    reduction = c.reduction;
    const Extents in{given->input->rows(), c.channels}, out = given->output_shape(c);
    x = drawn(in, type, Data::unit, c.number);
    Numbers values = numbers(x);
    for (double& value : values) value += value < 0 ? -0.5 : 0.5;
    x = like(x, values);
    dx = drawn(in, type, Data::unit, c.number + 1);
    v = drawn(in, type, Data::unit, c.number + 2);
    gy = drawn(out, type, Data::unit, c.number + 3);
    double most = 0;
    for (const std::int64_t held : degrees()) most = std::max(most, static_cast<double>(held));
    size = 50 * (1 + most);
  }

  const RowPooling& pooling() const { return *given->pooling; }
  RowOracle oracle() const { return RowOracle(reduction, given->relation, given->volume, x); }

 private:
  /// How many outputs each input feeds.
  std::vector<std::int64_t> degrees() const {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(given->input->rows()), 0);
    for (const auto& edge : given->relation.edges) ++counts[static_cast<std::size_t>(edge.in_row)];
    return counts;
  }
};

class SmoothRowDerivative : public testing::TestWithParam<Reducer> {};
INSTANTIATE_TEST_SUITE_P(Of, SmoothRowDerivative, testing::Values(Reducer::smooth_max, Reducer::lp),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SmoothRowDerivative, EqualsTheDifferenceQuotient) {
  check(80, [] {
    const SmoothRows s(GetParam(), Type::f64);
    const auto y = [&](double by) { return s.pooling()(moved(s.x, by, s.dx)); };
    check_difference(y(-step), y(step), step, jvp(s.pooling(), s.x, s.dx).dy, s.size);
    const auto gx = [&](double by) { return vjp(s.pooling(), moved(s.x, by, s.v)).pullback(s.gy); };
    check_difference(gx(-step), gx(step), step, hvp(s.pooling(), s.x, s.gy, s.v), s.size);
  });
}

TEST_P(SmoothRowDerivative, OfSecondOrderEqualsTheOracle) {
  for (const Type type : {Type::f64, Type::f32, Type::f16, Type::bf16})
    check(60, [type] {
      const SmoothRows s(GetParam(), type);
      const Array h = hvp(s.pooling(), s.x, s.gy, s.v);
      RC_ASSERT(h.type() == type);
      const std::string wrong = mismatch(s.oracle().hvp(numbers(s.gy), numbers(s.v)), h);
      if (!wrong.empty()) RC_FAIL(std::string(name(type)) + " " + wrong);
    });
}

TEST_P(SmoothRowDerivative, OfSecondOrderIsSymmetric) {
  check(80, [] {
    const SmoothRows s(GetParam(), Type::f64);
    const long double left = inner(hvp(s.pooling(), s.x, s.gy, s.v), s.dx);
    const long double right = inner(hvp(s.pooling(), s.x, s.gy, s.dx), s.v);
    RC_ASSERT(std::fabs(left - right) <= 1e-13L * s.size * static_cast<long double>(s.x.size() + 1));
  });
}

TEST_P(SmoothRowDerivative, OfSecondOrderIsTheSameForAnyNumberOfThreads) {
  check(30, [] {
    const SmoothRows s(GetParam(), one_of<Type>({Type::f32, Type::f64, Type::f16}));
    for (const std::string& target : targets_under_test()) {
      std::optional<Array> first;
      for (const int count : {1, 2, 5}) {
        const Machine machine(target, count);
        const Array h = hvp(s.pooling(), s.x, s.gy, s.v);
        RC_ASSERT(!first || same_bits(*first, h));
        first = h;
      }
    }
  });
}

TEST(RowSecondDerivative, IsZeroWhereRowsAreNotBent) {
  check(150, [] {
    const RowKind kind = one_of<RowKind>({std::begin(row_kinds), std::end(row_kinds)});
    RowCase c = *row_cases(kind.reducer, kind.ties);
    if (kind.reducer == Reducer::smooth_max) return;
    c.reduction.p = one_of<double>({1, inf});
    const RowGiven given(c);
    const Along along(c, given);
    for (const double h : numbers(hvp(*given.pooling, given.features(), along.cotangent(), along.tangent())))
      RC_ASSERT(h == 0);
  });
}

TEST(RowSecondDerivative, OfLpTakesAPowerOfZeroAsZero) {
  const RowPooling two = one_window(2, {.reducer = Reducer::lp});
  const Array one = full<double>({1, 1}, 1), v = array<double>({2, 1}, {1, 1});
  EXPECT_TRUE(holds(hvp(two, array<double>({2, 1}, {0, 0}), one, v), {2, 1}, {0, 0}));
  EXPECT_TRUE(holds(hvp(two, array<double>({2, 1}, {0, 2}), one, v), {2, 1}, {0, 0}));
  EXPECT_TRUE(
      holds(hvp(two, array<double>({2, 1}, {3, 4}), one, array<double>({2, 1}, {1, 0})), {2, 1}, {.128, -.096}, 1e-15));
  const RowPooling low = one_window(2, {.reducer = Reducer::lp, .p = 1.5});
  EXPECT_TRUE(holds(hvp(low, array<double>({2, 1}, {0, 2}), one, v), {2, 1}, {0, 0}));
}

TEST(RowDerivative, OfSumsDoesNotLookAtX) {
  const Array x = array({3, 1}, {nan, inf, 1});
  for (const Reducer reducer : {Reducer::sum, Reducer::avg}) {
    const double share = reducer == Reducer::avg ? 0.25 : 1;
    const RowPooling pooling = one_window(3, {.reducer = reducer, .divisor = 4.0});
    EXPECT_TRUE(holds(gradient(pooling, x), {3, 1}, {share, share, share}));
    EXPECT_TRUE(holds(jvp(pooling, x, full({3, 1}, 4)).dy, {1, 1}, {12 * share}));
  }
}

TEST(RowDerivative, NaNStaysInItsOwnOutput) {
  // Pairs (0, 1) and (2, 3).
  const auto pairs = [](const Reduction& r) { return RowPooling(relate(line({0, 1, 2, 3}), {2, 2}), r); };
  const RowPooling smooth = pairs({.reducer = Reducer::smooth_max});
  EXPECT_TRUE(holds(gradient(smooth, array({4, 1}, {nan, 1, 2, 2})), {4, 1}, {nan, nan, .5, .5}));
  EXPECT_TRUE(holds(gradient(smooth, array({4, 1}, {inf, 1, inf, inf})), {4, 1}, {1, 0, .5, .5}));
  EXPECT_TRUE(holds(gradient(smooth, array({4, 1}, {-inf, -inf, 3, -inf})), {4, 1}, {.5, .5, 1, 0}));
  const RowPooling norm = pairs({.reducer = Reducer::lp});
  EXPECT_TRUE(holds(gradient(norm, array({4, 1}, {nan, 1, 3, 4})), {4, 1}, {nan, nan, .6, .8}, 1e-6));
  EXPECT_TRUE(holds(gradient(norm, array({4, 1}, {inf, 1, 0, 0})), {4, 1}, {1, 0, 0, 0}));
  for (const double p : {1.0, inf}) {
    const RowPooling edge = pairs({.reducer = Reducer::lp, .p = p});
    EXPECT_TRUE(holds(gradient(edge, array({4, 1}, {nan, 1, 3, 0})), {4, 1}, {nan, p == 1 ? 1.0 : 0.0, 1, 0}));
  }
  const RowPooling sum = pairs({});
  EXPECT_TRUE(holds(vjp(sum, full({4, 1}, 1)).pullback(array({2, 1}, {nan, 1})), {4, 1}, {nan, nan, 1, 1}));
  const RowPooling most = pairs({.reducer = Reducer::max});
  EXPECT_TRUE(holds(vjp(most, array({4, 1}, {1, 2, 4, 3})).pullback(array({2, 1}, {nan, 5})), {4, 1}, {0, nan, 5, 0}));
  EXPECT_TRUE(holds(jvp(most, array({4, 1}, {1, 2, 4, 3}), array({4, 1}, {nan, 2, 3, nan})).dy, {2, 1}, {2, 3}));
}

TEST(RowDerivative, RowsThatFeedNothingGetZero) {
  // With stride 3 and size 1 every third point feeds an output.
  for (const Reducer reducer : all_reducers) {
    const RowPooling pooling(relate(line({0, 1, 3, 5}), {1, 3}), {.reducer = reducer});
    const Array x = array({4, 1}, {1, nan, 2, nan});
    EXPECT_TRUE(holds(gradient(pooling, x), {4, 1}, {1, 0, 1, 0}, 1e-7)) << name(reducer);
    EXPECT_TRUE(holds(hvp(pooling, x, full({2, 1}, 1), full({4, 1}, 1)), {4, 1}, {0, 0, 0, 0}, 1e-6)) << name(reducer);
  }
}

TEST(RowDerivative, IsZeroWithoutOutputs) {
  // Outputs of policy dense lie at even points, and there is no input.
  for (const Reducer reducer : all_reducers) {
    const RowPooling none(relate(line({1}), {1, 2}, {.policy = Policy::dense}), {.reducer = reducer});
    EXPECT_EQ(none.outputs(), 0);
    EXPECT_TRUE(holds(gradient(none, array({1, 1}, {5})), {1, 1}, {0})) << name(reducer);
    EXPECT_EQ(jvp(none, full({1, 1}, 5), full({1, 1}, 1)).dy.shape(), (Extents{0, 1}));
  }
}

TEST(RowDerivative, OfTheLargestMagnitudeIsNaNWhereThatIs) {
  const RowPooling largest = one_window(3, {.reducer = Reducer::lp, .p = inf});
  const Array x = array({3, 1}, {1, nan, nan});
  EXPECT_TRUE(holds(gradient(largest, x), {3, 1}, {0, nan, 0}));
  EXPECT_TRUE(holds(vjp(largest, x).pullback(full({1, 1}, 0)), {3, 1}, {0, nan, 0}));
  EXPECT_TRUE(holds(jvp(largest, x, full({3, 1}, 0)).dy, {1, 1}, {nan}));
}

TEST(RowDerivative, APullbackKeepsWhatItNeeds) {
  std::optional<RowPullback> back;
  {
    Array x = array({4, 1}, {1, 2, 4, 3});
    back = vjp(RowPooling(relate(line({0, 1, 2, 3}), {2, 2}), {.reducer = Reducer::max}), x).pullback;
    for (float& value : x.values<float>()) value = -value;
  }
  EXPECT_TRUE(holds((*back)(full({2, 1}, 1)), {4, 1}, {0, 1, 1, 0}));
  EXPECT_TRUE(holds((*back)(array({2, 1}, {3, 5})), {4, 1}, {0, 3, 5, 0}));
}

}  // namespace
}  // namespace cenote::test
