// max_unpool: the values of a pooling put back where they came from.
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "../reference/reference.h"
#include "support/arrays.h"
#include "support/property.h"
#include "support/random_data.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

Array indices(const Extents& shape, const std::vector<double>& values) { return array<std::int64_t>(shape, values); }

TEST(Unpool, UndoesAPoolingOfTiles) {
  const Array x = array({1, 1, 2, 4}, {1, 5, 2, 0, 3, 4, 9, 8});
  const auto y = max_pool_with_indices(x, {.size = {2, 2}, .stride = 2});
  const Array back = max_unpool(y.values, y.indices, x.shape());
  EXPECT_TRUE(holds(back, {1, 1, 2, 4}, {0, 5, 0, 0, 0, 0, 9, 0}));
}

TEST(Unpool, TheLastWriteStays) {
  const Array y = array({1, 1, 3}, {1, 2, 3});
  EXPECT_TRUE(holds(max_unpool(y, indices({1, 1, 3}, {2, 2, 0}), {1, 1, 4}), {1, 1, 4}, {3, 0, 2, 0}));
}

TEST(Unpool, PlanesMayBeAnyAxes) {
  const Array y = array({1, 2}, {7, 8});
  EXPECT_TRUE(holds(max_unpool(y, indices({1, 2}, {2, 0}), {3, 2}, {.axes = Extents{0}}), {3, 2}, {0, 8, 0, 0, 7, 0}));
  EXPECT_TRUE(holds(max_unpool(y, indices({1, 2}, {2, 0}), {1, 3}, {.rank = 1}), {1, 3}, {8, 0, 7}));
  const Array last = array({1, 1, 2}, {7, 8});
  const Plane plane{.channels_last = true};
  EXPECT_TRUE(holds(max_unpool(last, indices({1, 1, 2}, {2, 0}), {1, 3, 2}, plane), {1, 3, 2}, {0, 8, 0, 0, 7, 0}));
}

TEST(Unpool, RefusesIndicesOutsideThePlane) {
  const Array y = array({1, 1, 2}, {1, 2});
  for (const double bad : {-1.0, 4.0, -1e12, 1e18}) {
    const std::string number = std::to_string(static_cast<std::int64_t>(bad));
    const Array at = indices({1, 1, 2}, {0, bad});
    EXPECT_TRUE(rejects([&] { max_unpool(y, at, {1, 1, 4}); }, {"[max_unpool]", "indices", number, "4"}));
  }
  EXPECT_TRUE(holds(max_unpool(y, indices({1, 1, 2}, {0, 3}), {1, 1, 4}), {1, 1, 4}, {1, 0, 0, 2}));
}

TEST(Unpool, RefusesArgumentsThatDoNotMatch) {
  const Array y = array({1, 1, 2}, {1, 2}), at = indices({1, 1, 2}, {0, 1});
  const auto unpool = [&](const View& values, const View& places, const Extents& shape, const Plane& plane = {}) {
    return error_of([&] { max_unpool(values, places, shape, plane); });
  };
  EXPECT_NE(unpool(y, indices({1, 1, 1}, {0}), {1, 1, 4}), "");
  EXPECT_NE(unpool(y, indices({0, 1, 2}, {}), {1, 1, 4}), "");
  EXPECT_NE(unpool(y, indices({1, 2}, {0, 1}), {1, 1, 4}), "");
  EXPECT_NE(unpool(y, array<std::int32_t>({1, 1, 2}, {0, 1}), {1, 1, 4}), "");
  EXPECT_NE(unpool(y, at, {1, 2, 4}), "");
  EXPECT_NE(unpool(y, at, {1, 4}), "");
  EXPECT_NE(unpool(y, at, {1, 1, -4}), "");
  EXPECT_NE(unpool(y, at, {1, 1, std::int64_t{1} << 60}), "");
  EXPECT_NE(unpool(y, at, {1, 1, 4}, {.rank = 4}), "");
  EXPECT_NE(unpool(y, at, {1, 1, 4}, {.channels_last = true, .axes = Extents{2}}), "");
  EXPECT_EQ(unpool(y, at, {1, 1, 4}), "");
}

TEST(Unpool, EmptyArrays) {
  EXPECT_TRUE(holds(max_unpool(array({1, 1, 0}, {}), indices({1, 1, 0}, {}), {1, 1, 3}), {1, 1, 3}, {0, 0, 0}));
  EXPECT_TRUE(holds(max_unpool(array({0, 1, 2}, {}), indices({0, 1, 2}, {}), {0, 1, 3}), {0, 1, 3}, {}));
  EXPECT_NE(error_of([] { max_unpool(array({1, 1, 1}, {5}), indices({1, 1, 1}, {0}), {1, 1, 0}); }), "");
}

TEST(Unpool, EqualsTheReferenceOnRandomIndicesOfEveryTypeAndLayout) {
  check(400, [] {
    using namespace detail;
    const Axes a = axes(static_cast<int>(between(1, 3)), static_cast<int>(between(0, 2)));
    Extents y_shape = Extents::filled(a.rank, 1), x_shape = y_shape;
    for (int i = 0; i < a.rank; ++i) y_shape[i] = x_shape[i] = between(1, 5);
    std::int64_t plane = 1;
    for (const int axis : a.pooled) plane *= x_shape[axis] = between(1, 6);
    Strided y(static_cast<Type>(between(0, type_count - 1)), y_shape, layout(a.rank, true));
    fill(y, static_cast<Data>(between(0, 5)), static_cast<std::uint64_t>(between(0, 1000)));
    Strided places(Type::i64, y_shape, layout(a.rank, true));
    fill(places, Data::unit, static_cast<std::uint64_t>(between(0, 1000)));
    reference::Shape index(static_cast<std::size_t>(a.rank), 0);
    do {
      auto& place = *static_cast<std::int64_t*>(places.element(index));
      place = ((place % plane) + plane) % plane;
    } while (reference::next(index, to_shape(y_shape)));

    const Plane named{.rank = a.named ? std::nullopt : std::optional(static_cast<int>(a.pooled.size())),
                      .channels_last = a.channels_last,
                      .axes = a.named};
    const Array x = max_unpool(std::as_const(y).view(), std::as_const(places).view(), x_shape, named);
    RC_ASSERT(x.shape() == x_shape);
    visit(y.type(), [&](auto element) {
      using T = decltype(element);
      const auto expected =
          reference::max_unpool(read<T>(y.view()), read<std::int64_t>(places.view()), to_shape(x_shape), a.pooled);
      const auto actual = read<T>(x);
      for (std::size_t i = 0; i < actual.values.size(); ++i) {
        const auto got = actual.values[i], want = expected.values[i];
        RC_ASSERT(got == want || (got != got && want != want));
      }
    });
  });
}

}  // namespace
}  // namespace cenote::test
