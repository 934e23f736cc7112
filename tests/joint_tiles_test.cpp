// Windows that tile planes without a rest: the rows of many planes are made as one line, and nobody may notice.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/against_reference.h"
#include "support/arrays.h"
#include "support/property.h"
#include "support/random_derivative.h"
#include "support/random_planes.h"

namespace cenote::test {
namespace {

/// As many planes as leave some over behind those that go together, with windows up to as large as they lie apart.
Case draw_joint_tiles(Reducer reducer) {
  using namespace detail;
  Case c = draw_planes(reducer, [](int axis) {
    const std::int64_t stride = between(1, 5), cells = stride * between(1, axis == 0 ? 6 : chance(20) ? 40 : 8);
    return PlaneAxis{cells, chance(70) ? stride : between(1, stride), stride, {0, 0}};
  });
  if (!accepts(reducer, c.type)) c.type = Type::f32;
  c.shape[1] = one_of<std::int64_t>({1, 2, 7, between(1, 300)});
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(40))
    c.pooling.indices = one_of<IndexKind>({IndexKind::offset, IndexKind::plane, IndexKind::tensor});
  return c;
}

TEST(JointTiles, EqualTheReference) {
  for (const Reducer reducer : all_reducers)
    check(150, [&] { equals_reference(*rc::gen::exec([&] { return draw_joint_tiles(reducer); })); });
}

// A NaN stays in its window, in whichever plane of those that are made together it lies.
TEST(JointTiles, KeepNaNInItsWindow) {
  constexpr std::int64_t planes = 100, side = 6, out = 3, cells = side * side;
  for (const std::int64_t cell : {0, 17, 35 * 36 + 8, 99 * 36 + 35}) {
    Array x(Type::f32, {planes, side, side});
    for (float& value : x.values<float>()) value = 1;
    x.values<float>()[static_cast<std::size_t>(cell)] = std::numeric_limits<float>::quiet_NaN();
    const Array y = pool(x, {.reducer = Reducer::max, .region = Window{.size = {2, 2}, .stride = 2}});
    const std::int64_t row = cell % cells / side / 2, column = cell % side / 2;
    const std::int64_t expected = cell / cells * out * out + row * out + column;
    for (std::int64_t o = 0; o < y.size(); ++o)
      EXPECT_EQ(std::isnan(y.values<float>()[static_cast<std::size_t>(o)]), o == expected) << cell << " " << o;
  }
}

TEST(JointTiles, MayLieFarApart) {
  const auto pooling = [](std::int64_t far) {
    return Pooling{.reducer = Reducer::max,
                   .region = Window{.size = {1, 2}, .stride = {far, 2}, .padding = Padding({{0, far - 3}, {0, 0}})}};
  };
  // The product of outputs and stride is no number any more.
  EXPECT_EQ(plan(pooling(std::int64_t{1} << 62), Type::f32, {16, 4, 8}).output_shape(), (Extents{16, 2, 4}));
  Array x(Type::f32, {16, 4, 8});
  for (std::int64_t i = 0; i < x.size(); ++i) x.values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i);
  const Array y = pool(x, pooling(std::int64_t{1} << 50));
  ASSERT_EQ(y.shape(), (Extents{16, 2, 4}));
  for (std::int64_t o = 0; o < y.size(); ++o) {
    const std::int64_t plane = o / 8, row = o / 4 % 2, column = o % 4;
    EXPECT_EQ(y.values<float>()[static_cast<std::size_t>(o)],
              row == 0 ? static_cast<float>(plane * 32 + 2 * column + 1) : -std::numeric_limits<float>::infinity());
  }
}

TEST(JointTiles, AreNotTurned) {
  const auto says = [](std::int64_t side, const std::string& words) {
    const Pooling pooling{.reducer = Reducer::max, .region = Window{.size = {2, 2}, .stride = 2}};
    return plan(pooling, Type::f32, {64, 512, side, side}).explain().find(words) != std::string::npos;
  };
  EXPECT_FALSE(says(8, "turned"));
  EXPECT_TRUE(says(9, "turned"));
}

}  // namespace
}  // namespace cenote::test
