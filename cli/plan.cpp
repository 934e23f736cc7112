// cenote plan: what a problem comes to, and which algorithm serves it, without running it.
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>

#include "commands.h"
#include "task.h"

namespace cenote::cli {
namespace {

std::string describe(const Axis& axis) {
  if (axis.adaptive) return fmt::format("{} cells in {} bins", axis.n, axis.out);
  return fmt::format("{} cells, window {}, stride {}, dilation {}, padding {}:{} -> {}", axis.n, axis.size, axis.stride,
                     axis.dilation, axis.low, axis.high, axis.out);
}

void explain(const Task& task) {
  const Plan& plan = task.plan();
  fmt::print("{}\n", task.explain());
  fmt::print("  input    {} {}\n", name(plan.input_type()), to_string(plan.input_shape()));
  fmt::print("  output   {} {}\n", name(plan.output_type()), to_string(plan.output_shape()));
  if (plan.index_type()) fmt::print("  indices  {} {}\n", name(*plan.index_type()), to_string(plan.output_shape()));
  for (int i = 0; i < plan.pooled().size(); ++i) {
    fmt::print("  axis {}   {}\n", plan.pooled()[i], describe(plan.axes()[static_cast<std::size_t>(i)]));
  }
  fmt::print("  moves    {} bytes at least", task.bytes());
  if (!task.is_derivative()) fmt::print("; scratch {} bytes per thread", plan.scratch_bytes());
  fmt::print("\n");
}

constexpr const char* examples =
    "A problem is one line: reducer, type, shape, then k s d p and options; docs/problems.md has the grammar.\n"
    "Examples:\n"
    "  cenote plan \"max f32 32x64x112x112 k3 s2 p1\"\n"
    "  cenote plan \"avg bf16 8x56x56x64 k3x3 s2 same last div=valid\"\n"
    "  cenote plan \"max f32 32x64x112x112 k3 s2 p1 vjp\"\n"
    "  cenote plan \"smooth_max f32 64x128x16384 k101 beta=4\" \"avg f32 8x64x31x31 adaptive=7x7\"";

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto problems = std::make_shared<std::vector<std::string>>();
  CLI::App& command = *app.add_subcommand("plan", "Explain how problems would be pooled");
  command.footer(examples);
  command.add_option("PROBLEM", *problems, "Problems, one string each")->required();
  command.callback([problems, &action] {
    action = [problems] {
      std::vector<Task> tasks;
      for (const std::string& text : *problems) tasks.emplace_back(parse_problem(text));
      for (const Task& task : tasks) explain(task);
    };
  });
}

}  // namespace cenote::cli
