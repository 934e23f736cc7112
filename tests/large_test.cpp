// Arrays larger than every cache, where results are written past the caches.
#include <unistd.h>

#include <cstdint>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"

namespace cenote::test {
namespace {

/// A number of rows that makes an array larger than the last-level cache, though not than 400 MiB.
std::int64_t rows_beyond_cache(std::int64_t row_bytes) {
  const std::int64_t cache = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), std::int64_t{32} << 20);
  return std::min<std::int64_t>(cache + (4 << 20), std::int64_t{400} << 20) / row_bytes / 2 * 2 + 2;
}

/// Small whole numbers, exact in every type, without a pattern that a shifted result could share.
template <class T>
void fill_with_numbers(Array& x) {
  std::uint32_t state = 1;
  for (T& value : x.values<T>()) {
    state = state * 1664525u + 1013904223u;
    const auto number = static_cast<std::uint8_t>(state >> 24 & 127);
    if constexpr (std::is_arithmetic_v<T>)
      value = static_cast<T>(number);
    else
      value = static_cast<T>(static_cast<float>(number));
  }
}

/// How many results are not those of 2x2 tiles of x, which is (rows, columns, channels).
template <class T, class R>
std::int64_t count_wrong(Reducer reducer, const Array& x, const R* y) {
  const std::int64_t rows = x.shape()[0], columns = x.shape()[1], channels = x.shape()[2];
  const T* cells = x.values<T>().data();
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < rows; r += 2) {
    for (std::int64_t c = 0; c < columns; c += 2) {
      const T* above = cells + (r * columns + c) * channels;
      const T* below = above + columns * channels;
      for (std::int64_t i = 0; i < channels; ++i, ++y) {
        const auto a = static_cast<float>(above[i]), b = static_cast<float>(above[i + channels]);
        const auto d = static_cast<float>(below[i]), e = static_cast<float>(below[i + channels]);
        const float most = std::max(std::max(a, b), std::max(d, e)), mean = (a + b + d + e) / 4;
        wrong += static_cast<float>(*y) != static_cast<float>(static_cast<R>(reducer == Reducer::max ? most : mean));
      }
    }
  }
  return wrong;
}

/// Max and average over tiles, into memory that is aligned to no vector; R is the type of averages.
template <class T, class R>
void expect_tiles(std::int64_t columns, std::int64_t channels) {
  Array x(type_of<T>, {rows_beyond_cache(columns * channels * std::int64_t{sizeof(T)}), columns, channels});
  fill_with_numbers<T>(x);
  for (const Reducer reducer : {Reducer::max, Reducer::avg}) {
    const Window tiles{.size = {2, 2}, .stride = 2, .channels_last = true};
    const Plan planned = plan({.reducer = reducer, .region = tiles}, x.type(), x.shape());
    const std::int64_t count = element_count(planned.output_shape());
    for (const std::string& target : targets_under_test()) {
      const Machine machine(target, 2);
      SCOPED_TRACE(testing::Message() << name(reducer) << " " << name(x.type()) << " on " << target);
      Array memory(planned.output_type(), {count + 1});
      auto* y = static_cast<std::byte*>(memory.data()) + size_of(memory.type());
      planned.run(x, MutableView(y, memory.type(), planned.output_shape()));
      EXPECT_EQ(reducer == Reducer::max ? count_wrong<T>(reducer, x, reinterpret_cast<const T*>(y))
                                        : count_wrong<T>(reducer, x, reinterpret_cast<const R*>(y)),
                0);
    }
  }
}

TEST(LargeArrays, TilesOfPicturesAndOfChannels) {
  expect_tiles<float, float>(2050, 1);
  expect_tiles<float, float>(62, 33);
  if (test_scale() < 1) return;
  expect_tiles<f16, f16>(4098, 1);
  expect_tiles<bf16, bf16>(62, 33);
  expect_tiles<std::uint8_t, float>(4098, 1);
}

// Windows that share no cells may be made another way where planes come from memory.
TEST(LargeArrays, PlanesAreTheSameAsEachAlone) {
  const Extents plane{1, 111, 112};
  const std::int64_t cells = element_count(plane);
  Array x(Type::f32, {rows_beyond_cache(cells * 4), 111, 112});
  fill_with_numbers<float>(x);
  for (const std::int64_t size : {3, 4, 7})
    for (const Reducer reducer : {Reducer::max, Reducer::sum}) {
      const Pooling pooling{.reducer = reducer, .region = Window{.size = {size, size}, .stride = size}};
      for (const std::string& target : targets_under_test()) {
        const Machine machine(target, 2);
        const Array y = pool(x, pooling);
        const std::int64_t outputs = y.size() / x.shape()[0];
        for (const std::int64_t i : {std::int64_t{0}, x.shape()[0] / 3, x.shape()[0] - 1}) {
          const Array alone = pool(View(x.values<float>().data() + i * cells, Type::f32, plane), pooling);
          const auto* found = y.values<float>().data() + i * outputs;
          EXPECT_TRUE(std::equal(found, found + outputs, alone.values<float>().begin()))
              << name(reducer) << " k" << size << " plane " << i << " on " << target;
        }
      }
    }
}

