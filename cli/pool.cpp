// cenote pool: one array or picture in, the pooled one out.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>
#include <io/png.h>

#include "arguments.h"
#include "commands.h"
#include "files.h"
#include "pooling_options.h"
#include "progress.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string input, output;
  PoolingOptions pooling;
  Text indices, index_kind, type;
  bool verbose = false;
  std::optional<int> threads;
};

constexpr std::array<std::pair<std::string_view, IndexKind>, 4> index_kinds{
    {{"offset", IndexKind::offset},
     {"plane", IndexKind::plane},
     {"tensor", IndexKind::tensor},
     {"tensor_column", IndexKind::tensor_column}}};

Pooling read_request(const Options& options, bool is_picture) {
  Pooling pooling = read_pooling(options.pooling, is_picture);
  require_reducer("--indices", options.indices, pooling.reducer, {Reducer::max, Reducer::min});
  if (options.indices) {
    pooling.indices =
        options.index_kind ? read_name("--index-kind", *options.index_kind, index_kinds) : IndexKind::plane;
  }
  return pooling;
}

void check_request(const Options& options) {
  require_region(options.pooling, "pool");
  format_of(options.input);
  format_of(options.output);
  if (!options.indices) return;
  if (format_of(*options.indices) != Format::npy)
    reject_value("--indices", *options.indices, "the name must end in .npy");
  if (same_file(options.output, *options.indices)) {
    reject_value("--indices", *options.indices, "values and indices cannot go into one file");
  }
}

void run(const Options& options) {
  check_request(options);
  use_threads(options.threads);
  std::optional<Type> as;
  if (options.type) as = parse_type(*options.type);
  Progress progress("reading " + options.input);
  const Input input(options.input, as);
  const View x = input.view();
  const Plan plan = cenote::plan(read_request(options, input.is_picture()), x.type, x.shape);
  if (format_of(options.output) == Format::png) io::require_picture(plan.output_shape());
  if (options.verbose) {
    progress.hide();
    fmt::print(stderr, "{}\n", plan.explain());
  }

  progress.say("pooling " + options.input);
  Array y(plan.output_type(), plan.output_shape());
  std::optional<Array> indices;
  if (plan.index_type()) indices.emplace(*plan.index_type(), plan.output_shape());
  // Opened before the work: that a file cannot be made is told at once.
  io::OutputFile values_file(options.output);
  std::optional<io::OutputFile> indices_file;
  if (options.indices) indices_file.emplace(*options.indices);
  if (indices) {
    plan.run(x, y, *indices);
  } else {
    plan.run(x, y);
  }

  progress.say("writing " + options.output);
  write(values_file, y, y.type() == Type::u16 || x.type == Type::u16);
  if (indices) {
    io::write_npy(*indices_file, *indices);
    indices_file->commit();
  }
  values_file.commit();
}

constexpr const char* examples =
    "A list has one entry per pooled axis; one number stands for all of them. The pooled axes are the last\n"
    "ones, as many as --window has entries, and of a picture its two sides. Files are .npy, as NumPy writes\n"
    "them, or .png with 8 or 16 bits, where results are rounded and clamped. They appear when complete.\n"
    "Examples:\n"
    "  cenote pool in.npy out.npy --reducer max --window 3,3 --stride 2 --padding same\n"
    "  cenote pool photo.png small.png --reducer avg --window 4 --stride 4\n"
    "  cenote pool in.npy out.npy --reducer avg --window 3,3 --padding 1:2,0:1 --ceil --divisor valid\n"
    "  cenote pool in.npy out.npy --window 2,2 --stride 2 --channels-last --indices where.npy --index-kind offset\n"
    "  cenote pool in.npy out.npy --reducer smooth_max --beta 4 --window 5,5 --pad ignore\n"
    "  cenote pool in.npy out.npy --reducer avg --adaptive 7,7\n"
    "  cenote pool in.npy out.npy --reducer sum --global --axes 1,3 --dtype i64\n"
    "  cenote pool bf16.npy out.npy --type bf16 --reducer lp --p 3 --window 9";

}  // namespace

void add_pool(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("pool", "Pool an array (.npy) or a picture (.png)");
  command.footer(examples);
  command.add_option("IN", options->input, "The array or picture to read")->required();
  command.add_option("OUT", options->output, "The file to write")->required();
  command.add_option("--type", options->type, "Type of the input; needed for bf16, which NumPy stores as void")
      ->type_name("TYPE");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_flag("-v,--verbose", options->verbose, "Say on standard error which algorithm was chosen and why");
  add_pooling_options(command, options->pooling);
  auto* indices = command.add_option("--indices", options->indices, "max, min: write where each winner is")
                      ->type_name("IDX.npy")
                      ->group(reducer_group);
  command.add_option("--index-kind", options->index_kind, "offset, plane, tensor or tensor_column (plane)")
      ->type_name("KIND")
      ->group(reducer_group)
      ->needs(indices);
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
