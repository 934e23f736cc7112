// The elementwise operations and their like: values, derivatives, errors.
#include <vector>

#include <gtest/gtest.h>

#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "support/arrays.h"

namespace cenote::test {
namespace {

using namespace autodiff;

Array apply(const OpPtr& op, std::vector<View> inputs) { return std::move(autodiff::run(*op, inputs).front()); }

TEST(Elementwise, KnownValues) {
  const Array a = array<double>({2, 2}, {1, -2, 3, 0}), b = array<double>({2}, {2, 0});
  EXPECT_TRUE(holds(apply(add_op(), {a, b}), {2, 2}, {3, -2, 5, 0}));
  EXPECT_TRUE(holds(apply(sub_op(), {a, b}), {2, 2}, {-1, -2, 1, 0}));
  EXPECT_TRUE(holds(apply(mul_op(), {a, b}), {2, 2}, {2, -0.0, 6, 0}));
  EXPECT_TRUE(holds(apply(div_op(), {a, b}), {2, 2}, {.5, -inf, 1.5, nan}));
  EXPECT_TRUE(holds(apply(ratio_op(), {a, b}), {2, 2}, {.5, 0, 1.5, 0}));
  EXPECT_TRUE(holds(apply(neg_op(), {b}), {2}, {-2, -0.0}));
  EXPECT_TRUE(holds(apply(exp_op(), {b}), {2}, {std::exp(2.0), 1}));
  EXPECT_TRUE(holds(apply(log_op(), {b}), {2}, {std::log(2.0), -inf}));
  EXPECT_TRUE(holds(apply(relu_op(), {a}), {2, 2}, {1, 0, 3, 0}));
  EXPECT_TRUE(holds(apply(scale_op(-2), {b}), {2}, {-4, -0.0}));
  EXPECT_TRUE(holds(apply(positive_op(), {a}), {2, 2}, {1, 0, 1, 0}));
  EXPECT_TRUE(holds(apply(magnitude_op(), {a}), {2, 2}, {1, 2, 3, 0}));
  EXPECT_TRUE(holds(apply(sign_op(), {a}), {2, 2}, {1, -1, 1, 0}));
  EXPECT_TRUE(holds(apply(reshape_op({4, -1}), {a}), {4, 1}, {1, -2, 3, 0}));
  EXPECT_TRUE(holds(apply(broadcast_op({2, 2}), {b}), {2, 2}, {2, 0, 2, 0}));
  EXPECT_TRUE(holds(apply(sum_to_op({2}), {a}), {2}, {4, -2}));
  EXPECT_TRUE(holds(apply(sum_to_op({2, 1}), {a}), {2, 1}, {-1, 3}));
  EXPECT_TRUE(holds(apply(sum_op(), {a}), {}, {2}));
  EXPECT_TRUE(holds(apply(mean_op(), {a}), {}, {.5}));
  EXPECT_TRUE(holds(apply(cast_op(Type::f16), {a}), {2, 2}, {1, -2, 3, 0}));
  EXPECT_TRUE(holds(apply(detach_op(), {a}), {2, 2}, {1, -2, 3, 0}));
}

}  // namespace
}  // namespace cenote::test
