// How exact results are: bounds that do not grow with the axis, and values that stay inside their own windows.
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/machine.h"
#include "support/oracle.h"
#include "support/property.h"

namespace cenote::test {
namespace {

/// Sequences that make sums go wrong: cancellation, an offset, roundings that all go one way, a huge neighbour.
std::vector<std::vector<double>> hard_sequences(std::size_t n) {
  std::mt19937_64 random(7);
  std::vector<std::vector<double>> result(4, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    result[0][i] = unit;
    result[1][i] = 1000 + unit;
    result[2][i] = 0.1;
    result[3][i] = i == n / 2 ? 1e8 : unit;
  }
  return result;
}

/// Every window of a long axis, on every target, as rows and as lines.
void expect_sums_within_bound(const Array& x, std::int64_t k) {
  const std::int64_t n = x.size();
  const Pooling sums{.reducer = Reducer::sum, .region = Window{.size = {k}, .axes = Extents{0}}};
  // The same numbers as one line, and as three equal columns.
  const View line(x.data(), Type::f32, {n}), rows(x.data(), Type::f32, {n, 3}, {1, 0});
  const Pooling averages{.reducer = Reducer::avg, .region = sums.region};
  for (const View& view : {line, rows}) {
    const auto cells = read<float>(view);
    for (const Pooling& pooling : {sums, averages}) {
      const auto expected = Expectation<float>(pooling, view.shape, cells, Type::f32).values();
      for (const std::string& target : targets_under_test()) {
        const Machine machine(target, 2);
        EXPECT_EQ(mismatch(expected, pool(view, pooling)), "") << target << " k " << k << " rank " << view.rank();
      }
    }
  }
}

TEST(Accuracy, SumsOfLongWindowsStayWithinTheBound) {
  const std::size_t n = test_scale() < 1 ? 700 : 6000;
  for (const auto& sequence : hard_sequences(n)) {
    const Array x = array({static_cast<std::int64_t>(n)}, sequence);
    for (const std::int64_t k : {2, 16, 64, 255, 513}) expect_sums_within_bound(x, k);
  }
}

TEST(Accuracy, SumsOverMillionsOfCells) {
  const std::int64_t n = 1 << 21;
  const double per_cell = static_cast<double>(0.1f);
  const double bound = (40 + 21) * 0x1p-24 * per_cell * static_cast<double>(n);
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    const Array x = full({n}, 0.1f), y = global_sum_pool(x, {.rank = 1});
    EXPECT_TRUE(holds(y, {1}, {per_cell * static_cast<double>(n)}, bound)) << target;
    const float tenth = 0.1f;
    const View column(&tenth, Type::f32, {n, 5}, {0, 0});
    const Array z = global_sum_pool(column, {.axes = Extents{0}});
    EXPECT_TRUE(holds(z, {1, 5}, std::vector<double>(5, per_cell * static_cast<double>(n)), bound)) << target;
  }
}

/// A strange value at one place must reach the windows that hold it and no other.
void expect_confined(double strange, const Window& window, const std::function<Array(const View&)>& pooled) {
  constexpr std::int64_t n = 1500, at = 777;
  for (const std::int64_t inner : {1, 5}) {
    Array x = full({n, inner}, 1);
    const Array clean = pooled(x);
    for (std::int64_t c = 0; c < inner; ++c) x.at<float>({at, c}) = static_cast<float>(strange);
    const Array y = pooled(x);
    const Axis axis = plan({.region = window}, Type::f32, x.shape()).axes()[0];
    for (std::int64_t o = 0; o < axis.out; ++o) {
      const auto span = axis.span(o);
      const bool inside = span.first <= at && at < span.first + span.count;
      const auto value = y.at<float>({o, inner - 1});
      const double expected = inside ? strange : clean.at<float>({o, inner - 1});
      // How a huge number rounds is not the question here.
      if (inside && std::isfinite(strange)) continue;
      ASSERT_TRUE(value == expected || (value != value && expected != expected)) << "window " << o << ": " << value;
    }
  }
}

TEST(Accuracy, StrangeValuesStayInTheirWindows) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const std::int64_t k : {3, 40, 700}) {
      for (const double strange : {nan, inf, 1e30}) {
        SCOPED_TRACE(testing::Message() << target << " k " << k << " value " << strange);
        const Window w{.size = {k}, .padding = same, .axes = Extents{0}};
        expect_confined(strange, w, [&](const View& x) { return sum_pool(x, w); });
        expect_confined(strange, w, [&](const View& x) { return avg_pool(x, w, Divisor::Rule::valid); });
        expect_confined(strange, w, [&](const View& x) { return max_pool(x, w); });
        expect_confined(strange, w, [&](const View& x) { return smooth_max_pool(x, w, 2); });
        expect_confined(strange, w, [&](const View& x) { return lp_pool(x, w, 2); });
        expect_confined(strange, w, [&](const View& x) { return lp_pool(x, w, 3); });
        if (strange != inf) expect_confined(strange, w, [&](const View& x) { return min_pool(x, w); });
      }
    }
  }
}

