// cenote pool: one array or picture in, the pooled one out.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>
#include <io/png.h>

#include "arguments.h"
#include "commands.h"
#include "progress.h"

namespace cenote::cli {
namespace {

using Text = std::optional<std::string>;

struct Options {
  std::string input, output, reducer = "max";
  Text window, stride, dilation, padding, adaptive, axes, divisor, beta, pad, p, dtype, indices, index_kind, ties, type;
  bool global = false, drop = false, ceil = false, exact = false, allow_empty = false, channels_last = false;
  bool verbose = false;
  std::optional<int> threads;
};

constexpr std::array<std::pair<std::string_view, IndexKind>, 4> index_kinds{
    {{"offset", IndexKind::offset},
     {"plane", IndexKind::plane},
     {"tensor", IndexKind::tensor},
     {"tensor_column", IndexKind::tensor_column}}};
constexpr std::array<std::pair<std::string_view, SmoothPadding>, 2> smooth_paddings{
    {{"zero", SmoothPadding::zero}, {"ignore", SmoothPadding::ignore}}};
constexpr std::array<std::pair<std::string_view, Ties>, 2> tie_rules{{{"first", Ties::first}, {"split", Ties::split}}};

enum class Format { npy, png };

Format format_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (extension == ".npy") return Format::npy;
  if (extension == ".png") return Format::png;
  throw std::invalid_argument(path + ": the name must end in .npy or .png");
}

// The input, whichever way it is held.
class Input {
 public:
  Input(const std::string& path, std::optional<Type> as) {
    if (format_of(path) == Format::npy) {
      file_ = io::NpyFile(path, as);
    } else {
      file_ = io::read_png(path);
      const Type found = view().type;
      if (as && *as != found) throw FileError(fmt::format("{}: holds {}, not {}", path, name(found), name(*as)));
    }
  }
  bool is_picture() const { return std::holds_alternative<Array>(file_); }
  View view() const {
    return is_picture() ? View(std::get<Array>(file_)) : std::get<std::optional<io::NpyFile>>(file_)->view();
  }

 private:
  std::variant<std::optional<io::NpyFile>, Array> file_;
};

// The two sides of a picture are what one pools unless told otherwise, wherever the channels are.
std::optional<Extents> pooled_axes(const Options& options, bool is_picture, int entries) {
  if (options.axes) return read_integers("--axes", *options.axes);
  if (is_picture && !options.channels_last && entries <= 2) return Extents{0, 1};
  return std::nullopt;
}

Window read_window(const Options& options, bool is_picture) {
  const Extents size = read_integers("--window", *options.window);
  Window window;
  window.axes = pooled_axes(options, is_picture, size.size());
  window.size = size.size() == 1 && window.axes ? PerAxis(size[0]) : PerAxis(size);
  if (options.stride) window.stride = read_per_axis("--stride", *options.stride);
  if (options.dilation) window.dilation = read_per_axis("--dilation", *options.dilation);
  if (options.padding) window.padding = read_padding("--padding", *options.padding);
  window.ceil = options.ceil;
  window.exact = options.exact;
  window.allow_empty = options.allow_empty;
  window.channels_last = options.channels_last;
  return window;
}

Adaptive read_adaptive(const Options& options, bool is_picture) {
  Adaptive region{.output = read_outputs("--adaptive", *options.adaptive), .channels_last = options.channels_last};
  region.axes = pooled_axes(options, is_picture, static_cast<int>(region.output.size()));
  return region;
}

void check_reducer_options(const Options& options, Reducer reducer) {
  const auto only = [&](const char* option, const Text& value, std::initializer_list<Reducer> reducers) {
    if (!value || std::find(reducers.begin(), reducers.end(), reducer) != reducers.end()) return;
    std::string names;
    for (const Reducer r : reducers) names += fmt::format("{}{}", names.empty() ? "" : " and ", name(r));
    throw std::invalid_argument(fmt::format("{} is an option of {}, not of {}", option, names, name(reducer)));
  };
  only("--divisor", options.divisor, {Reducer::avg});
  only("--beta", options.beta, {Reducer::smooth_max});
  only("--pad", options.pad, {Reducer::smooth_max});
  only("--p", options.p, {Reducer::lp});
  only("--dtype", options.dtype, {Reducer::sum});
  only("--indices", options.indices, {Reducer::max, Reducer::min});
  only("--ties", options.ties, {Reducer::max, Reducer::min});
}

Pooling read_pooling(const Options& options, bool is_picture) {
  Pooling pooling;
  pooling.reducer = parse_reducer(options.reducer);
  check_reducer_options(options, pooling.reducer);
  if (options.window) {
    pooling.region = read_window(options, is_picture);
  } else if (options.adaptive) {
    pooling.region = read_adaptive(options, is_picture);
  } else {
    pooling.region = Global{
        .channels_last = options.channels_last, .axes = pooled_axes(options, is_picture, 0), .keepdims = !options.drop};
  }
  if (options.divisor) pooling.divisor = read_divisor("--divisor", *options.divisor);
  if (options.beta) pooling.beta = read_number("--beta", *options.beta);
  if (options.pad) pooling.pad = read_name("--pad", *options.pad, smooth_paddings);
  if (options.p) pooling.p = read_number("--p", *options.p);
  if (options.dtype) pooling.dtype = parse_type(*options.dtype);
  if (options.ties) pooling.ties = read_name("--ties", *options.ties, tie_rules);
  if (options.indices) {
    pooling.indices =
        options.index_kind ? read_name("--index-kind", *options.index_kind, index_kinds) : IndexKind::plane;
  }
  return pooling;
}

void check_request(const Options& options) {
  if (!options.window && !options.adaptive && !options.global) {
    throw std::invalid_argument("one of --window, --adaptive and --global is needed (see cenote pool --help)");
  }
  format_of(options.input);
  format_of(options.output);
  if (!options.indices) return;
  if (format_of(*options.indices) != Format::npy)
    reject_value("--indices", *options.indices, "the name must end in .npy");
  std::error_code ignored;
  const auto absolute = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
  };
  if (absolute(options.output) == absolute(*options.indices)) {
    reject_value("--indices", *options.indices, "values and indices cannot go into one file");
  }
}

