// cenote sparse-pool: features on the points of a lattice in, the pooled ones out.
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>

#include "arguments.h"
#include "commands.h"
#include "files.h"
#include "pooling_options.h"
#include "progress.h"
#include "sparse_rows.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string input, output, mode = "max";
  std::optional<int> dimension, threads;
  Text coords, out_coords, type, kernel, stride, padding, dilation, extent, policy, order, engine, divisor, beta, p,
      empty, duplicates;
  bool explain = false;
};

constexpr std::array<std::pair<std::string_view, Policy>, 3> policies{
    {{"lattice", Policy::lattice}, {"dense", Policy::dense}, {"minkowski", Policy::minkowski}}};
constexpr std::array<std::pair<std::string_view, Order>, 2> orders{
    {{"first_seen", Order::first_seen}, {"sorted", Order::sorted}}};
constexpr std::array<std::pair<std::string_view, Engine>, 3> engines{
    {{"automatic", Engine::automatic}, {"sorted", Engine::sorted}, {"hashed", Engine::hashed}}};
constexpr std::array<std::pair<std::string_view, Empty>, 2> empties{
    {{"reject", Empty::reject}, {"identity", Empty::identity}}};
constexpr std::array<std::pair<std::string_view, Merge>, 5> merges{
    {{"sum", Merge::sum}, {"mean", Merge::mean}, {"max", Merge::max}, {"min", Merge::min}, {"first", Merge::first}}};

EdgeDivisor read_edge_divisor(std::string_view option, const std::string& text) {
  if (text == "count") return EdgeDivisor::Rule::count;
  if (text == "volume") return EdgeDivisor::Rule::volume;
  try {
    return read_number(option, text);
  } catch (const std::invalid_argument&) {
    reject_value(option, text, "count, volume or a number");
  }
}

Reducer read_reducer(std::string_view option, const std::string& text) {
  try {
    return parse_reducer(text);
  } catch (const std::invalid_argument&) {
    reject_value(option, text, reducer_names());
  }
}

Reduction read_reduction(const Options& options) {
  Reduction reduction;
  reduction.reducer = read_reducer("--mode", options.mode);
  const Reducer reducer = reduction.reducer;
  require_reducer("--divisor", options.divisor, reducer, {Reducer::avg});
  require_reducer("--beta", options.beta, reducer, {Reducer::smooth_max});
  require_reducer("--p", options.p, reducer, {Reducer::lp});
  require_reducer("--empty", options.empty, reducer, {Reducer::max, Reducer::min, Reducer::smooth_max});
  if (options.divisor) reduction.divisor = read_edge_divisor("--divisor", *options.divisor);
  if (options.beta) reduction.beta = read_number("--beta", *options.beta);
  if (options.p) reduction.p = read_number("--p", *options.p);
  if (options.empty) reduction.empty = read_name("--empty", *options.empty, empties);
  return reduction;
}

SparsePooling read_request(const Options& options) {
  SparsePooling pooling{.reduction = read_reduction(options)};
  if (options.kernel) pooling.kernel.size = read_per_axis("--kernel", *options.kernel);
  if (options.stride) pooling.kernel.stride = read_per_axis("--stride", *options.stride);
  if (options.padding) pooling.kernel.padding = read_per_axis("--padding", *options.padding);
  if (options.dilation) pooling.kernel.dilation = read_per_axis("--dilation", *options.dilation);
  if (options.extent) pooling.options.extent = read_integers("--extent", *options.extent);
  if (options.policy) pooling.options.policy = read_name("--policy", *options.policy, policies);
  if (options.order) pooling.options.order = read_name("--order", *options.order, orders);
  if (options.engine) pooling.options.engine = read_name("--engine", *options.engine, engines);
  return pooling;
}

void check_files(const Options& options) {
  for (const Text& path : {Text(options.input), Text(options.output), options.coords, options.out_coords}) {
    if (path && extension_of(*path) != ".npy") throw std::invalid_argument(*path + ": the name must end in .npy");
  }
  if (!options.dimension && !options.coords) {
    throw std::invalid_argument(
        "--dims is needed, the number of coordinates after the batch, or --coords (see cenote sparse-pool --help)");
  }
  if (options.dimension && (*options.dimension < 1 || *options.dimension > max_lattice_dimension)) {
    reject_value("--dims", std::to_string(*options.dimension), fmt::format("from 1 to {}", max_lattice_dimension));
  }
  if (options.out_coords && same_file(options.output, *options.out_coords))
    reject_value("--out-coords", *options.out_coords, "features and coordinates cannot go into one file");
}

Words words_of(const Options& options) {
  return {{"kernel.size", "--kernel"},
          {"kernel.stride", "--stride"},
          {"kernel.padding", "--padding"},
          {"kernel.dilation", "--dilation"},
          {"extent[", "--extent["},
          {"extent (", "--extent ("},
          {"extent with policy", "--extent with --policy"},
          {"divisor =", "--divisor ="},
          {"beta =", "--beta ="},
          {"p =", "--p ="},
          {"coalesce merges duplicates", "--duplicates merges those that do not"},
          {"empty must be identity", "--empty must be identity"},
          {"coords row", options.coords.value_or(options.input) + ": row"}};
}

SparseTensor make_tensor(const Options& options, const SparseRows& rows) {
  if (!options.duplicates) return SparseTensor(rows.coords, rows.feats);
  return SparseTensor::coalesced(rows.coords, rows.feats, read_name("--duplicates", *options.duplicates, merges));
}

