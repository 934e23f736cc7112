// A pooling held against the reference: by every algorithm, on every SIMD target and for several thread counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "machine.h"
#include "oracle.h"
#include "plan/impl.h"
#include "plan/ways.h"
#include "random_problem.h"
#include "show.h"

namespace cenote::test {

/// One result of a plan: values and indices, each in memory of its own.
struct Result {
  Strided values;
  std::optional<Strided> indices;

  Result(const Plan& plan, const Case& c, const Strided& x) : values(plan.output_type(), plan.output_shape(), c.y) {
    if (plan.index_type()) {
      indices.emplace(*plan.index_type(), plan.output_shape(), c.indices);
      plan.run(x.view(), values.view(), indices->view());
    } else {
      plan.run(x.view(), values.view());
    }
  }
  bool same_bits(const Result& other) const {
    return values.packed() == other.values.packed() && (!indices || indices->packed() == other.indices->packed());
  }
  bool gaps_untouched() const { return values.gaps_untouched() && (!indices || indices->gaps_untouched()); }
};

/// What the reference says of a case.
struct Expected {
  std::vector<Element> values;
  std::vector<std::int64_t> indices;

  Expected(const Case& c, const Strided& x) {
    visit(c.type, [&](auto element) {
      const auto cells = read<decltype(element)>(x.view());
      const Expectation<decltype(element)> all(c.pooling, c.shape, cells, result_type_of(c.pooling, c.type));
      values = all.values();
      if (c.pooling.indices) indices = all.indices(*c.pooling.indices);
    });
  }
  std::string wrong_with(const Result& result) const {
    std::string wrong = mismatch(values, result.values.view());
    if (wrong.empty() && result.indices) wrong = mismatch(indices, result.indices->view());
    if (wrong.empty() && !result.gaps_untouched()) wrong = "memory outside the result was written";
    return wrong;
  }
};

/// Those of all ways that do not take long: large planes that are turned do, where there are few.
inline std::vector<Plan> quick_ways(const Plan& planned) {
  std::int64_t cells = 1;
  for (const Axis& axis : planned.axes()) cells *= axis.n;
  std::vector<Plan> result;
  for (const Way& way : ways(planned))
    if (cells <= 512 || !way.name.ends_with("turned")) result.push_back(way.plan);
  return result;
}

/// The same with outputs written past the caches.
inline Plan past_caches(const Plan& planned) {
  auto impl = std::make_shared<Plan::Impl>(planned.impl());
  impl->algorithm.past_caches = true;
  return Plan(std::move(impl));
}

template <class Fill>
void equals_reference(const Case& c, const Fill& fill_cells) {
  std::optional<reference::Windows> windows;
  try {
    windows = windows_of(c.pooling, c.shape);
  } catch (const std::domain_error&) {
    RC_ASSERT_THROWS_AS(plan(c.pooling, c.type, c.shape), std::invalid_argument);
    return;
  }
  const Plan planned = plan(c.pooling, c.type, c.shape);
  RC_ASSERT(to_shape(planned.output_shape()) == windows->output_shape());
  RC_ASSERT(planned.output_type() == result_type_of(c.pooling, c.type));
  RC_ASSERT(planned.index_type().has_value() == c.pooling.indices.has_value());
  if (c.pooling.indices) RC_ASSERT(*planned.index_type() == index_type_of(*c.pooling.indices, *windows));

  Strided x(c.type, c.shape, c.x);
  fill_cells(x);
  const Expected expected(c, x);
  for (const Plan& way : quick_ways(planned)) {
    for (const std::string& target : targets_under_test()) {
      std::optional<Result> first;
      for (const int count : {1, 2, 5}) {
        const Machine machine(target, count);
        Result result(way, c, x);
        const std::string where = " on " + target + " with " + std::to_string(count) + " threads: " + way.explain();
        if (first && !first->same_bits(result)) RC_FAIL("other bits than with one thread" + where);
        if (first) continue;
        const std::string wrong = expected.wrong_with(result);
        if (!wrong.empty()) RC_FAIL(wrong + where);
        first.emplace(std::move(result));
      }
      // Rows of channels are added up in another order there.
      const Machine machine(target, 2);
      const Result past(past_caches(way), c, x);
      const bool adds = c.pooling.reducer == Reducer::sum || c.pooling.reducer == Reducer::avg;
      const std::string wrong = adds ? expected.wrong_with(past) : first->same_bits(past) ? "" : "other bits";
      if (!wrong.empty()) RC_FAIL(wrong + " past the caches on " + target + ": " + way.explain());
    }
  }
}

inline void equals_reference(const Case& c) {
  equals_reference(c, [&](Strided& x) { fill(x, c.data, c.seed); });
}

}  // namespace cenote::test
