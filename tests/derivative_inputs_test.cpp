// Derivatives at the edges: nothing to derive, huge windows, and arguments that a derivative must refuse before it
// works.
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

constexpr std::int64_t million = std::int64_t{1} << 20;

Pooling of(Reducer reducer, const Window& window) { return {.reducer = reducer, .region = window}; }
Array ones_like(const Array& y) {
  Array result(y.type(), y.shape());
  visit(y.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_same_v<T, bool>)
      for (T& one : result.values<T>()) one = static_cast<T>(1.0f);
  });
  return result;
}
/// gx of a cotangent of ones.
Array gradient(const Pooling& pooling, const Array& x) {
  const auto [y, pullback] = vjp(pooling, x);
  return pullback(ones_like(y));
}
Array plain(const Extents& shape, Type type = Type::f32) { return Array::zeros(type, shape); }

/// Calls f with every reducer, and max with shared ties.
template <class F>
void for_every_pooling(const Window& window, const F& f) {
  for (const Reducer reducer : all_reducers) f(of(reducer, window));
  Pooling shared = of(Reducer::max, window);
  shared.ties = Ties::split;
  f(shared);
}

TEST(EmptyDerivatives, ZeroCellsAndZeroOutputsHaveDerivativesOfTheirShape) {
  const auto at = [](const Window& window, const Extents& shape, const Extents& out) {
    for_every_pooling(window, [&](const Pooling& pooling) {
      SCOPED_TRACE(std::string(name(pooling.reducer)) + " " + to_string(shape));
      const Array x = full(shape, 3), dx = full(shape, 2);
      const auto [y, dy] = jvp(pooling, x, dx);
      EXPECT_EQ(dy.shape(), out);
      const auto way = vjp(pooling, x);
      EXPECT_EQ(way.y.shape(), out);
      const Array gy = full(out, 5);
      const std::vector<double> none(static_cast<std::size_t>(element_count(shape)), 0);
      EXPECT_TRUE(holds(way.pullback(gy), shape, none));
      EXPECT_TRUE(holds(dy, out, std::vector<double>(static_cast<std::size_t>(element_count(out)), 0)));
      EXPECT_TRUE(holds(hvp(pooling, x, gy, dx), shape, none));
      EXPECT_EQ(jvp(way.pullback, gy, dx, gy).dgx.shape(), shape);
      const Cotangents back = vjp(way.pullback, gy).pullback(dx);
      EXPECT_EQ(back.x.shape(), shape);
      EXPECT_EQ(back.gy.shape(), out);
    });
  };
  at({.size = {2, 2}}, {0, 3, 4}, {0, 2, 3});
  at({.size = {2, 2}}, {3, 0, 4, 4}, {3, 0, 3, 3});
  at({.size = {2}, .padding = same}, {2, 0}, {2, 0});
  at({.size = {2}, .padding = 3}, {2, 0}, {2, 5});
  at({.size = {2, 3}, .padding = {{3, 3}, {0, 0}}}, {2, 0, 4}, {2, 5, 2});
  at({.size = {2}, .padding = 3, .channels_last = true}, {2, 0, 3}, {2, 5, 3});
  at({.size = {5}, .allow_empty = true}, {2, 3}, {2, 0});
  at({.size = {5, 1}, .allow_empty = true, .channels_last = true}, {2, 3, 4, 2}, {2, 0, 4, 2});
  at({.size = {16, 16}, .padding = {{14, 3}, {15, 5}}, .channels_last = true}, {3, 0, 0, 2}, {3, 2, 5, 2});
  at({.size = {2}, .dilation = 2, .padding = 1}, {1}, {1});
}

TEST(EmptyDerivatives, RegionsOverNoCells) {
  const Pooling global{.reducer = Reducer::avg, .region = Global{}};
  EXPECT_TRUE(holds(gradient(global, plain({1, 2, 0, 3})), {1, 2, 0, 3}, {}));
  const Pooling dropped{.reducer = Reducer::max, .region = Global{.keepdims = false}};
  EXPECT_TRUE(holds(jvp(dropped, plain({1, 2, 0}), plain({1, 2, 0})).dy, {1, 2}, {0, 0}));
  const Pooling bins{.reducer = Reducer::smooth_max, .region = Adaptive{.output = {3}}};
  EXPECT_TRUE(holds(jvp(bins, plain({0}), plain({0})).dy, {3}, {0, 0, 0}));
  EXPECT_TRUE(holds(gradient(bins, plain({0})), {0}, {}));
}

