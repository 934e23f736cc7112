// The subcommands. Each adds its options to the application and says what to do once they have been read.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace cenote::cli {

/// Set by the subcommand that was given; called after the whole command line has been found right.
using Action = std::function<void()>;

void add_pool(CLI::App& app, Action& action);
void add_grad(CLI::App& app, Action& action);
void add_voxelize(CLI::App& app, Action& action);
void add_sparse_pool(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_sparse_bench(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);

}  // namespace cenote::cli
