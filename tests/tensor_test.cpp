// Eager tensors: mygrad's examples, the rules of constants, gradients and graphs one by one, and long chains.
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/property.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

using detail::between;
using detail::chance;

Tensor tensor(const Extents& shape, const std::vector<double>& values) { return Tensor(array<double>(shape, values)); }

testing::AssertionResult grad_is(const Tensor& x, const std::vector<double>& expected, double tolerance = 0) {
  if (!x.grad()) return testing::AssertionFailure() << "there is no gradient";
  if (x.grad()->type() != x.type()) return testing::AssertionFailure() << "of another type";
  return holds(*x.grad(), x.shape(), expected, tolerance);
}

/// The text of the InvalidBackprop that f throws.
template <class F>
std::string backprop_error(F&& f) {
  try {
    f();
  } catch (const InvalidBackprop& error) {
    return error.what();
  }
  return {};
}

// The examples of mygrad's page on max_pool.

TEST(MygradExamples, Pool2dOfA2dTensor) {
  const Tensor x = tensor({3, 3}, {0, 10, 8,  //
                                   2, 7, 3,   //
                                   5, 7, 20});
  const Tensor out = nnet::max_pool(x, {2, 2}, 1);
  EXPECT_TRUE(holds(out.data(), {2, 2}, {10, 10, 7, 20}));
  out.sum().backward();
  EXPECT_TRUE(grad_is(x, {0, 2, 0,  //
                          0, 1, 0,  //
                          0, 0, 1}));
}

TEST(MygradExamples, Pool1dOfA2dTensor) {
  const Tensor x = tensor({3, 3}, {0, 10, 8,  //
                                   9, 7, 3,   //
                                   5, 0, 20});
  EXPECT_TRUE(holds(nnet::max_pool(x, {2}, 1).data(), {3, 2}, {10, 10, 9, 7, 5, 20}));
}

TEST(MygradExamples, Pool2dOfA4dTensor) {
  const Tensor x(counting<double>({10, 3, 12, 12}));
  const Tensor out = nnet::max_pool(x, {2, 2}, {2, 1});
  EXPECT_EQ(out.shape(), (Extents{10, 3, 6, 11}));
  out.backward();
  double total = 0;
  for (const double g : numbers(*x.grad())) total += g;
  EXPECT_EQ(total, 10 * 3 * 6 * 11);
}

