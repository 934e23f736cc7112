// Short windows of columns of few channels, whose rows are joined before the columns, and nobody may notice.
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
#include "support/machine.h"
#include "support/property.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

/// One to three axes before 1 to 40 channels, or as many bytes as fill a pack or two; windows of up to nine cells that
/// may share some, or have some between them, and that may reach over the ends. Some rows are longer than what is
/// joined at a time.
Case draw_columns(Reducer reducer) {
  using namespace detail;
  Case c;
  c.type = one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16, Type::u8, Type::i8, Type::i32});
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const std::int64_t depth = chance(70) ? 2 : between(1, 3), channels = chance(80) ? between(1, 40) : between(41, 140);
  c.shape = {between(1, 3)};
  Extents sizes, strides;
  std::vector<Padding::Sides> padding;
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t size = chance(80) ? between(1, 4) : between(5, 9);
    const bool long_line = i + 1 == depth && chance(15);
    const std::int64_t most = long_line ? 4200 / channels : depth == 3 ? 9 : channels > 40 ? 12 : 24;
    sizes.push_back(size);
    strides.push_back(chance(60) ? between(2, 3) : between(1, 7));
    padding.emplace_back(chance(50) ? 0 : between(0, size - 1), chance(50) ? 0 : between(0, size + 2));
    c.shape.push_back(std::max(size, long_line ? most : between(1, most)));
  }
  c.shape.push_back(channels);
  c.pooling.reducer = reducer;
  options(c.pooling, c.type);
  c.pooling.dtype.reset();
  c.pooling.indices.reset();
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(25))
    c.pooling.indices = one_of<IndexKind>({IndexKind::offset, IndexKind::plane, IndexKind::tensor});
  c.pooling.region = Window{.size = sizes, .stride = strides, .padding = Padding(padding), .channels_last = true};
  const auto rank = static_cast<int>(c.shape.size());
  const bool plain = chance(80);
  c.x = plain ? Layout::plain(rank) : layout(rank, true);
  c.y = c.indices = plain ? Layout::plain(rank) : layout(rank, false);
  return c;
}

TEST(JoinedLine, EqualsTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(200, [&] { equals_reference(*rc::gen::exec([&] { return draw_columns(reducer); })); });
}

// Rows are joined before columns, but the first of equal zeros is the first in row-major order.
TEST(JoinedLine, KeepsTheFirstOfEqualZeros) {
  constexpr std::int64_t size = 3, outputs = 9;
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    for (const std::int64_t channels : {1, 2, 3, 5, 8, 12, 16, 17, 33}) {
      Array x(Type::f32, {2, size * outputs, size * outputs, channels});
      std::uint32_t state = 1;
      for (float& cell : x.values<float>()) {
        state = state * 1664525 + 1013904223;
        cell = state >> 31 ? 0.0F : -0.0F;
      }
      for (const Reducer reducer : {Reducer::max, Reducer::min}) {
        const Window window{.size = {size, size}, .stride = size, .channels_last = true};
        const Array y = pool(x, {.reducer = reducer, .region = window});
        const auto cells = x.values<float>();
        const auto values = y.values<float>();
        for (std::int64_t o = 0; o < y.size(); ++o) {
          const std::int64_t channel = o % channels, column = o / channels % outputs, row = o / channels / outputs;
          const std::int64_t first = ((row * size * outputs + column) * size) * channels + channel;
          ASSERT_EQ(std::signbit(values[static_cast<std::size_t>(o)]),
                    std::signbit(cells[static_cast<std::size_t>(first)]))
              << target << " " << channels << " " << o;
        }
      }
    }
  }
}

// A row with NaN is made anew, and those beside it keep what they have.
TEST(JoinedLine, GivesNanToTheWindowsThatHoldIt) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    for (const std::int64_t channels : {2, 3, 7, 17}) {
      Array x(Type::f32, {1, 30, 30, channels});
      for (float& cell : x.values<float>()) cell = 1;
      for (std::int64_t i = 0; i < 30; i += 7)
        x.values<float>()[static_cast<std::size_t>((i * 30 + i) * channels + i % channels)] = NAN;
      const Window window{.size = {3, 3}, .stride = 2, .padding = 1, .channels_last = true};
      const Array y = pool(x, {.reducer = Reducer::max, .region = window});
      for (std::int64_t o = 0; o < y.size(); ++o) {
        const std::int64_t channel = o % channels, column = o / channels % 15, row = o / channels / 15;
        bool holds = false;
        for (std::int64_t i = 0; i < 30; i += 7)
          holds |= i % channels == channel && std::abs(i - 2 * row) <= 1 && std::abs(i - 2 * column) <= 1;
        const float value = y.values<float>()[static_cast<std::size_t>(o)];
        ASSERT_TRUE(holds ? std::isnan(value) : value == 1) << target << " " << channels << " " << o;
      }
    }
  }
}

}  // namespace
}  // namespace cenote::test
