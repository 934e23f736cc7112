// Smooth max and lp are made in shorter ways where cells are tame, or at least no farther than whole numbers go, and
// small windows as if they were, and anew where they are not: no one may notice.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/against_reference.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

struct Small {
  Extents shape;
  bool last;
  std::int64_t size, stride, padding;

  Pooling pooling(Reducer reducer, double p) const {
    const int axes = last || shape.size() < 4 ? shape.size() - 2 : 2;
    Window window{.size = Extents::filled(axes, size), .stride = Extents::filled(axes, stride)};
    window.padding = padding;
    window.channels_last = last;
    Pooling result{.reducer = reducer, .region = window, .beta = 1.5, .p = p};
    // Padded cells that count would be another way.
    result.pad = SmoothPadding::ignore;
    return result;
  }
};

std::vector<Small> small_windows() {
  std::vector<Small> all;
  for (const std::int64_t padding : {0, 1})
    for (const std::int64_t size : {2, 3}) {
      all.push_back({{2, 5, 37, 70}, false, size, 2, padding});
      all.push_back({{3, 2, 133}, false, size, 2, padding});
      for (const std::int64_t channels : {8, 16, 40, 64, 300})
        all.push_back({{2, 9, 11, channels}, true, size, 2, padding});
      all.push_back({{2, 9, 11, 48}, true, size, 3, padding});
      all.push_back({{2, 40, 32}, true, size, 2, padding});
    }
  return all;
}

struct Kind {
  Reducer reducer;
  double p;
};
constexpr Kind kinds[] = {{Reducer::lp, 1}, {Reducer::lp, 2}, {Reducer::smooth_max, 2}};

/// What is made of x, also past the caches, and of x with dx.
struct Made {
  Array y, dy, past;
  Made(const Pooling& pooling, const Array& x, const Array& dx)
      : y(pool(x, pooling)), dy(jvp(pooling, x, dx).dy), past(y) {
    past_caches(plan(pooling, x.type(), x.shape())).run(x, past);
  }
};

class TamePlanes : public testing::TestWithParam<std::string> {};

TEST_P(TamePlanes, DoNotFeelWildCellsElsewhere) {
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16})
    for (const Small& small : small_windows())
      for (const Kind& kind : kinds) {
        SCOPED_TRACE(std::string(name(type)) + " " + std::string(name(kind.reducer)) + " " + std::to_string(kind.p));
        const Pooling pooling = small.pooling(kind.reducer, kind.p);
        const Array x = drawn(small.shape, type, Data::unit, 1), dx = drawn(small.shape, type, Data::unit, 2);
        const Machine machine(GetParam(), 1);
        const Made tame(pooling, x, dx);
        // The last cell of all is in the last window, or in none.
        for (const double wild : {inf, nan, 1e30, -1e-30, 3e4}) {
          Array other = x, tangent = dx;
          visit(type, [&](auto element) {
            using T = decltype(element);
            if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2)
              other.values<T>()[static_cast<std::size_t>(x.size() - 1)] = static_cast<T>(static_cast<float>(wild));
          });
          const Made mixed(pooling, other, tangent);
          const std::int64_t outputs = tame.y.size();
          const std::int64_t beside = small.last ? small.shape[small.shape.size() - 1] : 1;
          const auto same = [&](const Array& a, const Array& b) {
            const auto u = bytes_of(a), v = bytes_of(b);
            const auto count = static_cast<std::size_t>(outputs - beside) * size_of(type);
            return std::equal(u.begin(), u.begin() + static_cast<std::ptrdiff_t>(count), v.begin());
          };
          EXPECT_TRUE(same(tame.y, mixed.y)) << wild;
          EXPECT_TRUE(same(tame.past, tame.y)) << wild;
          EXPECT_TRUE(same(mixed.past, mixed.y)) << wild;
          EXPECT_TRUE(same(tame.dy, mixed.dy)) << wild;
        }
      }
}

TEST_P(TamePlanes, HoldTinyAndHugeCellsAsTheOthersDo) {
  // Scaled by a power of two, everything is: what is tame in one scale is not in the other.
  for (const Small& small : small_windows())
    for (const Kind& kind : {kinds[0], kinds[1]}) {
      const Pooling pooling = small.pooling(kind.reducer, kind.p);
      const Array x = drawn(small.shape, Type::f32, Data::unit, 3), dx = drawn(small.shape, Type::f32, Data::unit, 4);
      const Machine machine(GetParam(), 2);
      const Made made(pooling, x, dx);
      for (const double scale : {0x1p-90, 0x1p90}) {
        Array far = x;
        for (float& value : far.values<float>()) value *= static_cast<float>(scale);
        const Made scaled(pooling, far, dx);
        Array back = scaled.y;
        for (float& value : back.values<float>()) value /= static_cast<float>(scale);
        EXPECT_TRUE(same_bits(back, made.y)) << scale;
        EXPECT_TRUE(same_bits(scaled.dy, made.dy)) << scale;
      }
    }
}

