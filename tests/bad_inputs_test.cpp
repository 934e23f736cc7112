// Requests that broke other pooling libraries: a typed error that says what is wrong, or the right answer.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/strided.h"

namespace cenote::test {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Every test ends with a plain call, which must work as if nothing had happened.
class BadInputs : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(holds(max_pool(array({2, 2}, {1, 2, 3, 4}), {.size = {2, 2}}), {1, 1}, {4}));
    EXPECT_TRUE(holds(avg_pool(array({2, 2}, {1, 2, 3, 4}), {.size = {2, 2}}), {1, 1}, {2.5}));
  }

  static Plan planned(const Pooling& pooling, const Extents& shape, Type type = Type::f32) {
    return plan(pooling, type, shape);
  }

  /// Every reducer must refuse the window on a 5x5 array and say all of `parts`.
  static void all_refuse(const Window& window, const std::vector<std::string>& parts, const Extents& shape = {5, 5}) {
    for (const Reducer reducer : all_reducers) {
      std::vector<std::string> with_name = parts;
      with_name.push_back(std::string(name(reducer)).append("_pool] "));
      EXPECT_TRUE(rejects([&] { planned({.reducer = reducer, .region = window}, shape); }, with_name));
    }
  }
};

TEST_F(BadInputs, WindowsStridesAndDilationsBelowOne) {
  all_refuse({.size = {2, 0}}, {"window[1] = 0", "at least 1"});
  all_refuse({.size = {-1, 2}}, {"window[0] = -1", "at least 1"});
  all_refuse({.size = 0, .axes = Extents{0, 1}}, {"window = 0", "at least 1"});
  all_refuse({.size = {2, 2}, .stride = 0}, {"stride = 0", "at least 1"});
  all_refuse({.size = {2, 2}, .stride = {1, -1}}, {"stride[1] = -1", "at least 1"});
  all_refuse({.size = {2, 2}, .dilation = {0, 1}}, {"dilation[0] = 0", "at least 1"});
  all_refuse({.size = {2, 2}, .dilation = -3}, {"dilation = -3", "at least 1"});
  all_refuse({.size = {most, most}, .stride = -1}, {"stride = -1", "at least 1"});
}

TEST_F(BadInputs, NegativePadding) {
  all_refuse({.size = {2, 2}, .padding = -1}, {"padding = -1", "at least 0"});
  all_refuse({.size = {2, 2}, .padding = {{0, 0}, {1, -2}}}, {"padding[1]", "-2", "at least 0"});
}

TEST_F(BadInputs, AWindowLargerThanTheArray) {
  all_refuse({.size = {2, 2}}, {"window", "2", "axis", "1", "allow_empty"}, {1, 1});
  const Array none = max_pool(full({1, 1}, 3), {.size = {2, 2}, .allow_empty = true});
  EXPECT_EQ(none.shape(), (Extents{0, 0}));
}

TEST_F(BadInputs, ListsOfTheWrongLength) {
  all_refuse({.size = Extents{}}, {"window = ()", "at least one"});
  all_refuse({.size = {1, 1, 1}}, {"window", "3", "2"});
  all_refuse({.size = 2}, {"window = 2", "axes"});
  all_refuse({.size = {2, 2}, .stride = {1}}, {"stride = (1,)", "2"});
  all_refuse({.size = {2, 2}, .stride = {1, 1, 1}}, {"stride = (1, 1, 1)", "2"});
  all_refuse({.size = {2, 2}, .stride = Extents{}}, {"stride = ()", "2"});
  all_refuse({.size = {2, 2}, .dilation = {1, 1, 1}}, {"dilation = (1, 1, 1)", "2"});
  all_refuse({.size = {2, 2}, .padding = {{1, 1}}}, {"padding", "1", "2"});
  all_refuse({.size = {2, 2}, .padding = {{1, 1}, {1, 1}, {1, 1}}}, {"padding", "3", "2"});
  all_refuse({.size = {2}, .padding = {1, 2}}, {"padding", "((low, high),)"});
  all_refuse({.size = Extents::filled(9, 1)}, {"9", "8"}, Extents::filled(9, 1));
}

TEST_F(BadInputs, AxesThatDoNotExistOrRepeat) {
  all_refuse({.size = {1}, .axes = Extents{2}}, {"axes[0] = 2", "1"});
  all_refuse({.size = {1}, .axes = Extents{-3}}, {"axes[0] = -3", "-2"});
  all_refuse({.size = {1, 1}, .axes = Extents{1, 1}}, {"axes = (1, 1)", "increasing"});
  all_refuse({.size = {1, 1}, .axes = Extents{1, -2}}, {"axes = (1, -2)", "increasing"});
  all_refuse({.size = {1, 1}, .axes = Extents{1}}, {"axes = (1,)", "2"});
  all_refuse({.size = {1}, .channels_last = true, .axes = Extents{1}}, {"axes", "channels_last"});
  all_refuse({.size = {1, 1}, .channels_last = true}, {"channels_last", "2"});
  all_refuse({.size = {1}, .axes = Extents{}}, {"axes = ()", "at least one"});
}

