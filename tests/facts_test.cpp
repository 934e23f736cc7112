// Worked examples of every rule, with values computed by hand or to ten digits elsewhere.
#include <cmath>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"

namespace cenote::test {
namespace {

using Rule = Divisor::Rule;

TEST(MaxFacts, OverlappingWindowsAndTheFirstOfATie) {
  const auto y = max_pool_with_indices(array({3, 3}, {0, 10, 8, 2, 7, 3, 5, 7, 20}), {.size = {2, 2}});
  EXPECT_TRUE(holds(y.values, {2, 2}, {10, 10, 7, 20}));
  EXPECT_TRUE(holds(y.indices, {2, 2}, {1, 1, 4, 8}));
}

TEST(MaxFacts, OneWindowAxisPoolsTheLastAxis) {
  const Array x = array({3, 3}, {0, 10, 8, 9, 7, 3, 5, 0, 20});
  EXPECT_TRUE(holds(max_pool(x, {.size = {2}}), {3, 2}, {10, 10, 9, 7, 5, 20}));
}

TEST(MaxFacts, EachAxisHasItsStride) {
  const Array y = max_pool(full({10, 3, 12, 12}, 1), {.size = {2, 2}, .stride = {2, 1}});
  EXPECT_EQ(y.shape(), (Extents{10, 3, 6, 11}));
}

TEST(MaxFacts, ChannelsLast) {
  const auto y = max_pool_with_indices(counting({1, 3, 3, 1}), {.size = {2, 2}, .channels_last = true});
  EXPECT_TRUE(holds(y.values, {1, 2, 2, 1}, {4, 5, 7, 8}));
  EXPECT_TRUE(holds(y.indices, {1, 2, 2, 1}, {4, 5, 7, 8}));
}

TEST(MaxFacts, TilesOfAPicture) {
  std::vector<double> values;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) values.push_back(10 * i + j);
  }
  EXPECT_TRUE(holds(max_pool(array({4, 4}, values), {.size = {2, 2}, .stride = 2}), {2, 2}, {11, 13, 31, 33}));
}

TEST(MaxFacts, PaddingIsNeverCompared) {
  const auto flat = max_pool_with_indices(array({1, 1}, {-3}), {.size = {2, 2}, .padding = 1});
  EXPECT_TRUE(holds(flat.values, {2, 2}, {-3, -3, -3, -3}));
  EXPECT_TRUE(holds(flat.indices, {2, 2}, {0, 0, 0, 0}));
  const auto solid = max_pool_with_indices(array({1, 1, 1}, {-3}), {.size = {2, 2, 2}, .padding = 1});
  EXPECT_TRUE(holds(solid.values, {2, 2, 2}, std::vector<double>(8, -3)));
  EXPECT_TRUE(holds(solid.indices, {2, 2, 2}, std::vector<double>(8, 0)));
  const auto wide = max_pool_with_indices(array({2, 2}, {-3, -1, -2, -5}), {.size = {3, 3}, .padding = 1});
  EXPECT_TRUE(holds(wide.values, {2, 2}, {-1, -1, -1, -1}));
  EXPECT_TRUE(holds(wide.indices, {2, 2}, {1, 1, 1, 1}));
}

TEST(MaxFacts, TheWinnerOfOneWindow) {
  const auto clear = max_pool_with_indices(array({2, 2}, {1, 0, 5, 3}), {.size = {2, 2}});
  EXPECT_TRUE(holds(clear.values, {1, 1}, {5}));
  EXPECT_TRUE(holds(clear.indices, {1, 1}, {2}));
  const auto tied = max_pool_with_indices(array({2, 2}, {2, 2, 1, 2}), {.size = {2, 2}});
  EXPECT_TRUE(holds(tied.indices, {1, 1}, {0}));
}

TEST(MaxFacts, EqualCellsEverywhere) {
  const Array x = full({3, 3}, 7);
  EXPECT_TRUE(holds(max_pool_with_indices(x, {.size = {2, 2}}).indices, {2, 2}, {0, 1, 3, 4}));
  EXPECT_TRUE(holds(min_pool_with_indices(x, {.size = {2, 2}}).indices, {2, 2}, {0, 1, 3, 4}));
}

TEST(MaxFacts, Dilation) {
  const auto y = max_pool_with_indices(counting({4, 4}, 1), {.size = {2, 2}, .dilation = 2});
  EXPECT_TRUE(holds(y.values, {2, 2}, {11, 12, 15, 16}));
  EXPECT_TRUE(holds(y.indices, {2, 2}, {10, 11, 14, 15}));
}

