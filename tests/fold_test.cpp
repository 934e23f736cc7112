// The generic pool: folds with a callable of the caller's, held against the plain left fold of the reference.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/device.h>
#include <cenote/fold.h>

#include "../reference/reference.h"
#include "support/arrays.h"
#include "support/oracle.h"
#include "support/property.h"
#include "support/random_data.h"
#include "support/random_problem.h"
#include "support/show.h"

namespace cenote::test {
namespace {

/// What the elements of an array are folded in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

/// Functions to fold with. `skew` is neither associative nor commutative. The others are associative: `last`, the last
/// cell that is not zero; `largest`, the first of the largest or the first NaN; `compose`, where a number stands for
/// the map x -> high * x + low over integers of half its bits, high taken as odd so that no cell is ever lost.
enum class Kind { skew, last, largest, compose, plus, first };

/// One callable for all of them, so that this file compiles in reasonable time.
struct Op {
  Kind kind;

  template <class C>
  C operator()(C a, C b) const {
    if (kind == Kind::last) return b != C{0} ? b : a;
    if (kind == Kind::largest) return b > a || (b != b && a == a) ? b : a;
    if (kind == Kind::first) return a;
    if constexpr (std::is_same_v<C, bool>) {
      return kind == Kind::skew ? !(a && !b) : a != b;
    } else if constexpr (std::is_integral_v<C>) {
      const auto u = static_cast<std::uint64_t>(a), v = static_cast<std::uint64_t>(b);
      return static_cast<C>(kind == Kind::skew   ? 3 * u - v + 1
                            : kind == Kind::plus ? u + v
                                                 : composed(u, v, sizeof(C)));
    } else {
      return kind == Kind::skew ? a - b : a + b;
    }
  }

