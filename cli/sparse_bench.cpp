// cenote sparse-bench: relations and reductions of synthetic clouds, apart, against a map and against a copy.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/file.h>

#include "arguments.h"
#include "benchmarks/clouds.h"
#include "benchmarks/map_relation.h"
#include "commands.h"
#include "measure.h"
#include "progress.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string voxels = "10000,100000,1000000,10000000";
  std::vector<std::string> clouds{bench::cloud_names.begin(), bench::cloud_names.end()};
  std::string channels = "1,16,64,256";
  std::vector<std::string> kernels{"k2s2", "k3s1"};
  std::vector<std::string> orders{"morton", "unsorted"};
  std::optional<int> threads;
  std::optional<std::string> json;
  std::optional<int> runs;
  double least = 0.2;
  bool quick = false;
};

/// "k3s1" is a window of 3 cells a side at every voxel; "k2s2t" the transposed one.
struct Window {
  std::string name;
  std::int64_t size = 0, stride = 0;
  bool transposed = false;

  explicit Window(const std::string& text) : name(text), transposed(text.ends_with('t')) {
    const std::string numbers = transposed ? text.substr(0, text.size() - 1) : text;
    const std::size_t s = numbers.find('s');
    if (!numbers.starts_with('k') || s == std::string::npos) reject_value("--kernel", text, "such as k2s2 or k2s2t");
    const Extents read = read_integers("--kernel", numbers.substr(1, s - 1) + "," + numbers.substr(s + 1));
    if (read.size() != 2) reject_value("--kernel", text, "such as k2s2 or k2s2t");
    size = read[0], stride = read[1];
  }
  Relation relate(const std::shared_ptr<const Coordinates>& coords) const {
    const Kernel kernel{size, stride};
    return transposed ? relate_transposed(coords, kernel) : cenote::relate(coords, kernel);
  }
};

/// One line of the table.
struct Result {
  std::string cloud, order, kernel, what;
  std::int64_t voxels = 0, outputs = 0, edges = 0;
  Timing timing{};
  double map = 0;  // seconds per voxel, 0: not compared

  double nanoseconds() const { return timing.best / static_cast<double>(voxels) * 1e9; }
  double per_second() const { return static_cast<double>(voxels) / timing.best; }
  double faster() const { return map * static_cast<double>(voxels) / timing.best; }
};

