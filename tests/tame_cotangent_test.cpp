// Gradients of smooth max and lp are made of plain sums, a few planes at a time, but for cells beside which something
// is not tame: no one may notice.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/machine.h"
#include "support/random_derivative.h"
#include "support/tame_problems.h"

namespace cenote::test {
namespace {

/// Windows with and without a border, apart and shared, that leave cells out, and along lines.
std::vector<Problem> problems() {
  return {
      {{2, 3, 21, 34}, {.size = {2, 2}, .stride = 2}},
      {{2, 3, 20, 33}, {.size = {3, 3}, .stride = 2, .padding = 1}},
      {{2, 3, 20, 33}, {.size = {2, 2}, .stride = 3}},
      {{3, 19, 18}, {.size = {5, 5}, .padding = 2}},
      {{5, 200}, {.size = {40}}},
      {{2, 18, 17, 24}, {.size = {2, 2}, .stride = 2, .channels_last = true}},
      {{2, 40, 7}, {.size = {6}, .padding = 3, .channels_last = true}},
      {{2, 6, 8, 10}, {.size = {2, 3, 2}, .stride = 2, .padding = 1}},
  };
}

/// Planes of which several are made together and some are left; and such as are too large to be made by one thread.
std::vector<Problem> large_problems() {
  return {
      {{5, 3, 70, 90}, {.size = {2, 2}, .stride = 2}},
      {{3, 200, 16, 20}, {.size = {3, 3}, .stride = 3, .padding = 1}},
      {{2, 260, 240}, {.size = {2, 2}, .stride = 2}},
      {{1, 90, 40, 20}, {.size = {2, 2}, .stride = 2, .channels_last = true}},
  };
}

/// A problem with what it is given.
struct Given {
  Pooling pooling;
  Array x, gy;

  Given(const Problem& problem, const Kind& kind, Type type, std::uint64_t number)
      : pooling(kind.pooling(problem.window)),
        x(drawn(problem.shape, type, Data::unit, number)),
        gy(drawn(plan(pooling, type, problem.shape).output_shape(), type, Data::unit, number + 1)) {}

