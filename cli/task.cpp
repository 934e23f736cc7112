// What a problem moves, how it is done, and how long that takes.
#include "task.h"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include <ops/derivative.h>
#include <reduce/traits.h>

namespace cenote::cli {
namespace {

using Direction = Problem::Direction;

Plan checked_plan(const Problem& problem) {
  Plan plan = problem.plan();
  if (problem.direction == Direction::forward) return plan;
  if (!is_float(problem.type)) {
    throw std::invalid_argument(
        fmt::format("{}: a derivative needs f16, bf16, f32 or f64, not {}", to_string(problem), name(problem.type)));
  }
  if (problem.pooling.indices) {
    throw std::invalid_argument(fmt::format("{}: a derivative has no indices; leave out idx=", to_string(problem)));
  }
  return plan;
}

// The type of the winners' offsets.
Type offset_type(const Plan& plan) {
  Pooling pooling = plan.pooling();
  pooling.indices = IndexKind::offset;
  return *cenote::plan(pooling, plan.input_type(), plan.input_shape()).index_type();
}

std::int64_t bytes_of(Type type, const Extents& shape) {
  return element_count(shape) * static_cast<std::int64_t>(size_of(type));
}

// Which windows are swept as the derivative is summed, if any are: those over x, or those that hold a cell.
std::string swept(const Plan& plan, Direction direction) {
  const auto forward = std::make_shared<const Plan::Impl>(plan.impl());
  if (direction == Direction::jvp) return forward->algorithm.swept;
  const Cotangent back(forward);
  return back.sums() ? back.sums()->swept : "";
}

// Of functions that can be copied, as std::function asks.
std::shared_ptr<Array> shared(Array array) { return std::make_shared<Array>(std::move(array)); }

}  // namespace

Task::Task(const Problem& problem) : problem_(problem), plan_(checked_plan(problem)) {}
Task::Task(const Problem& problem, Plan plan) : problem_(problem), plan_(std::move(plan)) {}

Task::Rule Task::rule() const {
  const Pooling& pooling = problem_.pooling;
  const Traits known = traits(pooling.reducer);
  if (!is_derivative()) return Rule::none;
  if (pooling.reducer == Reducer::lp && std::isinf(pooling.p)) return Rule::routed;
  if (known.weighs || (known.picks && pooling.ties == Ties::split)) return Rule::weighed;
  return known.picks ? Rule::routed : Rule::linear;
}

bool Task::from_offsets() const {
  return problem_.direction == Direction::vjp && rule() == Rule::routed && traits(problem_.pooling.reducer).picks;
}

std::int64_t Task::bytes() const {
  const std::int64_t x = bytes_of(plan_.input_type(), plan_.input_shape());
  const std::int64_t y = bytes_of(plan_.output_type(), plan_.output_shape());
  if (!is_derivative()) return plan_.bytes();
  if (problem_.direction == Direction::jvp) return (rule() == Rule::linear ? x : 2 * x) + y;
  if (rule() == Rule::linear) return x + y;
  if (from_offsets()) return x + y + bytes_of(offset_type(plan_), plan_.output_shape());
  return 2 * (x + y);
}

std::string Task::algorithm() const {
  switch (rule()) {
    case Rule::none: return cli::algorithm(plan_);
    case Rule::linear: return "linear";
    case Rule::routed: return "routed";
    case Rule::weighed: return "weighed";
  }
  return "";
}

std::string Task::reason() const {
  if (rule() == Rule::none) return plan_.impl().algorithm.reason;
  const std::string also = rule() == Rule::routed ? "" : swept(plan_, problem_.direction);
  return basis() + (also.empty() ? "" : "; " + also);
}

std::string Task::basis() const {
  const bool tangent = problem_.direction == Direction::jvp;
  switch (rule()) {
    case Rule::none: return "";
    case Rule::linear:
      return tangent ? "the pooling of dx; x is not read"
                     : "the sum of gy, divided as the pooling divides, over the windows that hold a cell";
    case Rule::routed:
      if (tangent) return "dx at the winner of each window, which is found in x";
      return from_offsets() ? "each gy goes to the winner of its window, which a saved offset names"
                            : "each gy goes to the winner of its window, which is found in x";
    case Rule::weighed:
      return tangent ? "the sum of weight times dx over each window, x and dx read together"
                     : "what the weights hang on is found from x, then weight times gy is summed over the windows that "
                       "hold a cell";
  }
  return "";
}

std::string Task::explain() const {
  if (!is_derivative()) return plan_.explain();
  const bool back = problem_.direction == Direction::vjp;
  return fmt::format("{} -> {} {}: {}, {}", to_string(problem_),
                     to_string(back ? plan_.input_shape() : plan_.output_shape()),
                     name(back ? plan_.input_type() : plan_.output_type()), algorithm(), reason());
}

Timing Task::time(double least) const { return measure(prepare(), bytes(), least); }

void Task::repeat(int runs) const {
  const std::function<void()> work = prepare();
  for (int i = 0; i < runs; ++i) work();
}

std::function<void()> Task::prepare() const {
  switch (problem_.direction) {
    case Direction::forward: return prepare_forward();
    case Direction::jvp: return prepare_tangent();
    case Direction::vjp: return prepare_cotangent();
  }
  return {};
}

std::function<void()> Task::prepare_forward() const {
  const auto x = shared(noise(plan_.input_type(), plan_.input_shape()));
  const auto y = shared(Array(plan_.output_type(), plan_.output_shape()));
  if (!plan_.index_type()) return [=, plan = plan_] { plan.run(*x, *y); };
  const auto indices = shared(Array(*plan_.index_type(), plan_.output_shape()));
  return [=, plan = plan_] { plan.run(*x, *y, *indices); };
}

std::function<void()> Task::prepare_tangent() const {
  const auto x = shared(noise(plan_.input_type(), plan_.input_shape())), dx = shared(Array(*x));
  const auto dy = shared(Array(plan_.output_type(), plan_.output_shape()));
  return [=, plan = plan_] { plan.jvp(*x, *dx, *dy); };
}

std::function<void()> Task::prepare_cotangent() const {
  const Array x = noise(plan_.input_type(), plan_.input_shape());
  const auto gy = shared(noise(plan_.output_type(), plan_.output_shape()));
  const auto gx = shared(Array(plan_.input_type(), plan_.input_shape()));
  return [=, pullback = vjp(problem_.pooling, x).pullback] { pullback.run(*gy, *gx); };
}

}  // namespace cenote::cli