/// Sums and averages over windows of k cells of a long axis, as one line and as two equal columns.
void expect_no_feeling_for_length(std::int64_t n, std::int64_t k) {
  const auto sequence = hard_sequences(static_cast<std::size_t>(n))[1];
  Array x = array({n}, sequence);
  const auto cells = x.values<float>();
  std::vector<long double> sums(static_cast<std::size_t>(n) + 1, 0);
  for (std::size_t i = 0; i < cells.size(); ++i) sums[i + 1] = sums[i] + static_cast<long double>(cells[i]);
  const View line(x.data(), Type::f32, {n}), rows(x.data(), Type::f32, {n, 2}, {1, 0});
  const std::int64_t at = n / 2;
  for (const View& view : {line, rows})
    for (const Reducer reducer : {Reducer::sum, Reducer::avg}) {
      const Pooling pooling{.reducer = reducer, .region = Window{.size = {k}, .axes = Extents{0}}};
      ASSERT_NE(plan(pooling, Type::f32, view.shape).explain().find("swept"), std::string::npos);
      const auto pooled = [&] { return numbers(pool(view, pooling)); };
      const std::vector<double> clean = pooled();
      const std::size_t step = view.rank() == 1 ? 1 : 2;
      const double divisor = reducer == Reducer::avg ? static_cast<double>(k) : 1;
      for (std::size_t o = 0; o * step < clean.size(); ++o) {
        const long double sum = sums[o + static_cast<std::size_t>(k)] - sums[o];
        const auto bound = static_cast<double>((9.0L + static_cast<long double>(k) / 16) * 0x1p-24L * sum);
        ASSERT_NEAR(clean[o * step] * divisor, static_cast<double>(sum), bound) << "window " << o << " of " << n;
      }
      for (const double strange : {nan, inf, 1e30}) {
        const float before = cells[static_cast<std::size_t>(at)];
        x.values<float>()[static_cast<std::size_t>(at)] = static_cast<float>(strange);
        const std::vector<double> y = pooled();
        x.values<float>()[static_cast<std::size_t>(at)] = before;
        for (std::int64_t o = 0; o + k <= n; ++o) {
          const std::size_t i = static_cast<std::size_t>(o) * step;
          if (o <= at && at < o + k)
            ASSERT_FALSE(y[i] < 1e25) << "window " << o << " of " << n;
          else
            ASSERT_EQ(y[i], clean[i]) << "window " << o << " of " << n << " beside " << strange;
        }
      }
    }
}

TEST(Accuracy, SumsDoNotFeelTheLengthOfTheirAxis) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    SCOPED_TRACE(target);
    for (const std::int64_t n : {1 << 10, 1 << 15, 1 << 18})
      for (const std::int64_t k : {33, 257}) expect_no_feeling_for_length(n, k);
    if (test_scale() >= 1 && target == targets_under_test().front()) expect_no_feeling_for_length(1 << 20, 100);
  }
}

