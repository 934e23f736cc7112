// Smooth max, lp and their tangents are sums of powers, a portion of the array at a time, but for windows that hold
// something that is not tame: no one may notice.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "plan/impl.h"
#include "plan/portions.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/oracle.h"
#include "support/random_derivative.h"
#include "support/tame_problems.h"

namespace cenote::test {
namespace {

/// Windows that share several rows or none, that reach over ends or leave cells out, along lines and beside channels.
std::vector<Problem> problems() {
  return {
      {{2, 3, 20, 33}, {.size = {3, 3}, .stride = 2, .padding = 1}},
      {{2, 3, 20, 33}, {.size = {2, 2}, .stride = 3}},
      {{3, 19, 18}, {.size = {5, 5}, .padding = 2}},
      {{2, 17, 21}, {.size = {3, 2}, .stride = {1, 2}, .dilation = 2, .padding = 1}},
      {{5, 200}, {.size = {40}}},
      {{2, 2, 9, 11}, {.size = {9, 11}}},
      {{2, 18, 17, 24}, {.size = {3, 3}, .channels_last = true}},
      {{2, 40, 7}, {.size = {6}, .padding = 3, .channels_last = true}},
      {{2, 6, 8, 10}, {.size = {2, 3, 2}, .stride = 2, .padding = 1}},
  };
}

/// Several planes a portion and some left, and planes that are cut, with and without borders between.
std::vector<Problem> large_problems() {
  return {
      {{5, 3, 70, 90}, {.size = {3, 3}, .stride = 2, .padding = 1}},
      {{2, 260, 240}, {.size = {3, 3}, .padding = 1}},
      {{2, 400, 150}, {.size = {2, 3}, .stride = 3, .dilation = 2}},
      {{1, 90, 40, 30}, {.size = {3, 3}, .stride = 2, .padding = 1, .channels_last = true}},
      {{1, 60, 35, 40}, {.size = {3, 2, 2}, .stride = {2, 2, 1}, .padding = 1}},
  };
}

/// A problem with what it is given.
struct Given {
  Pooling pooling;
  Array x, dx;

  Given(const Problem& problem, const Kind& kind, Type type, std::uint64_t number)
      : pooling(kind.pooling(problem.window)),
        x(drawn(problem.shape, type, Data::unit, number)),
        dx(drawn(problem.shape, type, Data::unit, number + 1)) {}

  /// By sums, even where another way is faster.
  Array value() const {
    const Plan planned = plan(pooling, x.type(), x.shape());
    auto impl = std::make_shared<Plan::Impl>(planned.impl());
    impl->algorithm.by_sums = true;
    Array y(planned.output_type(), planned.output_shape());
    Plan(std::move(impl)).run(x, y);
    return y;
  }
  Array along() const { return jvp(pooling, x, dx).dy; }