 private:
  static std::uint64_t composed(std::uint64_t u, std::uint64_t v, std::size_t bytes) {
    const std::size_t half = bytes * 4;
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    const std::uint64_t high = (u >> half & mask) | 1, other = (v >> half & mask) | 1;
    return (high * other & mask) << half | ((high * (v & mask) + (u & mask)) & mask);
  }
};

/// A function without branches, whose loops vectorise.
struct Times {
  float operator()(float a, float b) const { return a * b; }
};

/// The elements expected of a fold, as bits.
template <class T>
std::vector<T> expected(const Strided& x, const Pooling& pooling, Compute<T> init, Op fn) {
  using C = Compute<T>;
  const auto cells = read<T>(x.view());
  const auto folded = reference::fold_pool(cells, windows_of(pooling, x.shape()), init,
                                           [&](C a, Carrier<T> b) -> C { return fn(a, static_cast<C>(b)); });
  std::vector<T> result(folded.values.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<T>(C{folded.values[i]});
  return result;
}

template <class T>
bool same_number(T a, T b) {
  if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, double>) {
    if (static_cast<float>(a) != static_cast<float>(a)) return static_cast<float>(b) != static_cast<float>(b);
  } else if (a != a) {
    return b != b;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

Array run(const View& x, const Pooling& pooling, auto init, Op fn, Fold fold) {
  return std::visit([&](const auto& region) { return pool(x, init, fn, region, fold); }, pooling.region);
}

/// Says where a fold differs from the reference, for 1, 2 and 5 threads.
template <class T>
std::string difference(const Strided& x, const Pooling& pooling, Compute<T> init, Kind kind, Fold fold) {
  const Op fn{kind};
  const std::vector<T> right = expected<T>(x, pooling, init, fn);
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    const Array y = run(x.view(), pooling, init, fn, fold);
    set_threads(0);
    if (y.type() != x.type()) return "another type";
    if (to_shape(y.shape()) != windows_of(pooling, x.shape()).output_shape()) return "shape " + to_string(y.shape());
    const T* values = static_cast<const T*>(y.data());
    for (std::size_t i = 0; i < right.size(); ++i)
      if (!same_number(right[i], values[i]))
        return "element " + std::to_string(i) + ", threads " + std::to_string(count);
  }
  return "";
}

/// A random init of the type.
template <class C>
C any_init(std::uint64_t seed) {
  if constexpr (std::is_same_v<C, bool>)
    return seed % 2 != 0;
  else
    return static_cast<C>(seed % 5);
}

bool plannable(const Case& c) {
  return error_of([&] { plan({.reducer = Reducer::max, .region = c.pooling.region}, c.type, c.shape); }).empty();
}

void check_random(Region region, int count, Fold fold) {
  check(count, [=] {
    const Case c = *cases(Reducer::max, region);
    RC_LOG() << c << std::endl;
    if (!plannable(c)) return;
    Strided x(c.type, c.shape, c.x);
    fill(x, c.data, c.seed);
    std::vector<Kind> kinds{Kind::last, Kind::largest};
    if (fold == Fold::sequential)
      kinds = {Kind::skew};
    else if (is_integer(c.type))
      kinds = {Kind::compose};
    visit(c.type, [&]<class T>(T) {
      for (const Kind kind : kinds)
        RC_ASSERT(difference<T>(x, c.pooling, any_init<Compute<T>>(c.seed), kind, fold) == "");
    });
  });
}

TEST(Fold, SequentialIsTheLeftFoldOfSmallProblems) { check_random(Region::small, 1500, Fold::sequential); }
TEST(Fold, SequentialIsTheLeftFoldOfLongWindows) { check_random(Region::deep, 80, Fold::sequential); }
TEST(Fold, SequentialIsTheLeftFoldOfManyChannels) { check_random(Region::wide, 80, Fold::sequential); }
TEST(Fold, SequentialIsTheLeftFoldOfLargeArrays) { check_random(Region::large, 15, Fold::sequential); }
TEST(Fold, AssociativeKeepsTheOrderInSmallProblems) { check_random(Region::small, 1500, Fold::associative); }
TEST(Fold, AssociativeKeepsTheOrderInLongWindows) { check_random(Region::deep, 150, Fold::associative); }
TEST(Fold, AssociativeKeepsTheOrderWithManyChannels) { check_random(Region::wide, 80, Fold::associative); }
TEST(Fold, AssociativeKeepsTheOrderInLargeArrays) { check_random(Region::large, 15, Fold::associative); }

/// Both ways of folding a window of numbers under composition, against the reference.
void check_composition(const Extents& shape, const std::variant<Window, Adaptive, Global>& region) {
  Strided x(Type::u64, shape, Layout::plain(shape.size()));
  fill(x, Data::unit, 7);
  const Pooling pooling{.region = region};
  EXPECT_EQ(difference<std::uint64_t>(x, pooling, 5, Kind::compose, Fold::associative), "");
  EXPECT_EQ(difference<std::uint64_t>(x, pooling, 5, Kind::compose, Fold::sequential), "");
}

TEST(Fold, SweepsOneSignalInParts) {
  check_composition({5000}, Window{.size = {60}});
  check_composition({5000}, Window{.size = {60}, .stride = 7, .padding = {{50, 40}}});
  check_composition({5000}, Window{.size = {60}, .dilation = 3, .padding = same});
  check_composition({4001}, Window{.size = {50}, .stride = 4, .dilation = 6, .padding = {{299, 10}}, .ceil = true});
}

TEST(Fold, SweepsOnePictureInParts) {
  check_composition({300, 40}, Window{.size = {9, 7}, .padding = same});
  check_composition({300, 40}, Window{.size = {9, 7}, .stride = {3, 2}, .dilation = {2, 3}, .padding = {{7, 3}, 4}});
  check_composition({3, 60, 20, 2}, Window{.size = {9, 7}, .axes = Extents{1, 2}});
  check_composition({2, 60, 3, 20}, Window{.size = {9, 7}, .axes = Extents{1, 3}});
  check_composition({12, 13, 14, 3}, Window{.size = {5, 4, 6}, .padding = same, .channels_last = true});
}

TEST(Fold, JoinsThePiecesOfOneWindow) {
  check_composition({5000}, Global{.axes = Extents{0}, .keepdims = false});
  check_composition({200, 3, 5}, Global{.rank = 3});
  check_composition({200, 3, 5}, Global{.axes = Extents{0}});
  check_composition({2, 200, 30, 5}, Global{.channels_last = true});
  check_composition({500}, Window{.size = {400}, .stride = 400, .dilation = 2, .padding = {{0, 299}}});
  check_composition({200}, Window{.size = {70}, .stride = 150, .dilation = 2, .padding = {{139, 0}}});
  check_composition({300, 4}, Adaptive{.output = {7, 3}});
}

TEST(Fold, HoldsTheFacts) {
  const Times times;
  const Op larger{Kind::largest};
  for (const Fold fold : {Fold::sequential, Fold::associative}) {
    EXPECT_TRUE(holds(pool(full({3, 3}, 2), 1.0f, times, {.size = {2, 2}}, fold), {2, 2}, {16, 16, 16, 16}));
    EXPECT_TRUE(holds(pool(counting({10}), 1.0f, times, {.size = {2}}, fold), {9}, {0, 2, 6, 12, 20, 30, 42, 56, 72}));
    const Array down = counting({4, 4}, -1, -1);
    EXPECT_TRUE(holds(pool(down, 0.0f, larger, {.size = {2, 2}, .stride = 2}, fold), {2, 2}, {0, 0, 0, 0}));
  }
}

TEST(Fold, InitEntersOnceOnTheLeft) {
  const auto digits = [](std::int64_t a, std::int64_t b) { return 10 * a + b; };
  const Array x = counting<std::int64_t>({5}, 1);
  EXPECT_TRUE(holds(pool(x, std::int64_t{9}, digits, {.size = {3}}), {3}, {9123, 9234, 9345}));
  const Op first{Kind::first}, plus{Kind::plus};
  const Array ones = full<std::int64_t>({300}, 1);
  EXPECT_TRUE(holds(pool(ones, std::int64_t{7}, first, {.size = {299}}, Fold::associative), {2}, {7, 7}));
  EXPECT_TRUE(holds(pool(ones, std::int64_t{7}, plus, {.size = {299}}, Fold::associative), {2}, {306, 306}));
}

TEST(Fold, WindowsWithoutARealCellGiveInit) {
  const Op plus{Kind::plus};
  for (const Fold fold : {Fold::sequential, Fold::associative}) {
    const Window gap{.size = {2}, .dilation = 2, .padding = 1};
    EXPECT_TRUE(holds(pool(array({1}, {3}), 5.0f, plus, gap, fold), {1}, {5}));
    const Window far{.size = {60}, .padding = 100};
    const Array y = pool(full({60}, 1), 5.0f, plus, far, fold);
    EXPECT_EQ(numbers(y).front(), 5);
    EXPECT_EQ(numbers(y)[100], 65);
    EXPECT_EQ(numbers(y).back(), 5);
    EXPECT_TRUE(holds(pool(array({0}, {}), 5.0f, plus, {.size = {3}, .padding = 2}, fold), {2}, {5, 5}));
    EXPECT_TRUE(holds(pool(array({2, 0}, {}), 5.0f, plus, Global{.rank = 1}, fold), {2, 1}, {5, 5}));
    EXPECT_TRUE(holds(pool(array({2, 0, 3}, {}), 5.0f, plus, Global{.rank = 2}, fold), {2, 1, 1}, {5, 5}));
    EXPECT_TRUE(holds(pool(array({0, 4}, {}), 5.0f, plus, {.size = {3}}, fold), {0, 2}, {}));
    EXPECT_TRUE(
        holds(pool(array({2, 2}, {1, 2, 3, 4}), 5.0f, plus, {.size = {3}, .allow_empty = true}, fold), {2, 0}, {}));
  }
}

TEST(Fold, HalvesAreRoundedOnceAtTheEnd) {
  const Op plus{Kind::plus};
  for (const Fold fold : {Fold::sequential, Fold::associative}) {
    // In f16 alone, 2048 + 1 is 2048 and the sum would stay there.
    EXPECT_TRUE(holds(pool(full<f16>({4096}, 1), 0.0f, plus, {.size = {4096}}, fold), {1}, {4096}));
    EXPECT_TRUE(holds(pool(full<bf16>({1000}, 1), 0.0f, plus, {.size = {1000}}, fold), {1}, {1000}));
    EXPECT_TRUE(holds(pool(array<f16>({2}, {65504, 65504}), -65504.0f, plus, {.size = {2}}, fold), {1}, {65504}));
  }
}

TEST(Fold, EveryHalfIsReadExactly) {
  Array x(Type::f16, {65536});
  for (std::uint32_t i = 0; i < 65536; ++i) x.values<f16>()[i].bits = static_cast<std::uint16_t>(i);
  const Array y = pool(x, 1.0f, Times{}, {.size = {1}});
  for (std::size_t i = 0; i < 65536; ++i) {
    const f16 a = x.values<f16>()[i], b = y.values<f16>()[i];
    if (static_cast<float>(a) == static_cast<float>(a))
      ASSERT_EQ(a.bits, b.bits);
    else
      ASSERT_NE(static_cast<float>(b), static_cast<float>(b));
  }
}

TEST(Fold, ABoolIsAnyByteButZero) {
  const unsigned char bytes[] = {0, 2, 0, 0, 255, 1};
  const View x(bytes, Type::boolean, {6});
  const Op parity{Kind::plus};
  EXPECT_TRUE(holds(pool(x, false, parity, {.size = {2}}), {5}, {1, 1, 0, 1, 0}));
}

TEST(Fold, TakesAnyCallable) {
  const Array x = counting<std::int32_t>({4});
  int (*const function)(int, int) = [](int a, int b) { return a + b; };
  EXPECT_TRUE(holds(pool(x, 0, function, {.size = {2}}), {3}, {1, 3, 5}));
  const int factor = 3;
  EXPECT_TRUE(holds(pool(x, 1, [&](auto a, auto b) { return a + factor * b; }, {.size = {2}}), {3}, {4, 10, 16}));
  const Array bytes = counting<std::int8_t>({2}, 100);
  EXPECT_TRUE(holds(pool(bytes, std::int8_t{0}, std::plus<>(), {.size = {2}}), {1}, {-55}));
}

TEST(Fold, InitMustHaveTheTypeThatTheElementsComputeIn) {
  const Op plus{Kind::plus};
  const Window w{.size = {2}};
  const auto refused = [&](Type type, auto init, const char* given, const char* needed) {
    const Array x = Array::zeros(type, {4});
    return rejects([&] { pool(x, init, plus, w); }, {"[pool]", "init", given, std::string(name(type)), needed});
  };
  EXPECT_TRUE(refused(Type::f16, 0.0, "f64", "f32"));
  EXPECT_TRUE(refused(Type::bf16, 0, "i32", "f32"));
  EXPECT_TRUE(refused(Type::f32, 0, "i32", "f32"));
  EXPECT_TRUE(refused(Type::f64, 0.0f, "f32", "f64"));
  EXPECT_TRUE(refused(Type::i64, 0, "i32", "i64"));
  EXPECT_TRUE(refused(Type::u8, std::int8_t{0}, "i8", "u8"));
  EXPECT_TRUE(rejects([&] { pool(Array::zeros(Type::boolean, {4}), std::uint8_t{0}, plus, w); }, {"u8", "bool"}));
}

TEST(Fold, ChecksItsArguments) {
  const Op plus{Kind::plus};
  const Array x = counting({4, 4});
  EXPECT_TRUE(rejects([&] { pool(x, 0.0f, plus, {.size = {2, 0}}); }, {"[pool]", "window[1] = 0"}));
  EXPECT_TRUE(rejects([&] { pool(x, 0.0f, plus, {.size = {2, 2}, .stride = -1}); }, {"[pool]", "stride", "-1"}));
  EXPECT_TRUE(rejects([&] { pool(x, 0.0f, plus, {.size = {5, 5}}); }, {"[pool]", "does not fit"}));
  EXPECT_TRUE(rejects([&] { pool(x, 0.0f, plus, Adaptive{.output = {0}}); }, {"[pool]", "output[0] = 0"}));
  EXPECT_TRUE(rejects([&] { pool(View(nullptr, Type::f32, {4}), 0.0f, plus, {.size = {2}}); }, {"[pool]", "x"}));
  const auto* odd = static_cast<const char*>(x.data()) + 1;
  EXPECT_TRUE(rejects([&] { pool(View(odd, Type::f32, {4}), 0.0f, plus, {.size = {2}}); }, {"[pool]", "aligned"}));
  const View bent(x.data(), Type::f32, {4, 4}, {1});
  EXPECT_TRUE(rejects([&] { pool(bent, 0.0f, plus, {.size = {2}}); }, {"[pool]", "strides"}));
}

/// Calls of the function for one pool.
std::int64_t calls(const Extents& shape, const Window& window, Fold fold) {
  std::atomic<std::int64_t> count{0};
  const auto plus = [&](float a, float b) {
    count.fetch_add(1, std::memory_order_relaxed);
    return a + b;
  };
  pool(full(shape, 1), 0.0f, plus, window, fold);
  return count;
}

TEST(Fold, CostFollowsTheRealCells) {
  const std::int64_t huge = 1 << 20;
  // Every window holds at most the 4 x 4 cells that there are.
  const Window window{.size = {huge, huge}, .stride = huge / 4, .padding = huge};
  const auto cells = [&](Fold fold) { return calls({4, 4}, window, fold); };
  EXPECT_LE(cells(Fold::sequential), 9 * 9 * 16);
  EXPECT_LE(cells(Fold::associative), 9 * 9 * 16);
  EXPECT_GT(cells(Fold::sequential), 0);
  const std::int64_t vast = std::int64_t{1} << 60;
  EXPECT_LE(calls({4}, {.size = {vast}, .stride = vast / 16, .padding = vast}, Fold::sequential), 40 * 4);
  EXPECT_LE(calls({4}, {.size = {vast / 4}, .stride = vast / 16, .dilation = 3, .padding = vast}, Fold::sequential),
            160);
}

TEST(Fold, AssociativeCostDoesNotGrowWithTheWindow) {
  for (const std::int64_t k : {51, 201, 801, 3201}) {
    // Two combinations per cell and one per window, one for init, and an eighth for the seams between parts.
    const std::int64_t n = 20000;
    EXPECT_LE(calls({n}, {.size = {k}, .padding = same}, Fold::associative), n * 9 / 2) << k;
  }
  for (const std::int64_t k : {7, 21, 61}) {
    const std::int64_t n = 128;
    EXPECT_LE(calls({3, n, n, 2}, {.size = {k, k}, .padding = same, .channels_last = true}, Fold::associative),
              n * n * 6 * 8)
        << k;
  }
}

// By hand: prints nanoseconds per element for growing windows, which must stay about the same for associative folds.
TEST(Fold, DISABLED_PrintsTimesForGrowingWindows) {
  const Times times;
  const auto time = [&](const Array& x, const Window& w, Fold fold) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      pool(x, 0.0f, times, w, fold);
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    return best / static_cast<double>(x.size());
  };
  const Array signal = counting({1 << 20}), picture = counting({1024, 1024});
  const Array first = counting({2, 64, 112, 112}), last = counting({2, 112, 112, 64});
  std::printf("%6s %10s %10s %10s %10s   associative, ns per element\n", "k", "signal", "picture", "NCHW", "NHWC");
  for (const std::int64_t k : {3, 5, 9, 17, 33, 65, 111}) {
    const Window line{.size = {k}, .padding = same}, plane{.size = {k, k}, .padding = same};
    const Window inner{.size = {k, k}, .padding = same, .channels_last = true};
    std::printf("%6d %10.2f %10.2f %10.2f %10.2f   sequential: signal %.2f\n", static_cast<int>(k),
                time(signal, line, Fold::associative), time(picture, plane, Fold::associative),
                time(first, plane, Fold::associative), time(last, inner, Fold::associative),
                time(signal, line, Fold::sequential));
  }
}

}  // namespace
}  // namespace cenote::test