/// Sequences that make logarithms of sums of powers go wrong.
std::vector<std::vector<double>> wild_sequences(std::size_t n) {
  std::mt19937_64 random(11);
  std::vector<std::vector<double>> result(8, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    const double rare = random() % 50 == 0 ? 1 : 0;
    result[0][i] = unit;
    result[1][i] = 1000 * unit;
    result[2][i] = rare > 0 ? 1000 * unit : unit;
    result[3][i] = 4e6 * (1 + unit / 4);    // about the end of the range where powers are told from whole numbers
    result[4][i] = std::ldexp(unit, -130);  // some of them subnormal
    result[5][i] = -inf;                    //
    result[6][i] = rare > 0 ? inf : unit;   //
    result[7][i] = rare > 0 ? nan : 1e30 * unit;
  }
  return result;
}

TEST(Accuracy, SmoothMaximaOfWildSequencesStayWithinTheBound) {
  const std::size_t n = test_scale() < 1 ? 300 : 700;
  const auto length = static_cast<std::int64_t>(n);
  for (const Type type : {Type::f32, Type::f64}) {
    for (const auto& sequence : wild_sequences(n)) {
      const Array x = type == Type::f64 ? array<double>({length}, sequence) : array<float>({length}, sequence);
      // The same numbers as one line, and as two equal columns.
      const View line(x.data(), type, {length}), rows(x.data(), type, {length, 2}, {1, 0});
      for (const View& view : {line, rows}) {
        visit(type, [&](auto element) {
          using T = decltype(element);
          if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
            const auto cells = read<T>(view);
            for (const std::int64_t k : {2, 9, 513}) {
              for (const double beta : {1.0, -30.0, -1e-3, 1e20}) {
                const Pooling pooling{.reducer = Reducer::smooth_max,
                                      .region = Window{.size = {k}, .padding = same, .axes = Extents{0}},
                                      .beta = beta,
                                      .pad = k == 9 ? SmoothPadding::ignore : SmoothPadding::zero};
                const auto expected = Expectation<T>(pooling, view.shape, cells, type).values();
                for (const std::string& target : targets_under_test()) {
                  const Machine machine(target, 2);
                  EXPECT_EQ(mismatch(expected, pool(view, pooling)), "")
                      << target << " k " << k << " beta " << beta << " first " << sequence[0];
                }
              }
            }
          }
        });
      }
    }
  }
}

TEST(Accuracy, SmoothMaximaDoNotFeelTheirNeighbours) {
  constexpr std::int64_t n = 3000, at = 1234;
  const auto cells = hard_sequences(static_cast<std::size_t>(n))[0];
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const std::int64_t k : {3, 7, 40, 300}) {
      for (const double strange : {nan, -inf, 1e3, -1e30}) {
        const Window window{.size = {k}, .padding = same};
        Array x = array({n}, cells);
        const Array clean = smooth_max_pool(x, window, 3);
        x.at<float>({at}) = static_cast<float>(strange);
        const Array y = smooth_max_pool(x, window, 3);
        const Axis axis = plan({.region = window}, Type::f32, x.shape()).axes()[0];
        for (std::int64_t o = 0; o < n; ++o) {
          const auto span = axis.span(o);
          if (span.first <= at && at < span.first + span.count) continue;
          ASSERT_EQ(y.at<float>({o}), clean.at<float>({o})) << target << " k " << k << " beside " << strange;
        }
      }
    }
  }
}

TEST(Accuracy, SmoothMaximaOfPlanesDoNotFeelTheirNeighbours) {
  constexpr std::int64_t rows = 40, columns = 50;
  const auto cells = hard_sequences(static_cast<std::size_t>(rows * columns))[0];
  const Window windows[] = {{.size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
                            {.size = {2, 2}, .stride = {2, 2}},
                            {.size = {5, 5}, .padding = {2, 2}},
                            {.size = {13, 13}, .padding = {6, 6}},
                            {.size = {3, 3}, .dilation = {3, 2}}};
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const Window& window : windows) {
      for (const SmoothPadding pad : {SmoothPadding::zero, SmoothPadding::ignore}) {
        Array x = array({rows, columns}, cells);
        const Array clean = smooth_max_pool(x, window, -2, pad);
        x.at<float>({20, 33}) = std::numeric_limits<float>::quiet_NaN();
        const Array y = smooth_max_pool(x, window, -2, pad);
        std::int64_t same = 0;
        for (std::int64_t i = 0; i < y.shape()[0]; ++i)
          for (std::int64_t j = 0; j < y.shape()[1]; ++j) {
            if (std::isnan(y.at<float>({i, j}))) continue;
            ++same;
            ASSERT_EQ(y.at<float>({i, j}), clean.at<float>({i, j})) << target << " window " << &window - windows;
          }
        ASSERT_GT(same, clean.size() / 2);
        ASSERT_LT(same, clean.size());
      }
    }
  }
}

