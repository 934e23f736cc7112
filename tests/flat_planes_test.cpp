// Short windows at every place of small planes: each plane is one line of cells, and nobody may notice where rows end.
#include <cmath>
#include <cstdint>
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

/// Windows with as many outputs along lines as there are cells, or half as many.
Case draw_flat(Reducer reducer) {
  using namespace detail;
  const bool halves = chance(50);
  return draw_planes(reducer, [&](int axis) {
    const bool half = axis == 1 && halves;
    const std::int64_t size = half ? 3 : between(1, 5), low = between(0, half ? 1 : size - 1);
    const std::int64_t cells = half ? 2 * between(5, 20) : between(size, 30);
    return PlaneAxis{cells, size, axis == 1 ? 1 + half : between(1, 3), {low, half ? 1 - low : size - 1 - low}};
  });
}

TEST(FlatPlanes, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(150, [&] { equals_reference(*rc::gen::exec([&] { return draw_flat(reducer); })); });
}

// Lines of one cell are merged into what is across them: those are no planes.
TEST(FlatPlanes, AreNotLinesOfOneCell) {
  for (const std::int64_t size : {3, 5})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t padding : {0, 1}) {
        Case c;
        c.type = Type::f32;
        c.data = Data::unit;
        c.shape = {2, 3, 64, 1};
        c.pooling.reducer = Reducer::max;
        c.pooling.region =
            Window{.size = {size, 1}, .stride = {stride, 1}, .padding = Padding({{padding, padding}, {0, 0}})};
        const Plan planned = plan(c.pooling, c.type, c.shape);
        const Array x = drawn(c.shape, c.type, c.data, 8);
        // Outputs with gaps between pictures.
        const std::int64_t out = planned.output_shape()[2], apart = 3 * out + 7;
        std::vector<float> memory(static_cast<std::size_t>(2 * apart));
        MutableView y(memory.data(), c.type, planned.output_shape());
        y.strides = {apart, out, 1, 1};
        planned.run(x, y);
        const std::vector<double> expected = numbers(pool(x, c.pooling));
        for (std::int64_t i = 0; i < 6 * out; ++i)
          ASSERT_EQ(memory[static_cast<std::size_t>(i / (3 * out) * apart + i % (3 * out))],
                    expected[static_cast<std::size_t>(i)]);
      }
}

TEST(FlatPlanes, AreChosenForShortWindowsOfSmallPlanes) {
  const auto says = [](std::int64_t side, std::int64_t size, std::int64_t stride) {
    const Window window{.size = {size, size}, .stride = stride, .padding = size / 2};
    const std::string reason =
        plan({.reducer = Reducer::max, .region = window}, Type::f32, {8, 64, side, side}).explain();
    return reason.find("one line of cells each") != std::string::npos;
  };
  EXPECT_TRUE(says(7, 3, 1));
  EXPECT_TRUE(says(55, 5, 1));
  EXPECT_FALSE(says(56, 3, 1));
  EXPECT_FALSE(says(14, 7, 1));
  EXPECT_TRUE(says(14, 3, 2));
  EXPECT_FALSE(says(15, 3, 2));
  EXPECT_FALSE(says(14, 3, 3));
}

// The planes of windows that share none are made together, which takes planes of some size.
TEST(VolumesOfChannels, EqualSlicesThatArePooledByThemselves) {
  for (const std::int64_t channels : {3, 16, 40, 64})
    for (const std::int64_t size : {2, 3}) {
      const Extents shape{2, 2 * size + 1, 30, 34, channels};
      const Array x = drawn(shape, Type::f32, Data::special, 7);
      for (const Reducer reducer : {Reducer::max, Reducer::min}) {
        const auto all = [&](const Extents& window, bool first) {
          return Pooling{
              .reducer = reducer,
              .region = Window{.size = window, .stride = window, .axes = first ? Extents{1} : Extents{2, 3}}};
        };
        const Pooling volume{.reducer = reducer,
                             .region = Window{.size = {size, size, size}, .stride = size, .channels_last = true}};
        const Array y = pool(x, volume), by_axes = pool(pool(x, all({size, size}, false)), all({size}, true));
        const auto u = numbers(y), v = numbers(by_axes);
        ASSERT_EQ(u.size(), v.size());
        for (std::size_t i = 0; i < u.size(); ++i)
          ASSERT_TRUE(u[i] == v[i] || (std::isnan(u[i]) && std::isnan(v[i]))) << channels << " " << size << " " << i;
      }
    }
}

}  // namespace
}  // namespace cenote::test