TEST(MygradExamples, AWindowThatLeavesARemainderIsAnError) {
  const Tensor x = tensor({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_NE(error_of([&] { nnet::max_pool(x, {3, 3, 3}, 1); }), "");
  EXPECT_NE(error_of([&] { nnet::max_pool(x, {1, 1, 1}, 3); }), "");
  EXPECT_NE(error_of([&] { nnet::max_pool(x, {1, 1}, 0); }), "");
  EXPECT_NE(error_of([&] { nnet::max_pool(x, {1, 1}, {1, 1, 1}); }), "");
  EXPECT_EQ(max_pool(x, {.size = {1, 1, 1}, .stride = 3}).shape(), (Extents{1, 1, 1, 1}));
}

TEST(MygradExamples, ConstantStopsTheGradient) {
  const Tensor x = tensor({2}, {1, 2});
  const Tensor y = nnet::max_pool(x, {2}, 1, true);
  EXPECT_TRUE(y.constant());
  y.backward();
  EXPECT_FALSE(x.grad());
}

// Which tensors are constants.

TEST(Tensors, FloatsAreVariablesAndIntegersAreConstants) {
  for (int i = 0; i < type_count; ++i) {
    const Type type = static_cast<Type>(i);
    EXPECT_EQ(Tensor(Array::zeros(type, {2})).constant(), !is_float(type)) << name(type);
    EXPECT_TRUE(Tensor(Array::zeros(type, {2}), true).constant());
    EXPECT_EQ(error_of([&] { Tensor(Array::zeros(type, {2}), false); }).empty(), is_float(type));
  }
  EXPECT_FALSE(Tensor(Array::zeros(Type::f32, {2}), false).constant());
  EXPECT_EQ(error_of([] { Tensor(Array::zeros(Type::i32, {2}), false); }),
            "[Tensor] constant = false for data of type i32: must be true, integers have no derivative");
  EXPECT_EQ(error_of([] { Tensor(Array::zeros(Type::boolean, {2}), false); }),
            "[Tensor] constant = false for data of type bool: must be true, bool has no derivative");
}

TEST(Tensors, AResultIsConstantIfAllInputsAreOrIfAsked) {
  const Tensor x = tensor({2}, {1, 2}), c(full<double>({2}, 3), true);
  EXPECT_FALSE((x + c).constant());
  EXPECT_FALSE((c * x).constant());
  EXPECT_TRUE((c + c).constant());
  EXPECT_TRUE((c * 2).constant());
  EXPECT_FALSE((x * 2).constant());
  EXPECT_TRUE(add(x, x, true).constant());
  EXPECT_FALSE(add(x, x, false).constant());
  EXPECT_TRUE(exp(x, true).constant());
  EXPECT_TRUE(avg_pool(Tensor(full<std::int32_t>({2}, 3)), {.size = {2}}).constant());
  EXPECT_TRUE(avg_pool(x, {.size = {2}}, Divisor::Rule::window, true).constant());
}

TEST(Tensors, IntegersPool) {
  const Tensor x(array<std::int32_t>({3}, {3, 9, 4}));
  EXPECT_TRUE(holds(max_pool(x, {.size = {2}}).data(), {2}, {9, 9}));
  EXPECT_TRUE(holds(x.reshape({3, 1}).data(), {3, 1}, {3, 9, 4}));
  EXPECT_TRUE(rejects([&] { exp(x); }, {"[exp]", "i32", "integers have no exp"}));
  EXPECT_TRUE(rejects([&] { x + 1; }, {"[add]", "i32"}));
}

TEST(Tensors, AConstantOnlyCutsItsOwnPath) {
  const Tensor x = tensor({2}, {1, 2});
  (exp(x, true) * x).backward();
  EXPECT_TRUE(grad_is(x, {std::exp(1.0), std::exp(2.0)}));
}

// Gradients.

TEST(Backward, OfANonScalarIsThatOfItsSum) {
  const Tensor x = tensor({2}, {1, 3}), y = tensor({2}, {1, 3});
  (x * x).backward();
  (y * y).sum().backward();
  EXPECT_TRUE(grad_is(x, {2, 6}));
  EXPECT_TRUE(grad_is(y, {2, 6}));
}

TEST(Backward, TakesAGradientThatBroadcasts) {
  const Tensor x = tensor({2, 2}, {1, 2, 3, 4});
  (x * 3).backward(array<double>({2}, {1, 10}));
  EXPECT_TRUE(grad_is(x, {3, 30, 3, 30}));
  const double two = 2;
  (x * 3).backward(View(&two, {}));
  EXPECT_TRUE(grad_is(x, {6, 6, 6, 6}));
  const Tensor y = x * 3;
  EXPECT_EQ(error_of([&] {
              y.backward(array<double>({3}, {1, 2, 3}));
            }),
            "[backward] grad has shape (3,): must broadcast to that of the tensor, (2, 2)");
  EXPECT_EQ(error_of([&] {
              y.backward(array<float>({2}, {1, 2}));
            }),
            "[backward] grad has type f32: must be f64, as the tensor");
  EXPECT_EQ(error_of([&] { y.backward(View(nullptr, Type::f64, {2})); }),
            "[backward] grad has no data: must not be null");
  y.backward();
  EXPECT_TRUE(grad_is(x, {3, 3, 3, 3}));
}

TEST(Backward, SumsOverAllUsesOfATensor) {
  const Tensor x = tensor({2}, {2, 3});
  const Tensor y = x * x;
  const Tensor z = y + y * x + 5 * x;
  z.backward();
  EXPECT_TRUE(grad_is(x, {2 * 2 + 3 * 4 + 5, 2 * 3 + 3 * 9 + 5}));
  EXPECT_TRUE(grad_is(y, {3, 4}));
  EXPECT_TRUE(grad_is(z, {1, 1}));
}

TEST(Backward, KnowsEveryOperation) {
  const auto gradient = [](double at, auto f) {
    const Tensor x = tensor({}, {at});
    f(x).backward();
    return x.grad()->template at<double>({});
  };
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x + 1; }), 1);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return 1 + x; }), 1);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x - 1; }), 1);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return 1 - x; }), -1);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x * 7; }), 7);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return 7 * x; }), 7);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x / 4; }), .25);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return 1 / x; }), -.25);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x / x; }), 0);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x - x * x; }), -3);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return -x; }), -1);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return exp(x); }), std::exp(2.0));
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return log(x); }), .5);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return relu(x); }), 1);
  EXPECT_EQ(gradient(-2, [](const Tensor& x) { return relu(x); }), 0);
  EXPECT_EQ(gradient(0, [](const Tensor& x) { return relu(x); }), 0);
  EXPECT_EQ(gradient(2, [](const Tensor& x) { return x.reshape({1, 1}).mean(); }), 1);
}

