// Averages that are made of sums a slice at a time, and nobody may notice.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "core/copy.h"
#include "cpu/quotients.h"
#include "support/against_reference.h"
#include "support/machine.h"
#include "support/property.h"

namespace cenote::test {
namespace {

/// Windows of up to 9 cells, or bins, on planes so large that slices are some rows of one, or of which slices hold
/// several. All sums are whole numbers that every type of lanes holds.
Case draw_slices() {
  using namespace detail;
  Case c;
  c.type = one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16, Type::i8, Type::u8, Type::i16,
                         Type::u16, Type::i32, Type::u32, Type::i64, Type::u64});
  c.data = is_float(c.type) ? Data::few : one_of<Data>({Data::few, Data::unit, Data::special});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  using Rule = Divisor::Rule;
  c.pooling.reducer = Reducer::avg;
  c.pooling.divisor = is_float(c.type) ? one_of<Divisor>({Rule::valid, Rule::valid, Rule::clipped})
                                       : one_of<Divisor>({Rule::window, Rule::valid, Rule::clipped, 2.5, 0.1});
  const bool last = chance(35), large = chance(50);
  const std::int64_t height = large ? between(150, 500) : between(1, 60), width = between(1, large ? 500 : 70);
  if (last)
    c.shape = {between(1, 3), height, between(1, 60), one_of<std::int64_t>({1, 2, 3, 16, 17, 64})};
  else
    c.shape = {between(1, 2), large ? between(1, 3) : between(1, 70), height, width};
  const bool line = chance(20);
  const int depth = line ? 1 : 2;
  if (chance(15)) {
    std::vector<std::optional<std::int64_t>> output{between(1, 9)};
    if (!line) output.insert(output.begin(), between(1, 40));
    c.pooling.region = Adaptive{.output = output, .channels_last = last};
  } else {
    Window window{.allow_empty = true, .channels_last = last};
    std::vector<Padding::Sides> padding;
    Extents sizes, stride, dilation;
    for (int i = 0; i < depth; ++i) {
      const std::int64_t size = between(1, 9);
      sizes.push_back(size);
      stride.push_back(one_of<std::int64_t>({1, 1, 2, 3, 7}));
      dilation.push_back(one_of<std::int64_t>({1, 1, 1, 2}));
      padding.emplace_back(between(0, size), between(0, size));
    }
    window.size = sizes;
    window.stride = stride;
    window.dilation = dilation;
    window.padding = Padding(padding);
    window.ceil = chance(40);
    c.pooling.region = window;
  }
  c.x = chance(60) ? Layout::plain(4) : layout(4, true);
  c.y = chance(60) ? Layout::plain(4) : layout(4, false);
  return c;
}

// No negative zeros, whose sum with nothing may have either sign.
void fill_whole(Strided& x, const Case& c) {
  if (!is_float(c.type)) return fill(x, c.data, c.seed);
  Strided small(Type::u8, c.shape, Layout::plain(c.shape.size()));
  fill(small, Data::few, c.seed);
  copy_strided(small.view(), x.view());
}

TEST(Slices, AreDividedLikeTheWhole) {
  check(120, [] {
    const Case c = *rc::gen::exec(draw_slices);
    const Plan planned = plan(c.pooling, c.type, c.shape);
    Strided x(c.type, c.shape, c.x);
    fill_whole(x, c);
    for (const std::string& target : targets_under_test()) {
      const std::vector<Way> all = ways(planned);
      const Result whole(all.back().plan, c, x);
      RC_ASSERT(all.back().name == "unsliced" || (is_float(c.type) && planned.impl().count));
      for (const Way& way : all)
        for (const int count : {1, 3}) {
          const Machine machine(target, count);
          for (const Plan& each : {way.plan, past_caches(way.plan)}) {
            const Result result(each, c, x);
            RC_ASSERT(result.gaps_untouched());
            if (!result.same_bits(whole)) RC_FAIL("other bits " + way.name + " on " + target + ": " + each.explain());
          }
        }
    }
  });
}

