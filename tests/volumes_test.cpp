// Short windows of volumes: planes are pooled each by itself and joined afterwards, and nobody may notice.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "plan/impl.h"
#include "support/against_reference.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_derivative.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

/// The same plan with planes first, or not.
Plan by_planes(const Plan& planned, bool wanted = true) {
  auto impl = std::make_shared<Plan::Impl>(planned.impl());
  impl->algorithm.by_planes = wanted;
  return Plan(std::move(impl));
}

/// Three or four axes, with channels before or behind them; windows of several planes, or many, that may share some, or
/// have some between them, and that may reach over the ends.
Case draw_volumes(Reducer reducer) {
  using namespace detail;
  Case c;
  c.type = one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16, Type::u8, Type::i32});
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const std::int64_t depth = chance(85) ? 3 : 4;
  const bool last = chance(50);
  Extents sizes, strides;
  std::vector<Padding::Sides> padding;
  c.shape = {between(1, 2)};
  if (!last) c.shape.push_back(between(1, 3));
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t size = i > 0 ? between(1, 5) : chance(80) ? between(2, 8) : between(9, 34);
    const std::int64_t stride = chance(60) ? size : between(1, 5);
    const std::int64_t most = i + 1 == depth && !last && chance(30) ? 90 : depth == 3 ? 14 : 7;
    sizes.push_back(size);
    strides.push_back(stride);
    padding.emplace_back(chance(50) ? 0 : between(0, size - 1), chance(50) ? 0 : between(0, size - 1));
    c.shape.push_back(std::max(size, between(1, most)));
  }
  if (last) c.shape.push_back(one_of<std::int64_t>({1, 3, 16, 20, 40}));
  const Window window{.size = sizes, .stride = strides, .padding = Padding(padding), .channels_last = last};
  c.pooling.reducer = reducer;
  options(c.pooling, c.type);
  c.pooling.dtype.reset();
  c.pooling.indices.reset();
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(60))
    c.pooling.indices = one_of<IndexKind>({IndexKind::offset, IndexKind::plane, IndexKind::tensor});
  c.pooling.region = window;
  const auto rank = static_cast<int>(c.shape.size());
  const bool plain = chance(75);
  c.x = plain ? Layout::plain(rank) : layout(rank, true);
  c.y = plain ? Layout::plain(rank) : layout(rank, false);
  c.indices = chance(75) ? c.y : layout(rank, false);
  return c;
}

TEST(Volumes, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(150, [&] { equals_reference(*rc::gen::exec([&] { return draw_volumes(reducer); })); });
}

// Indices may lie in another order than values do.
TEST(Volumes, MayHaveIndicesThatLieOtherwise) {
  const Pooling pooling{
      .reducer = Reducer::max, .region = Window{.size = {2, 2, 2}, .channels_last = true}, .indices = IndexKind::plane};
  const Array x = drawn({1, 3, 4, 3, 2}, Type::f32, Data::few, 1);
  const Plan planned = plan(pooling, Type::f32, x.shape());
  ASSERT_NE(planned.explain().find("planes are pooled first"), std::string::npos);
  const Pooled expected = pool_with_indices(x, pooling);
  Array y(Type::f32, planned.output_shape());
  const std::int64_t count = y.size();
  std::vector<std::int64_t> memory(static_cast<std::size_t>(count) + 2, -7);
  MutableView indices(memory.data() + 2, Type::i64, planned.output_shape());
  indices.strides = {count, 12, 4, 2, -1};
  planned.run(x, y, indices);
  const auto numbers = expected.indices.values<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i)
    EXPECT_EQ(memory[static_cast<std::size_t>(2 + i / 2 * 2 - i % 2)], numbers[static_cast<std::size_t>(i)]) << i;
  EXPECT_EQ(memory.front(), -7);
  EXPECT_EQ(memory.back(), -7);
}

// Planes may be as far apart as numbers go, and single rows longer than what waits in the cache.
TEST(Volumes, MayLieFarApart) {
  const std::int64_t far = std::numeric_limits<std::int64_t>::max() - 8;
  for (const std::int64_t columns : {40, 400000}) {
    const Extents shape{1, 1, 2, 4, columns};
    const Array x = drawn(shape, Type::f32, Data::few, 2);
    Window window{.size = {2, 2, 2}, .stride = {far, 1, 1}};
    window.padding = Padding({{1, far}, {0, 0}, {0, 0}});
    const Pooling pooling{.reducer = Reducer::max, .region = window, .indices = IndexKind::offset};
    const Plan planned = plan(pooling, Type::f32, shape);
    std::vector<Array> values, indices;
    for (const Plan& way : {planned, by_planes(planned, false), by_planes(planned, true)}) {
      values.emplace_back(Type::f32, way.output_shape());
      indices.emplace_back(Type::u8, way.output_shape());
      way.run(x, values.back(), indices.back());
      EXPECT_TRUE(same_bits(values.back(), values.front()));
      EXPECT_TRUE(same_bits(indices.back(), indices.front()));
    }
  }
}