TEST(Backward, BroadcastInputsGetSums) {
  const Tensor a = tensor({2, 1}, {1, 2}), b = tensor({3}, {1, 2, 3});
  (a * b).backward();
  EXPECT_TRUE(grad_is(a, {6, 6}));
  EXPECT_TRUE(grad_is(b, {3, 3, 3}));
  const Tensor m = tensor({4}, {1, 2, 3, 4});
  m.mean().backward();
  EXPECT_TRUE(grad_is(m, {.25, .25, .25, .25}));
}

TEST(Backward, HalvesAreRoundedOncePerOperation) {
  const Tensor x(array<f16>({2}, {1.5, -2}));
  (x * x).backward();
  EXPECT_EQ(x.grad()->type(), Type::f16);
  EXPECT_TRUE(grad_is(x, {3, -4}));
}

TEST(Backward, AVariableThatDoesNotMatterGetsZeros) {
  const Tensor x = tensor({2}, {1, 2}), other = tensor({2}, {1, 2});
  (x * 0).backward();
  EXPECT_TRUE(grad_is(x, {0, 0}));
  EXPECT_FALSE(other.grad());
}

TEST(Backward, OfALeafIsOne) {
  const Tensor x = tensor({2}, {1, 2});
  x.backward();
  EXPECT_TRUE(grad_is(x, {1, 1}));
}

TEST(Backward, IsThatOfTheMeanOfRandomExpressions) {
  check(100, [] {
    const Extents shape{between(1, 4), between(1, 4)};
    Array at(Type::f64, shape);
    for (double& value : at.values<double>()) value = .5 + static_cast<double>(between(0, 1000)) / 1000;
    const std::uint64_t dice = static_cast<std::uint64_t>(between(0, 1 << 20));
    const auto expression = [&](const Tensor& x) {
      std::vector<Tensor> made{x};
      for (int i = 0; i < 8; ++i) {
        const Tensor a = made[dice / 3 % made.size()], b = made[(dice >> i) % made.size()];
        switch ((dice >> (2 * i)) % 5) {
          case 0: made.push_back(a + b); break;
          case 1: made.push_back(a * b * .5); break;
          case 2: made.push_back(a / (b * b + 1)); break;
          case 3: made.push_back(log(relu(a) + 1)); break;
          default: made.push_back(exp(-(a * a)) - b); break;
        }
      }
      return mean(made.back());
    };
    const Tensor x{Array(at)};
    expression(x).backward();
    const std::size_t i = static_cast<std::size_t>(between(0, at.size() - 1));
    const double h = 1e-6;
    const auto value = [&](double step) {
      Array moved = at;
      moved.values<double>()[i] += step;
      return expression(Tensor(std::move(moved))).data().at<double>({});
    };
    const double slope = (value(h) - value(-h)) / (2 * h);
    RC_ASSERT(std::fabs(x.grad()->values<double>()[i] - slope) <= 1e-6 * (1 + std::fabs(slope)));
  });
}