TEST_F(BadInputs, ScalarsWithoutAxes) {
  const float one = 1;
  const View scalar(&one, Type::f32, {}, {});
  EXPECT_TRUE(rejects([&] { max_pool(scalar, {.size = {1}}); }, {"[max_pool]", "rank 0", "at least one axis"}));
  EXPECT_TRUE(rejects([&] { global_max_pool(scalar); }, {"[global_max_pool]", "rank 0"}));
  EXPECT_TRUE(rejects([&] { adaptive_max_pool(scalar, {.output = {1}}); }, {"[adaptive_max_pool]", "rank 0"}));
}

TEST_F(BadInputs, ArithmeticBeyond64Bits) {
  all_refuse({.size = {most, 1}, .dilation = 2}, {"window", "64 bits"});
  all_refuse({.size = {2, 1}, .padding = most}, {"padded", "64 bits"});
  all_refuse({.size = {most, 1}, .padding = same}, {"64 bits"});
  EXPECT_TRUE(
      rejects([] { planned({.region = Window{.size = {1}}}, Extents::filled(5, 1879048192)); }, {"1879048192"}));
  EXPECT_TRUE(
      rejects([] { planned({.region = Window{.size = {1}}}, Extents::filled(4, -536870912)); }, {"-536870912"}));
  // The input is small, the output is not.
  const Window spread{.size = {1}, .padding = std::int64_t{1} << 61};
  EXPECT_TRUE(rejects([&] { planned({.region = spread}, {4}, Type::f64); }, {"64 bits"}));
}

TEST_F(BadInputs, ExtremesThatAreLegal) {
  const Array x = counting({5}, 1);
  EXPECT_TRUE(holds(max_pool(x, {.size = {1}, .dilation = 2147483647}), {5}, {1, 2, 3, 4, 5}));
  EXPECT_TRUE(holds(max_pool(x, {.size = {1}, .dilation = most}), {5}, {1, 2, 3, 4, 5}));
  EXPECT_TRUE(holds(max_pool(x, {.size = {2}, .stride = most}), {1}, {2}));
  EXPECT_TRUE(holds(sum_pool(x, {.size = {5}, .stride = most, .padding = 3, .ceil = true}), {1}, {3}));
  EXPECT_EQ(max_pool(x, {.size = {most}, .allow_empty = true}).shape(), (Extents{0}));
  const Window far{
      .size = {2}, .stride = 3, .dilation = std::int64_t{1} << 40, .padding = {{0, std::int64_t{1} << 40}}};
  EXPECT_TRUE(holds(sum_pool(x, far), {2}, {1, 4}));
}

TEST_F(BadInputs, EmptyShapes) {
  const Window wide{.size = {16, 16}, .padding = {{14, 3}, {15, 5}}, .channels_last = true};
  const Array windows_only = max_pool(Array(Type::f32, {3, 0, 0, 2}), wide);
  EXPECT_TRUE(holds(windows_only, {3, 2, 5, 2}, std::vector<double>(60, -inf)));
  EXPECT_EQ(max_pool(Array(Type::f32, {0, 0, 0, 0}), {.size = {1, 1}, .padding = 1}).shape(), (Extents{0, 0, 2, 2}));
  EXPECT_TRUE(holds(sum_pool(Array(Type::f32, {0}), {.size = {2}, .padding = 1}), {1}, {0}));
  EXPECT_EQ(avg_pool(Array(Type::f32, {2, 0}), {.size = {3}, .padding = same}).shape(), (Extents{2, 0}));
  EXPECT_TRUE(holds(global_avg_pool(Array(Type::f32, {1, 2, 0, 3})), {1, 2, 1, 1}, {0, 0}));
  EXPECT_TRUE(holds(global_max_pool(Array(Type::i8, {1, 1, 0})), {1, 1, 1}, {-128}));
  EXPECT_TRUE(holds(adaptive_avg_pool(Array(Type::f32, {0}), {.output = {3}}), {3}, {0, 0, 0}));
  EXPECT_EQ(adaptive_max_pool(Array(Type::f32, {0, 4}), {.output = {2}}).shape(), (Extents{0, 2}));
}

