// One row of the demo's table for everything that is pooled.
#include "lab.h"

#include <cstdio>

#include <fmt/core.h>

#include "../task.h"

namespace cenote::demo {
namespace {

constexpr double least_seconds = 0.03;

std::string problem_of(const Pooling& pooling, const View& x) { return to_string(Problem{pooling, x.type, x.shape}); }

std::string joined(const Extents& values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : "x") + std::to_string(value);
  return text;
}

}  // namespace

void Lab::print_head() const {
  fmt::print("{:<66}  {:<12}  {:>8}  {:>7}  {:>5}  {:>8}\n", "problem", "algorithm", "ms", "GB/s", "eff.", "error");
}

void Lab::report(const std::string& problem, const std::string& algorithm, const cli::Timing& t, Verdict verdict) {
  ++results_;
  wrong_ += verdict.ok ? 0 : 1;
  progress_.hide();
  const std::string error = verdict.error == 0 ? "0" : fmt::format("{:.1e}", verdict.error);
  fmt::print("{:<66}  {:<12}  {:>8.3f}  {:>7.2f}  {:>5.2f}  {:>8}  {}\n", problem, algorithm, t.best * 1e3,
             t.gigabytes_per_second(), t.efficiency(), error,
             !verdict.ok     ? "WRONG"
             : verdict.known ? "ok"
                             : "no oracle");
  std::fflush(stdout);
}

Array Lab::pool(const View& x, const Pooling& pooling) {
  const std::string problem = problem_of(pooling, x);
  progress_.say("demo: " + problem);
  const Plan plan = cenote::plan(pooling, x.type, x.shape);
  Array y(plan.output_type(), plan.output_shape());
  const cli::Timing timing = cli::measure([&] { plan.run(x, y); }, plan.bytes(), least_seconds);
  report(problem, cli::algorithm(plan), timing, check(plan, x, y));
  return y;
}

Pooled Lab::pool_with_indices(const View& x, const Pooling& pooling) {
  const std::string problem = problem_of(pooling, x);
  progress_.say("demo: " + problem);
  const Plan plan = cenote::plan(pooling, x.type, x.shape);
  Pooled y{Array(plan.output_type(), plan.output_shape()), Array(plan.index_type().value(), plan.output_shape())};
  const cli::Timing timing = cli::measure([&] { plan.run(x, y.values, y.indices); }, plan.bytes(), least_seconds);
  report(problem, cli::algorithm(plan), timing, check(plan, x, y.values, y.indices));
  return y;
}

Array Lab::gradient(const View& x, const Pooling& pooling, const View& gy) {
  const Problem problem{pooling, x.type, x.shape, Problem::Direction::vjp};
  progress_.say("demo: " + to_string(problem));
  const cli::Task task(problem);
  const Pullback pullback = vjp(pooling, x).pullback;
  Array gx(x.type, x.shape);
  const cli::Timing timing = cli::measure([&] { pullback.run(gy, gx); }, task.bytes(), least_seconds);
  report(to_string(problem), task.algorithm(), timing, check_gradient(task.plan(), x, gy, gx));
  return gx;
}

SparseTensor Lab::pool(const SparseTensor& x, const SparsePooling& pooling) {
  const Relation relation = x.coordinates()->relation(pooling.kernel, pooling.options);
  const RowPooling rows(relation, pooling.reduction);
  const std::string problem =
      fmt::format("sparse {} f32 {}x{} k{} s{}", name(pooling.reduction.reducer), x.rows(), x.channels(),
                  joined(relation.kernel().size.values()), joined(relation.kernel().stride.values()));
  progress_.say("demo: " + problem);
  Array y(x.type(), {rows.outputs(), x.channels()});
  const std::int64_t bytes = static_cast<std::int64_t>(x.feats().bytes() + y.bytes()) + 4 * relation.edges();
  const cli::Timing timing = cli::measure([&] { rows.run(x.feats(), y); }, bytes, least_seconds);
  const SparseTensor result = cenote::pool(x, relation, pooling.reduction);
  Verdict verdict = check(x, pooling, result.with_feats(std::move(y)));
  report(problem, relation.group() != nullptr ? "grouped" : "gathered", timing, verdict);
  return result;
}

Array Lab::product(const View& x, const Window& window) {
  const auto times = [](float a, float b) { return a * b; };
  const Plan windows = cenote::plan({.reducer = Reducer::max, .region = window}, x.type, x.shape);
  const std::string problem = "product" + problem_of(windows.pooling(), x).substr(3);
  progress_.say("demo: " + problem);
  Array y;
  const cli::Timing timing =
      cli::measure([&] { y = cenote::pool(x, 1.0f, times, window); }, windows.bytes(), least_seconds);
  report(problem, "fold", timing, check_fold(windows, x, y, 1.0f, times));
  return y;
}

}  // namespace cenote::demo
