// Gradients of winners by every way that they can be sent, which must agree to the last bit on whole numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "cpu/route.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

using cpu::Sending;

/// A pooling of planes, of lines or of rows of channels, and how often each way could be taken.
struct Routes {
  Pooling pooling;
  Type type;
  Extents shape;

  static Routes draw() {
    using namespace detail;
    const bool last = chance(40);
    const std::int64_t axes = between(1, 2), most = one_of<std::int64_t>({3, 5, 5, 17});
    Routes r{{.reducer = one_of<Reducer>({Reducer::max, Reducer::min})},
             one_of<Type>({Type::f32, Type::f32, Type::f64, Type::bf16, Type::f16}),
             {between(1, 3)}};
    const std::int64_t channels = one_of<std::int64_t>({1, 2, 3, 4, 5, 8, 16, 33});
    if (chance(15)) {
      Adaptive bins{.channels_last = last};
      for (std::int64_t i = 0; i < axes; ++i) {
        r.shape.push_back(between(1, 50));
        bins.output.emplace_back(between(1, chance(10) ? 150 : 20));
      }
      if (last) r.shape.push_back(channels);
      r.pooling.region = bins;
      return r;
    }
    // Windows that share no cells; large ones are mostly zeros.
    const bool apart = chance(20);
    Extents size, stride, dilation;
    std::vector<Padding::Sides> padding;
    for (std::int64_t i = 0; i < axes; ++i) {
      const std::int64_t taps = apart ? between(6, 20) : between(1, most), step = chance(25) ? between(2, 3) : 1;
      size.push_back(taps);
      stride.push_back(apart ? (taps - 1) * step + between(1, 4) : step > 1 && chance(70) ? 1 : between(1, 4));
      dilation.push_back(step);
      padding.emplace_back(between(0, (taps - 1) / 2), between(0, (taps - 1) / 2));
      r.shape.push_back(between((taps - 1) * step + 1, axes == 1 ? 300 : 60));
    }
    if (last) r.shape.push_back(channels);
    r.pooling.region = Window{
        .size = size, .stride = stride, .dilation = dilation, .padding = Padding(padding), .channels_last = last};
    return r;
  }
};

std::ostream& operator<<(std::ostream& out, const Routes& r) {
  return out << to_string(Problem{r.pooling, r.type, r.shape});
}

/// gx by the numbers of winners in the array itself.
std::vector<double> expected_of(const Routes& r, const Array& x, const Array& gy) {
  Pooling placed = r.pooling;
  placed.indices = IndexKind::tensor;
  const std::vector<double> places = numbers(pool_with_indices(x, placed).indices), given = numbers(gy);
  std::vector<double> result(static_cast<std::size_t>(x.size()), 0);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (places[i] >= 0) result[static_cast<std::size_t>(places[i])] += given[i];
  return result;
}

TEST(WaysToTheWinner, AgreeOnWholeNumbers) {
  std::array<int, 4> taken{};
  check(300, [&] {
    const Routes r = *rc::gen::exec([] { return Routes::draw(); });
    const Array x = drawn(r.shape, r.type, Data::few, 3);
    Pooling named = r.pooling;
    named.indices = IndexKind::offset;
    const Plan winners = plan(named, r.type, r.shape);
    const Array offsets = pool_with_indices(x, named).indices;
    const Array gy = drawn(winners.output_shape(), r.type, Data::few, 4);
    const std::vector<double> expected = expected_of(r, x, gy);
    for (const std::string& target : targets_under_test())
      for (const Sending way : {Sending::automatic, Sending::small, Sending::asked, Sending::together}) {
        const Machine machine(target, 3);
        Array gx(r.type, r.shape);
        if (!cpu::send(winners.impl(), offsets, gy, gx, way)) continue;
        ++taken[static_cast<std::size_t>(way)];
        if (numbers(gx) != expected) RC_FAIL("way " + std::to_string(static_cast<int>(way)) + " on " + target);
      }
  });
  for (const int count : taken) EXPECT_GT(count, test_scale() < 1 ? 0 : 40);
}

// What lies around gx must stay as it is, and so must the order of nothing: -0 becomes 0, and NaN and infinity arrive.
TEST(WaysToTheWinner, WriteZerosPastTheCaches) {
  for (const Type type : {Type::f32, Type::bf16})
    for (const bool last : {false, true}) {
      const std::int64_t side = type == Type::f32 ? 2100 : 2970, channels = last ? 4 : 1;
      const Extents shape = last ? Extents{1, side / 2, side / 2, channels} : Extents{1, side / 2, side * 2};
      const Pooling pooling{.reducer = Reducer::max,
                            .region = Window{.size = {17, 19}, .stride = {20, 19}, .channels_last = last},
                            .indices = IndexKind::offset};
      const Plan winners = plan(pooling, type, shape);
      Array offsets(*winners.index_type(), winners.output_shape()), gy(type, winners.output_shape());
      std::vector<double> expected(static_cast<std::size_t>(element_count(shape)), 0);
      const std::int64_t columns = shape[2], across = winners.output_shape()[2];
      visit(type, [&]<class T>(T) {
        if constexpr (!std::is_integral_v<T>)
          for (std::int64_t i = 0; i < gy.size(); ++i) {
            const std::int64_t tap = i * 7 % 323, channel = i % channels, o = i / channels;
            const std::int64_t row = o / across * 20 + tap / 19, column = o % across * 19 + tap % 19;
            const float value = i % 5 == 0 ? -0.f : i % 7 == 0 ? std::numeric_limits<float>::infinity() : 3.f;
            offsets.values<std::uint16_t>()[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(tap);
            gy.values<T>()[static_cast<std::size_t>(i)] = static_cast<T>(value);
            expected[static_cast<std::size_t>((row * columns + column) * channels + channel)] += value;
          }
      });
      for (const std::int64_t before : {last ? 0 : 5}) {
        const Machine machine(targets_under_test().front(), 3);
        Array memory(type, {element_count(shape) + 8});
        const auto bytes = static_cast<std::int64_t>(size_of(type));
        const auto fill = std::byte{0x41};
        std::memset(memory.data(), static_cast<int>(fill), static_cast<std::size_t>(memory.size() * bytes));
        auto* const begin = static_cast<std::byte*>(memory.data()) + before * bytes;
        const MutableView gx(begin, type, shape);
        ASSERT_TRUE(cpu::send(winners.impl(), offsets, gy, gx, Sending::together));
        const std::vector<double> all = numbers(memory);
        const auto from = all.begin() + before, to = from + element_count(shape);
        EXPECT_TRUE(std::equal(from, to, expected.begin())) << name(type) << ", channels last " << last;
        EXPECT_TRUE(std::none_of(from, to, [](double x) { return x == 0 && std::signbit(x); }));
        for (std::int64_t i = 0; i < memory.size(); ++i) {
          if (i >= before && i < before + element_count(shape)) continue;
          for (std::int64_t b = 0; b < bytes; ++b)
            ASSERT_EQ(static_cast<std::byte*>(memory.data())[i * bytes + b], fill);
        }
      }
    }
}

}  // namespace
}  // namespace cenote::test