  Array back() const { return vjp(pooling, x).pullback(gy); }
  testing::AssertionResult is_right(const Array& gx) const {
    const auto expected = Slopes(pooling, x.type(), x.shape(), x).vjp(doubles(gy), false);
    const std::string wrong = mismatch(expected, gx);
    return wrong.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << wrong;
  }
};

/// The cells of all windows that hold cell `at`, or of window `at`.
std::vector<double> around(const Given& given, std::optional<std::int64_t> cell, std::int64_t window) {
  const Pooling sum{.reducer = Reducer::sum, .region = given.pooling.region};
  Array mark = full({given.x.shape()}, 0), windows = full({given.gy.shape()}, 0);
  if (cell) {
    put(mark, *cell, 1);
    windows = pool(mark, sum);
  } else {
    put(windows, window, 1);
  }
  return numbers(vjp(sum, mark).pullback(windows));
}

testing::AssertionResult same_beyond(const std::vector<double>& near, const Array& a, const Array& b) {
  const auto u = numbers(a), v = numbers(b);
  for (std::size_t i = 0; i < near.size(); ++i)
    if (near[i] == 0 && u[i] != v[i])
      return testing::AssertionFailure() << "cell " << i << ": " << u[i] << ", " << v[i];
  return testing::AssertionSuccess();
}

class TameCotangents : public testing::TestWithParam<std::string> {};

TEST_P(TameCotangents, AreRight) {
  for (const Type type : types)
    for (const Problem& problem : problems())
      for (const Kind& kind : kinds) {
        const Machine machine(GetParam(), 1);
        const Given given(problem, kind, type, 11);
        EXPECT_TRUE(given.is_right(given.back())) << name(type) << ' ' << problem << ' ' << kind;
      }
}

TEST_P(TameCotangents, DoNotFeelWildCellsThatShareNoWindow) {
  for (const Type type : types)
    for (const Problem& problem : problems())
      for (const Kind& kind : kinds) {
        const Machine machine(GetParam(), 1);
        const Given tame(problem, kind, type, 21);
        const Array clean = tame.back();
        const std::int64_t cell = tame.x.size() / 2 + 3, window = tame.gy.size() / 2 + 1;
        const auto near_cell = around(tame, cell, 0), near_window = around(tame, std::nullopt, window);
        for (const double wild : wilds(type)) {
          Given beside = tame, given = tame;
          put(beside.x, cell, wild);
          put(given.gy, window, wild);
          const Array one = beside.back(), other = given.back();
          const auto where = [&] { return std::string(name(type)) + " " + std::to_string(wild); };
          EXPECT_TRUE(same_beyond(near_cell, clean, one)) << where() << ' ' << problem << ' ' << kind;
          EXPECT_TRUE(beside.is_right(one)) << where() << ' ' << problem << ' ' << kind;
          EXPECT_TRUE(same_beyond(near_window, clean, other)) << where() << " given " << problem << ' ' << kind;
          EXPECT_TRUE(given.is_right(other)) << where() << " given " << problem << ' ' << kind;
        }
      }
}

TEST_P(TameCotangents, AreTheSameHoweverPlanesAreCut) {
  for (const Type type : {Type::f32, Type::bf16})
    for (const Problem& problem : large_problems())
      for (const Kind& kind : {kinds[1], kinds[2], kinds[6]}) {
        SCOPED_TRACE(testing::Message() << name(type) << ' ' << problem << ' ' << kind);
        Given given(problem, kind, type, 31);
        // Something that is not tame in the last piece.
        put(given.x, given.x.size() - given.x.size() / 7, nan);
        std::optional<Array> first;
        for (const int threads : {1, 2, 5}) {
          const Machine machine(GetParam(), threads);
          const Array gx = given.back();
          if (first)
            EXPECT_TRUE(same_bits(*first, gx)) << threads;
          else
            EXPECT_TRUE(given.is_right(gx));
          first = gx;
        }
        // Each of the outermost planes alone is the same.
        const Machine machine(GetParam(), 1);
        const std::int64_t planes = given.x.shape()[0];
        Extents cells = given.x.shape(), outputs = given.gy.shape();
        cells[0] = outputs[0] = 1;
        for (std::int64_t i = 0; i < planes; ++i) {
          const auto part = [&](const Array& a, const Extents& shape) {
            const auto* begin = static_cast<const std::byte*>(a.data());
            return Array(View(begin + i * static_cast<std::int64_t>(a.bytes()) / planes, a.type(), shape));
          };
          const Array alone = vjp(given.pooling, part(given.x, cells)).pullback(part(given.gy, outputs));
          EXPECT_TRUE(same_bits(alone, part(*first, cells))) << "plane " << i;
        }
      }
}

TEST_P(TameCotangents, MayBeWildAltogether) {
  const Machine machine(GetParam(), 2);
  for (const double wild : {nan, inf, 1e30, 1e-30, -1e-30, 0.0})
    for (const Kind& kind : kinds) {
      Given cells(problems()[1], kind, Type::f32, 41), slopes = cells;
      std::ranges::fill(cells.x.values<float>(), static_cast<float>(wild));
      std::ranges::fill(slopes.gy.values<float>(), static_cast<float>(wild));
      EXPECT_TRUE(cells.is_right(cells.back())) << wild << ' ' << kind;
      EXPECT_TRUE(slopes.is_right(slopes.back())) << wild << " given " << kind;
    }
}

TEST_P(TameCotangents, StandAtTheirBounds) {
  // Powers of two around those from which on cells or slopes are not tame.
  const Machine machine(GetParam(), 1);
  for (const Kind& kind : {kinds[0], kinds[1], kinds[2], kinds[3]})
    for (const double cell : {0x1p-52, 0x1p-50, 0x1p-48, 0x1p-27, 0x1p-26, 0x1p-21, 0x1p-20, 0x1p14, 0x1p15, 0x1p19,
                              0x1p20, 0x1p38, 0x1p40, 0x1p42})
      for (const double slope : {0x1p-62, 0x1p-60, 0x1p-58, 0x1p38, 0x1p40, 0x1p42}) {
        Given given(problems()[0], kind, Type::f32, 51);
        for (float& value : given.x.values<float>()) value *= static_cast<float>(cell);
        for (float& value : given.gy.values<float>()) value *= static_cast<float>(slope);
        EXPECT_TRUE(given.is_right(given.back())) << kind << " cells " << cell << " slopes " << slope;
      }
  for (const double far : {20.0, 26.0, 28.0, 40.0}) {
    Given given(problems()[0], kinds[4], Type::f32, 52);
    for (float& value : given.x.values<float>()) value += static_cast<float>(value > 0 ? far : -far);
    EXPECT_TRUE(given.is_right(given.back())) << far;
  }
}

TEST_P(TameCotangents, ReachNoCellOutsideAllWindows) {
  const Machine machine(GetParam(), 1);
  for (const Kind& kind : kinds) {
    Given given(problems()[2], kind, Type::f32, 61);
    const auto held = numbers(
        vjp({.reducer = Reducer::sum, .region = given.pooling.region}, given.x).pullback(full({given.gy.shape()}, 1)));
    for (std::size_t i = 0; i < held.size(); ++i)
      if (held[i] == 0) put(given.x, static_cast<std::int64_t>(i), nan);
    const auto gx = numbers(given.back());
    for (std::size_t i = 0; i < held.size(); ++i) ASSERT_EQ(held[i] == 0, gx[i] == 0) << i << ' ' << kind;
  }
}

TEST_P(TameCotangents, MayHaveGapsBetweenElements) {
  const Machine machine(GetParam(), 1);
  for (const Kind& kind : kinds) {
    const Problem problem = problems()[1];
    const Given given(problem, kind, Type::f32, 71);
    const Layout gaps{{0, 1, 3, 2}, {1, 2, 1, -1}};
    Strided x(Type::f32, problem.shape, gaps), gx(Type::f32, problem.shape, gaps);
    fill(x, Data::unit, 71);
    plan(given.pooling, Type::f32, problem.shape).vjp(std::as_const(x).view(), given.gy, gx.view());
    EXPECT_TRUE(gx.gaps_untouched());
    EXPECT_TRUE(given.is_right(Array(std::as_const(gx).view()))) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TameCotangents, testing::ValuesIn(targets_under_test()));

}  // namespace
}  // namespace cenote::test