void run(const Options& options) {
  check_files(options);
  const SparsePooling pooling = read_request(options);
  if (options.duplicates) read_name("--duplicates", *options.duplicates, merges);
  use_threads(options.threads);
  RowSource source{.path = options.input, .dimension = options.dimension, .coords = options.coords};
  if (options.type) source.type = parse_type(*options.type);
  Progress progress("reading " + options.input);
  const SparseRows rows = read_rows(source);

  progress.say("relating the rows of " + options.input);
  // Opened before the work: that a file cannot be made is told at once.
  io::OutputFile file(options.output);
  std::optional<io::OutputFile> coords_file;
  if (options.out_coords) coords_file.emplace(*options.out_coords);
  const Words words = words_of(options);
  const SparseTensor x = told_in(words, [&] { return make_tensor(options, rows); });
  const Relation relation = told_in(words, [&] { return relate(x.coordinates(), pooling.kernel, pooling.options); });
  progress.say("pooling " + options.input);
  const SparseTensor y = told_in(words, [&] { return pool(x, relation, pooling.reduction); });
  const Array feats = stored_features(y, pooling.reduction.reducer, rows.type);

  progress.say("writing " + options.output);
  io::write_npy(file, coords_file ? feats : joined(y.coords(), feats));
  if (coords_file) {
    io::write_npy(*coords_file, y.coords());
    coords_file->commit();
  }
  file.commit();
  progress.hide();
  if (options.explain) fmt::print("{}\n", relation.explain());
}

constexpr const char* examples =
    "IN has a row for each point: batch, D coordinates and the features, (N, 1 + D + C), with --dims D; or the\n"
    "features alone, (N, C), with --coords for an i32 or i64 array (N, 1 + D) of batches and coordinates. The\n"
    "result has the same layout. Coordinates are whole numbers and rows differ, unless --duplicates merges them.\n"
    "Integers stay integers in max, min and sum; in other modes the result is f64.\n"
    "Policies: lattice (mlx-lattice) and minkowski (MinkowskiEngine) have an output at floor(c / stride) of every\n"
    "input; dense has one wherever a window of the dense array would hold an input.\n"
    "Examples:\n"
    "  cenote sparse-pool points.npy pooled.npy --dims 3 --mode max --kernel 2 --stride 2\n"
    "  cenote sparse-pool points.npy pooled.npy --dims 2 --mode avg --kernel 3 --stride 1 --divisor volume --explain\n"
    "  cenote sparse-pool points.npy pooled.npy --dims 3 --mode sum --kernel 3,3,1 --policy dense --padding 1,1,0\n"
    "  cenote sparse-pool feats.npy out.npy --coords coords.npy --out-coords out-coords.npy --mode lp --p 3\n"
    "  cenote sparse-pool events.npy counts.npy --dims 2 --duplicates sum --mode sum --kernel 4 --stride 4";

void add_windows(CLI::App& command, Options& options) {
  const auto add = [&](const char* name, Text& value, const char* type, const char* help) {
    command.add_option(name, value, help)->type_name(type)->group("Windows");
  };
  add("--kernel", options.kernel, "LIST", "Extents of the window, one for all axes or one each (2)");
  add("--stride", options.stride, "LIST", "Steps of the window (2)");
  add("--padding", options.padding, "LIST", "How far windows begin before their place (0)");
  add("--dilation", options.dilation, "LIST", "Steps inside the window (1)");
  add("--policy", options.policy, "NAME", "lattice, dense or minkowski: which outputs there are (lattice)");
  add("--extent", options.extent, "LIST", "dense: the extents of the dense array, one for each axis");
  add("--order", options.order, "NAME", "first_seen or sorted: the order of output rows (first_seen; dense: sorted)");
  add("--engine", options.engine, "NAME", "automatic, sorted or hashed: how rows are found (automatic)");
}

void add_reductions(CLI::App& command, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& help) {
    command.add_option(name, value, help)->type_name(type)->group(reducer_group);
  };
  add("--mode", options.mode, "NAME", reducer_names() + " (max)");
  add("--divisor", options.divisor, "RULE",
      "avg: count (of contributing rows), volume (of the window) or a number (count)");
  add("--beta", options.beta, "X", "smooth_max: sharpness; negative for a smooth min (1)");
  add("--p", options.p, "X", "lp: the exponent, at least 1, or inf (2)");
  add("--empty", options.empty, "RULE", "max, min, smooth_max: reject outputs without inputs, or identity (reject)");
}

}  // namespace

void add_sparse_pool(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("sparse-pool", "Pool features on the points of a lattice (.npy)");
  command.footer(examples);
  command.add_option("IN", options->input, "The rows to read")->required();
  command.add_option("OUT", options->output, "The file to write")->required();
  auto* dimension =
      command.add_option("--dims", options->dimension, "Columns of IN that are coordinates, after the batch")
          ->type_name("D");
  auto* coords =
      command.add_option("--coords", options->coords, "Batches and coordinates, where IN has the features alone")
          ->type_name("C.npy");
  auto* out_coords =
      command.add_option("--out-coords", options->out_coords, "Where those of the result go")->type_name("OUT.npy");
  coords->excludes(dimension)->needs(out_coords);
  out_coords->needs(coords);
  command.add_option("--duplicates", options->duplicates, "Merge rows of one place: sum, mean, max, min or first")
      ->type_name("RULE");
  command.add_option("--type", options->type, "Type of the input; needed for bf16, which NumPy stores as void")
      ->type_name("TYPE");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_flag("--explain", options->explain, "Print by which route the rows were related, and why");
  add_windows(command, *options);
  add_reductions(command, *options);
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