TEST(Accuracy, CotangentsOfSmoothMaximaDoNotFeelTheirNeighbours) {
  constexpr std::int64_t n = 3000, at = 1234;
  const auto cells = hard_sequences(static_cast<std::size_t>(n))[0];
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const std::int64_t k : {3, 7, 40, 300}) {
      for (const std::int64_t stride : {1, 2}) {
        const Pooling pooling{
            .reducer = Reducer::smooth_max, .region = Window{.size = {k}, .stride = {stride}}, .beta = -3};
        const std::int64_t outputs = (n - k) / stride + 1, held = at / stride;
        const auto back = [&](double cell, double given) {
          Array x = array({n}, cells), gy = array({outputs}, {cells.begin(), cells.begin() + outputs});
          x.at<float>({at}) = static_cast<float>(cell);
          gy.at<float>({held}) = static_cast<float>(given);
          return vjp(pooling, x).pullback(gy);
        };
        const Array clean = back(0.5, 0.5);
        for (const double strange : {nan, -inf, 1e3, 40.0, 1e30, 1e-42}) {
          const Array cell = back(strange, 0.5), given = back(0.5, strange);
          for (std::int64_t i = 0; i < n; ++i) {
            if (i <= at - k || i >= at + k) {
              ASSERT_EQ(cell.at<float>({i}), clean.at<float>({i})) << target << " k " << k << " beside " << strange;
            }
            if (i < held * stride || i >= held * stride + k) {
              ASSERT_EQ(given.at<float>({i}), clean.at<float>({i})) << target << " k " << k << " given " << strange;
            }
          }
        }
      }
    }
  }
}

TEST(Accuracy, NormsOfWildSequencesStayWithinTheBound) {
  const std::size_t n = test_scale() < 1 ? 300 : 700;
  const auto length = static_cast<std::int64_t>(n);
  for (const auto& sequence : wild_sequences(n)) {
    const Array x = array<float>({length}, sequence);
    const View line(x.data(), Type::f32, {length}), rows(x.data(), Type::f32, {length, 2}, {1, 0});
    for (const View& view : {line, rows}) {
      const auto cells = read<float>(view);
      for (const std::int64_t k : {1, 2, 9, 513}) {
        for (const double p : {1.0, 2.0, 3.0, 2.5}) {
          const Pooling pooling{
              .reducer = Reducer::lp, .region = Window{.size = {k}, .padding = same, .axes = Extents{0}}, .p = p};
          const auto expected = Expectation<float>(pooling, view.shape, cells, Type::f32).values();
          for (const std::string& target : targets_under_test()) {
            const Machine machine(target, 2);
            EXPECT_EQ(mismatch(expected, pool(view, pooling)), "") << target << " k " << k << " p " << p;
          }
        }
      }
    }
  }
}

TEST(Accuracy, NormsDoNotFeelTheirNeighbours) {
  constexpr std::int64_t n = 3000, at = 1234;
  auto cells = hard_sequences(static_cast<std::size_t>(n))[0];
  for (std::size_t i = 0; i < cells.size(); i += 7) cells[i] = 0;
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const std::int64_t k : {2, 7, 40, 300}) {
      for (const double p : {1.0, 2.0}) {
        const Window window{.size = {k}, .stride = {k == 2 ? 2 : 1}};
        Array x = array({n}, cells);
        const Array clean = lp_pool(x, window, p);
        for (const double strange : {nan, inf, 1e30, 1e-30}) {
          x.at<float>({at}) = static_cast<float>(strange);
          const Array y = lp_pool(x, window, p);
          for (std::int64_t o = 0; o < y.size(); ++o) {
            const std::int64_t first = o * (k == 2 ? 2 : 1);
            if (first <= at && at < first + k) continue;
            ASSERT_EQ(y.at<float>({o}), clean.at<float>({o})) << target << " k " << k << " p " << p;
          }
        }
      }
    }
  }
}