TEST(MaxFacts, InfinitiesNaNAndSignedZeros) {
  const auto low = max_pool_with_indices(array({2}, {-inf, -inf}), {.size = {2}});
  EXPECT_TRUE(holds(low.values, {1}, {-inf}));
  EXPECT_TRUE(holds(low.indices, {1}, {0}));
  const auto poisoned = max_pool_with_indices(array({4}, {1, nan, 5, 6}), {.size = {4}});
  EXPECT_TRUE(holds(poisoned.values, {1}, {nan}));
  EXPECT_TRUE(holds(poisoned.indices, {1}, {1}));
  EXPECT_TRUE(holds(max_pool_with_indices(array({3}, {nan, 1, nan}), {.size = {3}}).indices, {1}, {0}));
  EXPECT_TRUE(holds(max_pool(array({2, 2}, {-1, 0.0, -0.0, -1}), {.size = {2, 2}}), {1, 1}, {0.0}));
  EXPECT_TRUE(holds(max_pool(array({2, 2}, {-1, -0.0, 0.0, -1}), {.size = {2, 2}}), {1, 1}, {-0.0}));
}

TEST(MaxFacts, AWindowWithoutARealCell) {
  const Window between{.size = {2}, .dilation = 2, .padding = 1};
  const auto most = max_pool_with_indices(array({1}, {5}), between);
  EXPECT_TRUE(holds(most.values, {1}, {-inf}));
  EXPECT_TRUE(holds(most.indices, {1}, {-1}));
  EXPECT_TRUE(holds(min_pool(array({1}, {5}), between), {1}, {inf}));
  EXPECT_TRUE(holds(max_pool_with_indices(array({1}, {5}), between, IndexKind::offset).indices, {1}, {0}));
  EXPECT_TRUE(holds(max_pool_with_indices(array({1}, {5}), between, IndexKind::tensor).indices, {1}, {-1}));
  EXPECT_TRUE(holds(max_pool(array<std::int8_t>({1}, {5}), between), {1}, {-128}));
  EXPECT_TRUE(holds(min_pool(array<std::uint16_t>({1}, {5}), between), {1}, {65535}));
  EXPECT_TRUE(holds(max_pool(array<bool>({1}, {1}), between), {1}, {0}));
  EXPECT_TRUE(holds(min_pool(array<bool>({1}, {0}), between), {1}, {1}));
  EXPECT_TRUE(holds(sum_pool(array({1}, {5}), between), {1}, {0}));
  EXPECT_TRUE(holds(avg_pool(array({1}, {5}), between, Rule::valid), {1}, {0}));
  EXPECT_TRUE(holds(lp_pool(array({1}, {5}), between, 2), {1}, {0}));
  EXPECT_TRUE(holds(smooth_max_pool(array({1}, {5}), between, 2), {1}, {std::log(2.0) / 2}, 1e-7));
  EXPECT_TRUE(holds(smooth_max_pool(array({1}, {5}), between, 2, SmoothPadding::ignore), {1}, {-inf}));
  EXPECT_TRUE(holds(smooth_max_pool(array({1}, {5}), between, -2, SmoothPadding::ignore), {1}, {inf}));
}

TEST(MaxFacts, IndicesOfEveryKind) {
  const Array x = array({2, 2}, {1, 2, 3, 4});
  const Window w{.size = {2, 2}, .padding = 1};
  const auto indices = [&](IndexKind kind) { return max_pool_with_indices(x, w, kind).indices; };
  EXPECT_TRUE(holds(indices(IndexKind::offset), {3, 3}, {3, 3, 2, 3, 3, 2, 1, 1, 0}));
  EXPECT_EQ(indices(IndexKind::offset).type(), Type::u8);
  EXPECT_TRUE(holds(indices(IndexKind::plane), {3, 3}, {0, 1, 1, 2, 3, 3, 2, 3, 3}));
  EXPECT_TRUE(holds(indices(IndexKind::tensor), {3, 3}, {0, 1, 1, 2, 3, 3, 2, 3, 3}));
  EXPECT_TRUE(holds(indices(IndexKind::tensor_column), {3, 3}, {0, 2, 2, 1, 3, 3, 1, 3, 3}));
}

TEST(MaxFacts, TensorIndicesCountTheKeptAxes) {
  const Array x = counting({2, 2, 3});
  const Window w{.size = {2, 3}};
  EXPECT_TRUE(holds(max_pool_with_indices(x, w, IndexKind::plane).indices, {2, 1, 1}, {5, 5}));
  EXPECT_TRUE(holds(max_pool_with_indices(x, w, IndexKind::tensor).indices, {2, 1, 1}, {5, 11}));
  const Window top{.size = {1, 3}};
  EXPECT_TRUE(holds(max_pool_with_indices(x, top, IndexKind::tensor).indices, {2, 2, 1}, {2, 5, 8, 11}));
  EXPECT_TRUE(holds(max_pool_with_indices(x, top, IndexKind::tensor_column).indices, {2, 2, 1}, {4, 5, 10, 11}));
}