// A slice must not be told from the array that it is cut from.
TEST(Slices, HoldWhatTheirWindowsHold) {
  const Window window{.size = {3, 3}, .stride = {1, 2}, .padding = 1};
  const Extents shape{3, 400, 700};
  Array x(Type::f32, shape);
  std::mt19937 random(1);
  for (float& cell : x.values<float>()) cell = static_cast<float>(random() % 1000) / 8;
  const Array before = avg_pool(x, window, Divisor::Rule::valid);
  const std::int64_t row = 131, column = 77, out = 350;
  x.values<float>()[static_cast<std::size_t>((400 + row) * 700 + column)] = std::numeric_limits<float>::quiet_NaN();
  const Array after = avg_pool(x, window, Divisor::Rule::valid);
  for (std::int64_t i = 0; i < 3 * 400 * out; ++i) {
    const std::int64_t o = i % out, r = i / out % 400;
    const bool holds = i / out / 400 == 1 && std::abs(r - row) <= 1 && std::abs(2 * o - column) <= 1;
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(std::isnan(after.values<float>()[at]), holds) << i;
    ASSERT_TRUE(holds || before.values<float>()[at] == after.values<float>()[at]) << i;
  }
}

TEST(Slices, DivideByNumbersThatFloatsDoNotHold) {
  const std::int64_t size = (std::int64_t{1} << 24) + 3, padding = size / 2;
  const Window window{.size = {size}, .padding = Padding{padding}, .axes = Extents{0}};
  for (const double cell : {255.0, 1.0, 3.0}) {
    Array x(Type::u8, {1});
    x.values<std::uint8_t>()[0] = static_cast<std::uint8_t>(cell);
    for (const auto rule : {Divisor::Rule::clipped, Divisor::Rule::window}) {
      const Array y = pool(x, Pooling{.reducer = Reducer::avg, .region = window, .divisor = rule});
      EXPECT_EQ(y.values<float>()[0], static_cast<float>(cell / static_cast<double>(size)));
    }
  }
}

TEST(Slices, HaveTheGradientsOfTheirAverages) {
  const auto visit_cells = [](const Axis& axis, std::int64_t o, const auto& use) {
    const Axis::Span span = axis.span(o);
    for (std::int64_t i = 0; i < span.count; ++i) use(span.first + i * axis.step());
  };
  check(60, [&] {
    Case c = *rc::gen::exec(draw_slices);
    c.type = *rc::gen::element(Type::f32, Type::f64, Type::f16);
    c.pooling.divisor = *rc::gen::element(Divisor::Rule::valid, Divisor::Rule::clipped);
    const Plan planned = plan(c.pooling, c.type, c.shape);
    if (planned.pooled().size() != 2 || element_count(planned.output_shape()) == 0) return;
    // Numbers that whatever windows hold divides, so that sums of their shares are exact.
    const double shares = 2520;
    std::mt19937 random(static_cast<unsigned>(c.seed));
    Array gy(c.type, planned.output_shape());
    Array x(c.type, c.shape);
    visit(c.type, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, f16>)
        for (T& g : gy.values<T>()) g = static_cast<T>(static_cast<float>((random() % 3) * (sizeof(T) > 2 ? 2520 : 1)));
    });
    std::vector<double> expected(static_cast<std::size_t>(element_count(c.shape)), 0);
    const Extents strides = row_major_strides(c.shape), out = planned.output_shape();
    const auto i0 = static_cast<int>(planned.pooled()[0]), i1 = static_cast<int>(planned.pooled()[1]);
    const Axis &across = planned.axes()[0], &along = planned.axes()[1];
    const bool clipped = c.pooling.divisor.rule() == Divisor::Rule::clipped;
    for (std::int64_t i = 0; i < element_count(out); ++i) {
      std::int64_t rest = i, at = 0;
      Extents o = out;
      for (int a = out.size() - 1; a >= 0; rest /= out[a--]) {
        o[a] = rest % out[a];
        if (a != i0 && a != i1) at += o[a] * strides[a];
      }
      const auto count = [&](const Axis& axis, std::int64_t w) {
        return static_cast<double>(clipped ? axis.clipped(w) : axis.span(w).count);
      };
      const double divisor = count(across, o[i0]) * count(along, o[i1]);
      double g = 0;
      visit(c.type, [&]<class T>(T) {
        if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, f16>)
          g = static_cast<double>(static_cast<float>(gy.values<T>()[static_cast<std::size_t>(i)]));
      });
      visit_cells(across, o[i0], [&](std::int64_t r) {
        visit_cells(along, o[i1], [&](std::int64_t s) {
          expected[static_cast<std::size_t>(at + r * strides[i0] + s * strides[i1])] += g / divisor;
        });
      });
    }
    const Array gx = vjp(c.pooling, x).pullback(gy);
    const double bound = c.type == Type::f16 ? 0x1p-9 : 0x1p-18;
    visit(c.type, [&]<class T>(T) {
      if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, f16>)
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto value = static_cast<double>(static_cast<float>(gx.values<T>()[i]));
          if (!(std::fabs(value - expected[i]) <=
                bound * (std::fabs(expected[i]) + (sizeof(T) > 2 ? shares : 1) * 1e-3)))
            RC_FAIL("gx[" + std::to_string(i) + "] = " + std::to_string(value) + " is not " +
                    std::to_string(expected[i]) + ": " + planned.explain());
        }
    });
  });
}