TEST_F(BadInputs, AdaptiveOutputs) {
  const Array x = full({4, 4, 4}, 1);
  const auto refused = [&](std::vector<std::optional<std::int64_t>> output, std::vector<std::string> parts) {
    parts.push_back("[adaptive_max_pool] ");
    return rejects([&] { adaptive_max_pool(x, {.output = output}); }, parts);
  };
  EXPECT_TRUE(refused({0}, {"output[0] = 0", "at least 1"}));
  EXPECT_TRUE(refused({2, -1}, {"output[1] = -1", "at least 1"}));
  EXPECT_TRUE(refused({}, {"output = ()"}));
  EXPECT_TRUE(refused({1, 1, 1, 1}, {"4", "3"}));
  EXPECT_NE(error_of([&] { adaptive_max_pool(x, {.output = {9132760301568586890}}); }), "");
  EXPECT_NE(error_of([&] { adaptive_max_pool(x, {.output = {4611686018427387903}}); }), "");
  EXPECT_NE(error_of([&] { adaptive_max_pool(x, {.output = {1879048192, 1879048192, 1879048192}}); }), "");
}

TEST_F(BadInputs, OutputsMuchLongerThanInputs) {
  const Array x = array<std::uint8_t>({2, 2}, {1, 2, 3, 4});
  const Array tall = adaptive_max_pool(x, {.output = {262143, 1}});
  ASSERT_EQ(tall.shape(), (Extents{262143, 1}));
  EXPECT_EQ(tall.at<std::uint8_t>({0, 0}), 2);
  EXPECT_EQ(tall.at<std::uint8_t>({262142, 0}), 4);
  const Array wide = adaptive_max_pool(x, {.output = {1, 67108607}});
  ASSERT_EQ(wide.shape(), (Extents{1, 67108607}));
  EXPECT_EQ(wide.at<std::uint8_t>({0, 0}), 3);
  EXPECT_EQ(wide.at<std::uint8_t>({0, 67108606}), 4);
}

TEST_F(BadInputs, LongAxes) {
  Array tall = full<std::uint8_t>({16777217, 1}, 1);
  tall.at<std::uint8_t>({16777216, 0}) = 9;
  const Array y = max_pool(tall, {.size = {2, 1}});
  ASSERT_EQ(y.shape(), (Extents{16777216, 1}));
  EXPECT_EQ(y.at<std::uint8_t>({16777215, 0}), 9);
  EXPECT_EQ(y.at<std::uint8_t>({16777214, 0}), 1);
  Array rows = full<std::uint8_t>({1, 1000000, 4}, 1);
  rows.at<std::uint8_t>({0, 999999, 3}) = 7;
  const Array z = max_pool(rows, {.size = {4}});
  EXPECT_EQ(z.at<std::uint8_t>({0, 999999, 0}), 7);
  const Plan beyond = planned({.region = Window{.size = {2, 2}, .stride = 2}}, {1024, 64, 228, 228});
  EXPECT_EQ(beyond.bytes(), std::int64_t{1024} * 64 * 228 * 228 * 5);
}

TEST_F(BadInputs, HugeWindowsCostTheirRealCells) {
  const std::int64_t million = std::int64_t{1} << 20;
  const Array x = counting({3, 3}, 1);
  const Window huge{.size = {million, million}, .stride = million, .padding = million - 1};
  EXPECT_TRUE(holds(max_pool(x, huge), {2, 2}, {1, 3, 7, 9}));
  const Window centred{.size = {million, million}, .stride = million, .padding = million / 2 + 1};
  EXPECT_TRUE(holds(max_pool(x, centred), {1, 1}, {9}));
  EXPECT_TRUE(holds(sum_pool(x, centred), {1, 1}, {45}));
  EXPECT_TRUE(holds(avg_pool(x, centred, Divisor::Rule::valid), {1, 1}, {5}));
  const auto at = max_pool_with_indices(x, centred, IndexKind::offset).indices;
  EXPECT_EQ(at.type(), Type::i64);
  const std::int64_t first = million / 2 + 1;
  EXPECT_EQ(at.at<std::int64_t>({0, 0}), (first + 2) * million + first + 2);
  EXPECT_TRUE(holds(smooth_max_pool(full({1, 1}, 0), centred, 1), {1, 1}, {std::log(std::ldexp(1.0, 40))}, 1e-4));
  EXPECT_TRUE(holds(max_pool(x, {.size = {317, 317}, .stride = 317, .padding = 157}), {1, 1}, {9}));
}

