// The oracle itself: on exact fractions, and against values worked out by hand.
#include <vector>

#include <gtest/gtest.h>

#include "../reference/reference.h"
#include "support/rational.h"

namespace reference {
namespace {

using cenote::test::Rational;

Tensor<Rational> thirds(const Shape& shape) {
  Tensor<Rational> x{shape, {}};
  for (std::int64_t i = 0; i < count(shape); ++i) x.values.push_back(Rational((i * 5) % 7 - 3, 3));
  return x;
}

Windows line(std::int64_t n, const Rule& rule) { return sliding_windows({n}, {0}, {rule}); }

template <class T>
std::vector<T> sums(const Tensor<Sum<T>>& y) {
  std::vector<T> result;
  for (const auto& sum : y.values) result.push_back(sum.value);
  return result;
}

TEST(Reference, WorksOnFractions) {
  // -3/3 2/3 0/3 | -2/3 3/3 1/3
  const Tensor<Rational> x = thirds({2, 3});
  const Windows w = sliding_windows(x.shape, {0, 1}, {Rule{.size = 2}, Rule{.size = 2}});
  EXPECT_EQ(max_pool(x, w, Rational(-99)).values, (std::vector<Rational>{{1}, {1}}));
  EXPECT_EQ(min_pool(x, w, Rational(99)).values, (std::vector<Rational>{{-1}, {0}}));
  EXPECT_EQ(sums(sum_pool(x, w)), (std::vector<Rational>{{0}, {2}}));
  EXPECT_EQ(sum_pool(x, w).values[0].magnitude, Rational(10, 3));
  EXPECT_EQ(sums(avg_pool(x, w, Divide::window)), (std::vector<Rational>{{0}, {1, 2}}));
  EXPECT_EQ(sums(avg_pool(x, w, Divide::number, Rational(1, 2))), (std::vector<Rational>{{0}, {4}}));
  EXPECT_EQ(winners(x, w, Index::plane, Greater{}).values, (std::vector<std::int64_t>{4, 4}));
  const auto product = fold_pool(x, w, Rational(1), [](Rational a, Rational b) { return a * b; });
  EXPECT_EQ(product.values, (std::vector<Rational>{{4, 9}, {0}}));
}

TEST(Reference, PaddingOfFractions) {
  const Tensor<Rational> x{{2}, {Rational(1, 2), Rational(1, 3)}};
  const Windows w = line(2, {.size = 2, .stride = 2, .low = 3, .high = 1});
  EXPECT_EQ(max_pool(x, w, Rational(-7)).values, (std::vector<Rational>{{-7}, {1, 2}, {1, 3}}));
  EXPECT_EQ(sums(avg_pool(x, w, Divide::window)), (std::vector<Rational>{{0}, {1, 4}, {1, 6}}));
  EXPECT_EQ(sums(avg_pool(x, w, Divide::valid)), (std::vector<Rational>{{0}, {1, 2}, {1, 3}}));
  EXPECT_EQ(winners(x, w, Index::offset, Greater{}).values, (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(winners(x, w, Index::plane, Greater{}).values, (std::vector<std::int64_t>{-1, 0, 1}));
}

TEST(Reference, IntegerSumsWrap) {
  const Tensor<std::int64_t> x{{2}, {INT64_MAX, 1}};
  EXPECT_EQ(static_cast<std::int64_t>(sum_pool(x, line(2, {.size = 2})).values[0].value), INT64_MIN);
}

TEST(Reference, CountsOfACeilOverhang) {
  const Windows w = line(4, {.size = 3, .stride = 2, .low = 1, .high = 1, .ceil = true});
  ASSERT_EQ(w.axes[0].out(), 3);
  const Bin& last = w.axes[0].bins[2];
  EXPECT_EQ(last.taps, 3);
  EXPECT_EQ(last.clipped, 2);
  ASSERT_EQ(last.real.size(), 1u);
  EXPECT_EQ(last.real[0].position, 3);
  EXPECT_EQ(last.real[0].number, 0);
}

TEST(Reference, RefusesWhatHasNoAnswer) {
  EXPECT_THROW(line(1, {.size = 2}), std::domain_error);
  EXPECT_EQ(line(1, {.size = 2, .allow_empty = true}).axes[0].out(), 0);
  EXPECT_THROW(line(5, {.size = 2, .stride = 2, .exact = true}), std::domain_error);
  EXPECT_THROW(line(4, {.size = 2, .stride = 2, .ceil = true, .exact = true}), std::domain_error);
  EXPECT_THROW(line(4, {.size = 2, .pad = Pad::same, .exact = true}), std::domain_error);
  const Tensor<int> y{{1}, {5}};
  EXPECT_THROW(max_unpool(y, {{1}, {4}}, {4}, {0}), std::domain_error);
  EXPECT_THROW(max_unpool(y, {{1}, {-1}}, {4}, {0}), std::domain_error);
}

TEST(Reference, NamesCellsOfChannelsLastPictures) {
  // One pixel at row 1, column 2 of 2x3 pixels with 2 channels, channel 1.
  Tensor<int> x{{1, 2, 3, 2}, std::vector<int>(12, 0)};
  x.values[11] = 9;
  const Windows w = whole_windows(x.shape, spatial_axes(4, true));
  const auto best = winner(cells(x, w, {0, 0, 0, 1}), Greater{});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->plane, 5);
  EXPECT_EQ(best->tensor, 11);
  EXPECT_EQ(best->tensor_column, 11);
  const Windows corner = sliding_windows(x.shape, spatial_axes(4, true), {Rule{.size = 1}, Rule{.size = 2}});
  // The window that begins at row 1, column 0: its second cell in column-major order is pixel 1 + 1*2.
  EXPECT_EQ(cells(x, corner, {0, 1, 0, 1}).real[1].tensor_column, (1 + 1 * 2) * 2 + 1);
}

TEST(Reference, UnpoolKeepsTheLastWrite) {
  const Tensor<int> y{{2, 2}, {5, 6, 7, 8}};
  const Tensor<std::int64_t> at{{2, 2}, {1, 1, 0, 2}};
  EXPECT_EQ(max_unpool(y, at, {2, 3}, {1}).values, (std::vector<int>{0, 6, 0, 7, 0, 8}));
}

TEST(Reference, SmoothMaxAndLpOfInfinities) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor<double> x{{4}, {inf, inf, -inf, 1}};
  const Windows w = whole_windows({4}, {0});
  EXPECT_EQ(smooth_max_pool(x, w, 2).values[0].value, inf);
  EXPECT_EQ(smooth_max_pool(x, w, -2).values[0].value, -inf);
  EXPECT_EQ(lp_pool(x, w, 3).values[0], inf);
  const Tensor<double> low{{2}, {-inf, 1}};
  EXPECT_EQ(smooth_max_pool(low, whole_windows({2}, {0}), 2).values[0].value, 1);
}

}  // namespace
}  // namespace reference