// When gradients come and go.

TEST(Gradients, StayUntilTheTensorIsUsedAgain) {
  const Tensor x = tensor({2}, {1, 2});
  EXPECT_FALSE(x.grad());
  const Tensor y = x * 3;
  y.backward();
  EXPECT_TRUE(grad_is(x, {3, 3}));
  EXPECT_TRUE(grad_is(y, {1, 1}));
  const auto before = x.grad();
  const Tensor z = x + 1;
  EXPECT_FALSE(x.grad());
  EXPECT_TRUE(y.grad());
  EXPECT_TRUE(holds(*before, {2}, {3, 3}));
  z.backward();
  EXPECT_TRUE(grad_is(x, {1, 1}));
}

TEST(Gradients, OfAnotherGraphReplaceThem) {
  const Tensor x = tensor({}, {2});
  const Tensor y = x * 3, z = x * 5;
  y.backward();
  z.backward();
  EXPECT_TRUE(grad_is(x, {5}));
}

TEST(Gradients, NullGradForgetsThem) {
  const Tensor x = tensor({2}, {1, 2});
  (x * 3).backward();
  EXPECT_EQ(x.null_grad().node(), x.node());
  EXPECT_FALSE(x.grad());
}

TEST(Gradients, AFailedOperationClearsNothing) {
  const Tensor x = tensor({2}, {1, 2});
  (x * 3).backward();
  EXPECT_NE(error_of([&] { x + tensor({3}, {1, 2, 3}); }), "");
  EXPECT_TRUE(x.grad());
}

TEST(Gradients, CopiesOfAHandleShareThem) {
  const Tensor x = tensor({2}, {1, 2});
  const Tensor same = x;
  (x * same).backward();
  EXPECT_TRUE(grad_is(same, {2, 4}));
  EXPECT_EQ(x.grad(), same.grad());
}

// Graphs that are released.

TEST(Graphs, AreReleasedAfterBackward) {
  const Tensor x = tensor({2}, {1, 2});
  const Tensor y = x * 3, z = y + 1, w = y * y;
  z.backward();
  const std::string expected =
      "[backward] a part of the graph was released by an earlier backward(): run its operations again to make a new "
      "one";
  EXPECT_EQ(backprop_error([&] { z.backward(); }), expected);
  EXPECT_EQ(backprop_error([&] { y.backward(); }), expected);
  EXPECT_EQ(backprop_error([&] { w.backward(); }), expected);
  EXPECT_EQ(backprop_error([&] { (y + 1).backward(); }), expected);
  EXPECT_TRUE(grad_is(x, {3, 3}));  // what fails changes nothing
  EXPECT_THROW(z.backward(), std::runtime_error);
  (x * 2).backward();
  EXPECT_TRUE(grad_is(x, {2, 2}));
}

TEST(Graphs, GiveTheirMemoryBack) {
  const Tensor x = tensor({2}, {1, 2});
  std::weak_ptr<Tensor::Node> inside;
  const Tensor z = [&] {
    const Tensor y = x * 3;
    inside = y.node();
    return y + 1;
  }();
  EXPECT_FALSE(inside.expired());
  z.backward();
  EXPECT_TRUE(inside.expired());
  EXPECT_TRUE(holds(z.data(), {2}, {4, 7}));
}

TEST(Graphs, BackwardOfAConstantOnlyReleases) {
  const Tensor x = tensor({2}, {1, 2});
  const Tensor y = x * 3;
  const Tensor c = y.sum(true);
  c.backward();
  c.backward();
  EXPECT_FALSE(x.grad());
  EXPECT_FALSE(c.grad());
  EXPECT_NE(backprop_error([&] { y.backward(); }), "");
  Tensor(full<std::int32_t>({2}, 1)).backward();
}