struct Problem {
  Extents shape;
  Window window;
};

/// Large enough for strips of planes, and for some of the planes to wait for more than one output.
std::vector<Problem> large_problems() {
  std::vector<Problem> result;
  for (const bool last : {false, true})
    for (const std::int64_t size : {2, 3, 8, 11})
      for (const std::int64_t stride : {1, 2, 5}) {
        Window window{.size = {size, 3, 3}, .stride = {stride, 2, 2}};
        window.padding = Padding({{1, 0}, {1, 1}, {1, 1}});
        window.channels_last = last;
        result.push_back({last ? Extents{1, 19, 90, 70, 32} : Extents{2, 2, 19, 150, 170}, window});
      }
  return result;
}

TEST(Volumes, HaveTheSameBitsByPlanesAndAtOnceForAnyNumberOfThreads) {
  for (const auto& [shape, window] : large_problems()) {
    const Array x = drawn(shape, Type::f32, Data::special, 3);
    for (const Reducer reducer : {Reducer::max, Reducer::sum})
      for (const bool indices : {false, true}) {
        if (indices && reducer != Reducer::max) continue;
        Pooling pooling{.reducer = reducer, .region = window};
        if (indices) pooling.indices = IndexKind::plane;
        const Plan planned = plan(pooling, Type::f32, shape), planes = by_planes(planned);
        SCOPED_TRACE(planned.explain());
        const auto run = [&](const Plan& way, int threads) {
          const Machine machine(targets_under_test().front(), threads);
          std::pair<Array, Array> result{Array(Type::f32, way.output_shape()), Array(Type::i64, way.output_shape())};
          indices ? way.run(x, result.first, result.second) : way.run(x, result.first);
          return result;
        };
        const auto one = run(planes, 1), three = run(planes, 3);
        EXPECT_EQ(bytes_of(one.first), bytes_of(three.first));
        if (reducer != Reducer::max) continue;
        const auto whole = run(planned, 2);
        EXPECT_EQ(bytes_of(one.first), bytes_of(whole.first));
        if (indices) {
          EXPECT_EQ(bytes_of(one.second), bytes_of(whole.second));
        }
      }
  }
}

TEST(Volumes, HaveTangentsThatFollowTheirWinners) {
  for (const auto& [shape, window] : large_problems()) {
    const Array x = drawn(shape, Type::f32, Data::few, 5), dx = drawn(shape, Type::f32, Data::unit, 6);
    const Pooling pooling{.reducer = Reducer::max, .region = window};
    const Array dy = jvp(pooling, x, dx).dy;
    Pooling located = pooling;
    located.indices = IndexKind::tensor;
    const Array winners = pool_with_indices(x, located).indices;
    const auto cells = dx.values<float>(), tangents = dy.values<float>();
    const auto places = winners.values<std::int64_t>();
    for (std::size_t i = 0; i < places.size(); ++i)
      ASSERT_EQ(tangents[i], places[i] < 0 ? 0 : cells[static_cast<std::size_t>(places[i])]) << i;
  }
}

TEST(Volumes, ArePooledByPlanesWhereThatIsFaster) {
  const auto says = [](const Window& window, const Extents& shape, Reducer reducer = Reducer::max) {
    const Plan planned = plan({.reducer = reducer, .region = window}, Type::f32, shape);
    return planned.explain().find("planes are pooled first") != std::string::npos;
  };
  const Window overlapping{.size = {3, 3, 3}, .stride = 2, .channels_last = true};
  EXPECT_TRUE(says(overlapping, {1, 64, 128, 128, 32}));
  EXPECT_FALSE(says(overlapping, {1, 16, 16, 16, 8}));
  EXPECT_FALSE(says({.size = {2, 2, 2}, .stride = 2}, {1, 32, 64, 128, 128}));
  EXPECT_TRUE(says({.size = {3, 3, 3}, .stride = 3}, {1, 32, 66, 129, 129}));
  EXPECT_FALSE(says({.size = {3, 3, 3}, .stride = 3, .dilation = 2}, {1, 32, 66, 129, 129}));
  EXPECT_TRUE(says({.size = {9, 3, 3}, .stride = 3}, {1, 32, 66, 129, 129}));
  EXPECT_FALSE(says({.size = {33, 3, 3}, .stride = 3}, {1, 32, 66, 129, 129}));
  EXPECT_FALSE(says(overlapping, {1, 64, 128, 128, 32}, Reducer::smooth_max));
  // Axes that one window covers are no levels.
  EXPECT_FALSE(says({.size = {3, 3, 3}, .stride = 3}, {1, 32, 3, 129, 129}));
  EXPECT_FALSE(says({.size = {3, 3, 3}, .stride = 3}, {1, 32, 66, 1290, 3}));
}

}  // namespace
}  // namespace cenote::test
