// Long windows that are mostly padding: swept over the cells that there are, whatever their length.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/against_reference.h"
#include "support/arrays.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

/// One axis, and windows on it that mostly reach over both ends, over one, or lie beside it.
struct Overhang {
  std::int64_t cells, size, stride, dilation;
  Padding::Sides padding;

  static Overhang draw(std::int64_t longest) {
    using namespace detail;
    Overhang a{between(1, longest), 1, one_of<std::int64_t>({1, 1, 2, 3, 5}), one_of<std::int64_t>({1, 1, 2, 3, 4}), 0};
    const std::int64_t most = 2 * (a.cells / a.dilation + 1);
    a.size = chance(80) ? between(most + 1, 3 * most) : between(1, most);
    const std::int64_t extent = (a.size - 1) * a.dilation + 1;
    const std::int64_t more = between(0, std::min(2 * extent, 3 * longest * a.stride));
    const std::int64_t padding = std::max<std::int64_t>(extent + more - a.cells, 0);
    a.padding.low = one_of<std::int64_t>({0, padding, padding / 2, between(0, padding)});
    a.padding.high = padding - a.padding.low;
    return a;
  }
};

Case draw_overhanging(Reducer reducer) {
  using namespace detail;
  Case c;
  std::vector<Type> types{Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16};
  if (accepts(reducer, Type::u8)) types.insert(types.end(), {Type::u8, Type::i16, Type::u32, Type::i64});
  c.type = one_of(types);
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const bool last = chance(40), plane = chance(50);
  c.shape = {between(1, 3)};
  Extents size, stride, dilation;
  std::vector<Padding::Sides> padding;
  for (int i = 0; i < (plane ? 2 : 1); ++i) {
    const Overhang a = Overhang::draw(plane ? 20 : 100);
    c.shape.push_back(a.cells);
    size.push_back(a.size);
    stride.push_back(a.stride);
    dilation.push_back(a.dilation);
    padding.push_back(a.padding);
  }
  if (last) c.shape.push_back(one_of<std::int64_t>({1, 2, 3, 8, 17, 40}));
  c.pooling.reducer = reducer;
  options(c.pooling, c.type);
  c.pooling.dtype.reset();
  c.pooling.region = Window{.size = size,
                            .stride = stride,
                            .dilation = dilation,
                            .padding = Padding(padding),
                            .ceil = chance(20),
                            .channels_last = last};
  c.x = layout(c.shape.size(), true);
  c.y = c.indices = layout(c.shape.size(), false);
  return c;
}

TEST(WindowsOfMostlyPadding, EqualTheReference) {
  for (const Reducer reducer : all_reducers)
    check(150, [&] { equals_reference(*rc::gen::exec([&] { return draw_overhanging(reducer); })); });
}

/// A plan that sweeps whatever can be swept.
Plan sweeping(const Pooling& pooling, const Extents& shape) {
  auto impl = std::make_shared<Plan::Impl>(plan(pooling, Type::f32, shape).impl());
  impl->algorithm.sweep = Sweep::always;
  impl->algorithm.weave = Weave::never;
  return Plan(std::move(impl));
}

// Folded, every output would look at every cell: hours.
TEST(WindowsOfMostlyPadding, AreSweptOverAnyNumberOfCells) {
  constexpr std::int64_t cells = 1 << 20, size = std::int64_t{1} << 40;
  for (const Type type : {Type::f32, Type::u8})
    for (const std::int64_t stride : {1, 2})
      for (const bool last : {false, true}) {
        const Extents shape = last ? Extents{1, cells, 2} : Extents{2, cells};
        const Pooling pooling{
            .reducer = Reducer::max,
            .region = Window{.size = {size}, .stride = stride, .padding = same, .channels_last = last}};
        const Plan planned = plan(pooling, type, shape);
        EXPECT_NE(planned.explain().find("swept"), std::string::npos) << planned.explain();
        Array x = type == Type::u8 ? full<std::uint8_t>(shape, 1) : full(shape, 1);
        if (type == Type::u8)
          x.values<std::uint8_t>()[777] = 7;
        else
          x.values<float>()[777] = 7;
        const std::vector<double> y = numbers(pool(x, pooling));
        const auto most = static_cast<std::int64_t>(std::count(y.begin(), y.end(), 7.0));
        EXPECT_EQ(most, cells / stride) << planned.explain();
      }
}