TEST(MaxFacts, ExactRefusesARemainder) {
  const Array x = full({1, 2, 2, 2}, 1);
  EXPECT_THROW(max_pool(x, {.size = {3, 3, 3}, .exact = true}), std::invalid_argument);
  EXPECT_THROW(max_pool(x, {.size = {1, 1, 1}, .stride = 3, .exact = true}), std::invalid_argument);
  EXPECT_EQ(max_pool(x, {.size = {1, 1, 1}, .stride = 3}).shape(), (Extents{1, 1, 1, 1}));
  EXPECT_THROW(max_pool(x, {.size = {1, 1, 1}, .stride = 0}), std::invalid_argument);
  EXPECT_THROW(max_pool(x, {.size = {1, 1, 1}, .stride = {1, 1}}), std::invalid_argument);
}

TEST(AverageFacts, DivisorsAtTheEdge) {
  EXPECT_TRUE(holds(avg_pool(full({3, 3}, 2), {.size = {2, 2}}), {2, 2}, {2, 2, 2, 2}));
  const Array x = array({2, 2}, {1, 2, 3, 4});
  const Window w{.size = {2, 2}, .padding = same};
  EXPECT_TRUE(holds(avg_pool(x, w), {2, 2}, {2.5, 1.5, 1.75, 1}));
  EXPECT_TRUE(holds(avg_pool(x, w, Rule::valid), {2, 2}, {2.5, 3, 3.5, 4}));
  EXPECT_TRUE(holds(avg_pool(x, w, 2.0), {2, 2}, {5, 3, 3.5, 2}));
}

TEST(AverageFacts, SameAndSameLower) {
  const Window strided{.size = {2}, .stride = 2, .padding = same};
  const Array five = counting({5}, 1);
  EXPECT_TRUE(holds(max_pool(five, strided), {3}, {2, 4, 5}));
  EXPECT_TRUE(holds(avg_pool(five, strided), {3}, {1.5, 3.5, 2.5}));
  EXPECT_TRUE(holds(avg_pool(five, strided, Rule::valid), {3}, {1.5, 3.5, 5}));
  const Array four = counting({4}, 1);
  EXPECT_TRUE(holds(avg_pool(four, {.size = {4}, .padding = same}), {4}, {1.5, 2.5, 2.25, 1.75}));
  EXPECT_TRUE(holds(avg_pool(four, {.size = {4}, .padding = same_lower}), {4}, {.75, 1.5, 2.5, 2.25}));
}

TEST(AverageFacts, PairsAndCeil) {
  const Window pairs{.size = {2}, .stride = 2, .padding = {{2, 3}}};
  EXPECT_TRUE(holds(avg_pool(counting({5}, 1), pairs), {5}, {0, 1.5, 3.5, 2.5, 0}));
  const Window over{.size = {3}, .stride = 2, .padding = 1, .ceil = true};
  const Array four = counting({4}, 1);
  EXPECT_TRUE(holds(avg_pool(four, over), {3}, {1, 3, 4.0 / 3}, 1e-7));
  EXPECT_TRUE(holds(avg_pool(four, over, Rule::clipped), {3}, {1, 3, 2}));
  EXPECT_TRUE(holds(avg_pool(four, over, Rule::valid), {3}, {1.5, 3, 4}));
  const Window last{.size = {2}, .stride = 2, .padding = 1, .ceil = true};
  EXPECT_EQ(avg_pool(counting({5}, 1), last).shape(), (Extents{3}));
}

TEST(SmoothFacts, TenDigits) {
  const Array x = counting<double>({3, 3}, 1);
  const double y = 6.3509805243;
  EXPECT_TRUE(holds(smooth_max_pool(x, {.size = {2, 2}}, 0.5), {2, 2}, {y, y + 1, y + 3, y + 4}, 6e-11));
  const Array line = counting<double>({3}, 1);
  const auto at = [&](double beta) { return smooth_max_pool(line, {.size = {3}}, beta); };
  EXPECT_TRUE(holds(at(1), {1}, {3.4076059644}, 6e-11));
  EXPECT_TRUE(holds(at(10), {1}, {3.0000045401}, 6e-11));
  EXPECT_TRUE(holds(at(-1), {1}, {.5923940356}, 6e-11));
}

