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

/// The plan as it is, and with long windows swept, or folded, and planes turned, or not, where that is not what it does
/// anyway.
inline std::vector<Plan> ways(const Plan& planned) {
  std::vector<Plan> result{planned};
  const auto swept = [&](Sweep sweep) {
    Algorithm algorithm = planned.impl().algorithm;
    algorithm.sweep = sweep;
    std::vector<bool> axes;
    for (const Axis& axis : planned.axes())
      for (const bool innermost : {false, true}) axes.push_back(algorithm.sweeps(axis, innermost));
    return axes;
  };
  const auto add = [&](Sweep sweep, Weave weave) {
    auto impl = std::make_shared<Plan::Impl>(planned.impl());
    impl->algorithm.sweep = sweep;
    impl->algorithm.weave = weave;
    result.emplace_back(std::move(impl));
  };
  for (const Sweep sweep : {Sweep::always, Sweep::never})
    if (swept(sweep) != swept(Sweep::automatic)) add(sweep, Weave::never);
  // Only planes of lines are ever turned, and large ones would take long where there are few.
  std::int64_t cells = 1;
  for (const Axis& axis : planned.axes()) cells *= axis.n;
  if (planned.impl().algorithm.along_lines && cells <= 512)
    add(Sweep::automatic, planned.impl().algorithm.small ? Weave::never : Weave::always);
  if (planned.impl().algorithm.flat) {
    auto impl = std::make_shared<Plan::Impl>(planned.impl());
    impl->algorithm.flat = false;
    result.emplace_back(std::move(impl));
  }
  return result;
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
  for (const Plan& way : ways(planned)) {
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
    }
  }
}

inline void equals_reference(const Case& c) {
  equals_reference(c, [&](Strided& x) { fill(x, c.data, c.seed); });
}

}  // namespace cenote::test