void write(io::OutputFile& file, const View& values, Type input_type) {
  if (format_of(file.path()) == Format::npy) {
    io::write_npy(file, values);
  } else {
    const bool deep = values.type == Type::u16 || input_type == Type::u16;
    io::write_png(file, values, deep ? Type::u16 : Type::u8);
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
  const Plan plan = cenote::plan(read_pooling(options, input.is_picture()), x.type, x.shape);
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
  write(values_file, y, x.type);
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

void add_regions(CLI::App& command, Options& options) {
  const auto list = [&](const char* name, Text& value, const char* help) {
    return command.add_option(name, value, help)->type_name("LIST")->group("Windows");
  };
  const auto flag = [&](const char* name, bool& value, const char* help) {
    return command.add_flag(name, value, help)->group("Windows");
  };
  auto* window = list("--window", options.window, "Extents of the window: 3,3");
  auto* adaptive = list("--adaptive", options.adaptive, "Extents of the output instead; _ keeps an axis: 7,_");
  auto* global = flag("--global", options.global, "One window over all axes after the first two");
  window->excludes(adaptive)->excludes(global);
  adaptive->excludes(global);
  list("--stride", options.stride, "Steps of the window (1)")->needs(window);
  list("--dilation", options.dilation, "Steps inside the window (1)")->needs(window);
  list("--padding", options.padding, "valid, same, same_lower, or N or LOW:HIGH per axis (valid)")->needs(window);
  flag("--ceil", options.ceil, "One more window where a remainder is left")->needs(window);
  flag("--exact", options.exact, "A remainder is an error")->needs(window);
  flag("--allow-empty", options.allow_empty, "A window that does not fit gives an empty axis")->needs(window);
  flag("--no-keepdims", options.drop, "Drop the axes that --global pools; else they keep size 1")->needs(global);
  auto* axes = list("--axes", options.axes, "Pooled axes by number; negative ones count from the end");
  flag("--channels-last", options.channels_last, "The pooled axes are those before the last")->excludes(axes);
}

std::string reducer_names() {
  std::string names;
  for (const Reducer reducer : all_reducers) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(reducer));
  return names;
}

void add_reducers(CLI::App& command, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& help) {
    return command.add_option(name, value, help)->type_name(type)->group("Reducers");
  };
  add("--reducer", options.reducer, "NAME", reducer_names() + " (max)");
  add("--divisor", options.divisor, "RULE", "avg: window, valid, clipped or a number (window)");
  add("--beta", options.beta, "X", "smooth_max: sharpness; negative for a smooth min (1)");
  add("--pad", options.pad, "RULE", "smooth_max: padded cells are zero, or ignore them (zero)");
  add("--p", options.p, "X", "lp: the exponent, at least 1, or inf (2)");
  add("--dtype", options.dtype, "TYPE", "sum: the type of sum and result (the input's)");
  auto* indices = add("--indices", options.indices, "IDX.npy", "max, min: write where each winner is");
  add("--index-kind", options.index_kind, "KIND", "offset, plane, tensor or tensor_column (plane)")->needs(indices);
  add("--ties", options.ties, "RULE", "max, min: first or split, who gets the derivative (first)");
}

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
  add_regions(command, *options);
  add_reducers(command, *options);
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