TEST(SmoothFacts, HugeNumbersAndPaddedZeros) {
  const Array huge = array<double>({2}, {1e20, -1e20});
  EXPECT_TRUE(holds(smooth_max_pool(huge, {.size = {2}}, 1e20), {1}, {1e20}));
  EXPECT_TRUE(holds(smooth_max_pool(huge, {.size = {2}}, -1e20), {1}, {-1e20}));
  const Array floats = array({2}, {1e20, -1e20});
  EXPECT_TRUE(holds(smooth_max_pool(floats, {.size = {2}}, 1e20), {1}, {static_cast<float>(1e20)}));
  const Window padded{.size = {2}, .padding = 1};
  EXPECT_TRUE(holds(smooth_max_pool(array<double>({1}, {-3}), padded, 1), {2}, {.0485873516, .0485873516}, 6e-11));
  EXPECT_TRUE(holds(smooth_max_pool(array({1}, {-3}), padded, 1, SmoothPadding::ignore), {2}, {-3, -3}));
}

TEST(SmoothFacts, EqualCellsAddTheLogarithmOfTheirNumber) {
  for (const double beta : {0.5, 1.0, -2.0, 30.0}) {
    const Array y = smooth_max_pool(full<double>({3, 4}, 5), {.size = {3, 4}}, beta);
    EXPECT_TRUE(holds(y, {1, 1}, {5 + std::log(12.0) / beta}, 1e-14));
  }
}

TEST(SmoothFacts, BetaIsCheckedWhenTheRequestIsPlanned) {
  for (const double beta : {0.0, inf, -inf, nan, 1e300, 1e-300}) {
    EXPECT_THROW(plan({.reducer = Reducer::smooth_max, .region = Window{.size = {2}}, .beta = beta}, Type::f32, {4}),
                 std::invalid_argument)
        << beta;
  }
  EXPECT_NO_THROW(plan({.reducer = Reducer::smooth_max, .region = Window{.size = {2}}, .beta = 1e300}, Type::f64, {4}));
}

TEST(LpFacts, Norms) {
  EXPECT_TRUE(holds(lp_pool(array({2}, {3, 4}), {.size = {2}}, 2), {1}, {5}, 1e-6));
  EXPECT_TRUE(holds(lp_pool(array<double>({3}, {1, -2, 2}), {.size = {3}}, 3), {1}, {2.5712815907}, 6e-11));
  EXPECT_TRUE(holds(lp_pool(array<double>({3}, {1, -2, 2}), {.size = {3}}, 1), {1}, {5}, 1e-15));
  EXPECT_TRUE(holds(lp_pool(array<double>({3}, {1, -3, 2}), {.size = {3}}, inf), {1}, {3}));
  EXPECT_TRUE(holds(lp_pool(array({2}, {2e38, 2e38}), {.size = {2}}, 3), {1}, {2e38 * std::cbrt(2.0)}, 1e32));
  EXPECT_TRUE(holds(lp_pool(array({2}, {3e-40, 4e-40}), {.size = {2}}, 2), {1}, {5e-40}, 1e-44));
  EXPECT_TRUE(holds(lp_pool(array({2}, {0, 0}), {.size = {2}}, 2.3), {1}, {0}));
}

TEST(AdaptiveFacts, Bins) {
  const Array five = counting({5}, 1);
  EXPECT_TRUE(holds(adaptive_avg_pool(five, {.output = {3}}), {3}, {1.5, 3, 4.5}));
  EXPECT_TRUE(holds(adaptive_max_pool(five, {.output = {3}}), {3}, {2, 4, 5}));
  EXPECT_TRUE(holds(adaptive_max_pool(counting({3}, 1), {.output = {5}}), {5}, {1, 2, 2, 3, 3}));
  EXPECT_TRUE(holds(adaptive_avg_pool(counting({3}, 1), {.output = {5}}), {5}, {1, 1.5, 2, 2.5, 3}));
  const Array kept = adaptive_max_pool(counting({2, 6}), {.output = {std::nullopt, 2}});
  EXPECT_TRUE(holds(kept, {2, 2}, {2, 5, 8, 11}));
}

TEST(AdaptiveFacts, OffsetsAreWithinTheBin) {
  const Pooling p{.region = Adaptive{.output = {3}}, .indices = IndexKind::offset};
  EXPECT_TRUE(holds(pool_with_indices(counting({5}, 1), p).indices, {3}, {1, 2, 1}));
}