  testing::AssertionResult is_right(const Array& y) const {
    return visit(x.type(), [&](auto element) {
      const auto cells = read<decltype(element)>(x);
      const Expectation<decltype(element)> all(pooling, x.shape(), cells, result_type_of(pooling, x.type()));
      return verdict(mismatch(all.values(), y));
    });
  }
  testing::AssertionResult is_right_along(const Array& dy) const {
    return verdict(mismatch(Slopes(pooling, x.type(), x.shape(), x).jvp(doubles(dx), false), dy));
  }
  static testing::AssertionResult verdict(const std::string& wrong) {
    return wrong.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << wrong;
  }
};

/// How often each window holds a cell.
std::vector<double> windows_of_cell(const Given& given, std::int64_t cell) {
  Array mark = full({given.x.shape()}, 0);
  put(mark, cell, 1);
  return numbers(pool(mark, {.reducer = Reducer::sum, .region = given.pooling.region}));
}

testing::AssertionResult same_beyond(const std::vector<double>& near, const Array& a, const Array& b) {
  const auto u = numbers(a), v = numbers(b);
  for (std::size_t i = 0; i < near.size(); ++i)
    if (near[i] == 0 && u[i] != v[i])
      return testing::AssertionFailure() << "output " << i << ": " << u[i] << ", " << v[i];
  return testing::AssertionSuccess();
}

class PowerSums : public testing::TestWithParam<std::string> {};

TEST_P(PowerSums, AreRight) {
  for (const Type type : types)
    for (const Problem& problem : problems())
      for (const Kind& kind : kinds) {
        const Machine machine(GetParam(), 1);
        const Given given(problem, kind, type, 11);
        EXPECT_TRUE(given.is_right(given.value())) << name(type) << ' ' << problem << ' ' << kind;
        EXPECT_TRUE(given.is_right_along(given.along())) << name(type) << ' ' << problem << ' ' << kind;
      }
}

TEST_P(PowerSums, DoNotFeelWildCellsThatTheyDoNotHold) {
  for (const Type type : types)
    for (const Problem& problem : problems())
      for (const Kind& kind : kinds) {
        const Machine machine(GetParam(), 1);
        const Given tame(problem, kind, type, 21);
        const Array y = tame.value(), dy = tame.along();
        const std::int64_t cell = tame.x.size() / 2 + 3;
        const auto near = windows_of_cell(tame, cell);
        for (const double wild : wilds(type)) {
          SCOPED_TRACE(testing::Message() << name(type) << ' ' << wild << ' ' << problem << ' ' << kind);
          Given held = tame, given = tame;
          put(held.x, cell, wild);
          put(given.dx, cell, wild);
          const Array value = held.value(), along = held.along(), other = given.along();
          EXPECT_TRUE(same_beyond(near, y, value));
          EXPECT_TRUE(held.is_right(value));
          EXPECT_TRUE(same_beyond(near, dy, along));
          EXPECT_TRUE(held.is_right_along(along));
          EXPECT_TRUE(same_beyond(near, dy, other));
          EXPECT_TRUE(given.is_right_along(other));
        }
      }
}

TEST_P(PowerSums, AreTheSameHoweverPlanesAreCut) {
  for (const Type type : {Type::f32, Type::bf16})
    for (const Problem& problem : large_problems())
      for (const Kind& kind : {kinds[1], kinds[2], kinds[6]}) {
        SCOPED_TRACE(testing::Message() << name(type) << ' ' << problem << ' ' << kind);
        Given given(problem, kind, type, 31);
        const Plan planned = plan(given.pooling, type, problem.shape);
        ASSERT_TRUE(planned.impl().portions);
        ASSERT_GT(planned.impl().portions->count(), 1);
        // Something that is not tame in the last portion.
        put(given.x, given.x.size() - given.x.size() / 9, nan);
        std::optional<Array> value, along;
        for (const int threads : {1, 2, 5}) {
          const Machine machine(GetParam(), threads);
          const Array y = given.value(), dy = given.along();
          if (value) {
            EXPECT_TRUE(same_bits(*value, y)) << threads;
            EXPECT_TRUE(same_bits(*along, dy)) << threads;
          } else {
            EXPECT_TRUE(given.is_right(y));
            EXPECT_TRUE(given.is_right_along(dy));
          }
          value = y;
          along = dy;
        }
      }
}

TEST_P(PowerSums, MayBeWildAltogether) {
  const Machine machine(GetParam(), 2);
  for (const double wild : {nan, inf, -inf, 1e30, 1e-30, -1e-30, 0.0})
    for (const Kind& kind : kinds) {
      Given cells(problems()[0], kind, Type::f32, 41), slopes = cells;
      std::ranges::fill(cells.x.values<float>(), static_cast<float>(wild));
      std::ranges::fill(slopes.dx.values<float>(), static_cast<float>(wild));
      EXPECT_TRUE(cells.is_right(cells.value())) << wild << ' ' << kind;
      EXPECT_TRUE(cells.is_right_along(cells.along())) << wild << ' ' << kind;
      EXPECT_TRUE(slopes.is_right_along(slopes.along())) << wild << " given " << kind;
    }
}

TEST_P(PowerSums, StandAtTheirBounds) {
  // Powers of two around those from which on cells or tangents are not tame, and cells far from each other.
  const Machine machine(GetParam(), 1);
  for (const Kind& kind : {kinds[0], kinds[1], kinds[2], kinds[3]})
    for (const double cell : {0x1p-52, 0x1p-50, 0x1p-48, 0x1p-37, 0x1p-35, 0x1p-28, 0x1p-26, 0x1p14, 0x1p15, 0x1p19,
                              0x1p20, 0x1p38, 0x1p40, 0x1p42})
      for (const double slope : {0x1p-62, 0x1p-58, 0x1p-42, 0x1p-40, 0x1p-38, 0x1p38, 0x1p40, 0x1p42}) {
        Given given(problems()[2], kind, Type::f32, 51);
        const auto values = given.x.values<float>();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] *= i % 3 == 0 ? static_cast<float>(cell) : 1;
        for (float& value : given.dx.values<float>()) value *= static_cast<float>(slope);
        EXPECT_TRUE(given.is_right(given.value())) << kind << " cells " << cell;
        EXPECT_TRUE(given.is_right_along(given.along())) << kind << " cells " << cell << " slopes " << slope;
        for (float& value : values) value = static_cast<float>(static_cast<double>(value) * cell);
        EXPECT_TRUE(given.is_right(given.value())) << kind << " all cells " << cell;
        EXPECT_TRUE(given.is_right_along(given.along())) << kind << " all cells " << cell << " slopes " << slope;
      }
  for (const double far : {20.0, 26.0, 28.0, 40.0})
    for (const Kind& kind : {kinds[4], kinds[5], kinds[6]}) {
      Given given(problems()[0], kind, Type::f32, 52);
      for (float& value : given.x.values<float>())
        value += static_cast<float>((value > 0 ? far : -far) / std::fabs(kind.beta));
      EXPECT_TRUE(given.is_right(given.value())) << far << ' ' << kind;
      EXPECT_TRUE(given.is_right_along(given.along())) << far << ' ' << kind;
    }
}

TEST_P(PowerSums, MayHaveGapsBetweenElements) {
  const Machine machine(GetParam(), 1);
  for (const Kind& kind : kinds) {
    const Problem problem = problems()[0];
    const Given given(problem, kind, Type::f32, 71);
    const Layout gaps{{0, 1, 3, 2}, {1, 2, 1, -1}};
    const Plan planned = plan(given.pooling, Type::f32, problem.shape);
    Strided x(Type::f32, problem.shape, gaps), y(Type::f32, planned.output_shape(), gaps);
    fill(x, Data::unit, 71);
    planned.run(std::as_const(x).view(), y.view());
    EXPECT_TRUE(y.gaps_untouched());
    EXPECT_TRUE(given.is_right(Array(std::as_const(y).view()))) << kind;
    planned.jvp(std::as_const(x).view(), given.dx, y.view());
    EXPECT_TRUE(y.gaps_untouched());
    EXPECT_TRUE(given.is_right_along(Array(std::as_const(y).view()))) << kind;
  }
}

// Windows and padding that reach farther than memory does are neither counted cell by cell nor cut for ever.
TEST(Portions, AreFewWhereWindowsAndPaddingAreHuge) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  for (const Reducer reducer : {Reducer::lp, Reducer::smooth_max}) {
    Window window{.size = {huge, 2}, .stride = {huge / 2, 1}, .padding = Padding{{huge, huge}, {0, 0}}};
    const Pooling pooling{.reducer = reducer, .region = window, .p = 3};
    const Array x = drawn({2, 7, 9}, Type::f32, Data::unit, 81);
    const Plan planned = plan(pooling, Type::f32, x.shape());
    Array y[2] = {Array(Type::f32, planned.output_shape()), Array(Type::f32, planned.output_shape())};
    for (const bool by_sums : {false, true}) {
      auto impl = std::make_shared<Plan::Impl>(planned.impl());
      impl->algorithm.by_sums = by_sums;
      Plan(std::move(impl)).run(x, y[by_sums]);
    }
    EXPECT_TRUE(holds(y[1], y[0].shape(), numbers(y[0]), 1e-5));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PowerSums, testing::ValuesIn(targets_under_test()));

}  // namespace
}  // namespace cenote::test
