// cenote, the command line: exit status 0 when done, 1 when it failed, 2 when it was asked wrongly.
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <cenote/cenote.h>

#include "commands.h"

namespace {

// One line on standard error, whatever the text holds.
int report(std::string_view text, int status) {
  std::string line;
  for (const char c : text) line += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  fmt::print(stderr, "cenote: {}\n", line);
  return status;
}

// Help with the options' values and words alone; which options go together is said when they do not.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(26); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_positional() ? "" : " " + option->get_type_name();
  }
};

const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

bool knows(const CLI::App& app, const std::string& command) {
  return !app.get_subcommands([&](const CLI::App* known) { return known->check_name(command); }).empty();
}

int run(int argc, char** argv) {
  CLI::App app{"Pooling at memory speed: window reductions over arrays, pictures and points, and their derivatives.",
               "cenote"};
  app.set_version_flag("--version", std::string("cenote ") + cenote::version());
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 1 failed, 2 wrong usage. CENOTE_THREADS and CENOTE_SIMD set threads and SIMD target.\n"
      "Examples:\n"
      "  cenote pool in.npy out.npy --reducer max --window 3,3 --stride 2 --padding same\n"
      "  cenote grad in.npy -o gx.npy --reducer max --window 3,3 --stride 2 --padding same\n"
      "  cenote sparse-pool points.npy pooled.npy --dims 3 --mode max --kernel 2 --stride 2\n"
      "  cenote voxelize scan.ply thin.ply --voxel 0.05 --mode avg\n"
      "  cenote plan \"max f32 32x64x112x112 k3 s2 p1\"\n"
      "  cenote bench \"avg bf16 8x56x56x64 k3x3 s2 same last\"\n"
      "  cenote demo -o demo");
  cenote::cli::Action action;
  cenote::cli::add_pool(app, action);
  cenote::cli::add_grad(app, action);
  cenote::cli::add_sparse_pool(app, action);
  cenote::cli::add_voxelize(app, action);
  cenote::cli::add_plan(app, action);
  cenote::cli::add_bench(app, action);
  cenote::cli::add_sparse_bench(app, action);
  cenote::cli::add_demo(app, action);
  if (argc > 1 && argv[1][0] != '-' && !knows(app, argv[1])) {
    return report(fmt::format("'{}' is no command: pool, grad, sparse-pool, voxelize, plan, bench, sparse-bench or "
                              "demo (see cenote --help)",
                              argv[1]),
                  2);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const CLI::App& command = innermost(app);
    const std::string name = &command == &app ? "cenote" : "cenote " + command.get_name();
    return report(fmt::format("{} (see {} --help)", error.what(), name), 2);
  }
  action();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write(), told like any other
  int status = 0;
  try {
    status = run(argc, argv);
  } catch (const std::invalid_argument& error) {
    status = report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    status = report("out of memory", 1);
  } catch (const std::exception& error) {
    status = report(error.what(), 1);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return report("cannot write to standard output", 1);
  return status;
}