TEST(GlobalFacts, WholeAxes) {
  const Array x = counting({2, 3, 2, 2});
  EXPECT_TRUE(holds(global_max_pool(x), {2, 3, 1, 1}, {3, 7, 11, 15, 19, 23}));
  EXPECT_TRUE(holds(global_min_pool(x, {.keepdims = false}), {2, 3}, {0, 4, 8, 12, 16, 20}));
  EXPECT_TRUE(holds(global_sum_pool(x, {.rank = 3}), {2, 1, 1, 1}, {66, 210}));
  EXPECT_TRUE(holds(global_avg_pool(x, {.channels_last = true}), {2, 1, 1, 2}, {5, 6, 17, 18}));
  EXPECT_TRUE(
      holds(global_max_pool(x, {.axes = Extents{1}, .keepdims = false}), {2, 2, 2}, {8, 9, 10, 11, 20, 21, 22, 23}));
}

TEST(FoldFacts, ProductsAndAnInitThatEntersOnce) {
  const auto times = [](float a, float b) { return a * b; };
  const auto larger = [](float a, float b) { return b > a ? b : a; };
  const Window tiles{.size = {2, 2}, .stride = 2};
  for (const Fold order : {Fold::sequential, Fold::associative}) {
    EXPECT_TRUE(holds(pool(full({3, 3}, 2), 1.0f, times, Window{.size = {2, 2}}, order), {2, 2}, {16, 16, 16, 16}));
    const Array line = pool(counting({10}), 1.0f, times, Window{.size = {2}}, order);
    EXPECT_TRUE(holds(line, {9}, {0, 2, 6, 12, 20, 30, 42, 56, 72}));
    EXPECT_TRUE(holds(pool(counting({4, 4}, -1, -1), 0.0f, larger, tiles, order), {2, 2}, {0, 0, 0, 0}));
  }
}

TEST(Results, OffsetsOfWindowsThatMissEveryCellAreZero) {
  // Both taps of the one window along the line lie in the padding.
  const Array x = counting<float>({3, 4, 2});
  const Window window{
      .size = {2, 2}, .stride = {1, 2}, .dilation = {1, 3}, .padding = {{0, 0}, {1, 1}}, .allow_empty = true};
  const Pooled pooled = max_pool_with_indices(x, window, IndexKind::offset);
  EXPECT_TRUE(holds(pooled.values, {3, 3, 1}, std::vector<double>(9, -inf)));
  EXPECT_TRUE(holds(pooled.indices, {3, 3, 1}, std::vector<double>(9, 0)));
}

/// Planes of results in a larger array: `rows` and `planes` are distances between them, counted from `first`.
struct Place {
  std::int64_t first, planes, rows;
};

TEST(Results, MayLieAnywhere) {
  const Array x = counting<float>({3, 20, 24}, -500);
  for (const std::int64_t k : {2, 3, 4, 13}) {
    for (const std::int64_t stride : {1, 2}) {
      for (const Reducer reducer : {Reducer::max, Reducer::sum}) {
        Pooling pooling{.reducer = reducer, .region = Window{.size = {k, k}, .stride = {stride, stride}}};
        if (reducer == Reducer::max) pooling.indices = IndexKind::offset;
        const Plan made = plan(pooling, Type::f32, x.shape());
        Array values(Type::f32, made.output_shape()), offsets(Type::u8, made.output_shape());
        reducer == Reducer::max ? made.run(x, values, offsets) : made.run(x, values);
        const std::int64_t rows = values.shape()[1], columns = values.shape()[2], plane = rows * columns;
        const Place places[] = {{0, rows * (columns + 3), columns + 3},
                                {(rows - 1) * columns, plane, -columns},
                                {2 * plane, -plane, columns},
                                {0, columns, 3 * columns},
                                {3 * plane - columns, -plane, -columns}};
        for (const Place& place : places) {
          Array memory = full<float>({4 * plane + 100 * columns}, 99);
          Array bytes = full<std::uint8_t>({4 * plane + 100 * columns}, 255);
          const Extents strides{place.planes, place.rows, 1};
          const MutableView y(&memory.at<float>({place.first}), Type::f32, values.shape(), strides);
          const MutableView at(&bytes.at<std::uint8_t>({place.first}), Type::u8, values.shape(), strides);
          reducer == Reducer::max ? made.run(x, y, at) : made.run(x, y);
          for (std::int64_t p = 0; p < 3; ++p)
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < columns; ++j) {
                const std::int64_t here = place.first + p * place.planes + i * place.rows + j;
                ASSERT_EQ(memory.at<float>({here}), values.at<float>({p, i, j})) << "k " << k << " rows " << place.rows;
                if (reducer == Reducer::max) {
                  ASSERT_EQ(bytes.at<std::uint8_t>({here}), offsets.at<std::uint8_t>({p, i, j})) << "k " << k;
                }
              }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cenote::test