// Cells of padding that no window begins or ends with make no difference, however many there are: neither to a result
// nor to what it costs, or these would never end.
TEST(WindowsOfMostlyPadding, AreAsGoodAsShorterOnes) {
  constexpr std::int64_t less = 100;
  for (const std::int64_t size : {std::int64_t{200}, std::int64_t{1} << 40, std::int64_t{1} << 60})
    for (const std::int64_t cells : {1, 3, 40})
      for (const std::int64_t stride : {1, 2})
        for (const std::int64_t dilation : {1, 3})
          for (const bool last : {false, true})
            for (const bool behind : {false, true}) {
              if (size > std::int64_t{1} << 59 && dilation > 1) continue;
              const Reducer reducer = (size + cells) % 3 == 0 ? Reducer::max : Reducer::sum;
              const Extents shape = last ? Extents{cells, 4, 6} : Extents{2, 4, cells};
              const auto of = [&](std::int64_t taps) {
                Pooling pooling{.reducer = reducer};
                const std::int64_t more = (taps - 1) * dilation;
                const Padding::Sides sides(behind ? 50 : more, behind ? more : 50);
                pooling.region = Window{.size = {taps},
                                        .stride = stride,
                                        .dilation = dilation,
                                        .padding = Padding{sides},
                                        .axes = Extents{last ? 0 : 2}};
                if (reducer == Reducer::max) pooling.indices = IndexKind::plane;
                return sweeping(pooling, shape);
              };
              const Plan huge = of(size), small = of(less);
              ASSERT_EQ(huge.output_shape(), small.output_shape());
              const Array x = drawn(shape, Type::f32, Data::few, 3);
              std::vector<std::vector<double>> values, places;
              for (const Plan& each : {huge, small}) {
                Array y(Type::f32, each.output_shape()), winners = full<std::int64_t>(each.output_shape(), 0);
                each.index_type() ? each.run(x, y, winners) : each.run(x, y);
                values.push_back(numbers(y));
                places.push_back(numbers(winners));
              }
              EXPECT_EQ(values[0], values[1]) << huge.explain();
              EXPECT_EQ(places[0], places[1]) << huge.explain();
            }
}

// Every length has its own number of doublings, and of packs and lanes that are left.
TEST(LongWindows, OfEveryLengthHoldTheirLargestCell) {
  constexpr std::int64_t cells = 500;
  for (const Type type : {Type::f32, Type::f64, Type::bf16, Type::u8, Type::i16}) {
    const Array x = drawn({2, cells}, type, is_float(type) ? Data::rare : Data::unit, 3);
    const std::vector<double> values = numbers(x);
    for (std::int64_t size = 9; size < 300; ++size) {
      const std::int64_t low = size * 2 / 3;
      const Pooling pooling{
          .reducer = Reducer::max,
          .region = Window{.size = {size}, .padding = Padding({{low, size - 1 - low}}), .axes = Extents{1}}};
      const std::vector<double> y = numbers(pool(x, pooling));
      ASSERT_EQ(y.size(), values.size());
      for (std::int64_t o = 0; o < 2 * cells; ++o) {
        const std::int64_t row = o / cells * cells, start = o - low;
        const double* const first = values.data() + std::max(start, row);
        const double* const last = values.data() + std::min(start + size, row + cells);
        const bool any_nan = std::any_of(first, last, [](double v) { return std::isnan(v); });
        const double found = y[static_cast<std::size_t>(o)];
        if (any_nan)
          ASSERT_TRUE(std::isnan(found)) << name(type) << " k" << size << " " << o;
        else
          ASSERT_EQ(found, *std::max_element(first, last)) << name(type) << " k" << size << " " << o;
      }
    }
  }
}

}  // namespace
}  // namespace cenote::test
