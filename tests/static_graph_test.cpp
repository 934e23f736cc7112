// Graphs whose shapes are types: their output shapes, and that they compute what graphs with run-time shapes do.
#include <array>
#include <tuple>
#include <type_traits>

#include <gtest/gtest.h>

#include <cenote/static_graph.h>

#include "support/arrays.h"
#include "support/graphs.h"

namespace cenote::test {
namespace {

namespace fixed = graph::fixed;
using fixed::Shape;
using fixed::Sides;
using fixed::Sizes;
using fixed::Tensor;

template <class V, class S>
constexpr bool has_shape = std::is_same_v<typename std::remove_cvref_t<V>::shape, S>;

TEST(StaticGraph, ShapesFollowTheFormulas) {
  fixed::Builder<Tensor<Shape<3, 8, 9>>> b;
  const auto x = b.input<0>();
  const auto plain = max_pool<Sizes<2, 3>>(x);
  static_assert(has_shape<decltype(plain), Shape<3, 7, 7>>);
  const auto strided = min_pool<Sizes<2, 3>, Sizes<2, 2>>(x);
  static_assert(has_shape<decltype(strided), Shape<3, 4, 4>>);
  const auto padded = avg_pool<Sizes<3, 3>, Sizes<2, 2>, Sizes<1, 1>>(x);
  static_assert(has_shape<decltype(padded), Shape<3, 4, 5>>);
  const auto dilated = sum_pool<Sizes<3, 3>, Sizes<1, 1>, Sizes<0, 0>, Sizes<2, 3>>(x);
  static_assert(has_shape<decltype(dilated), Shape<3, 4, 3>>);
  const auto sides = smooth_max_pool<Sizes<4>, Sizes<3>, Sides<Sizes<1>, Sizes<2>>>(x, 1.0);
  static_assert(has_shape<decltype(sides), Shape<3, 8, 3>>);
  const auto cube = lp_pool<Sizes<1, 2, 2>>(x, 2);
  static_assert(has_shape<decltype(cube), Shape<3, 7, 8>>);
  static_assert(has_shape<decltype(fixed::max_pool2d<2, 2, 2>(x)), Shape<3, 4, 4>>);
  static_assert(has_shape<decltype(fixed::max_pool2d_pad<2, 2, 2, 1>(x)), Shape<3, 5, 5>>);
  static_assert(has_shape<decltype(fixed::avg_pool2d<2, 2, 3>(x)), Shape<3, 3, 3>>);
  static_assert(has_shape<decltype(fixed::avg_pool2d_pad<3, 3, 1, 1>(x)), Shape<3, 8, 9>>);
  static_assert(has_shape<decltype(fixed::smooth_max_pool2d<8, 9, 1>(x, 1.0)), Shape<3, 1, 1>>);
  static_assert(has_shape<decltype(reshape<Shape<27, 8>>(x)), Shape<27, 8>>);
  static_assert(has_shape<decltype(sum(x)), Shape<>>);
  const auto row = b.constant(Tensor<Shape<1, 9>>());
  static_assert(has_shape<decltype(add(row, x)), Shape<3, 8, 9>>);
  // Each node above has checked its static shape against the one that the library computes.
  EXPECT_EQ(dilated.untyped().shape(), (Extents{3, 4, 3}));
}

TEST(StaticGraph, ComputesWhatRunTimeShapesDo) {
  using X = Tensor<Shape<2, 6, 6>>;
  fixed::Builder<X, Tensor<Shape<6>>> b;
  const auto x = b.input<0>();
  const auto y = max_pool<Sizes<2, 2>, Sizes<2, 2>>(relu(mul(x, b.input<1>())));
  const auto z = mean(avg_pool2d_pad<3, 3, 1, 1>(y));
  const auto p = b.compile(y, z);

  const Array data = eighths(Type::f32, {2, 6, 6}, 1), weights = eighths(Type::f32, {6}, 2);
  const auto [first, second] = p.forward(X(View(data)), Tensor<Shape<6>>(View(weights)));
  static_assert(has_shape<decltype(first), Shape<2, 3, 3>>);
  const std::vector<Array> expected = p.untyped().forward({data, weights});
  EXPECT_TRUE(same_bits(first.array(), expected[0]));
  EXPECT_TRUE(same_bits(second.array(), expected[1]));
}

TEST(StaticGraph, DerivativesHaveTheShapesOfTheirValues) {
  using X = Tensor<Shape<2>>;
  using Labels = Tensor<Shape<3>, std::int64_t>;
  fixed::Builder<X, Labels> b;
  const auto x = b.input<0>();
  const auto p = b.compile(mul(x, x), b.input<1>());
  const X at(std::array<float, 2>{1, 2}), one(std::array<float, 2>{1, 1});
  const Labels labels(std::array<std::int64_t, 3>{4, 5, 6});

  const auto j = p.jvp({at, labels}, {one, {}});
  EXPECT_TRUE(holds(std::get<0>(j.outputs).array(), {2}, {1, 4}));
  EXPECT_TRUE(holds(std::get<0>(j.tangents).array(), {2}, {2, 4}));
  static_assert(std::is_same_v<std::tuple_element_t<1, decltype(j.tangents)>, std::monostate>);

  const auto v = p.vjp({at, labels}, {one, {}});
  EXPECT_TRUE(holds(std::get<0>(v.cotangents).array(), {2}, {2, 4}));
  EXPECT_EQ(std::get<1>(v.outputs).values()[2], 6);
}

TEST(StaticGraph, ArraysAreCheckedWhereTheyBecomeTensors) {
  using X = Tensor<Shape<2, 3>>;
  EXPECT_TRUE(rejects([] { X(View(counting({3, 2}))); }, {"f32 (3, 2)", "f32 (2, 3)"}));
  EXPECT_TRUE(rejects([] { X(View(counting<double>({2, 3}))); }, {"f64", "f32"}));
  EXPECT_TRUE(holds(X().array(), {2, 3}, {0, 0, 0, 0, 0, 0}));
  graph::Builder dynamic;
  const graph::Var v = dynamic.input(Type::f32, {4});
  EXPECT_TRUE(rejects([&] { fixed::Var<Shape<5>>{v}; }, {"(4,)", "(5,)"}));
  EXPECT_EQ(max_pool<Sizes<2>>(fixed::Var<Shape<4>>(v)).untyped().shape(), Extents{3});
}

}  // namespace
}  // namespace cenote::test