// Of cells that are not tame, whole numbers are carried in place of the cells themselves, but only while all have one.
TEST_P(TamePlanes, JoinWholeNumbersAsTheyJoinCells) {
  constexpr std::int64_t cells = 700;
  struct Long {
    std::int64_t size, stride, dilation, padding;
    SmoothPadding pad;
  };
  const Machine machine(GetParam(), 1);
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16})
    for (const Long& window : {Long{3, 1, 1, 0, SmoothPadding::zero}, Long{16, 1, 1, 5, SmoothPadding::zero},
                               Long{16, 1, 1, 5, SmoothPadding::ignore}, Long{101, 1, 1, 0, SmoothPadding::zero},
                               Long{33, 3, 2, 4, SmoothPadding::zero}, Long{300, 1, 1, 0, SmoothPadding::zero}})
      for (const double beta : {2e4, -2e4})
        for (const bool last : {false, true}) {
          Window region{.size = {window.size}, .stride = window.stride, .dilation = window.dilation};
          region.padding = window.padding;
          region.channels_last = last;
          const Pooling pooling{.reducer = Reducer::smooth_max, .region = region, .beta = beta, .pad = window.pad};
          SCOPED_TRACE(std::string(name(type)) + " k" + std::to_string(window.size) + (last ? " last" : ""));
          // The last cell is in the last windows only.
          const std::int64_t beside = last ? 24 : 1;
          const Array x = drawn(last ? Extents{1, cells, beside} : Extents{1, 1, cells}, type, Data::unit, 6);
          const Array y = pool(x, pooling);
          const std::int64_t outputs = y.size() / beside, reach = (window.size - 1) * window.dilation + 1;
          const auto untouched = static_cast<std::size_t>(
              std::min(outputs, (cells - 1 - reach + window.padding) / window.stride + 1) * beside);
          ASSERT_GT(untouched, 0U);
          for (const double wild : {6e4, inf, nan}) {
            Array other = x;
            visit(type, [&](auto element) {
              using T = decltype(element);
              if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2)
                other.values<T>()[static_cast<std::size_t>(x.size() - 1)] = static_cast<T>(static_cast<float>(wild));
            });
            const auto u = bytes_of(y), v = bytes_of(pool(other, pooling));
            EXPECT_TRUE(
                std::equal(u.begin(), u.begin() + static_cast<std::ptrdiff_t>(untouched * size_of(type)), v.begin()))
                << wild;
          }
        }
}

TEST_P(TamePlanes, MayHaveNoCells) {
  const Machine machine(GetParam(), 1);
  for (const Extents& shape : {Extents{3, 0, 8}, Extents{3, 0, 8, 32}, Extents{3, 8, 0, 32}}) {
    const Window window{.size = {2, 2}, .stride = 2, .padding = 1, .channels_last = shape.size() == 4};
    const Array y = lp_pool(Array(Type::f32, shape), window, 2);
    EXPECT_GT(y.size(), 0);
    for (const double value : numbers(y)) EXPECT_EQ(value, 0);
  }
}

TEST_P(TamePlanes, AreNeverInfinite) {
  const Machine machine(GetParam(), 1);
  const Window window{.size = {2, 2}, .stride = 2};
  for (const double beta : {2e-38, -2e-38}) {
    Array x = drawn({4, 8, 64}, Type::f32, Data::unit, 5);
    x.values<float>()[0] = static_cast<float>(beta > 0 ? inf : -inf);
    EXPECT_EQ(numbers(smooth_max_pool(x, window, beta))[0], beta > 0 ? inf : -inf);
  }
}

// Cells far apart in size whose large ones have no tangent: what is left is below all normal numbers.
TEST_P(TamePlanes, HaveTangentsOfTheSameBitsWhateverIsElsewhere) {
  const Machine machine(GetParam(), 1);
  const Extents shape{2, 8, 64};
  for (const Reducer reducer : {Reducer::lp, Reducer::smooth_max}) {
    Array x = drawn(shape, Type::f32, Data::unit, 6), dx = drawn(shape, Type::f32, Data::unit, 7);
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
      float &cell = x.values<float>()[i], &tangent = dx.values<float>()[i];
      const bool large = i % 2 == 0;
      cell = reducer == Reducer::lp ? cell * (large ? 0x1p46f : 0x1p-46f) : (large ? 31 : -31) + cell;
      tangent *= large ? 0 : 0x1p-50f;
    }
    const Pooling pooling{.reducer = reducer, .region = Window{.size = {2}, .stride = 2}};
    const Array tame = jvp(pooling, x, dx).dy;
    x.values<float>().back() = static_cast<float>(nan);
    const Array mixed = jvp(pooling, x, dx).dy;
    for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(tame.size()); ++i)
      ASSERT_EQ(tame.values<float>()[i], mixed.values<float>()[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, TamePlanes, testing::ValuesIn(targets_under_test()));

}  // namespace
}  // namespace cenote::test