TEST(Graphs, NoAutodiffRecordsNothingOnItsThread) {
  const Tensor x = tensor({2}, {1, 2});
  (x * 3).backward();
  std::optional<Tensor> untracked;
  {
    const NoAutodiff guard;
    { const NoAutodiff nested; }
    untracked = x * 3;
    EXPECT_TRUE(x.grad());
    EXPECT_FALSE(untracked->constant());
    std::thread([&] {
      const Tensor own = tensor({1}, {2});
      (own * own).backward();
      EXPECT_TRUE(grad_is(own, {4}));
    }).join();
  }
  (*untracked * 2).backward();
  EXPECT_TRUE(grad_is(*untracked, {2, 2}));
  EXPECT_TRUE(grad_is(x, {3, 3}));
  (x * 2).backward();
  EXPECT_TRUE(grad_is(x, {2, 2}));
}

// Long chains: neither sweeping nor forgetting may use the stack for them.

TEST(Chains, OfManyOperationsSweepBack) {
  const Tensor x = tensor({}, {1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1;
  EXPECT_EQ(y.data().at<double>({}), 100001);
  y.backward();
  EXPECT_TRUE(grad_is(x, {1}));
}

TEST(Chains, OfManyOperationsAreForgotten) {
  const Tensor x = tensor({}, {1});
  {
    Tensor y = x;
    for (int i = 0; i < 100000; ++i) y = y * y;
  }
  EXPECT_EQ(x.node().use_count(), 1);
  Tensor c = exp(x, true);
  for (int i = 0; i < 100000; ++i) c = c + 1;
  c.backward();
}

TEST(Chains, ThatBranchAtEveryStepAreSweptOncePerStep) {
  const Tensor x = tensor({}, {1});
  Tensor y = x;
  for (int i = 0; i < 1000; ++i) y = (y + y) * .5;
  y.backward();
  EXPECT_TRUE(grad_is(x, {1}));
}

// The poolings.

TEST(TensorPooling, ForwardEqualsThePoolingOfTheData) {
  const Array data = counting<double>({2, 3, 6, 6}, -50, .7);
  const Tensor x(data);
  const Window w{.size = {3, 2}, .stride = {2, 1}, .padding = 1};
  const auto same = [](const Tensor& y, const Array& expected) {
    return holds(y.data(), expected.shape(), numbers(expected));
  };
  EXPECT_TRUE(same(max_pool(x, w), max_pool(data, w)));
  EXPECT_TRUE(same(min_pool(x, w), min_pool(data, w)));
  EXPECT_TRUE(same(sum_pool(x, w), sum_pool(data, w)));
  EXPECT_TRUE(same(avg_pool(x, w, Divisor::Rule::valid), avg_pool(data, w, Divisor::Rule::valid)));
  EXPECT_TRUE(same(smooth_max_pool(x, w, .5), smooth_max_pool(data, w, .5)));
  EXPECT_TRUE(same(lp_pool(x, w, 3), lp_pool(data, w, 3)));
  EXPECT_TRUE(same(adaptive_max_pool(x, {.output = {2, 4}}), adaptive_max_pool(data, {.output = {2, 4}})));
  EXPECT_TRUE(same(adaptive_avg_pool(x, {.output = {2, 4}}), adaptive_avg_pool(data, {.output = {2, 4}})));
  EXPECT_TRUE(same(global_max_pool(x), global_max_pool(data)));
  EXPECT_TRUE(same(global_min_pool(x), global_min_pool(data)));
  EXPECT_TRUE(same(global_sum_pool(x), global_sum_pool(data)));
  EXPECT_TRUE(same(global_avg_pool(x, {.keepdims = false}), global_avg_pool(data, {.keepdims = false})));
  EXPECT_TRUE(rejects([&] { pool(x, {.region = w, .indices = IndexKind::plane}); }, {"[pool]", "pool_with_indices"}));
}

TEST(TensorPooling, UnpoolingPutsBackAndItsGradientIsTakenFromTheSamePlaces) {
  const Array data = array<double>({1, 1, 2, 4}, {1, 5, 2, 0, 3, 4, 9, 8});
  const Window tiles{.size = {2, 2}, .stride = 2};
  const Tensor y = max_pool(Tensor(data), tiles) * 2;
  const Array places = max_pool_with_indices(data, tiles).indices;
  const Tensor x = max_unpool(y, places, data.shape());
  EXPECT_TRUE(holds(x.data(), {1, 1, 2, 4}, {0, 10, 0, 0, 0, 0, 18, 0}));
  x.backward(counting<double>({1, 1, 2, 4}));
  EXPECT_TRUE(grad_is(y, {1, 6}));
  EXPECT_TRUE(max_unpool(y, places, data.shape(), {}, true).constant());
}

TEST(Calls, RunAnOperationOfTheCallersAndItsVjp) {
  graph::UserNode square;
  square.name = "square";
  square.shape = [](std::span<const Signature> inputs) { return std::vector<Signature>{inputs[0]}; };
  square.forward = [](std::span<const View> in, std::span<const MutableView> out) {
    for (std::int64_t i = 0; i < 2; ++i)
      static_cast<double*>(out[0].data)[i] = std::pow(static_cast<const double*>(in[0].data)[i], 2);
  };
  const Tensor x = tensor({2}, {3, 4});
  EXPECT_TRUE(holds(call(square, x, true).data(), {2}, {9, 16}));
  EXPECT_THROW(call(square, x).backward(), Unsupported);
  square.vjp = [](std::span<const View> in, std::span<const View>, std::span<const View> gy,
                  std::span<const MutableView> gx) {
    for (std::int64_t i = 0; i < 2; ++i)
      static_cast<double*>(gx[0].data)[i] =
          2 * static_cast<const double*>(in[0].data)[i] * static_cast<const double*>(gy[0].data)[i];
  };
  (call(square, x) * 10).backward();
  EXPECT_TRUE(grad_is(x, {60, 80}));
}

TEST(TensorPooling, KnownGradients) {
  const auto gradient = [](const Extents& shape, const std::vector<double>& at, auto f) {
    const Tensor x = tensor(shape, at);
    f(x).backward();
    return *x.grad();
  };
  const std::vector<double> twos(9, 2);
  EXPECT_TRUE(holds(gradient({3, 3}, twos,
                             [](const Tensor& x) {
                               return avg_pool(x, {.size = {2, 2}});
                             }),
                    {3, 3}, {.25, .5, .25, .5, 1, .5, .25, .5, .25}));
  EXPECT_TRUE(holds(gradient({3, 3}, twos,
                             [](const Tensor& x) {
                               return min_pool(x, {.size = {2, 2}});
                             }),
                    {3, 3}, {1, 1, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_TRUE(holds(gradient({3}, {1, 2, 3}, [](const Tensor& x) { return smooth_max_pool(x, {.size = {3}}, 1); }), {3},
                    {.0900305732, .2447284711, .6652409558}, 1e-10));
  EXPECT_TRUE(
      holds(gradient({2}, {3, 4}, [](const Tensor& x) { return lp_pool(x, {.size = {2}}, 2); }), {2}, {.6, .8}, 1e-15));
  EXPECT_TRUE(
      holds(gradient({3}, {2, 2, 1},
                     [](const Tensor& x) { return pool(x, {.region = Window{.size = {3}}, .ties = Ties::split}); }),
            {3}, {.5, .5, 0}));
  EXPECT_TRUE(holds(gradient({1, 1, 2, 2}, {1, 5, 3, 2}, [](const Tensor& x) { return log(global_max_pool(x)) * 10; }),
                    {1, 1, 2, 2}, {0, 2, 0, 0}));
}

}  // namespace
}  // namespace cenote::test
