// cenote plan: what a problem comes to, and which algorithm serves it, without running it.
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>

#include "commands.h"
#include "json.h"
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

std::string_view direction_name(Problem::Direction direction) {
  switch (direction) {
    case Problem::Direction::forward: return "forward";
    case Problem::Direction::jvp: return "jvp";
    case Problem::Direction::vjp: return "vjp";
  }
  return "";
}

std::string json_axis(std::int64_t number, const Axis& axis) {
  return fmt::format(
      "{{\"axis\": {}, \"cells\": {}, \"window\": {}, \"stride\": {}, \"dilation\": {}, \"padding\": [{}, {}], "
      "\"adaptive\": {}, \"outputs\": {}}}",
      number, axis.n, axis.size, axis.stride, axis.dilation, axis.low, axis.high, axis.adaptive, axis.out);
}

std::string json_divisor(const Divisor& divisor) {
  switch (divisor.rule()) {
    case Divisor::Rule::window: return "\"window\"";
    case Divisor::Rule::valid: return "\"valid\"";
    case Divisor::Rule::clipped: return "\"clipped\"";
    case Divisor::Rule::number: break;
  }
  return fmt::format("{}", divisor.number());
}

// Everything that another program needs to solve the same problem.
void print_json(const std::string& text, const Task& task) {
  const Plan& plan = task.plan();
  const Pooling& pooling = plan.pooling();
  std::string axes;
  for (int i = 0; i < plan.pooled().size(); ++i) {
    axes += (i == 0 ? "" : ", ") + json_axis(plan.pooled()[i], plan.axes()[static_cast<std::size_t>(i)]);
  }
  fmt::print("{{\"problem\": {}, \"direction\": {}, \"reducer\": {}, \"type\": {}, \"shape\": {}, ", json_string(text),
             json_string(direction_name(task.direction())), json_string(name(pooling.reducer)),
             json_string(name(plan.input_type())), json_list(plan.input_shape()));
  fmt::print("\"output_type\": {}, \"output_shape\": {}, \"index_type\": {}, \"axes\": [{}], ",
             json_string(name(plan.output_type())), json_list(plan.output_shape()),
             plan.index_type() ? json_string(name(*plan.index_type())) : "null", axes);
  fmt::print("\"divisor\": {}, \"beta\": {}, \"p\": {}, \"pad\": {}, \"ties\": {}, ", json_divisor(pooling.divisor),
             pooling.beta, std::isinf(pooling.p) ? "\"inf\"" : fmt::format("{}", pooling.p),
             pooling.pad == SmoothPadding::zero ? "\"zero\"" : "\"ignore\"",
             pooling.ties == Ties::first ? "\"first\"" : "\"split\"");
  fmt::print("\"bytes\": {}, \"algorithm\": {}, \"reason\": {}}}\n", task.bytes(), json_string(task.algorithm()),
             json_string(task.reason()));
}

constexpr const char* examples =
    "A problem is one line: reducer, type, shape, then k s d p and options; docs/problems.md has the grammar.\n"
    "Examples:\n"
    "  cenote plan \"max f32 32x64x112x112 k3 s2 p1\"\n"
    "  cenote plan \"avg bf16 8x56x56x64 k3x3 s2 same last div=valid\"\n"
    "  cenote plan \"max f32 32x64x112x112 k3 s2 p1 vjp\"\n"
    "  cenote plan --json \"max f32 32x64x112x112 k3 s2 p1\"\n"
    "  cenote plan \"smooth_max f32 64x128x16384 k101 beta=4\" \"avg f32 8x64x31x31 adaptive=7x7\"";

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> problems;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("plan", "Explain how problems would be pooled");
  command.footer(examples);
  command.add_option("PROBLEM", options->problems, "Problems, one string each")->required();
  command.add_flag("--json", options->json, "Print one line of JSON for each");
  command.callback([options, &action] {
    action = [options] {
      std::vector<Task> tasks;
      for (const std::string& text : options->problems) tasks.emplace_back(parse_problem(text));
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (options->json) {
          print_json(options->problems[i], tasks[i]);
        } else {
          explain(tasks[i]);
        }
      }
    };
  });
}

}  // namespace cenote::cli
