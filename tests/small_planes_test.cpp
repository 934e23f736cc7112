// Gradients of small planes, of windows that cover them, and of windows far apart, held against plain loops.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/machine.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

/// Volumes of which the first axes may have one cell: planes or lines then.
struct Volumes {
  std::int64_t count;
  std::array<std::int64_t, 3> cells, size, stride, padding;

  Extents shape() const { return {1, count, cells[0], cells[1], cells[2]}; }
  Pooling pooling(Reducer reducer) const {
    const auto extents = [](const std::array<std::int64_t, 3>& of) { return Extents{of[0], of[1], of[2]}; };
    Window window{.size = extents(size), .stride = extents(stride)};
    window.padding = Padding{padding[0], padding[1], padding[2]};
    return {.reducer = reducer, .region = window};
  }
  /// Calls visit(output, tap, cell) for every real cell of every window.
  template <class Visit>
  void each(const Visit& visit) const {
    std::array<std::int64_t, 3> out{};
    for (std::size_t i = 0; i < 3; ++i) out[i] = (cells[i] + 2 * padding[i] - size[i]) / stride[i] + 1;
    const auto along = [&](std::size_t axis, std::int64_t o, const auto& inside) {
      const std::int64_t start = o * stride[axis] - padding[axis];
      for (std::int64_t i = std::max<std::int64_t>(start, 0); i < std::min(start + size[axis], cells[axis]); ++i)
        inside(i - start, i);
    };
    std::int64_t output = 0;
    for (std::int64_t p = 0; p < count; ++p)
      for (std::int64_t a = 0; a < out[0]; ++a)
        for (std::int64_t b = 0; b < out[1]; ++b)
          for (std::int64_t c = 0; c < out[2]; ++c, ++output)
            along(0, a, [&](std::int64_t r, std::int64_t i) {
              along(1, b, [&](std::int64_t s, std::int64_t j) {
                along(2, c, [&](std::int64_t t, std::int64_t k) {
                  visit(output, (r * size[1] + s) * size[2] + t, ((p * cells[0] + i) * cells[1] + j) * cells[2] + k);
                });
              });
            });
  }
};

std::vector<Volumes> volumes() {
  std::vector<Volumes> all;
  for (const std::int64_t count : {3, 16, 80})
    for (const std::int64_t side : {4, 7, 14, 33}) {
      for (const std::int64_t size : {1, 2, 3, 5})
        for (const std::int64_t stride : {1, 2, 3, 7}) {
          if (size > side || (side == 33 && count == 80)) continue;
          const std::int64_t padding = (size + stride) % 2 * (size / 2);
          all.push_back({count, {1, side, side + 1}, {1, size, size}, {1, stride, stride}, {0, padding, padding}});
        }
      all.push_back({count, {1, side, side}, {1, side, side}, {1, 1, 1}, {0, 0, 0}});
      // A window around every cell; of lines of two cells, several of its taps lie where others do.
      for (const std::int64_t width : {std::int64_t{2}, side, side + 1})
        all.push_back({count, {1, side, width}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}});
      all.push_back({count, {2, side, side}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}});
      all.push_back({count, {1, side, side}, {1, 3, 1}, {1, 1, 1}, {0, 1, 0}});
      all.push_back({count, {1, 2 * side, side}, {1, 2, side}, {1, 2, side}, {0, 0, 0}});
      all.push_back({count, {1, side, 3 * side}, {1, 2, 2 * side}, {1, 2, side}, {0, 1, 1}});
      all.push_back({count, {4, side, side}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}});
      all.push_back({count, {1, 1, 50 * side}, {1, 1, 30}, {1, 1, 20}, {0, 0, 9}});
      all.push_back({count, {1, 1, 50 * side}, {1, 1, 18}, {1, 1, 40}, {0, 0, 0}});
    }
  // More padding than windows reach, so that the windows which hold a cell begin behind the first.
  for (const std::int64_t above : {1, 3, 60})
    for (const std::int64_t beside : {1, 3, 60}) {
      all.push_back({4, {1, 30, 30}, {1, 3, 3}, {1, 1, 1}, {0, above, beside}});
      all.push_back({64, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, above, beside}});
    }
  all.push_back({2, {9, 20, 20}, {3, 3, 3}, {1, 1, 1}, {4, 4, 4}});
  // Windows without a cell before and behind those that cover all.
  for (const std::int64_t side : {1, 2}) all.push_back({3, {1, 1, side}, {1, 1, 2}, {1, 1, 1}, {0, 1, 1}});
  // Groups of planes with one or two left over; more windows than hold a cell would, if there were as many.
  for (const std::int64_t count : {1, 3, 129, 130, 131}) {
    all.push_back({count, {1, 9, 9}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}});
    all.push_back({count, {1, 10, 20}, {1, 2, 18}, {1, 2, 18}, {0, 0, 0}});
    all.push_back({count, {1, 9, 12}, {1, 7, 7}, {1, 5, 17}, {0, 0, 0}});
    all.push_back({count, {1, 1, 42}, {1, 1, 40}, {1, 1, 2}, {0, 0, 0}});
    all.push_back({count, {1, 8, 41}, {1, 1, 40}, {1, 2, 1}, {0, 0, 0}});
    all.push_back({count, {1, 14, 20}, {1, 3, 45}, {1, 17, 2}, {0, 1, 22}});
    all.push_back({count, {1, 1, 500}, {1, 1, 480}, {1, 1, 2}, {0, 0, 0}});
    for (const std::int64_t stride : {1, 2, 3}) {
      const std::int64_t large = std::int64_t{1} << 40;
      all.push_back({count, {1, 1, 10}, {1, 1, large}, {1, 1, stride}, {0, 0, large / 2}});
      all.push_back({count, {1, 10, 10}, {1, large, 3}, {1, stride, 2}, {0, large / 2, 0}});
    }
  }
  return all;
}