template <class From, class To>
void divides(const std::string& target, std::mt19937_64& random, bool in_doubles) {
  constexpr std::int64_t slack = cpu::divisor_slack;
  const Machine machine(target, 1);
  for (int round = 0; round < 300; ++round) {
    const auto count = static_cast<std::int64_t>(random() % 300),
               period = static_cast<std::int64_t>(1 + random() % 200);
    const auto shift = static_cast<std::int64_t>(random() % 17);
    using A = std::conditional_t<std::is_same_v<To, double>, double, float>;
    std::vector<From> cells(static_cast<std::size_t>(count + 64));
    for (From& cell : cells) {
      if constexpr (std::is_integral_v<From>)
        cell = static_cast<From>(in_doubles ? random() : random() % 60000);
      else if (random() % 8 == 0)
        cell = detail::float_element<From>(Data::special, random);
      else
        cell = detail::float_element<From>(Data::any_exponent, random);
    }
    std::vector<double> divisors(static_cast<std::size_t>(period + slack));
    cpu::Quotients call;
    call.same = static_cast<double>(1 + random() % 50);
    if (period >= 3 * slack && random() % 2 == 0)
      call.first = static_cast<std::int64_t>(random() % 9), call.last = period - 5;
    for (std::int64_t i = 0; i < period + slack; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool same = i >= call.first && i < call.last;
      divisors[at] = i >= period ? divisors[static_cast<std::size_t>(i - period)]
                     : same      ? call.same
                                 : static_cast<double>(1 + random() % 50);
    }
    std::vector<A> table(divisors.begin(), divisors.end());
    std::vector<To> to(static_cast<std::size_t>(count + shift + 1), To(7));
    const bool alike = random() % 4 == 0;
    call.from = type_of<From>;
    call.to = type_of<To>;
    call.in_doubles = in_doubles;
    call.cells = cells.data();
    call.dst = to.data() + shift;
    call.count = count;
    call.divisors = alike ? nullptr : in_doubles ? static_cast<const void*>(divisors.data()) : table.data();
    call.period = period;
    call.stream = random() % 2 == 0;
    cpu::divide(call);
    for (std::int64_t i = 0; i < count; ++i) {
      const double divisor = alike ? call.same : divisors[static_cast<std::size_t>(i % period)];
      const From cell = cells[static_cast<std::size_t>(i)];
      To expected;
      if constexpr (std::is_integral_v<From>)
        expected = static_cast<To>(static_cast<double>(cell) / divisor);
      else
        expected = static_cast<To>(static_cast<A>(cell) / static_cast<A>(divisor));
      const To value = to[static_cast<std::size_t>(i + shift)];
      const bool nan = std::isnan(static_cast<double>(static_cast<A>(expected)));
      ASSERT_TRUE(nan ? std::isnan(static_cast<double>(static_cast<A>(value)))
                      : std::memcmp(&value, &expected, sizeof(To)) == 0)
          << name(call.from) << " on " << target << ", element " << i << " of " << count;
    }
    ASSERT_EQ(static_cast<float>(to.back()), 7.0F);
    ASSERT_TRUE(shift == 0 || static_cast<float>(to[static_cast<std::size_t>(shift - 1)]) == 7.0F);
  }
}

TEST(Quotients, AreRoundedOnce) {
  std::mt19937_64 random(3);
  for (const std::string& target : targets_under_test()) {
    divides<float, float>(target, random, false);
    divides<double, double>(target, random, false);
    divides<float, f16>(target, random, false);
    divides<float, bf16>(target, random, false);
    divides<f16, float>(target, random, false);
    divides<bf16, float>(target, random, false);
    divides<std::int16_t, float>(target, random, false);
    divides<std::uint16_t, float>(target, random, false);
    divides<std::int32_t, float>(target, random, false);
    divides<std::uint32_t, float>(target, random, false);
    divides<std::int16_t, float>(target, random, true);
    divides<std::int32_t, float>(target, random, true);
    divides<std::uint32_t, float>(target, random, true);
    divides<std::int64_t, float>(target, random, true);
    divides<std::uint64_t, float>(target, random, true);
  }
}

}  // namespace
}  // namespace cenote::test
