// Derivatives of the generic pool, held against backpropagation through the left fold of the reference and against
// difference quotients.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/device.h>
#include <cenote/fold_autodiff.h>

#include "../reference/reference.h"
#include "support/arrays.h"
#include "support/oracle.h"
#include "support/property.h"
#include "support/random_problem.h"
#include "support/show.h"

namespace cenote::test {
namespace {

/// Associative functions. `joint` is a + b + ab; `last` and `signed_product`, the product with the sign of its last
/// factor, do not commute.
enum class Kind { product, plus, joint, log_sum_exp, last, signed_product };

/// One callable for all of them, so that this file compiles in reasonable time.
struct Monoid {
  Kind kind;

  template <class N>
  N operator()(const N& a, const N& b) const {
    using std::abs;
    switch (kind) {
      case Kind::product: return a * b;
      case Kind::plus: return a + b;
      case Kind::joint: return a + b + a * b;
      case Kind::log_sum_exp: return log_sum_exp(a < b ? b : a, a < b ? a : b);
      case Kind::signed_product: return abs(a) * b;
      case Kind::last: break;
    }
    return b;
  }

 private:
  template <class N>
  static N log_sum_exp(const N& high, const N& low) {
    using std::exp;
    using std::log1p;
    return high + log1p(exp(low - high));
  }
};

/// Kinds whose derivatives are whole numbers where the elements are, with elements that keep those small.
constexpr Kind whole_kinds[] = {Kind::product, Kind::plus, Kind::joint, Kind::last, Kind::signed_product};
std::vector<double> whole_elements(Kind kind) {
  if (kind == Kind::joint) return {0, -2, 0, 0, -2, 0, -2, -2, 0, 0, -2, 0, 0, 0, -2, -1};
  if (kind == Kind::product || kind == Kind::signed_product) return {1, -1, 1, 1, -1, 1, 1, -1, 1, -1, 1, 1, -1, 1, 0};
  return {-2, -1, 0, 1, 2, 3};
}

template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// An array laid out in some way, with elements drawn from a list.
Strided drawn(Type type, const Extents& shape, const Layout& layout, const std::vector<double>& from,
              std::uint64_t seed) {
  Strided result(type, shape, layout);
  const reference::Shape extents = to_shape(shape);
  if (reference::count(extents) == 0) return result;
  std::mt19937_64 random(seed);
  reference::Shape index(extents.size(), 0);
  visit(type, [&]<class T>(T) {
    do {
      if constexpr (!std::is_integral_v<T>)
        *static_cast<T*>(result.element(index)) = static_cast<T>(static_cast<Compute<T>>(from[random() % from.size()]));
    } while (reference::next(index, extents));
  });
  return result;
}

/// Evenly spread numbers.
std::vector<double> spread(double low, double high) {
  std::vector<double> result;
  for (int i = 0; i <= 64; ++i) result.push_back(low + (high - low) * i / 64);
  return result;
}

/// The elements of a view as an Array's numbers.
std::vector<double> numbers_of(const View& view) { return numbers(Array(view)); }

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A problem with everything that its derivatives need.
struct Problem {
  Case c;
  Kind kind;
  double init;
  Strided x, dx, gy, dgy;
  reference::Windows windows;
};

/// What the reference expects: forward mode by dual numbers, reverse mode back through the left fold.
struct Expected {
  std::vector<double> dy, gx;
};
Expected expect(const Problem& p) {
  using D = Dual<double>;
  const Monoid fn{p.kind};
  const std::vector<double> x = numbers_of(p.x.view()), dx = numbers_of(p.dx.view()), gy = numbers_of(p.gy.view());
  reference::Tensor<D> duals{to_shape(p.c.shape), {}};
  for (std::size_t i = 0; i < x.size(); ++i) duals.values.push_back(D(x[i], dx[i]));
  Expected result;
  for (const D& y : reference::fold_pool(duals, p.windows, D(p.init), fn).values)
    result.dy.push_back(rounded(p.c.type, y.tangent));
  result.gx.assign(x.size(), 0);
  std::size_t output = 0;
  reference::pool(duals, p.windows, [&](const reference::Cells<D>& window) {
    std::vector<double> states{p.init};
    for (const auto& cell : window.real) states.push_back(fn(states.back(), cell.value.value));
    double adjoint = gy[output++];
    for (std::size_t t = window.real.size(); t-- > 0;) {
      const double value = window.real[t].value.value;
      result.gx[static_cast<std::size_t>(window.real[t].tensor)] += adjoint * fn(D(states[t]), D(value, 1.0)).tangent;
      adjoint *= fn(D(states[t], 1.0), D(value)).tangent;
    }
    return 0;
  });
  for (double& g : result.gx) g = rounded(p.c.type, g);
  return result;
}

bool same_elements(const Array& a, const std::vector<double>& expected) {
  return numbers(a) == expected;  // not of the sign of zeros, which a left fold does not decide
}
bool same_bits(const Array& a, const Array& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// Calls f with the operation of a problem, whose init has the type that the elements compute in.
template <class F>
void with_operation(const Problem& p, F f) {
  if (p.c.type == Type::f64)
    f(custom_pooling(p.init, Monoid{p.kind}, p.c.pooling.region));
  else
    f(custom_pooling(static_cast<float>(p.init), Monoid{p.kind}, p.c.pooling.region));
}

/// Draws problems of the region and checks those that can be planned.
template <class Check>
void for_problems(Region region, int count, const std::vector<Type>& types, const std::vector<Kind>& kinds,
                  const std::vector<double>* elements, Check body) {
  check(count, [&] {
    Case c = *cases(Reducer::max, region);
    c.type = detail::one_of(types);
    const Kind kind = detail::one_of(kinds);
    RC_LOG() << c << " kind " << static_cast<int>(kind) << std::endl;
    if (!error_of([&] { plan({.region = c.pooling.region}, c.type, c.shape); }).empty()) return;
    const auto windows = windows_of(c.pooling, c.shape);
    const Extents out = to_extents(windows.output_shape());
    const std::vector<double> from = elements ? *elements : whole_elements(kind);
    const std::vector<double> directions = elements ? spread(-1, 1) : std::vector<double>{-1, 0, 1, 2, 1};
    const auto draw = [&](const Extents& shape, const Layout& layout, const std::vector<double>& list, int number) {
      return drawn(c.type, shape, layout, list, c.seed * 4 + static_cast<std::uint64_t>(number));
    };
    body(Problem{c, kind, from[c.seed % from.size()], draw(c.shape, c.x, from, 0), draw(c.shape, c.x, directions, 1),
                 draw(out, c.y, directions, 2), draw(out, c.indices, directions, 3), windows});
  });
}

const std::vector<Type> floats{Type::f16, Type::bf16, Type::f32, Type::f64};

void check_first_order(Region region, int count) {
  const std::vector<Kind> kinds(std::begin(whole_kinds), std::end(whole_kinds));
  for_problems(region, count, floats, kinds, nullptr, [](const Problem& p) {
    const Expected right = expect(p);
    with_operation(p, [&](const auto& op) {
      const auto [y, dy] = jvp(op, p.x.view(), p.dx.view());
      RC_ASSERT(same_bits(y, pool(p.x.view(), op)));
      RC_ASSERT(dy.type() == p.c.type && dy.shape() == y.shape());
      RC_ASSERT(same_elements(dy, right.dy));
      const auto [again, pullback] = vjp(op, p.x.view());
      RC_ASSERT(same_bits(y, again));
      set_threads(1);
      const Array gx = pullback(p.gy.view());
      RC_ASSERT(gx.type() == p.c.type && gx.shape() == p.c.shape);
      RC_ASSERT(same_elements(gx, right.gx));
      if (!is_half(p.c.type))
        RC_ASSERT(dot(numbers(dy), numbers_of(p.gy.view())) == dot(numbers_of(p.dx.view()), numbers(gx)));
      for (const int threads : {2, 5}) {
        set_threads(threads);
        RC_ASSERT(same_bits(gx, pullback(p.gy.view())));
      }
      set_threads(0);
    });
  });
}

TEST(FoldAutodiff, FirstOrderIsExactInSmallProblems) { check_first_order(Region::small, 1500); }
TEST(FoldAutodiff, FirstOrderIsExactForLongWindows) { check_first_order(Region::deep, 150); }
TEST(FoldAutodiff, FirstOrderIsExactForManyChannels) { check_first_order(Region::wide, 80); }
TEST(FoldAutodiff, FirstOrderIsExactForLargeArrays) { check_first_order(Region::large, 20); }

void check_second_order(Region region, int count) {
  const std::vector<Kind> kinds(std::begin(whole_kinds), std::end(whole_kinds));
  for_problems(region, count, {Type::f32, Type::f64}, kinds, nullptr, [](const Problem& p) {
    with_operation(p, [&](const auto& op) {
      const View x = p.x.view(), u = p.dx.view(), gy = p.gy.view(), dgy = p.dgy.view();
      const auto [y, pullback] = vjp(op, x);
      const auto [gx, dgx] = jvp(pullback, gy, u, dgy);
      RC_ASSERT(same_bits(gx, pullback(gy)));
      const Strided other = drawn(p.c.type, p.c.shape, p.c.x, {-1, 0, 2, 1}, p.c.seed + 17);
      const View h = other.view();
      const auto [same_gx, second] = vjp(pullback, gy);
      RC_ASSERT(same_bits(gx, same_gx));
      const auto [to_x, to_gy] = second(h);
      RC_ASSERT(same_bits(to_x, hvp(op, x, gy, h)));
      RC_ASSERT(same_bits(to_gy, jvp(op, x, h).dy));
      // The adjoint law of the pullback, and the symmetry of the second derivative.
      RC_ASSERT(dot(numbers(dgx), numbers_of(h)) ==
                dot(numbers_of(u), numbers(to_x)) + dot(numbers_of(dgy), numbers(to_gy)));
      const Array along_u = hvp(op, x, gy, u);
      RC_ASSERT(dot(numbers(along_u), numbers_of(h)) == dot(numbers(to_x), numbers_of(u)));
      for (const int threads : {1, 2, 5}) {
        set_threads(threads);
        RC_ASSERT(same_bits(along_u, hvp(op, x, gy, u)));
      }
      set_threads(0);
    });
  });
}

TEST(FoldAutodiff, SecondOrderObeysTheAdjointLawInSmallProblems) { check_second_order(Region::small, 500); }
TEST(FoldAutodiff, SecondOrderObeysTheAdjointLawForLongWindows) { check_second_order(Region::deep, 25); }
TEST(FoldAutodiff, SecondOrderObeysTheAdjointLawForManyChannels) { check_second_order(Region::wide, 30); }

/// x + step * direction, in f64.
Array moved(const View& x, const View& direction, double step) {
  Array result(x);
  const std::vector<double> by = numbers_of(direction);
  for (std::size_t i = 0; i < by.size(); ++i) result.values<double>()[i] += step * by[i];
  return result;
}

/// A derivative against the difference quotient of the same function.
bool is_slope(const Array& slope, const Array& below, const Array& above, double step) {
  const std::vector<double> s = numbers(slope), low = numbers(below), high = numbers(above);
  double scale = 1;
  for (std::size_t i = 0; i < s.size(); ++i) scale = std::max({scale, std::fabs(s[i]), std::fabs(high[i])});
  for (std::size_t i = 0; i < s.size(); ++i)
    if (!(std::fabs((high[i] - low[i]) / (2 * step) - s[i]) <= 1e-6 * scale)) return false;
  return s.size() == high.size();
}

void check_slopes(Kind kind, const std::vector<double>& elements) {
  for_problems(Region::small, 150, {Type::f64}, {kind}, &elements, [](const Problem& p) {
    const double step = 1e-5;
    const auto op = custom_pooling(p.init, Monoid{p.kind}, p.c.pooling.region);
    const View x = p.x.view(), dx = p.dx.view(), gy = p.gy.view(), dgy = p.dgy.view();
    const Array below = moved(x, dx, -step), above = moved(x, dx, step);
    RC_ASSERT(is_slope(jvp(op, x, dx).dy, pool(below, op), pool(above, op), step));
    const auto [y, pullback] = vjp(op, x);
    const auto [y_below, pullback_below] = vjp(op, below);
    const auto [y_above, pullback_above] = vjp(op, above);
    RC_ASSERT(is_slope(hvp(op, x, gy, dx), pullback_below(gy), pullback_above(gy), step));
    const Array gy_below = moved(gy, dgy, -step), gy_above = moved(gy, dgy, step);
    RC_ASSERT(is_slope(jvp(pullback, gy, dx, dgy).dgx, pullback_below(gy_below), pullback_above(gy_above), step));
  });
}

TEST(FoldAutodiff, ProductsHaveTheSlopesOfTheirDifferences) { check_slopes(Kind::product, spread(0.8, 1.25)); }
TEST(FoldAutodiff, JointSumsHaveTheSlopesOfTheirDifferences) { check_slopes(Kind::joint, spread(-0.2, 0.25)); }
TEST(FoldAutodiff, SmoothMaximaHaveTheSlopesOfTheirDifferences) { check_slopes(Kind::log_sum_exp, spread(-2, 2)); }

const auto product = [](auto a, auto b) { return a * b; };

TEST(FoldAutodiff, HoldsTheFacts) {
  const auto op = custom_pooling(1.0f, product, Window{.size = {2, 2}});
  const auto [y, pullback] = vjp(op, full({3, 3}, 2));
  EXPECT_TRUE(holds(y, {2, 2}, {16, 16, 16, 16}));
  EXPECT_TRUE(holds(pullback(full({2, 2}, 1)), {3, 3}, {8, 16, 8, 16, 32, 16, 8, 16, 8}));
  EXPECT_TRUE(holds(jvp(op, full({3, 3}, 2), full({3, 3}, 1)).dy, {2, 2}, {32, 32, 32, 32}));
  // A zero in the window is no obstacle: the other factors are multiplied, nothing is divided.
  const auto [zero, back] = vjp(custom_pooling(1.0f, product, Window{.size = {3}}), array({3}, {0, 3, 5}));
  EXPECT_TRUE(holds(back(array({1}, {2})), {3}, {30, 0, 0}));
  EXPECT_TRUE(holds(hvp(custom_pooling(1.0f, product, Window{.size = {3}}), array({3}, {0, 3, 5}), array({1}, {2}),
                        array({3}, {0, 1, 0})),
                    {3}, {10, 0, 0}));
}

TEST(FoldAutodiff, TheOrderOfTheCellsIsKept) {
  const Array x = array({4}, {-2, 3, -5, 7}), one = full({2}, 1);
  const Window w{.size = {3}};
  const auto first = [](auto a, auto) { return a; };
  const auto last = [](auto, auto b) { return b; };
  EXPECT_TRUE(holds(vjp(custom_pooling(9.0f, first, w), x).pullback(one), {4}, {0, 0, 0, 0}));
  EXPECT_TRUE(holds(vjp(custom_pooling(9.0f, last, w), x).pullback(one), {4}, {0, 0, 1, 1}));
  // |a| b: only the last factor keeps its sign.
  const auto op = custom_pooling(1.0f, Monoid{Kind::signed_product}, w);
  EXPECT_TRUE(holds(pool(x, op), {2}, {-30, 105}));
  EXPECT_TRUE(holds(vjp(op, x).pullback(one), {4}, {15, -10 + 35, 6 - 21, 15}));
}

TEST(FoldAutodiff, FunctionsOfTheLibraryAreFoundByTheirArguments) {
  const auto larger = [](auto a, auto b) {
    using std::max;
    return max(a, b);
  };
  const auto op = custom_pooling(-100.0, larger, Window{.size = {2}});
  const auto [y, dy] = jvp(op, array<double>({4}, {1, 2, 2, 1}), array<double>({4}, {10, 20, 30, 40}));
  EXPECT_TRUE(holds(dy, {3}, {20, 20, 30}));
  const auto [again, pullback] = vjp(op, array<double>({4}, {1, 2, 2, 1}));
  EXPECT_TRUE(holds(pullback(array<double>({3}, {1, 1, 1})), {4}, {0, 2, 1, 0}));
}

TEST(FoldAutodiff, HalvesAreSummedInFloatAndRoundedOnce) {
  const auto plus = [](auto a, auto b) { return a + b; };
  // 3000 windows send 1 to the one cell; in f16 alone, 2048 + 1 is 2048.
  const auto op = custom_pooling(0.0f, plus, Window{.size = {3000}, .padding = 2999});
  EXPECT_TRUE(holds(vjp(op, full<f16>({1}, 1)).pullback(full<f16>({3000}, 1)), {1}, {3000}));
  // The weight 320 * 320 is beyond f16, what comes of it is not.
  const auto times = custom_pooling(1.0f, product, Window{.size = {3}});
  const Array x = array<f16>({3}, {1, 320, 320});
  EXPECT_TRUE(holds(vjp(times, x).pullback(array<f16>({1}, {0.5})), {3}, {51200, 160, 160}));
  EXPECT_TRUE(holds(jvp(times, x, array<f16>({3}, {0.5, 0, 0})).dy, {1}, {51200}));
}

TEST(FoldAutodiff, EmptyArraysAndWindowsSendNothing) {
  const auto zeros = [](const Extents& shape) { return Array::zeros(Type::f32, shape); };
  const auto far = custom_pooling(5.0f, product, Window{.size = {3}, .padding = 2});
  EXPECT_TRUE(holds(jvp(far, zeros({0}), zeros({0})).dy, {2}, {0, 0}));
  EXPECT_TRUE(holds(vjp(far, zeros({0})).pullback(zeros({2})), {0}, {}));
  EXPECT_TRUE(holds(hvp(far, zeros({0}), zeros({2}), zeros({0})), {0}, {}));
  const auto none = custom_pooling(5.0f, product, Window{.size = {3}, .allow_empty = true});
  const Array x = full({2, 2}, 3);
  EXPECT_TRUE(holds(jvp(none, x, x).dy, {2, 0}, {}));
  EXPECT_TRUE(holds(vjp(none, x).pullback(zeros({2, 0})), {2, 2}, {0, 0, 0, 0}));
  EXPECT_TRUE(holds(hvp(none, x, zeros({2, 0}), x), {2, 2}, {0, 0, 0, 0}));
  const auto gap = custom_pooling(5.0f, product, Window{.size = {2}, .dilation = 2, .padding = 1});
  EXPECT_TRUE(holds(vjp(gap, array({1}, {3})).pullback(full({1}, 1)), {1}, {0}));
  EXPECT_TRUE(holds(vjp(far, zeros({0, 4})).pullback(zeros({0, 6})), {0, 4}, {}));
}

TEST(FoldAutodiff, ViewsMayRepeatAndReverse) {
  const auto op = custom_pooling(1.0f, product, Window{.size = {2}});
  const std::vector<float> x = {1, 2, 3, 4}, one = {1};
  const View reversed(x.data() + 3, Type::f32, {4}, {-1}), ones(one.data(), Type::f32, {3}, {0});
  EXPECT_TRUE(holds(vjp(op, reversed).pullback(ones), {4}, {3, 6, 4, 2}));
  EXPECT_TRUE(holds(jvp(op, reversed, View(one.data(), Type::f32, {4}, {0})).dy, {3}, {7, 5, 3}));
}

TEST(FoldAutodiff, APullbackOutlivesWhatItWasMadeFrom) {
  const auto make = [] {
    const Array x = array({3}, {2, 3, 5});
    return vjp(custom_pooling(1.0f, product, Global{.rank = 1}), x).pullback;
  };
  const auto pullback = make();
  EXPECT_TRUE(holds(pullback(array({1}, {1})), {3}, {15, 10, 6}));
}

TEST(FoldAutodiff, CostIsLinearInTheCellsOfAWindow) {
  static std::atomic<std::int64_t> calls;
  const auto counted = [](auto a, auto b) {
    calls.fetch_add(1, std::memory_order_relaxed);
    return a * b;
  };
  for (const int threads : {1, 5}) {
    set_threads(threads);
    const auto op = custom_pooling(1.0f, counted, Global{.rank = 1});
    const auto pullback = vjp(op, full({1000}, 1)).pullback;
    calls = 0;
    EXPECT_TRUE(holds(pullback(full({1}, 3)), {1000}, std::vector<double>(1000, 3)));
    EXPECT_LE(calls, 3000);
    calls = 0;
    hvp(op, full({1000}, 1), full({1}, 3), full({1000}, 1));
    EXPECT_LE(calls, 3000);
    calls = 0;
    jvp(op, full({1000}, 1), full({1000}, 1));
    EXPECT_LE(calls, 2 * 1000 + 200);
  }
  set_threads(0);
}

TEST(FoldAutodiff, AWindowMayHaveAMillionCells) {
  const std::int64_t n = 1 << 20;
  const auto op = custom_pooling(1.0f, product, Window{.size = {n}});
  for (const int threads : {1, 4}) {
    set_threads(threads);
    const Array gx = vjp(op, full({n}, 1)).pullback(full({1}, 1));
    EXPECT_EQ(numbers(gx), std::vector<double>(static_cast<std::size_t>(n), 1));
  }
  set_threads(0);
}

TEST(FoldAutodiff, BadArgumentsAreNamed) {
  const auto op = custom_pooling(1.0f, product, Window{.size = {2, 2}});
  const Array x = full({3, 3}, 2), good = full({2, 2}, 1), bad = full({2, 3}, 1), wide = full<double>({2, 2}, 1);
  const auto [y, pullback] = vjp(op, x);
  EXPECT_EQ(error_of([&] { pullback(bad); }), "[custom_pool] gy has shape (2, 3): must be (2, 2)");
  EXPECT_EQ(error_of([&] { pullback(wide); }), "[custom_pool] gy has type f64: must be f32");
  EXPECT_EQ(error_of([&] { jvp(op, x, bad); }), "[custom_pool] dx has shape (2, 3): must be (3, 3)");
  EXPECT_TRUE(rejects([&] { jvp(op, x, full<f16>({3, 3}, 1)); }, {"[custom_pool] dx has type f16: must be f32"}));
  EXPECT_TRUE(rejects([&] { hvp(op, x, bad, x); }, {"[custom_pool] gy has shape"}));
  EXPECT_TRUE(rejects([&] { hvp(op, x, good, bad); }, {"[custom_pool] v has shape"}));
  EXPECT_TRUE(rejects([&] { jvp(pullback, bad, x, good); }, {"[custom_pool] gy has shape"}));
  EXPECT_TRUE(rejects([&] { jvp(pullback, good, bad, good); }, {"[custom_pool] dx has shape"}));
  EXPECT_TRUE(rejects([&] { jvp(pullback, good, x, bad); }, {"[custom_pool] dgy has shape"}));
  EXPECT_TRUE(rejects([&] { vjp(pullback, bad); }, {"[custom_pool] gy has shape"}));
  EXPECT_TRUE(rejects([&] { vjp(pullback, good).pullback(good); }, {"[custom_pool] h has shape"}));
  EXPECT_TRUE(rejects([&] { pullback(View(nullptr, Type::f32, {2, 2})); }, {"[custom_pool] gy has no data"}));
  EXPECT_TRUE(rejects([&] { vjp(op, View(nullptr, Type::f32, {3, 3})); }, {"[custom_pool] x has no data"}));
  for (const Type type : {Type::i32, Type::u8, Type::boolean}) {
    const Array whole = Array::zeros(type, {3, 3});
    const std::string text = "[custom_pool] x has type " + std::string(name(type)) + ": only f16, bf16, f32 and f64";
    EXPECT_TRUE(rejects([&] { vjp(op, whole); }, {text}));
    EXPECT_TRUE(rejects([&] { jvp(op, whole, whole); }, {text}));
    EXPECT_TRUE(rejects([&] { hvp(op, whole, whole, whole); }, {text}));
  }
  EXPECT_TRUE(rejects([&] { vjp(op, full<double>({3, 3}, 2)); }, {"[custom_pool] init of type f32", "f64"}));
  const auto flat = custom_pooling(1.0f, product, Window{.size = {2, 0}});
  EXPECT_TRUE(rejects([&] { vjp(flat, x); }, {"[custom_pool] window[1] = 0"}));
}

}  // namespace
}  // namespace cenote::test