TEST(Accuracy, SmoothMaximaOfOneCellAreThatCell) {
  const std::vector<double> cells{1e-3, -3e-5, 0.25, 7, -1e4, 1e-30, 3};
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    for (const double beta : {1.0, -3.0, 0.01}) {
      const Array x = array({7}, cells);
      const Array alone = smooth_max_pool(x, {.size = {1}}, beta);
      const Array corners = smooth_max_pool(x, {.size = {2}, .padding = {1}}, beta, SmoothPadding::ignore);
      for (std::int64_t i = 0; i < 7; ++i) ASSERT_EQ(alone.at<float>({i}), x.at<float>({i})) << target;
      ASSERT_EQ(corners.at<float>({0}), x.at<float>({0})) << target;
      ASSERT_EQ(corners.at<float>({7}), x.at<float>({6})) << target;
    }
  }
}

TEST(Accuracy, WeightsOfSmoothMaximaHangOnDifferencesAlone) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 2);
    for (const double base : {0.0, 1e3, -1e6, 0x1p21, 2.9e6, -2.9e6, 0x1p22, 0x1p24, 1e7}) {
      for (const double beta : {1.0, -1.0, 0.25}) {
        const std::vector<double> steps{0, 2, -4, 1, 2, 6, -100};
        std::vector<double> cells;
        long double total = 0;
        const auto power = [&](double step) { return std::exp(static_cast<long double>(beta) * step); };
        for (const double step : steps) {
          cells.push_back(static_cast<float>(base + step));
          total += power(cells.back() - base);
        }
        const Array x = array({7}, cells);
        const Pooling pooling{.reducer = Reducer::smooth_max, .region = Window{.size = {7}}, .beta = beta};
        const Array gx = vjp(pooling, x).pullback(full({1}, 1));
        for (std::int64_t i = 0; i < 7; ++i) {
          const auto expected = static_cast<double>(power(cells[static_cast<std::size_t>(i)] - base) / total);
          EXPECT_NEAR(gx.at<float>({i}), expected, 1e-5 * expected + 1e-37) << target << " about " << base;
          Array dx = full({7}, 0);
          dx.at<float>({i}) = 1;
          EXPECT_NEAR(jvp(pooling, x, dx).dy.at<float>({0}), expected, 1e-5 * expected + 1e-37) << target;
        }
      }
    }
  }
}

TEST(Accuracy, HalvesAccumulateInFloatAndRoundOnce) {
  EXPECT_TRUE(holds(global_avg_pool(full<f16>({1, 1, 64, 64}, 1)), {1, 1, 1, 1}, {1}));
  EXPECT_TRUE(holds(global_avg_pool(full<bf16>({1, 64, 64, 1}, 1), {.channels_last = true}), {1, 1, 1, 1}, {1}));
  EXPECT_TRUE(holds(global_avg_pool(full<f16>({1, 1, 400, 400}, 1)), {1, 1, 1, 1}, {1}));
  EXPECT_TRUE(holds(sum_pool(array<f16>({3}, {2048, 1, 1}), {.size = {3}}), {1}, {2050}));
  EXPECT_TRUE(holds(sum_pool(array<f16>({3}, {4096, 1, -4096}), {.size = {3}}), {1}, {1}));
  EXPECT_TRUE(holds(sum_pool(array<bf16>({3}, {256, 1, 1}), {.size = {3}}), {1}, {258}));
  EXPECT_TRUE(holds(sum_pool(array<f16>({2}, {65504, 65504}), {.size = {2}}), {1}, {inf}));
  EXPECT_TRUE(holds(avg_pool(array<f16>({2}, {65504, 65504}), {.size = {2}}), {1}, {65504}));
  EXPECT_TRUE(holds(sum_pool(array<f16>({2}, {65504, 65504}), {.size = {2}}, Type::f32), {1}, {131008}));
}