TEST(LargeDerivatives, AGlobalPoolingOfAMillionCells) {
  Array x = counting<double>({1, 1, million}, 0, 0), dx = counting<double>({1, 1, million}, 1);
  x.at<double>({0, 0, 777777}) = 2;
  const auto first_and_last = [&](const Pooling& pooling, double cell, double winner, double along, double error = 0) {
    const Array gx = gradient(pooling, x);
    EXPECT_NEAR(gx.at<double>({0, 0, 0}), cell, error);
    EXPECT_NEAR(gx.at<double>({0, 0, million - 1}), cell, error);
    EXPECT_NEAR(gx.at<double>({0, 0, 777777}), winner, error);
    EXPECT_NEAR(jvp(pooling, x, dx).dy.at<double>({0, 0, 0}), along, error * 1e12);
  };
  const auto over_all = [](Reducer reducer) { return Pooling{.reducer = reducer, .region = Global{}}; };
  const auto n = static_cast<double>(million), total = n * (n + 1) / 2;
  first_and_last(over_all(Reducer::max), 0, 1, 777778);
  first_and_last(over_all(Reducer::sum), 1, 1, total);
  first_and_last(over_all(Reducer::avg), 1 / n, 1 / n, total / n);
  const double s = n - 1 + std::exp(2);
  first_and_last(over_all(Reducer::smooth_max), 1 / s, std::exp(2) / s, (total - 777778 + std::exp(2) * 777778) / s,
                 1e-15);
  first_and_last(over_all(Reducer::lp), 0, 1, 777778);
  Pooling shared = over_all(Reducer::min);
  shared.ties = Ties::split;
  first_and_last(shared, 1 / (n - 1), 0, (total - 777778) / (n - 1), 1e-15);
}

