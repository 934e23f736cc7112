// Windows whose rows are joined before their columns, and nobody may notice.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/against_reference.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_derivative.h"
#include "support/random_planes.h"

namespace cenote::test {
namespace {

/// Windows of up to 8 rows, which may be dilated, and 16 columns, dilated where they lie at every place, with padding
/// and what is left over at the ends. Those of `apart` share no cells.
Case draw_short(Reducer reducer, bool apart) {
  using namespace detail;
  return draw_planes(reducer, [&](int axis) {
    const std::int64_t stride = axis == 0 ? between(1, apart ? 9 : 3) : between(apart ? 3 : 1, apart ? 16 : 6);
    const std::int64_t most = axis == 1 && stride >= 5 ? 16 : 8;
    const std::int64_t size = between(1, apart ? std::min(stride, most) : most);
    const std::int64_t low = chance(50) ? 0 : between(0, size - 1), high = chance(50) ? 0 : between(0, size + 3);
    const std::int64_t cells = between(1, axis == 0 ? 30 : chance(10) ? 700 : 60);
    const std::int64_t dilation = !apart && chance(30) && (axis == 0 || stride == 1) ? between(1, 5) : 1;
    return PlaneAxis{std::max((size - 1) * dilation + 1, cells), size, stride, {low, high}, dilation};
  });
}

TEST(RowsFirst, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    for (const bool apart : {false, true})
      check(200, [&] { equals_reference(*rc::gen::exec([&] { return draw_short(reducer, apart); })); });
}

/// Windows that are longer, at least along one axis: of blocks where they overlap, of groups where they do not. Some
/// are of one row, or of one column.
Case draw_long(Reducer reducer) {
  using namespace detail;
  return draw_planes(reducer, [&](int axis) {
    const std::int64_t size = chance(20) ? 1 : chance(20) ? between(20, 90) : between(2, 26);
    const std::int64_t stride = chance(40) ? between(1, 4) : chance(50) ? between(5, 20) : size + between(0, 3);
    const std::int64_t low = chance(50) ? 0 : between(0, size - 1), high = chance(50) ? 0 : between(0, size + 3);
    const std::int64_t cells = between(1, axis == 0 ? 60 : chance(10) ? 500 : 90);
    return PlaneAxis{std::max(size - low - high, cells), size, stride, {low, high}};
  });
}

TEST(RowsFirst, MayBeMany) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(200, [&] { equals_reference(*rc::gen::exec([&] { return draw_long(reducer); })); });
}

// Lines by themselves have no rows to join, but the same way along.
TEST(RowsFirst, MayBeLines) {
  const Array x = drawn({3, 40, 700}, Type::f32, Data::unit, 1);
  const auto cells = x.values<float>();
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    for (const auto& [size, stride] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{9, 2}, {16, 4}, {20, 5}, {25, 10}, {33, 3}, {40, 40}}) {
      const Array y = pool(x, {.reducer = Reducer::max, .region = Window{.size = {size}, .stride = stride}});
      const auto values = y.values<float>();
      const std::int64_t outputs = y.shape()[2];
      for (std::int64_t o = 0; o < y.size(); ++o) {
        const float* window = cells.data() + o / outputs * 700 + o % outputs * stride;
        ASSERT_EQ(values[static_cast<std::size_t>(o)], *std::max_element(window, window + size))
            << target << " " << size;
      }
    }
  }
}

// Blocks of rows are the same wherever work is cut.
TEST(RowsFirst, GiveTheSameSumsForAllThreads) {
  const Array x = drawn({2, 1, 450, 300}, Type::f32, Data::unit, 1);
  const Pooling pooling{.reducer = Reducer::sum, .region = Window{.size = {11, 9}, .stride = {4, 2}}};
  for (const std::string& target : targets_under_test()) {
    const Array alone = [&] {
      const Machine machine(target, 1);
      return pool(x, pooling);
    }();
    const Machine machine(target, 4);
    const Array cut = pool(x, pooling);
    EXPECT_EQ(std::memcmp(alone.data(), cut.data(), static_cast<std::size_t>(cut.size()) * sizeof(float)), 0) << target;
  }
}

// Rows are joined before columns, but the first of equal zeros is the first in row-major order.
TEST(RowsFirst, KeepTheFirstOfEqualZeros) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    for (const auto& [size, stride] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {3, 3}, {4, 4}, {5, 5}, {7, 7}, {9, 2}, {9, 4}, {12, 5}, {20, 20}, {33, 33}}) {
      const Extents shape{2, 3, 3 * size, 11 * size};
      Array x(Type::f32, shape);
      std::uint32_t state = 1;
      for (float& cell : x.values<float>()) {
        state = state * 1664525 + 1013904223;
        cell = state >> 31 ? 0.0F : -0.0F;
      }
      for (const Reducer reducer : {Reducer::max, Reducer::min}) {
        const Array y = pool(x, {.reducer = reducer, .region = Window{.size = {size, size}, .stride = stride}});
        const auto cells = x.values<float>();
        const auto values = y.values<float>();
        const std::int64_t rows = y.shape()[2], columns = y.shape()[3];
        for (std::int64_t o = 0; o < y.size(); ++o) {
          const std::int64_t row = o / (rows * columns) * 3 * size + o / columns % rows * stride;
          ASSERT_EQ(std::signbit(values[static_cast<std::size_t>(o)]),
                    std::signbit(cells[static_cast<std::size_t>(row * 11 * size + o % columns * stride)]))
              << target << " " << size << " " << stride << " " << o;
        }
      }
    }
  }
}

