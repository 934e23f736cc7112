// Laws that every reducer of the list must keep: they are what lets passes, blocks and lanes regroup a window.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/oracle.h"
#include "support/property.h"

namespace cenote::test {
namespace {

const std::vector<Params>& several_params() {
  static const std::vector<Params> params{{1, 2}, {-2, 1}, {0.5, 3}, {20, 2.5}, {-0.1, inf}};
  return params;
}

/// Calls f(reducer, params) for the scalar struct of every reducer and several options.
template <class F>
void for_each_reducer(F f) {
  for (const Reducer reducer : all_reducers) {
    for (const Params& params : several_params()) {
      SCOPED_TRACE(testing::Message() << name(reducer) << " beta " << params.beta << " p " << params.p);
      visit_reducer(reducer, params, [&](const auto& object) { f(object); });
    }
  }
}

template <class N, class R>
auto fold(const R& reducer, const std::vector<N>& cells, std::size_t begin, std::size_t end) {
  auto state = reducer.template identity<N>();
  for (std::size_t i = begin; i < end; ++i) state = reducer.combine(state, reducer.template lift<N>(cells[i]));
  return state;
}

/// Equal up to rounding for numbers, bit for bit for picks and integers; NaN equals NaN.
template <class N, class R>
bool alike(const R&, N a, N b, double scale) {
  if constexpr (std::is_integral_v<N>) return a == b;
  if (a != a || b != b) return a != a && b != b;
  if (R::picks || std::isinf(a) || std::isinf(b)) return a == b && std::signbit(a) == std::signbit(b);
  return std::fabs(a - b) <= 64 * std::numeric_limits<N>::epsilon() * std::max(scale, 1e-300);
}

double largest_magnitude(const std::vector<double>& cells) {
  double most = 1;
  for (const double cell : cells) {
    if (std::isfinite(cell)) most += std::fabs(cell);
  }
  return most;
}

rc::Gen<std::vector<double>> some_cells() {
  return rc::gen::container<std::vector<double>>(
      rc::gen::elementOf(std::vector<double>{0.0, -0.0, 1, -1, 2.5, -3, 7, 1e-3, inf, -inf, nan}));
}

TEST(ReducerLaws, IdentityChangesNothingOnEitherSide) {
  for_each_reducer([](const auto& reducer) {
    check(60, [&] {
      const auto cells = *rc::gen::nonEmpty(some_cells());
      const auto state = fold(reducer, cells, 0, cells.size());
      const auto none = reducer.template identity<double>();
      const double bare = reducer.lower(state, 1.0);
      RC_ASSERT(alike(reducer, reducer.lower(reducer.combine(none, state), 1.0), bare, 0));
      RC_ASSERT(alike(reducer, reducer.lower(reducer.combine(state, none), 1.0), bare, 0));
    });
  });
}

TEST(ReducerLaws, GroupingDoesNotMatter) {
  for_each_reducer([](const auto& reducer) {
    check(150, [&] {
      const auto cells = *some_cells();
      const auto cut = *rc::gen::inRange<std::size_t>(0, cells.size() + 1);
      const auto whole = fold(reducer, cells, 0, cells.size());
      const auto parts = reducer.combine(fold(reducer, cells, 0, cut), fold(reducer, cells, cut, cells.size()));
      RC_ASSERT(alike(reducer, reducer.lower(whole, 2.0), reducer.lower(parts, 2.0), largest_magnitude(cells)));
    });
  });
}

TEST(ReducerLaws, OrderDoesNotMatterForTheValue) {
  for_each_reducer([](const auto& reducer) {
    check(150, [&] {
      auto cells = *some_cells();
      // Which of two zeros stays is a matter of order.
      for (double& cell : cells) cell += 0.0;
      const double forward = reducer.lower(fold(reducer, cells, 0, cells.size()), 2.0);
      std::reverse(cells.begin(), cells.end());
      const double backward = reducer.lower(fold(reducer, cells, 0, cells.size()), 2.0);
      RC_ASSERT(alike(reducer, forward, backward, largest_magnitude(cells)));
    });
  });
}

TEST(ReducerLaws, IntegersKeepThemExactly) {
  for_each_reducer([](const auto& reducer) {
    using R = std::decay_t<decltype(reducer)>;
    if constexpr (R::integers) {
      check(150, [&] {
        const auto cells = *rc::gen::arbitrary<std::vector<std::int8_t>>();
        const auto cut = *rc::gen::inRange<std::size_t>(0, cells.size() + 1);
        const auto whole = fold(reducer, cells, 0, cells.size());
        const auto parts = reducer.combine(fold(reducer, cells, 0, cut), fold(reducer, cells, cut, cells.size()));
        RC_ASSERT(reducer.lower(whole, std::int8_t{1}) == reducer.lower(parts, std::int8_t{1}));
      });
    }
  });
}

TEST(ReducerLaws, PicksKeepTheEarlierOfEqualCells) {
  for_each_reducer([](const auto& reducer) {
    using R = std::decay_t<decltype(reducer)>;
    if constexpr (R::picks) {
      for (const double a : {0.0, 1.0, inf, -inf, nan}) EXPECT_TRUE(reducer.keeps(a, a)) << a;
      EXPECT_TRUE(reducer.keeps(0.0, -0.0));
      EXPECT_TRUE(reducer.keeps(-0.0, 0.0));
      for (const double a : {0.0, inf, -inf}) {
        EXPECT_FALSE(reducer.keeps(a, nan)) << a;
        EXPECT_TRUE(reducer.keeps(nan, a)) << a;
      }
    }
  });
}

TEST(ReducerLaws, EveryReducerIsKnownByNameAndCanBePlanned) {
  for (const Reducer reducer : all_reducers) {
    EXPECT_EQ(parse_reducer(name(reducer)), reducer);
    const Plan p = plan({.reducer = reducer, .region = Window{.size = {2}}}, Type::f32, {3});
    EXPECT_EQ(p.output_shape(), (Extents{2}));
    EXPECT_NE(p.explain().find(name(reducer)), std::string::npos);
  }
}

TEST(ReducerLaws, TheStructsAgreeWithTheReference) {
  check(400, [] {
    const auto cells = *rc::gen::nonEmpty(some_cells());
    const auto n = static_cast<std::int64_t>(cells.size());
    const reference::Tensor<double> x{{n}, cells};
    for (const Reducer reducer : all_reducers) {
      for (const Params& params : several_params()) {
        const Pooling pooling{.reducer = reducer,
                              .region = Global{.rank = 1},
                              .beta = params.beta,
                              .pad = SmoothPadding::ignore,
                              .p = params.p};
        const auto expected = Expectation<double>(pooling, {n}, x, Type::f64).values()[0];
        visit_reducer(reducer, params, [&](const auto& object) {
          using R = std::decay_t<decltype(object)>;
          // A divisor, or the logarithm of no padded cells.
          const double count = R::counts == scalar::Counts::divisor ? static_cast<double>(n) : std::log(0.0);
          const double value = object.lower(fold(object, cells, 0, cells.size()), count);
          RC_LOG() << name(reducer) << " is " << value << ", expected " << expected << "\n";
          RC_ASSERT(expected.holds(value));
        });
      }
    }
  });
}

}  // namespace
}  // namespace cenote::test