template <class Use>
void on_every_machine(const Use& use) {
  for (const std::string& target : targets_under_test())
    for (const int threads : {1, 3}) {
      const Machine machine(target, threads);
      use(target);
    }
}

TEST(SmallPlaneGradients, OfSumsGoToEveryCell) {
  std::uint64_t number = 1;
  for (const Volumes& c : volumes()) {
    const Type type = std::array{Type::f32, Type::bf16, Type::f64, Type::f32, Type::f16}[++number % 5];
    Pooling pooling = c.pooling(number % 2 ? Reducer::sum : Reducer::avg);
    pooling.divisor = 4.0;
    const Plan planned = plan(pooling, type, c.shape());
    const Array gy = drawn(planned.output_shape(), type, Data::few, number);
    std::vector<double> expected(static_cast<std::size_t>(element_count(c.shape())), 0);
    const std::vector<double> given = numbers(gy);
    c.each([&](std::int64_t output, std::int64_t, std::int64_t cell) {
      expected[static_cast<std::size_t>(cell)] += given[static_cast<std::size_t>(output)] / (number % 2 ? 1 : 4);
    });
    on_every_machine([&](const std::string& target) {
      const Array x = drawn(c.shape(), type, Data::few, 1);
      Array gx = x;
      planned.vjp(x, gy, gx);
      EXPECT_EQ(numbers(gx), expected) << planned.explain() << " on " << target;
    });
  }
}

TEST(SmallPlaneGradients, OfWinnersGoToThem) {
  std::uint64_t number = 1;
  for (const Volumes& c : volumes()) {
    const Type type = std::array{Type::f32, Type::bf16, Type::f64, Type::f32, Type::f16}[++number % 5];
    Pooling pooling = c.pooling(Reducer::max);
    const Plan planned = plan(pooling, type, c.shape());
    pooling.indices = IndexKind::offset;
    const Plan winners = plan(pooling, type, c.shape());
    const Array x = drawn(c.shape(), type, Data::few, number);
    const Array gy = drawn(planned.output_shape(), type, Data::few, number + 1);
    Array y(type, planned.output_shape()), offsets(*winners.index_type(), planned.output_shape());
    winners.run(x, y, offsets);
    std::vector<double> expected(static_cast<std::size_t>(x.size()), 0);
    const std::vector<double> given = numbers(gy), named = numbers(offsets);
    c.each([&](std::int64_t output, std::int64_t tap, std::int64_t cell) {
      const auto o = static_cast<std::size_t>(output);
      if (named[o] == static_cast<double>(tap)) expected[static_cast<std::size_t>(cell)] += given[o];
    });
    on_every_machine([&](const std::string& target) {
      Array gx = drawn(c.shape(), type, Data::few, 1);
      planned.vjp_from_offsets(offsets, gy, gx);
      EXPECT_EQ(numbers(gx), expected) << planned.explain() << " on " << target;
    });
  }
}