class Report {
 public:
  Report() {
    fmt::print("cenote {}, {}, {} thread(s); times are per voxel, a copy has efficiency 1, map is std::unordered_map\n",
               version(), simd_target(), threads());
    fmt::print("{:<8} {:<9} {:>9} {:<6} {:<12} {:>10} {:>10} {:>8} {:>9} {:>6} {:>10} {:>7}\n", "cloud", "order",
               "voxels", "kernel", "what", "ns", "Mvoxel/s", "GB/s", "copy GB/s", "eff.", "map ns", "faster");
  }
  void add(const Result& r) {
    std::string line = fmt::format("{:<8} {:<9} {:>9} {:<6} {:<12} {:>10.2f} {:>10.1f}", r.cloud, r.order, r.voxels,
                                   r.kernel, r.what, r.nanoseconds(), r.per_second() * 1e-6);
    if (r.timing.bytes > 0) {
      line += fmt::format(" {:>8.2f} {:>9.2f} {:>6.2f}", r.timing.gigabytes_per_second(),
                          r.timing.copy_gigabytes_per_second(), r.timing.efficiency());
    } else if (r.map > 0) {
      line += fmt::format(" {:>8} {:>9} {:>6} {:>10.1f} {:>6.1f}x", "", "", "", r.map * 1e9, r.faster());
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
    std::string& row = rows_.emplace_back();
    row = fmt::format(
        "    {{\"cloud\": \"{}\", \"order\": \"{}\", \"voxels\": {}, \"kernel\": \"{}\", \"what\": \"{}\", "
        "\"outputs\": {}, \"edges\": {}, \"best_seconds\": {:.9g}, \"median_seconds\": {:.9g}, "
        "\"nanoseconds_per_voxel\": {:.6g}, \"voxels_per_second\": {:.6g}",
        r.cloud, r.order, r.voxels, r.kernel, r.what, r.outputs, r.edges, r.timing.best, r.timing.median,
        r.nanoseconds(), r.per_second());
    if (r.timing.bytes > 0)
      row += fmt::format(", \"bytes\": {}, \"copy_gigabytes_per_second\": {:.6g}, \"efficiency\": {:.4g}",
                         r.timing.bytes, r.timing.copy_gigabytes_per_second(), r.timing.efficiency());
    if (r.map > 0) row += fmt::format(", \"map_nanoseconds_per_voxel\": {:.6g}", r.map * 1e9);
    row += "}";
  }
  void write(const std::string& path) const {
    std::string text = fmt::format("{{\n  \"cenote\": \"{}\", \"simd\": \"{}\", \"threads\": {},\n  \"results\": [\n",
                                   version(), simd_target(), threads());
    for (std::size_t i = 0; i < rows_.size(); ++i) text += rows_[i] + (i + 1 < rows_.size() ? ",\n" : "\n");
    io::OutputFile file(path);
    file.write(text + "  ]\n}\n");
    file.commit();
  }

 private:
  std::vector<std::string> rows_;
};

/// Rows read and rows written, each once, and the arrays that say which belong to which.
std::int64_t reduction_bytes(const Relation& relation, std::int64_t channels) {
  const std::int64_t rows = (relation.inputs() + relation.outputs()) * channels * 4;
  return rows + (relation.outputs() + 1) * 8 + (relation.contiguous() ? 0 : relation.edges() * 4);
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), channels_(read_integers("--channels", options.channels)) {
    for (const std::int64_t c : channels_)
      if (c < 1) reject_value("--channels", options.channels, "every number must be at least 1");
    for (const std::string& name : options.kernels) windows_.emplace_back(name);
  }

  void run(Report& report, const std::string& cloud, std::int64_t voxels) {
    progress_.say(fmt::format("sparse-bench {} of {} voxels", cloud, voxels));
    const Array rows = bench::cloud(cloud, voxels);
    const auto unsorted = Coordinates::make(rows);
    Result result;
    result.cloud = cloud;
    result.voxels = voxels;
    const auto time = [&](const char* what, const auto& work) {
      result.what = what;
      result.timing = measure(work, 0, options_.least);
      add(report, result);
    };
    result.order = "unsorted";
    time("check", [&] { Coordinates::make(rows); });
    time("Morton sort", [&] { unsorted->sorted(); });
    for (const Window& window : windows_) {
      result.kernel = window.name;
      const std::int64_t first = window.size % 2 == 1 ? -(window.size / 2) : 0;
      const double map = window.transposed ? 0 : bench::map_seconds(rows, window.size, window.stride, first);
      for (const std::string& order : options_.orders) {
        const auto coords = order == "morton" ? unsorted->sorted() : unsorted;
        const Relation relation = window.relate(coords);
        result.order = order;
        result.map = map;
        result.outputs = relation.outputs();
        result.edges = relation.edges();
        time("relation", [&] { window.relate(coords); });
        time("with edges", [&] {
          const Relation made = window.relate(coords);
          made.row_offsets();
          if (!made.contiguous()) made.in_row();
        });
        result.map = 0;
        for (const std::int64_t c : channels_) reduce(report, relation, result, c);
      }
    }
  }

  /// Relates and reduces, so many times and untimed.
  void repeat(const std::string& cloud, std::int64_t voxels, int runs) {
    const auto unsorted = Coordinates::make(bench::cloud(cloud, voxels));
    for (const std::string& order : options_.orders) {
      const auto coords = order == "morton" ? unsorted->sorted() : unsorted;
      for (const Window& window : windows_) {
        for (const std::int64_t c : channels_) {
          const Array x = noise(Type::f32, {voxels, c});
          for (int i = 0; i < runs; ++i) {
            const Relation relation = window.relate(coords);
            Array y(Type::f32, {relation.outputs(), c});
            RowPooling(relation, {.reducer = Reducer::max, .empty = Empty::identity}).run(x, y);
          }
        }
      }
    }
  }