// A single line is cut into as many pieces as there are threads: packs then begin elsewhere, and so do borders.
TEST(LargeArrays, SumsOfOneLineDoNotDependOnWhereItIsCut) {
  Array x(Type::f32, {50021});
  std::uint32_t state = 7;
  for (float& value : x.values<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 65536.0F;
  }
  View every_second = x;
  every_second.shape[0] = 25011;
  every_second.strides[0] = 2;
  for (const std::string& target : targets_under_test())
    for (const std::int64_t size : {3, 4, 5, 7, 8, 9, 11, 17, 40})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t low : {0, 1, 2}) {
          const Window window{.size = {size}, .stride = stride, .padding = {{low, low}}};
          const auto both = [&](int threads) {
            const Machine machine(target, threads);
            const Array y = sum_pool(x, window);
            const Array apart = sum_pool(every_second, window);
            Pooling pooling;
            pooling.reducer = Reducer::avg;
            pooling.region = window;
            return std::tuple(y, vjp(pooling, x).pullback(y), apart);
          };
          const auto alone = both(1), together = both(5);
          const std::string where =
              target + ", " + std::to_string(size) + ", " + std::to_string(stride) + ", " + std::to_string(low);
          EXPECT_TRUE(same_bits(std::get<0>(alone), std::get<0>(together))) << where;
          EXPECT_TRUE(same_bits(std::get<1>(alone), std::get<1>(together))) << where;
          EXPECT_TRUE(same_bits(std::get<2>(alone), std::get<2>(together))) << where;
        }
}

// The windows that hold a cell are swept, phase by phase, from wherever a piece of the line begins.
TEST(LargeArrays, GradientsOfOneLineDoNotDependOnWhereItIsCut) {
  Array x(Type::f32, {300017});
  std::uint32_t state = 7;
  for (float& value : x.values<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 65536.0F / 256;
  }
  for (const std::string& target : targets_under_test())
    for (const Reducer reducer : {Reducer::avg, Reducer::smooth_max})
      for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t dilation : {1, 2})
          for (const std::int64_t size : {700, 9000}) {
            Pooling pooling;
            pooling.reducer = reducer;
            pooling.region = Window{.size = {size}, .stride = stride, .dilation = dilation, .padding = {{size, 77}}};
            const auto with = [&](int threads) {
              const Machine machine(target, threads);
              const auto found = vjp(pooling, x);
              return found.pullback(found.y);
            };
            EXPECT_TRUE(same_bits(with(1), with(5)))
                << name(reducer) << " on " << target << ", " << size << ", " << stride << ", " << dilation;
          }
}

// Many pictures are written past the caches, and those whose rows are whole lines of it at once; a few are not.
TEST(LargeArrays, GradientsOfManyPicturesAreThoseOfEach) {
  for (const Reducer reducer : {Reducer::max, Reducer::avg})
    for (const auto& [side, channels] : {std::pair<std::int64_t, std::int64_t>{112, 0}, {57, 0}, {30, 48}}) {
      const bool last = channels > 0;
      const std::int64_t each = side * side * std::max<std::int64_t>(channels, 1);
      const std::int64_t pictures = rows_beyond_cache(each * std::int64_t{sizeof(float)});
      const Extents one = last ? Extents{1, side, side, channels} : Extents{1, side, side};
      Extents all = one;
      all[0] = pictures;
      Pooling pooling;
      pooling.reducer = reducer;
      pooling.region = Window{.size = {3, 3}, .stride = 2, .padding = 1, .channels_last = last};
      Array x(Type::f32, all);
      fill_with_numbers<float>(x);
      const auto found = vjp(pooling, x);
      Array gy(Type::f32, found.y.shape());
      fill_with_numbers<float>(gy);
      const std::int64_t outputs = gy.size() / pictures;
      Array gx(Type::f32, all);
      for (const std::string& target : targets_under_test()) {
        const Machine machine(target, 2);
        found.pullback.run(gy, gx);
        const Plan alone = plan(pooling, Type::f32, one);
        Extents shape = gy.shape();
        shape[0] = 1;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < pictures; i += 7) {
          Array expected(Type::f32, one);
          alone.vjp(View(x.values<float>().data() + i * each, Type::f32, one),
                    View(gy.values<float>().data() + i * outputs, Type::f32, shape), expected);
          wrong += !std::equal(expected.values<float>().begin(), expected.values<float>().end(),
                               gx.values<float>().begin() + i * each);
        }
        EXPECT_EQ(wrong, 0) << name(reducer) << ", " << side << ", " << channels << " on " << target;
      }
    }
}

// The outputs that reach the rows of such an axis do not come in order.
TEST(LargeArrays, GradientsOfDilatedRowsWithStrides) {
  for (const std::int64_t dilation : {2, 3, 6})
    for (const std::int64_t stride : {2, 3, 4})
      for (const std::int64_t size : {2, 3}) {
        const Array x = Array(Type::f32, {64, 700});
        Pooling pooling;
        pooling.reducer = Reducer::sum;
        pooling.region = Window{.size = {size, 1}, .stride = {stride, 1}, .dilation = {dilation, 1}};
        const auto found = vjp(pooling, x);
        Array gy(Type::f32, found.y.shape());
        std::vector<float> expected(64, 0);
        for (std::int64_t o = 0; o < gy.shape()[0]; ++o) {
          std::fill_n(gy.values<float>().data() + o * 700, 700, static_cast<float>(o + 1));
          for (std::int64_t j = 0; j < size; ++j)
            expected[static_cast<std::size_t>(o * stride + j * dilation)] += static_cast<float>(o + 1);
        }
        const Array gx = found.pullback(gy);
        for (std::size_t i = 0; i < 64; ++i)
          for (std::size_t c = 0; c < 700; c += 233)
            ASSERT_EQ(gx.values<float>()[i * 700 + c], expected[i])
                << i << ", " << size << ", " << stride << ", " << dilation;
      }
}

}  // namespace
}  // namespace cenote::test
