// cenote bench: time, bandwidth and efficiency of problems, each against a copy in the same run.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/file.h>
#include <plan/ways.h>

#include "arguments.h"
#include "commands.h"
#include "json.h"
#include "progress.h"
#include "task.h"

namespace cenote::cli {
namespace {

struct Options {
  std::vector<std::string> problems;
  std::optional<std::string> file;
  std::optional<int> threads;
  std::optional<int> runs;
  double least = 0.25;
  bool json = false, ways = false;
};

struct Entry {
  std::string text;
  Task task;
};

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// One problem per line; a # begins a comment.
void read_list(const std::string& path, std::vector<Entry>& entries) {
  const io::MappedFile file(path);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::string text(trim(line.substr(0, line.find('#'))));
    if (text.empty()) continue;
    try {
      entries.push_back({text, Task(parse_problem(text))});
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
}

// The same poolings once more for every other way, which is named behind the problem. Derivatives stay as they are.
std::vector<Entry> by_every_way(const std::vector<Entry>& entries) {
  std::vector<Entry> result;
  for (const Entry& entry : entries) {
    if (entry.task.is_derivative()) {
      result.push_back(entry);
      continue;
    }
    for (Way& way : ways(entry.task.plan()))
      result.push_back({entry.text + " (" + way.name + ")", Task(parse_problem(entry.text), std::move(way.plan))});
  }
  return result;
}

std::string json_row(const Entry& entry, const Timing& t) {
  return fmt::format(
      "    {{\"problem\": {}, \"algorithm\": {}, \"plan\": {}, \"bytes\": {}, \"runs\": {}, \"best_seconds\": {:.9g}, "
      "\"median_seconds\": {:.9g}, \"gigabytes_per_second\": {:.6g}, \"copy_gigabytes_per_second\": {:.6g}, "
      "\"efficiency\": {:.4g}}}",
      json_string(entry.text), json_string(entry.task.algorithm()), json_string(entry.task.explain()), t.bytes, t.runs,
      t.best, t.median, t.gigabytes_per_second(), t.copy_gigabytes_per_second(), t.efficiency());
}

void print_json(const std::vector<std::string>& rows) {
  fmt::print("{{\n  \"cenote\": {}, \"machine\": {}, \"simd\": {}, \"threads\": {},\n  \"results\": [\n",
             json_string(version()), json_string(machine()), json_string(simd_target()), threads());
  for (std::size_t i = 0; i < rows.size(); ++i) fmt::print("{}{}\n", rows[i], i + 1 < rows.size() ? "," : "");
  fmt::print("  ]\n}}\n");
}

void run(const Options& options) {
  if (options.problems.empty() && !options.file) {
    throw std::invalid_argument("a problem or --file is needed (see cenote bench --help)");
  }
  if (!(options.least > 0 && options.least <= 3600)) {
    reject_value("--min-time", fmt::format("{}", options.least), "more than 0 and at most 3600 seconds");
  }
  if (options.runs && (*options.runs < 1 || options.json)) {
    reject_value("--runs", fmt::format("{}", *options.runs), "at least 1, and without --json");
  }
  use_threads(options.threads);
  std::vector<Entry> entries;
  for (const std::string& text : options.problems) entries.push_back({text, Task(parse_problem(text))});
  if (options.file) read_list(*options.file, entries);
  if (options.ways) entries = by_every_way(entries);
  if (options.runs) {
    for (const Entry& entry : entries) entry.task.repeat(*options.runs);
    return;
  }

  std::size_t width = 7;
  for (const Entry& entry : entries) width = std::max(width, entry.text.size());
  Progress progress("bench");
  if (!options.json) {
    fmt::print("cenote {}, {}, {} thread(s); a copy has efficiency 1\n", version(), simd_target(), threads());
    fmt::print("{:<{}}  {:>10}  {:>10}  {:>8}  {:>9}  {:>6}\n", "problem", width, "best ms", "median ms", "GB/s",
               "copy GB/s", "eff.");
  }
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    progress.say(fmt::format("bench {} of {}: {}", i + 1, entries.size(), entries[i].text));
    const Timing t = entries[i].task.time(options.least);
    progress.hide();
    if (options.json) {
      rows.push_back(json_row(entries[i], t));
    } else {
      fmt::print("{:<{}}  {:>10.4f}  {:>10.4f}  {:>8.2f}  {:>9.2f}  {:>6.2f}\n", entries[i].text, width, t.best * 1e3,
                 t.median * 1e3, t.gigabytes_per_second(), t.copy_gigabytes_per_second(), t.efficiency());
      std::fflush(stdout);
    }
  }
  if (options.json) print_json(rows);
}

constexpr const char* examples =
    "Efficiency is the time of a copy that moves the same bytes on the same threads, divided by the best time.\n"
    "A problem that ends in jvp or vjp is a derivative; that of max and min goes back from saved offsets.\n"
    "Examples:\n"
    "  cenote bench \"max f32 32x64x112x112 k3 s2 p1\"\n"
    "  cenote bench --threads 1 \"max f32 32x64x112x112 k3 s2 p1\" \"max f32 32x112x112x64 k3 s2 p1 last\"\n"
    "  cenote bench \"max f32 32x64x112x112 k3 s2 p1 vjp\" \"smooth_max f32 32x64x112x112 k3 s2 p1 beta=4 jvp\"\n"
    "  cenote bench --ways \"max f32 16x128x4096 k9\"\n"
    "  cenote bench --file benchmarks/problems.txt --json > bench.json";

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("bench", "Time problems and compare them with a copy");
  command.footer(examples);
  command.add_option("PROBLEM", options->problems, "Problems, one string each");
  command.add_option("--file", options->file, "A file with a problem on each line; # begins a comment")
      ->type_name("FILE");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_option("--min-time", options->least, "Seconds to spend on each problem at least (0.25)")
      ->type_name("SECONDS");
  command.add_option("--runs", options->runs, "Run each so many times and print nothing: for profilers")
      ->type_name("N");
  command.add_flag("--ways", options->ways, "Time every algorithm that a pooling could use, not only the chosen one");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
