// Row poolings in eager tensors and in graphs: gradients, both modes of programs, second order, descriptions.
#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/differences.h"
#include "support/property.h"
#include "support/random_rows.h"
#include "support/sparse_line.h"

namespace cenote::test {
namespace {

using graph::Builder;
using graph::Program;
using graph::Var;

using Maybe = std::vector<std::optional<View>>;

RowPooling pairs(const Reduction& reduction) { return RowPooling(relate(line({0, 1, 2, 3}), {2, 2}), reduction); }

TEST(RowTensor, LeavesTheGradientOfItsSum) {
  const Tensor x(array<double>({4, 1}, {1, 2, 4, 3}));
  const Tensor y = pool(x, pairs({.reducer = Reducer::max}));
  EXPECT_TRUE(holds(y.data(), {2, 1}, {2, 4}));
  (y * y).backward();
  EXPECT_TRUE(holds(*x.grad(), {4, 1}, {0, 4, 8, 0}));
  pool(x, pairs({.reducer = Reducer::avg})).backward(array<double>({2, 1}, {2, 6}));
  EXPECT_TRUE(holds(*x.grad(), {4, 1}, {1, 1, 3, 3}));
}

TEST(RowTensor, ChainsWithOtherOperations) {
  const Tensor x(array<double>({4, 1}, {1, 2, 4, 3}));
  const RowPooling onto(relate(line({0, 1}), {2, 2}), {});
  pool(pool(x, pairs({.reducer = Reducer::max})) * 3.0, onto).sum().backward();
  EXPECT_TRUE(holds(*x.grad(), {4, 1}, {0, 3, 3, 0}));
}

TEST(RowTensor, ConstantsStopTheGradient) {
  const Tensor x(array<double>({4, 1}, {1, 2, 4, 3}));
  const Tensor y = pool(x, pairs({}), true);
  EXPECT_TRUE(y.constant());
  y.backward();
  EXPECT_EQ(x.grad(), nullptr);
  EXPECT_TRUE(pool(Tensor(array({4, 1}, {1, 2, 4, 3}), true), pairs({})).constant());
}

TEST(RowTensor, EqualsThePullbackOnRandomRows) {
  check(60, [] {
    const RowKind kind = detail::one_of<RowKind>({std::begin(row_kinds), std::end(row_kinds)});
    RowCase c = *row_cases(kind.reducer, kind.ties);
    const RowGiven given(c);
    const Tensor x{Array(given.features())};
    const Array gy = drawn(given.output_shape(c), c.type, Data::few, 2);
    const Tensor y = pool(x, *given.pooling);
    RC_ASSERT(same_bits(y.data(), (*given.pooling)(x.data())));
    y.backward(gy);
    RC_ASSERT(x.grad() != nullptr);
    const Array gx = vjp(*given.pooling, x.data()).pullback(gy);
    RC_ASSERT(numbers(*x.grad()) == numbers(gx) || holds(*x.grad(), gx.shape(), numbers(gx)));
  });
}

/// exp(pool(x)) * pool(x) of one row pooling, whose derivatives of every order are not zero.
Program bent(const RowPooling& pooling, const Extents& shape) {
  Builder b;
  const Var x = b.input(Type::f64, shape, "x");
  const Var y = graph::pool(x, pooling);
  return b.compile({graph::exp(y) * y});
}

TEST(RowGraph, KnowsTheShapeOfItsRows) {
  Builder b;
  const Var x = b.input(Type::f16, {4, 7});
  const Var y = graph::pool(x, pairs({.reducer = Reducer::max}));
  EXPECT_EQ(y.shape(), (Extents{2, 7}));
  EXPECT_EQ(y.type(), Type::f16);
  EXPECT_TRUE(rejects([&] { graph::pool(b.input(Type::f32, {5, 7}), pairs({})); }, {"(5, 7)", "4"}));
  EXPECT_TRUE(rejects([&] { graph::pool(b.input(Type::f32, {4}), pairs({})); }, {"(4,)"}));
  EXPECT_TRUE(rejects([&] { graph::pool(b.input(Type::i32, {4, 7}), pairs({})); }, {"i32"}));
}

TEST(RowGraph, SaysWhatItDoes) {
  Builder b;
  const Var x = b.input(Type::f32, {4, 1});
  const Program p = b.compile({graph::pool(x, pairs({.reducer = Reducer::max}))});
  EXPECT_EQ(p.node_count(), 1);
  EXPECT_NE(p.describe().find("max"), std::string::npos) << p.describe();
  EXPECT_NE(p.describe().find("(2, 1)"), std::string::npos) << p.describe();
  EXPECT_FALSE(p.dot().empty());
}

TEST(RowGraph, RunsForwardAndInBothModes) {
  Builder b;
  const Var x = b.input(Type::f64, {4, 1});
  const Program p = b.compile({graph::pool(x, pairs({.reducer = Reducer::max}))});
  const Array at = array<double>({4, 1}, {1, 2, 4, 3}), dx = array<double>({4, 1}, {10, 20, 30, 40});
  const Array gy = array<double>({2, 1}, {5, 7});
  EXPECT_TRUE(holds(p.forward({at})[0], {2, 1}, {2, 4}));
  EXPECT_TRUE(holds(*p.jvp({at}, Maybe{dx}).tangents[0], {2, 1}, {20, 30}));
  EXPECT_TRUE(holds(*p.vjp({at}, Maybe{gy}).cotangents[0], {4, 1}, {0, 5, 7, 0}));
  graph::Workspace workspace(p);
  Array y(Type::f64, {2, 1});
  const std::vector<View> inputs{at};
  const std::vector<MutableView> outputs{y};
  for (int i = 0; i < 3; ++i) p.run(inputs, outputs, workspace);
  EXPECT_TRUE(holds(y, {2, 1}, {2, 4}));
}

TEST(RowGraph, EqualsTheFunctionsOnRandomRows) {
  check(60, [] {
    const RowKind kind = detail::one_of<RowKind>({std::begin(row_kinds), std::end(row_kinds)});
    RowCase c = *row_cases(kind.reducer, kind.ties);
    const RowGiven given(c);
    const Array x(given.features()), dx = drawn(x.shape(), c.type, Data::few, 1);
    const Array gy = drawn(given.output_shape(c), c.type, Data::few, 2);
    Builder b;
    const Program p = b.compile({graph::pool(b.input(c.type, x.shape()), *given.pooling)});
    RC_ASSERT(same_bits(p.forward({x})[0], (*given.pooling)(x)));
    const auto same = [](const Array& a, const Array& e) { return bool(holds(a, e.shape(), numbers(e))); };
    RC_ASSERT(same(*p.jvp({x}, Maybe{dx}).tangents[0], jvp(*given.pooling, x, dx).dy));
    RC_ASSERT(same(*p.vjp({x}, Maybe{gy}).cotangents[0], vjp(*given.pooling, x).pullback(gy)));
  });
}

TEST(RowGraph, SlopesThatAreNotGivenAreZero) {
  for (const Reducer reducer : all_reducers) {
    Builder b;
    const Program p = b.compile({graph::pool(b.input(Type::f64, {4, 3}), pairs({.reducer = reducer}))});
    const Array x = counting<double>({4, 3}, 1);
    EXPECT_TRUE(holds(*p.jvp({x}, Maybe{std::nullopt}).tangents[0], {2, 3}, std::vector<double>(6, 0)));
    EXPECT_TRUE(holds(*p.vjp({x}, Maybe{std::nullopt}).cotangents[0], {4, 3}, std::vector<double>(12, 0)));
  }
}

/// A program's derivatives on views of any strides, into views of any strides.
void runs_on_any_strides(RowCase c) {
  const RowGiven given(c);
  Builder b;
  const Extents in{given.input->rows(), c.channels}, out = given.output_shape(c);
  const Program p = b.compile({graph::pool(b.input(c.type, in), *given.pooling)});
  Strided dx(c.type, in, c.dx), gy(c.type, out, c.gy), y(c.type, out, c.y), dy(c.type, out, c.y);
  fill(dx, Data::few, 1);
  fill(gy, Data::few, 2);
  const View x = given.features(), along = std::as_const(dx).view(), back = std::as_const(gy).view();
  const auto same = [](const std::vector<double>& a, const std::vector<double>& e) {
    RC_ASSERT(a.size() == e.size());
    for (std::size_t i = 0; i < a.size(); ++i) RC_ASSERT(a[i] == e[i] || (a[i] != a[i] && e[i] != e[i]));
  };
  const RowPooling& pooling = *given.pooling;
  graph::Workspace workspace(p, graph::Mode::jvp);
  p.run_jvp(std::vector<View>{x}, std::vector<View>{along}, std::vector<MutableView>{y.view()},
            std::vector<MutableView>{dy.view()}, workspace);
  RC_ASSERT(y.gaps_untouched());
  RC_ASSERT(dy.gaps_untouched());
  same(doubles(std::as_const(y).view()), numbers(pooling(x)));
  same(doubles(std::as_const(dy).view()), numbers(jvp(pooling, x, along).dy));
  same(numbers(*p.vjp({x}, Maybe{back}).cotangents[0]), numbers(vjp(pooling, x).pullback(back)));
}

TEST(RowGraph, TakesInputsAndOutputsOfAnyStrides) {
  check(150, [] {
    const RowKind kind = detail::one_of<RowKind>({std::begin(row_kinds), std::end(row_kinds)});
    runs_on_any_strides(*row_cases(kind.reducer, kind.ties));
  });
}

/// Random rows in double precision, away from the pole of lp at 0 and from ties.
struct Bent {
  Program program;
  Array x, dx, v, gy;
  double size = 1;
};

Bent draw_bent() {
  const Reducer reducer = detail::one_of<Reducer>({std::begin(all_reducers), std::end(all_reducers)});
  RowCase c = *row_cases(reducer, Ties::first);
  c.type = Type::f64;
  c.channels = 2;
  c.reduction.beta = detail::one_of<double>({1, -2});
  c.reduction.p = detail::one_of<double>({2, 3, 1.5});
  c.reduction.divisor = EdgeDivisor::Rule::count;
  c.feeding = detail::one_of<Feeding>({Feeding::local, Feeding::global});
  if (c.feeding == Feeding::local) {
    c.request.problem.kernel = {{1}, {1}, {0}, {1}};
    for (auto* axes : {&c.request.problem.kernel.size, &c.request.problem.kernel.stride,
                       &c.request.problem.kernel.padding, &c.request.problem.kernel.dilation})
      axes->resize(static_cast<std::size_t>(c.request.dimension), (*axes)[0]);
    for (auto& k : c.request.problem.kernel.size) k = 2;
    c.request.problem.targets.reset();
    c.request.problem.extent.reset();
  }
  const RowGiven given(c);
  const Extents shape{given.input->rows(), 2};
  Numbers values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5 + 0.5 * std::sin(double(i * i + c.number));
  for (double& value : values) value = value / static_cast<double>(values.size() + 1) + 0.01;
  Bent b{bent(*given.pooling, shape), Array(shape, values), drawn(shape, c.type, Data::unit, 1),
         drawn(shape, c.type, Data::unit, 2), drawn(given.output_shape(c), c.type, Data::unit, 3)};
  b.size = static_cast<double>(values.size() + 1);
  return b;
}

TEST(RowGraph, ModesAreAdjointThroughOtherNodes) {
  check(60, [] {
    const Bent b = draw_bent();
    const Array dy = *b.program.jvp({b.x}, Maybe{b.dx}).tangents[0];
    const Array gx = *b.program.vjp({b.x}, Maybe{b.gy}).cotangents[0];
    const long double left = inner(dy, b.gy), right = inner(gx, b.dx);
    if (!std::isfinite(left) || !std::isfinite(right)) return;  // an output without rows is infinite
    RC_ASSERT(std::fabs(left - right) <= 1e-10L * (std::fabs(left) + b.size * 1e3));
  });
}

TEST(RowGraph, SecondOrderIsSymmetricAndAdjoint) {
  check(60, [] {
    const Bent b = draw_bent();
    const Program back = b.program.vjp_program();
    const Array zero = Array::zeros(Type::f64, b.gy.shape());
    const auto second = [&](const Array& v) { return *back.jvp({b.x, b.gy}, Maybe{v, zero}).tangents[0]; };
    const Array along = second(b.v);
    const long double left = inner(along, b.dx), right = inner(second(b.dx), b.v);
    if (!std::isfinite(left) || !std::isfinite(right)) return;
    const long double room = 1e-9L * (std::fabs(left) + b.size * 1e3);
    RC_ASSERT(std::fabs(left - right) <= room);
    const auto cotangents = back.vjp({b.x, b.gy}, Maybe{b.dx}).cotangents;
    RC_ASSERT(std::fabs(inner(*cotangents[0], b.v) - left) <= room);
  });
}

TEST(RowGraph, SecondOrderOfOnePoolingIsItsHvp) {
  const RowPooling smooth = pairs({.reducer = Reducer::smooth_max, .beta = 2});
  Builder b;
  const Program p = b.compile({graph::pool(b.input(Type::f64, {4, 1}), smooth)});
  const Array x = array<double>({4, 1}, {1, 2, 4, 3}), gy = array<double>({2, 1}, {1, -3});
  const Array v = array<double>({4, 1}, {1, 0, -1, 2}), zero = full<double>({2, 1}, 0);
  const Array second = *p.vjp_program().jvp({x, gy}, Maybe{v, zero}).tangents[0];
  EXPECT_TRUE(holds(second, {4, 1}, numbers(hvp(smooth, x, gy, v)), 1e-14));
}

}  // namespace
}  // namespace cenote::test