 private:
  void reduce(Report& report, const Relation& relation, Result result, std::int64_t channels) {
    // A million rows of 256 channels are a gigabyte.
    if (channels > 64 && relation.inputs() * channels > std::int64_t{256} * 1000000) return;
    const RowPooling pooling(relation, {.reducer = Reducer::max, .empty = Empty::identity});
    const Array x = noise(Type::f32, {relation.inputs(), channels});
    Array y(Type::f32, {relation.outputs(), channels});
    result.what = fmt::format("max C={}", channels);
    result.timing = measure([&] { pooling.run(x, y); }, reduction_bytes(relation, channels), options_.least);
    add(report, result);
  }
  void add(Report& report, const Result& result) {
    progress_.hide();
    report.add(result);
  }

  const Options& options_;
  Extents channels_;
  std::vector<Window> windows_;
  Progress progress_{"sparse-bench"};
};

void check_names(const char* option, const std::vector<std::string>& given, const auto& known) {
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string allowed = "one of";
    for (const auto& one : known) allowed += fmt::format(" {}", one);
    reject_value(option, name, allowed);
  }
}

void run(const Options& options) {
  const Extents voxels = read_integers("--voxels", options.voxels);
  for (const std::int64_t n : voxels)
    if (n < 1 || n > 100000000) reject_value("--voxels", options.voxels, "every number must be from 1 to 100000000");
  if (!(options.least > 0 && options.least <= 3600))
    reject_value("--min-time", fmt::format("{}", options.least), "more than 0 and at most 3600 seconds");
  check_names("--cloud", options.clouds, bench::cloud_names);
  check_names("--order", options.orders, std::array{"morton", "unsorted"});
  if (options.runs && *options.runs < 1) reject_value("--runs", fmt::format("{}", *options.runs), "at least 1");
  use_threads(options.threads);
  Bench work(options);
  if (options.runs) {
    for (const std::string& cloud : options.clouds)
      for (const std::int64_t n : voxels) work.repeat(cloud, n, *options.runs);
    return;
  }
  Report report;
  for (const std::string& cloud : options.clouds)
    for (const std::int64_t n : voxels) work.run(report, cloud, n);
  if (options.json) report.write(*options.json);
}

constexpr const char* examples =
    "Relations and reductions are timed apart. The efficiency of a reduction is the time of a copy that moves the "
    "same\n"
    "bytes on the same threads, divided by its own: rows read, rows written, and the relation.\n"
    "Examples:\n"
    "  cenote sparse-bench --threads 1 --voxels 1000000 --cloud surface --channels 64\n"
    "  cenote sparse-bench --kernel k2s2,k2s2t,k3s2 --voxels 100000 --json sparse.json\n"
    "  cenote sparse-bench --quick";

}  // namespace

void add_sparse_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("sparse-bench", "Time relations and reductions of synthetic voxel clouds");
  command.footer(examples);
  command.add_option("--voxels", options->voxels, "Numbers of voxels (10000 to 10000000)")->type_name("LIST");
  command.add_option("--cloud", options->clouds, "lidar, surface, cube")->delimiter(',')->type_name("NAMES");
  command.add_option("--channels", options->channels, "Numbers of channels (1,16,64,256)")->type_name("LIST");
  command.add_option("--kernel", options->kernels, "Windows (k2s2,k3s1); t: transposed")
      ->delimiter(',')
      ->type_name("LIST");
  command.add_option("--order", options->orders, "morton, unsorted")->delimiter(',')->type_name("NAMES");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_option("--min-time", options->least, "Seconds to spend on each line at least (0.2)")
      ->type_name("SECONDS");
  command.add_option("--json", options->json, "Write the results to a file too")->type_name("FILE");
  command.add_option("--runs", options->runs, "Run each so many times and print nothing: for profilers")
      ->type_name("N");
  command.add_flag("--quick", options->quick, "Small clouds and few channels, a few seconds in all");
  command.callback([options, &action] {
    if (options->quick) {
      options->voxels = "10000,100000";
      options->channels = "16";
      options->least = 0.02;
    }
    action = [options] { run(*options); };
  });
}

}  // namespace cenote::cli