TEST(Accuracy, IntegersAreExactBeyondFloats) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const Array x({3}, {big, big + 1, big - 1});
  EXPECT_EQ(max_pool(x, {.size = {3}}).at<std::int64_t>({0}), big + 1);
  EXPECT_EQ(min_pool(x, {.size = {3}}).at<std::int64_t>({0}), big - 1);
  EXPECT_EQ(sum_pool(x, {.size = {3}}).at<std::int64_t>({0}), 3 * big);
  const Array u({2}, {~std::uint64_t{0}, ~std::uint64_t{0} - 1});
  EXPECT_EQ(max_pool(u, {.size = {2}}).at<std::uint64_t>({0}), ~std::uint64_t{0});
  EXPECT_EQ(min_pool(u, {.size = {2}}).at<std::uint64_t>({0}), ~std::uint64_t{0} - 1);
}

TEST(Accuracy, IntegerSumsWrapUnlessAWiderTypeIsAsked) {
  const Array bytes = array<std::int8_t>({2}, {100, 100});
  EXPECT_TRUE(holds(sum_pool(bytes, {.size = {2}}), {1}, {-56}));
  EXPECT_TRUE(holds(sum_pool(bytes, {.size = {2}}, Type::i16), {1}, {200}));
  EXPECT_TRUE(holds(sum_pool(bytes, {.size = {2}}, Type::i64), {1}, {200}));
  EXPECT_TRUE(holds(sum_pool(array<std::uint8_t>({2}, {200, 100}), {.size = {2}}), {1}, {44}));
  EXPECT_TRUE(holds(sum_pool(array<std::uint8_t>({2}, {200, 100}), {.size = {2}}, Type::u32), {1}, {300}));
  const Array most({2}, {std::numeric_limits<std::int64_t>::max(), std::int64_t{1}});
  EXPECT_EQ(sum_pool(most, {.size = {2}}).at<std::int64_t>({0}), std::numeric_limits<std::int64_t>::min());
}

TEST(Accuracy, IntegerAveragesRoundOnceToFloat) {
  EXPECT_TRUE(holds(avg_pool(array<std::uint8_t>({2}, {255, 254}), {.size = {2}}), {1}, {254.5}));
  EXPECT_TRUE(holds(avg_pool(array<std::int8_t>({3}, {-128, -128, 127}), {.size = {3}}), {1},
                    {double{static_cast<float>(-129.0 / 3)}}));
  // 2^24 + 1 and 2^24 + 3 are no floats; their mean, 2^24 + 2, is one.
  const Array x = array<std::int32_t>({2}, {16777217, 16777219});
  EXPECT_TRUE(holds(avg_pool(x, {.size = {2}}), {1}, {16777218}));
  const Array large = full<std::int32_t>({3}, std::numeric_limits<std::int32_t>::max());
  EXPECT_TRUE(holds(avg_pool(large, {.size = {3}}), {1}, {2147483648.0}));
}

TEST(Accuracy, CountsThatAFloatCannotHold) {
  EXPECT_TRUE(holds(avg_pool(array<float>({1}, {1e38}), {.size = {1}}, 1e39), {1}, {0.1}, 1e-7));
  EXPECT_TRUE(holds(avg_pool(array<float>({1}, {1e-40}), {.size = {1}}, 1e-42), {1}, {100}, 1));
  // 2^132 taps, one of them real.
  const std::int64_t k = std::int64_t{1} << 33;
  const Padding::Sides sides(k / 2, k / 2 - 1);
  const Window huge{.size = {k, k, k, k}, .padding = {sides, sides, sides, sides}};
  EXPECT_TRUE(
      holds(avg_pool(array<float>({1, 1, 1, 1}, {1e20}), huge), {1, 1, 1, 1}, {1e20 / std::ldexp(1, 132)}, 1e-26));
  const double zeros = 132 * std::log(2.0);
  EXPECT_TRUE(holds(smooth_max_pool(array<float>({1, 1, 1, 1}, {5}), huge, 1), {1, 1, 1, 1}, {zeros}, 1e-4));
  EXPECT_TRUE(holds(smooth_max_pool(array<float>({1, 1, 1, 1}, {5}), huge, 100), {1, 1, 1, 1}, {5}, 1e-5));
  EXPECT_TRUE(holds(smooth_max_pool(array<float>({1, 1, 1, 1}, {-inf}), huge, -1), {1, 1, 1, 1}, {-inf}));
}

}  // namespace
}  // namespace cenote::test