// An axis of one cell may have any stride, and windows may lie as far apart as numbers go.
TEST(RowsFirst, MayLieFarApart) {
  const std::int64_t large = std::int64_t{1} << 61;
  std::vector<float> cells(33);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<float>(i * 7 % 11);
  View x(cells.data(), Type::f32, {1, 33});
  x.strides = {std::numeric_limits<std::int64_t>::max(), 1};
  const Array y = pool(x, {.reducer = Reducer::max, .region = Window{.size = {1, 3}, .stride = 3}});
  for (std::size_t o = 0; o < 11; ++o)
    EXPECT_EQ(y.values<float>()[o], std::max({cells[3 * o], cells[3 * o + 1], cells[3 * o + 2]}));
  const Array planes = drawn({2, 5, 60}, Type::f32, Data::few, 1);
  Window window{.size = {2, 3}, .stride = {large, 3}};
  window.padding = Padding{Padding::Sides(1, 2 * large), Padding::Sides(0, 0)};
  const Array sums = pool(planes, {.reducer = Reducer::sum, .region = window});
  ASSERT_EQ(sums.shape()[1], 3);
  for (std::int64_t i = 0; i < 2 * 3 * 20; ++i) {
    const auto first = static_cast<std::size_t>(i / 60 * 300 + i % 20 * 3);
    const auto row = planes.values<float>().subspan(first, 3);
    EXPECT_EQ(sums.values<float>()[static_cast<std::size_t>(i)], i / 20 % 3 == 0 ? row[0] + row[1] + row[2] : 0);
  }
}

TEST(RowsFirst, AreChosenWhereThatIsFaster) {
  const auto says = [](const Window& window) {
    const Plan planned = plan({.reducer = Reducer::avg, .region = window}, Type::f32, {8, 64, 60, 60});
    return planned.explain().find("the rows of each window are joined first") != std::string::npos;
  };
  EXPECT_TRUE(says({.size = {3, 3}, .stride = 3}));
  EXPECT_TRUE(says({.size = {7, 7}, .stride = 7}));
  EXPECT_TRUE(says({.size = {2, 3}, .stride = {2, 4}}));
  EXPECT_TRUE(says({.size = {5, 5}, .stride = 2}));
  EXPECT_TRUE(says({.size = {7, 7}, .stride = 4}));
  EXPECT_TRUE(says({.size = {3, 3}}));
  EXPECT_TRUE(says({.size = {3, 3}, .dilation = 2}));
  EXPECT_FALSE(says({.size = {2, 2}, .stride = 2}));
  EXPECT_FALSE(says({.size = {7, 7}}));
  EXPECT_TRUE(says({.size = {20, 20}, .stride = 20}));
  EXPECT_TRUE(says({.size = {9, 9}, .stride = 4}));
  EXPECT_TRUE(says({.size = {9, 1}, .stride = {2, 1}}));
  EXPECT_TRUE(says({.size = {1, 9}, .stride = {1, 2}}));
  EXPECT_FALSE(says({.size = {9, 9}, .stride = 2}));
  EXPECT_FALSE(says({.size = {9, 9}}));
  EXPECT_FALSE(says({.size = {60, 60}}));
}

/// Sums of every size: special ones, any bits, and ordinary ones.
template <class T>
std::vector<T> drawn_sums() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using Limits = std::numeric_limits<T>;
  std::uint64_t state = 7;
  const auto drawn_bits = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<Bits>(state ^ state >> 29);
  };
  std::vector<T> sums{T{0}, -T{0}, Limits::infinity(), Limits::max(), Limits::min(), Limits::denorm_min(), T{1}, T{-3}};
  while (sums.size() < 2048) {
    const Bits bits = drawn_bits();
    T x;
    std::memcpy(&x, &bits, sizeof x);
    sums.push_back(x);
  }
  while (sums.size() < 4096)
    sums.push_back(std::ldexp(static_cast<T>(drawn_bits()), -4 - static_cast<int>(drawn_bits() % 64)));
  return sums;
}

// An average is one division of its sum, however that is done.
template <class T>
void averages_are_quotients() {
  const std::vector<T> sums = drawn_sums<T>();
  const auto count = static_cast<std::int64_t>(sums.size());
  const double divisors[] = {3, 5, 7, 9, 13, 49, 101, 169, 513, 10201, 16777213, 0.1, 1e-30, 8};
  for (const std::string& target : targets_under_test())
    for (const double divisor : divisors)
      for (const Extents& shape : {Extents{1, count}, Extents{count, 1}}) {
        const Machine machine(target, 1);
        Array x(type_of<T>, shape);
        std::copy(sums.begin(), sums.end(), x.values<T>().begin());
        Pooling pooling{.reducer = Reducer::avg, .region = Window{.size = {1}}};
        pooling.divisor = divisor;
        const Array y = pool(x, pooling);
        const auto values = y.values<T>();
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const T expected = sums[i] / static_cast<T>(divisor);
          ASSERT_TRUE(std::isnan(expected) ? std::isnan(values[i])
                                           : std::memcmp(&values[i], &expected, sizeof expected) == 0)
              << target << " " << sums[i] << " / " << divisor << ": " << values[i] << ", not " << expected;
        }
      }
}
// What is not divided raises no flag that a division would.
TEST(Averages, AloneDivide) {
  const Array x = drawn({2, 8, 100, 100}, Type::f32, Data::unit, 1);
  for (const Reducer reducer : {Reducer::max, Reducer::sum})
    for (const bool last : {false, true}) {
      const Pooling pooling{.reducer = reducer, .region = Window{.size = {3, 3}, .channels_last = last}};
      std::feclearexcept(FE_ALL_EXCEPT);
      pool(x, pooling);
      EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO | FE_INVALID), 0);
    }
}
TEST(Averages, AreSumsDividedOnce) {
  averages_are_quotients<float>();
  averages_are_quotients<double>();
}

}  // namespace
}  // namespace cenote::test