TEST_F(BadInputs, OptionsOfReducers) {
  const Array x = array({2}, {-1, 2});
  for (const double p : {0.0, 0.5, -1.0, -inf, nan}) {
    EXPECT_TRUE(rejects([&] { lp_pool(x, {.size = {2}}, p); }, {"[lp_pool] p = ", "at least 1"})) << p;
  }
  EXPECT_TRUE(holds(lp_pool(x, {.size = {2}}, 2.3), {1}, {std::pow(1 + std::pow(2, 2.3), 1 / 2.3)}, 1e-6));
  for (const double beta : {0.0, -0.0, inf, -inf, nan, 1e300, 1e-300}) {
    EXPECT_TRUE(rejects([&] { smooth_max_pool(x, {.size = {2}}, beta); }, {"[smooth_max_pool] beta = ", "finite", "0"}))
        << beta;
  }
  for (const double divisor : {0.0, -2.0, inf, nan}) {
    EXPECT_TRUE(rejects([&] { avg_pool(x, {.size = {2}}, divisor); }, {"[avg_pool] divisor = ", "greater than 0"}))
        << divisor;
  }
}

TEST_F(BadInputs, TypesWithoutAMeaning) {
  const Array flags = array<bool>({2}, {0, 1}), bytes = array<std::uint8_t>({2}, {3, 4});
  EXPECT_TRUE(rejects([&] { sum_pool(flags, {.size = {2}}); }, {"[sum_pool]", "bool"}));
  EXPECT_TRUE(rejects([&] { avg_pool(flags, {.size = {2}}); }, {"[avg_pool]", "bool"}));
  EXPECT_TRUE(rejects([&] { smooth_max_pool(flags, {.size = {2}}, 1); }, {"[smooth_max_pool]", "bool"}));
  EXPECT_TRUE(rejects([&] { lp_pool(flags, {.size = {2}}, 2); }, {"[lp_pool]", "bool"}));
  EXPECT_TRUE(rejects([&] { smooth_max_pool(bytes, {.size = {2}}, 1); }, {"[smooth_max_pool]", "u8", "f32"}));
  EXPECT_TRUE(rejects([&] { lp_pool(bytes, {.size = {2}}, 2); }, {"[lp_pool]", "u8", "f32"}));
  EXPECT_TRUE(holds(avg_pool(bytes, {.size = {2}}), {1}, {3.5}));
  EXPECT_TRUE(holds(max_pool(flags, {.size = {2}}), {1}, {1}));
}

TEST_F(BadInputs, StridesOfEveryKind) {
  const std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const auto max_of = [&](const float* data, const Extents& shape, const Extents& strides) {
    return max_pool(View(data, Type::f32, shape, strides), {.size = {2}});
  };
  EXPECT_TRUE(holds(max_of(memory.data(), {1, 3}, {7919, 2}), {1, 2}, {3, 5}));
  EXPECT_TRUE(holds(max_of(memory.data(), {1, 3}, {most, 1}), {1, 2}, {2, 3}));
  EXPECT_TRUE(holds(max_of(memory.data(), {2, 3}, {0, 1}), {2, 2}, {2, 3, 2, 3}));
  EXPECT_TRUE(holds(max_of(memory.data() + 3, {2, 3}, {2, 0}), {2, 2}, {4, 4, 6, 6}));
  EXPECT_TRUE(holds(max_of(memory.data() + 5, {2, 3}, {-3, -1}), {2, 2}, {6, 5, 3, 2}));
  EXPECT_TRUE(rejects([&] { max_of(memory.data(), {2, 3}, {1}); }, {"strides"}));
}

TEST_F(BadInputs, PointersThatCannotBeRead) {
  std::vector<float> memory(9, 1);
  const auto* odd = reinterpret_cast<const std::byte*>(memory.data()) + 1;
  EXPECT_TRUE(rejects([&] { max_pool(View(odd, Type::f32, {4}), {.size = {2}}); }, {"[max_pool]", "align"}));
  EXPECT_TRUE(rejects([&] { max_pool(View(nullptr, Type::f32, {4}), {.size = {2}}); }, {"[max_pool]", "null"}));
  EXPECT_EQ(max_pool(View(nullptr, Type::f32, {0, 4}), {.size = {2}}).shape(), (Extents{0, 3}));
  Strided y(Type::f32, {3}, Layout::plain(1));
  const Plan p = planned({.region = Window{.size = {2}}}, {4});
  EXPECT_TRUE(rejects([&] { p.run(View(odd, Type::f32, {4}), y.view()); }, {"align"}));
  EXPECT_TRUE(y.untouched());
}

TEST_F(BadInputs, UnpoolIndicesChangedThroughAnAlias) {
  std::vector<float> values{1, 2};
  std::vector<std::int64_t> places{0, 3};
  const View y(values.data(), {1, 1, 2}), at(places.data(), {1, 1, 2});
  EXPECT_TRUE(holds(max_unpool(y, at, {1, 1, 4}), {1, 1, 4}, {1, 0, 0, 2}));
  places[1] = -1000000000000;
  EXPECT_TRUE(rejects([&] { max_unpool(y, at, {1, 1, 4}); }, {"[max_unpool]", "-1000000000000"}));
}

}  // namespace
}  // namespace cenote::test