// Channels side by side, fewer than fill a pack or a few more, are pooled as if each were alone.
TEST(GradientsOfFewChannels, AreThoseOfEachChannel) {
  std::uint64_t number = 1;
  for (const std::int64_t channels : {2, 3, 4, 5, 7, 8, 13, 15, 17})
    for (const std::int64_t size : {1, 2, 3, 5})
      for (const std::int64_t stride : {1, 2, 3, 4, 7, 16})
        for (const bool routed : {false, true}) {
          const Type type = std::array{Type::f32, Type::bf16, Type::f64, Type::f32, Type::f16}[++number % 5];
          const std::int64_t rows = 7 + static_cast<std::int64_t>(number % 6),
                             columns = 11 + static_cast<std::int64_t>(number % 37);
          Window window{.size = {size, size}, .stride = {stride, stride}};
          window.padding = Padding(static_cast<std::int64_t>(number % 2) * (size / 2));
          Pooling pooling{.reducer = routed ? Reducer::max : Reducer::sum, .region = window};
          const Plan alone = plan(pooling, type, {2, channels, rows, columns});
          window.channels_last = true;
          pooling.region = window;
          const Plan beside = plan(pooling, type, {2, rows, columns, channels});
          const Array x = drawn({2, rows, columns, channels}, type, Data::few, number);
          const Array gy = drawn(beside.output_shape(), type, Data::few, number + 1);
          const auto turned = [&](const Array& from) {
            const Extents& shape = from.shape();
            Array to(type, {shape[0], shape[3], shape[1], shape[2]});
            const auto bytes = static_cast<std::int64_t>(size_of(type)), inner = shape[3], cells = shape[1] * shape[2];
            for (std::int64_t i = 0; i < from.size(); ++i)
              std::memcpy(static_cast<std::byte*>(to.data()) +
                              ((i / inner / cells * inner + i % inner) * cells + i / inner % cells) * bytes,
                          static_cast<const std::byte*>(from.data()) + i * bytes, static_cast<std::size_t>(bytes));
            return to;
          };
          Array expected(type, {2, channels, rows, columns});
          alone.vjp(turned(x), turned(gy), expected);
          on_every_machine([&](const std::string& target) {
            Array gx = drawn({2, rows, columns, channels}, type, Data::few, 1);
            beside.vjp(x, gy, gx);
            EXPECT_EQ(numbers(turned(gx)), numbers(expected)) << beside.explain() << " on " << target;
          });
        }
}

// Merging what a window covers must not overflow.
TEST(SmallPlaneGradients, OfTheLargestWindowsAreExact) {
  const std::int64_t large = std::int64_t{1} << 62;
  Window window{.size = {large, 3}, .stride = {std::numeric_limits<std::int64_t>::max(), 1}};
  window.padding = Padding{Padding::Sides(large - 1, 0), Padding::Sides(0, 0)};
  const Array x = drawn({4, 3}, Type::f32, Data::few, 1);
  const Plan planned = plan({.reducer = Reducer::sum, .region = window}, Type::f32, {4, 3});
  Array y(Type::f32, planned.output_shape()), gy = y, gx = x;
  gy.values<float>()[0] = 3;
  planned.run(x, y);
  planned.vjp(x, gy, gx);
  const auto cells = x.values<float>();
  EXPECT_EQ(y.values<float>()[0], cells[0] + cells[1] + cells[2]);
  EXPECT_EQ(numbers(gx), (std::vector<double>{3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace cenote::test