TEST(LargeDerivatives, WindowsBeyondTheArrayCostTheirRealCells) {
  const Array x = counting({3, 3}, 1), dx = counting({3, 3}, 10);
  const std::vector<double> each(9, 1), none_but_last{0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (const std::int64_t extent : {million, std::int64_t{1} << 30}) {
    for (const std::int64_t dilation : {1, 1, 2, 3}) {
      // One window that holds the array's corners or all of it, far inside its padding.
      const std::int64_t low = extent / 2 * dilation;
      const Window centred{.size = {extent, extent},
                           .stride = extent,
                           .dilation = dilation,
                           .padding = {{low, (extent - 1) * dilation - low}, {low, (extent - 1) * dilation - low}}};
      std::vector<double> held(9, 0);
      for (std::size_t i = 0; i < 9; ++i)
        held[i] = static_cast<std::int64_t>(i) / 3 % dilation == 0 && static_cast<std::int64_t>(i) % 3 % dilation == 0;
      const double last = dilation == 3 ? 0 : 8;
      std::vector<double> winner(9, 0);
      winner[static_cast<std::size_t>(last)] = 1;
      EXPECT_TRUE(holds(gradient(of(Reducer::sum, centred), x), {3, 3}, held));
      EXPECT_TRUE(holds(gradient(of(Reducer::max, centred), x), {3, 3}, winner));
      EXPECT_TRUE(holds(jvp(of(Reducer::max, centred), x, dx).dy, {1, 1}, {10 + last}));
      Pooling mean = of(Reducer::avg, centred);
      mean.divisor = Divisor::Rule::valid;
      const double count = std::accumulate(held.begin(), held.end(), 0.0);
      for (double& h : held) h = static_cast<float>(h / count);
      EXPECT_TRUE(holds(gradient(mean, x), {3, 3}, held));
      Pooling shared = of(Reducer::max, centred);
      shared.ties = Ties::split;
      EXPECT_TRUE(holds(gradient(shared, x), {3, 3}, winner));
      Pooling alone = of(Reducer::smooth_max, centred);
      alone.pad = SmoothPadding::ignore;
      alone.beta = 1000;
      EXPECT_TRUE(holds(gradient(alone, x), {3, 3}, winner, 1e-30));
    }
  }
}

TEST(LargeDerivatives, StridesBeyondTheArray) {
  const Array x = counting({5}, 1);
  const std::int64_t far = std::int64_t{1} << 40;
  for (const std::int64_t dilation : {1, 3, 7}) {
    const Window spread{
        .size = {far}, .stride = far + 1, .dilation = dilation, .padding = {{far * dilation, far * dilation}}};
    const Array y = sum_pool(x, spread), gx = gradient(of(Reducer::sum, spread), x);
    double cells = 0, sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += gx.values<float>()[i] * x.values<float>()[i];
    for (const double value : numbers(y)) cells += value;
    EXPECT_EQ(sum, cells) << dilation;
    EXPECT_NE(sum, 0) << dilation;
  }
}

TEST(OffsetTypes, EveryWidthLeadsToTheWinner) {
  const auto at = [](std::int64_t window, Type type) {
    const Pooling pooling = of(Reducer::max, {.size = {window}, .stride = window / 2, .padding = window / 3});
    const Array x = drawn({3, window * 2}, Type::f32, Data::unit, 1);
    Pooling indexed = pooling;
    indexed.indices = IndexKind::offset;
    const auto found = pool_with_indices(x, indexed);
    ASSERT_EQ(found.indices.type(), type);
    const Plan planned = plan(pooling, Type::f32, x.shape());
    Array gx(Type::f32, x.shape()), again(Type::f32, x.shape());
    planned.vjp(x, ones_like(found.values), gx);
    planned.vjp_from_offsets(found.indices, ones_like(found.values), again);
    EXPECT_EQ(numbers(gx), numbers(again));
    Array dy(Type::f32, planned.output_shape());
    planned.jvp_from_offsets(found.indices, x, dy);
    EXPECT_EQ(numbers(dy), numbers(found.values));
  };
  at(256, Type::u8);
  at(300, Type::u16);
  at(65536, Type::u16);
  at(70000, Type::i32);
}

TEST(SharedTies, WhatDoesNotWinGetsNothingOfInfinities) {
  Pooling shared = of(Reducer::max, {.size = {2}});
  for (const Ties ties : {Ties::first, Ties::split}) {
    shared.ties = ties;
    const Array x = array({4}, {1, 2, 3, 0});
    EXPECT_TRUE(holds(vjp(shared, x).pullback(array({3}, {inf, 1, nan})), {4}, {0, inf, nan, 0}));
    EXPECT_TRUE(holds(jvp(shared, x, array({4}, {nan, 7, 8, inf})).dy, {3}, {7, 8, 8}));
  }
}

/// A plan, arrays that fit it, and memory that shows any write.
struct Refusal {
  Plan planned;
  Array x, dx, gy, offsets;
  Strided gx, dy, hx;

  Refusal(const Pooling& pooling, const Extents& shape, Type type = Type::f32)
      : planned(plan(pooling, type, shape)),
        x(plain(shape, type)),
        dx(plain(shape, type)),
        gy(plain(planned.output_shape(), type)),
        gx(type, shape, Layout::plain(shape.size())),
        dy(type, planned.output_shape(), Layout::plain(planned.output_shape().size())),
        hx(type, shape, Layout::plain(shape.size())) {
    if (!is_routed(pooling)) return;
    Pooling indexed = pooling;
    indexed.indices = IndexKind::offset;
    offsets = pool_with_indices(x, indexed).indices;
  }
  ~Refusal() { EXPECT_TRUE(gx.untouched() && dy.untouched() && hx.untouched()); }

  std::string who() const {
    const auto& region = planned.pooling().region;
    const char* kind = std::holds_alternative<Adaptive>(region) ? "adaptive_"
                       : std::holds_alternative<Global>(region) ? "global_"
                                                                : "";
    return "[" + (kind + std::string(name(planned.pooling().reducer))) + "_pool] ";
  }

  /// Every function that takes a gy must refuse this one by name.
  void gy_is(const View& bad, const std::vector<std::string>& why) {
    std::vector<std::string> parts = why;
    parts.push_back(who() + "gy");
    EXPECT_TRUE(rejects([&] { planned.vjp(x, bad, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.hvp(x, bad, dx, hx.view()); }, parts));
    if (is_routed(planned.pooling())) {
      EXPECT_TRUE(rejects([&] { planned.vjp_from_offsets(offsets, bad, gx.view()); }, parts));
    }
    const auto way = vjp(planned.pooling(), x).pullback;
    EXPECT_TRUE(rejects([&] { way(bad); }, parts));
    EXPECT_TRUE(rejects([&] { jvp(way, bad, dx, gy); }, parts));
    EXPECT_TRUE(rejects([&] { vjp(way, bad); }, parts));
    EXPECT_TRUE(rejects([&] { hvp(planned.pooling(), x, bad, dx); }, parts));
    parts.back() = who() + "dgy";
    EXPECT_TRUE(rejects([&] { jvp(way, gy, dx, bad); }, parts));
  }
  /// Likewise a tangent of x, or what stands for one.
  void dx_is(const View& bad, const std::vector<std::string>& why) {
    std::vector<std::string> parts = why;
    parts.push_back(who() + "dx");
    EXPECT_TRUE(rejects([&] { planned.jvp(x, bad, dy.view()); }, parts));
    EXPECT_TRUE(rejects([&] { jvp(planned.pooling(), x, bad); }, parts));
    if (is_routed(planned.pooling())) {
      EXPECT_TRUE(rejects([&] { planned.jvp_from_offsets(offsets, bad, dy.view()); }, parts));
    }
    const auto way = vjp(planned.pooling(), x).pullback;
    EXPECT_TRUE(rejects([&] { jvp(way, gy, bad, gy); }, parts));
    parts.back() = who() + "v";
    EXPECT_TRUE(rejects([&] { planned.hvp(x, gy, bad, hx.view()); }, parts));
    parts.back() = who() + "h";
    EXPECT_TRUE(rejects([&] { vjp(way, gy).pullback(bad); }, parts));
    parts.back() = who() + "x";
    EXPECT_TRUE(rejects([&] { planned.jvp(bad, dx, dy.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.vjp(bad, gy, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.hvp(bad, gy, dx, hx.view()); }, parts));
  }
  void offsets_are(const View& bad, const std::vector<std::string>& why) {
    std::vector<std::string> parts = why;
    parts.push_back(who());
    EXPECT_TRUE(rejects([&] { planned.vjp_from_offsets(bad, gy, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.jvp_from_offsets(bad, dx, dy.view()); }, parts));
  }
};

TEST(DerivativesRefuse, CotangentsAndTangentsOfAnotherShape) {
  for_every_pooling({.size = {2, 2}}, [](const Pooling& pooling) {
    SCOPED_TRACE(std::string(name(pooling.reducer)));
    Refusal five(pooling, {5, 3, 4, 4});
    five.gy_is(plain({9, 3, 3, 3}), {"(9, 3, 3, 3)", "(5, 3, 3, 3)"});
    five.gy_is(plain({0, 3, 3, 3}), {"(0, 3, 3, 3)", "(5, 3, 3, 3)"});
    five.gy_is(plain({5, 3, 3}), {"(5, 3, 3)"});
    five.gy_is(plain({5, 3, 3, 3, 1}), {"(5, 3, 3, 3, 1)"});
    five.gy_is(plain({0}), {"(0,)"});
    five.gy_is(plain({5, 3, 4, 4}), {"(5, 3, 4, 4)"});
    five.gy_is(plain({5, 3, 3, 3}, Type::f64), {"f64", "f32"});
    five.gy_is(plain({5, 3, 3, 3}, Type::i32), {"i32", "f32"});
    five.gy_is(View(nullptr, Type::f32, {5, 3, 3, 3}), {"null"});
    five.dx_is(plain({5, 3, 3, 3}), {"(5, 3, 3, 3)", "(5, 3, 4, 4)"});
    five.dx_is(plain({0, 3, 4, 4}), {"(0, 3, 4, 4)"});
    five.dx_is(plain({5, 3, 4}), {"(5, 3, 4)"});
    five.dx_is(plain({5, 3, 4, 4}, Type::f16), {"f16", "f32"});
    five.dx_is(View(nullptr, Type::f32, {5, 3, 4, 4}), {"null"});
  });
}

TEST(DerivativesRefuse, TheShapesOfPublishedHoles) {
  const Window wide{.size = {16, 16}, .padding = {{14, 3}, {15, 5}}, .channels_last = true};
  for_every_pooling(wide, [](const Pooling& pooling) {
    Refusal(pooling, {3, 0, 0, 2}).gy_is(plain({3, 0, 0, 2}), {"(3, 0, 0, 2)", "(3, 2, 5, 2)"});
  });
  for_every_pooling({.size = {1, 1}, .allow_empty = true}, [](const Pooling& pooling) {
    Refusal none(pooling, {0, 0, 0, 0});
    none.gy_is(plain({1, 1, 1, 1}), {"(1, 1, 1, 1)", "(0, 0, 0, 0)"});
    if (is_routed(pooling)) none.offsets_are(plain({1}, Type::u8), {"offsets", "(1,)", "(0, 0, 0, 0)"});
  });
  const Window cut{.size = {1, 40, 128, 1}, .stride = {1, 128, 128, 30}, .padding = same};
  for_every_pooling(cut, [](const Pooling& pooling) {
    Refusal(pooling, {11, 9, 78, 9}).gy_is(plain({16, 16, 16, 16}), {"(16, 16, 16, 16)", "(11, 1, 1, 1)"});
    Pooling valid_only = pooling;
    std::get<Window>(valid_only.region).padding = valid;
    EXPECT_TRUE(rejects([&] { vjp(valid_only, plain({11, 9, 78, 9})); }, {"window", "does not fit"}));
  });
  for_every_pooling({.size = {2, 2, 2}}, [](const Pooling& pooling) {
    Refusal(pooling, {10, 6, 3, 7, 7}).gy_is(plain({3, 1, 1, 1, 1}), {"(3, 1, 1, 1, 1)", "(10, 6, 2, 6, 6)"});
    Refusal(pooling, {10, 6, 3, 7, 7}).gy_is(plain({0, 0, 0, 0, 0}), {"(0, 0, 0, 0, 0)"});
  });
  for_every_pooling({.size = {1, 1, 1}}, [](const Pooling& pooling) {
    Refusal(pooling, {11, 1, 1, 1, 1}).gy_is(plain({1, 1, 1, 1, 1}), {"(1, 1, 1, 1, 1)", "(11, 1, 1, 1, 1)"});
    Refusal(pooling, {11, 1, 1, 1, 1}).gy_is(plain({0, 0, 0, 0, 0}), {"(0, 0, 0, 0, 0)", "(11, 1, 1, 1, 1)"});
  });
  const float one = 1;
  for (const Extents& shape : {Extents::filled(5, 1879048192), Extents::filled(4, -536870912)}) {
    const View x(&one, Type::f32, shape, Extents::filled(shape.size(), 0));
    for_every_pooling({.size = {1}}, [&](const Pooling& pooling) {
      EXPECT_NE(error_of([&] { vjp(pooling, x); }), "");
      EXPECT_NE(error_of([&] { jvp(pooling, x, x); }), "");
      EXPECT_NE(error_of([&] { hvp(pooling, x, x, x); }), "");
    });
  }
}

TEST(DerivativesRefuse, OffsetsOfAnotherShapeOrType) {
  Refusal five(of(Reducer::max, {.size = {2, 2}}), {5, 3, 4, 4});
  five.offsets_are(plain({9, 3, 3, 3}, Type::u8), {"offsets", "(9, 3, 3, 3)", "(5, 3, 3, 3)"});
  five.offsets_are(plain({0, 3, 3, 3}, Type::u8), {"offsets", "(0, 3, 3, 3)"});
  five.offsets_are(plain({5, 3, 3}, Type::u8), {"offsets", "(5, 3, 3)"});
  five.offsets_are(plain({5, 3, 3, 3}, Type::i64), {"offsets", "i64", "u8"});
  five.offsets_are(plain({5, 3, 3, 3}, Type::f32), {"offsets", "f32", "u8"});
  five.offsets_are(View(nullptr, Type::u8, {5, 3, 3, 3}), {"offsets", "null"});
}

TEST(DerivativesRefuse, OffsetsThatNameNoRealCell) {
  const auto edit = [](const Pooling& pooling, const Extents& shape, std::size_t at, std::int64_t offset) {
    Refusal r(pooling, shape);
    visit(r.offsets.type(), [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T>) r.offsets.values<T>()[at] = static_cast<T>(offset);
    });
    r.offsets_are(r.offsets, {"offset", std::to_string(offset), "real cell"});
  };
  for (const Reducer reducer : {Reducer::max, Reducer::min}) {
    const Pooling inner = of(reducer, {.size = {2, 2}}), padded = of(reducer, {.size = {2, 2}, .padding = 1});
    edit(inner, {1, 3, 3}, 3, 4);
    edit(inner, {1, 3, 3}, 0, 255);
    edit(padded, {1, 2, 2}, 0, 0);
    edit(padded, {1, 2, 2}, 0, 2);
    edit(padded, {1, 2, 2}, 4, 4);
    edit(padded, {1, 2, 2}, 8, 3);
    edit(of(reducer, {.size = {2, 2}, .padding = 1, .channels_last = true}), {2, 2, 3}, 0, 0);
    edit(of(reducer, {.size = {300}, .stride = 300}), {600}, 1, 300);
    edit(of(reducer, {.size = {300}, .padding = 5}), {300}, 0, 4);
    edit(of(reducer, {.size = {70000}}), {70001}, 1, 70000);
    edit(of(reducer, {.size = {70000}}), {70001}, 1, -1);
    edit(of(reducer, {.size = {70000}}), {70001}, 0, std::numeric_limits<std::int32_t>::min());
    edit(of(reducer, {.size = {million, million}, .stride = million, .padding = million / 2}), {3, 3}, 0, -million);
    edit({.reducer = reducer, .region = Adaptive{.output = {3}}}, {5}, 0, 2);
    edit({.reducer = reducer, .region = Adaptive{.output = {3}}}, {5}, 1, 3);
    edit({.reducer = reducer, .region = Global{.rank = 1}}, {2, 5}, 1, 5);
  }
}

TEST(DerivativesRefuse, OffsetsWhereNoSingleCellWins) {
  Pooling shared = of(Reducer::max, {.size = {2}});
  shared.ties = Ties::split;
  Refusal(shared, {4}).offsets_are(plain({3}, Type::u8), {"offsets", "first"});
  for (const Reducer reducer : {Reducer::sum, Reducer::avg, Reducer::smooth_max, Reducer::lp})
    Refusal(of(reducer, {.size = {2}}), {4}).offsets_are(plain({3}, Type::u8), {"offsets", "max and min"});
}

TEST(DerivativesRefuse, MemoryThatOverlaps) {
  for_every_pooling({.size = {2}}, [](const Pooling& pooling) {
    Refusal r(pooling, {4});
    std::vector<float> memory(16, 1);
    const View x(memory.data(), {4}), gy(memory.data() + 8, {3});
    const auto unchanged = [&] { return memory == std::vector<float>(16, 1); };
    EXPECT_TRUE(rejects([&] { r.planned.vjp(x, gy, MutableView(memory.data() + 3, {4})); }, {"gx", "overlap"}));
    EXPECT_TRUE(rejects([&] { r.planned.vjp(x, gy, MutableView(memory.data() + 7, {4})); }, {"gx", "overlap"}));
    EXPECT_TRUE(rejects([&] { r.planned.jvp(x, r.dx, MutableView(memory.data() + 2, {3})); }, {"dy", "overlap"}));
    EXPECT_TRUE(rejects([&] { r.planned.jvp(r.x, x, MutableView(memory.data() + 2, {3})); }, {"dy", "overlap"}));
    EXPECT_TRUE(rejects([&] { r.planned.hvp(x, r.gy, r.dx, MutableView(memory.data(), {4})); }, {"hx", "overlap"}));
    EXPECT_TRUE(
        rejects([&] { vjp(pooling, r.x).pullback.run(gy, MutableView(memory.data() + 7, {4})); }, {"gx", "overlap"}));
    const MutableView same_place(memory.data(), Type::f32, {4}, {0});
    EXPECT_TRUE(rejects([&] { r.planned.vjp(r.x, r.gy, same_place); }, {"gx", "share memory"}));
    const MutableView one_place(memory.data(), Type::f32, {3}, {0});
    EXPECT_TRUE(rejects([&] { r.planned.jvp(r.x, r.dx, one_place); }, {"dy", "share memory"}));
    EXPECT_TRUE(rejects([&] { r.planned.hvp(r.x, r.gy, r.dx, same_place); }, {"hx", "share memory"}));
    EXPECT_TRUE(rejects([&] { vjp(pooling, r.x).pullback.run(r.gy, same_place); }, {"gx", "share memory"}));
    EXPECT_TRUE(unchanged());
  });
}

TEST(DerivativesRefuse, ResultsOfAnotherShapeOrType) {
  for_every_pooling({.size = {2}}, [](const Pooling& pooling) {
    Refusal r(pooling, {4});
    Strided three(Type::f32, {3}, Layout::plain(1)), four(Type::f32, {4}, Layout::plain(1)),
        wide(Type::f64, {4}, Layout::plain(1));
    EXPECT_TRUE(rejects([&] { r.planned.vjp(r.x, r.gy, three.view()); }, {"gx", "(3,)", "(4,)"}));
    EXPECT_TRUE(rejects([&] { r.planned.vjp(r.x, r.gy, wide.view()); }, {"gx", "f64", "f32"}));
    EXPECT_TRUE(rejects([&] { r.planned.jvp(r.x, r.dx, four.view()); }, {"dy", "(4,)", "(3,)"}));
    EXPECT_TRUE(rejects([&] { r.planned.hvp(r.x, r.gy, r.dx, three.view()); }, {"hx", "(3,)", "(4,)"}));
    EXPECT_TRUE(rejects([&] { vjp(pooling, r.x).pullback.run(r.gy, three.view()); }, {"gx", "(3,)", "(4,)"}));
    EXPECT_TRUE(three.untouched() && four.untouched() && wide.untouched());
  });
}

TEST(DerivativesRefuse, TypesThatHaveNone) {
  for (const Type type : {Type::i8, Type::i32, Type::u64, Type::boolean}) {
    const Pooling pooling = of(Reducer::max, {.size = {2}});
    const Array x = plain({4}, type), gy = plain({3}, type), offsets = plain({3}, Type::u8);
    const std::vector<std::string> parts{"[max_pool]", "derivative", std::string(name(type)), "f32"};
    EXPECT_TRUE(rejects([&] { vjp(pooling, x); }, parts));
    EXPECT_TRUE(rejects([&] { jvp(pooling, x, x); }, parts));
    EXPECT_TRUE(rejects([&] { hvp(pooling, x, gy, x); }, parts));
    const Plan planned = plan(pooling, type, {4});
    Strided gx(type, {4}, Layout::plain(1)), dy(type, {3}, Layout::plain(1));
    EXPECT_TRUE(rejects([&] { planned.vjp(x, gy, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.jvp(x, x, dy.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.hvp(x, gy, x, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.vjp_from_offsets(offsets, gy, gx.view()); }, parts));
    EXPECT_TRUE(rejects([&] { planned.jvp_from_offsets(offsets, x, dy.view()); }, parts));
    EXPECT_TRUE(gx.untouched() && dy.untouched());
  }
}

}  // namespace
}  // namespace cenote::test
