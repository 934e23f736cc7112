// Reading the options that describe a pooling.
#include "pooling_options.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "arguments.h"

namespace cenote::cli {
namespace {

constexpr std::array<std::pair<std::string_view, SmoothPadding>, 2> smooth_paddings{
    {{"zero", SmoothPadding::zero}, {"ignore", SmoothPadding::ignore}}};
constexpr std::array<std::pair<std::string_view, Ties>, 2> tie_rules{{{"first", Ties::first}, {"split", Ties::split}}};

// The two sides of a picture are what one pools unless told otherwise, wherever the channels are.
std::optional<Extents> pooled_axes(const PoolingOptions& options, bool is_picture, int entries) {
  if (options.axes) return read_integers("--axes", *options.axes);
  if (is_picture && !options.channels_last && entries <= 2) return Extents{0, 1};
  return std::nullopt;
}

Window read_window(const PoolingOptions& options, bool is_picture) {
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

Adaptive read_adaptive(const PoolingOptions& options, bool is_picture) {
  Adaptive region{.output = read_outputs("--adaptive", *options.adaptive), .channels_last = options.channels_last};
  region.axes = pooled_axes(options, is_picture, static_cast<int>(region.output.size()));
  return region;
}

void check_reducer_options(const PoolingOptions& options, Reducer reducer) {
  require_reducer("--divisor", options.divisor, reducer, {Reducer::avg});
  require_reducer("--beta", options.beta, reducer, {Reducer::smooth_max});
  require_reducer("--pad", options.pad, reducer, {Reducer::smooth_max});
  require_reducer("--p", options.p, reducer, {Reducer::lp});
  require_reducer("--dtype", options.dtype, reducer, {Reducer::sum});
  require_reducer("--ties", options.ties, reducer, {Reducer::max, Reducer::min});
}

void add_regions(CLI::App& command, PoolingOptions& options) {
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

void add_reducers(CLI::App& command, PoolingOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* type, const std::string& help) {
    return command.add_option(name, value, help)->type_name(type)->group(reducer_group);
  };
  add("--reducer", options.reducer, "NAME", reducer_names() + " (max)");
  add("--divisor", options.divisor, "RULE", "avg: window, valid, clipped or a number (window)");
  add("--beta", options.beta, "X", "smooth_max: sharpness; negative for a smooth min (1)");
  add("--pad", options.pad, "RULE", "smooth_max: padded cells are zero, or ignore them (zero)");
  add("--p", options.p, "X", "lp: the exponent, at least 1, or inf (2)");
  add("--dtype", options.dtype, "TYPE", "sum: the type of sum and result (the input's)");
  add("--ties", options.ties, "RULE", "max, min: first or split, who gets the derivative (first)");
}

}  // namespace

std::string reducer_names() {
  std::string names;
  for (const Reducer reducer : all_reducers) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(reducer));
  return names;
}

void add_pooling_options(CLI::App& command, PoolingOptions& options) {
  add_regions(command, options);
  add_reducers(command, options);
}

void require_region(const PoolingOptions& options, std::string_view command) {
  if (options.window || options.adaptive || options.global) return;
  throw std::invalid_argument(
      fmt::format("one of --window, --adaptive and --global is needed (see cenote {} --help)", command));
}

void require_reducer(const char* option, const Text& value, Reducer reducer, std::initializer_list<Reducer> owners) {
  if (!value || std::find(owners.begin(), owners.end(), reducer) != owners.end()) return;
  std::string names;
  for (const Reducer owner : owners) names += fmt::format("{}{}", names.empty() ? "" : " and ", name(owner));
  throw std::invalid_argument(fmt::format("{} is an option of {}, not of {}", option, names, name(reducer)));
}

Pooling read_pooling(const PoolingOptions& options, bool is_picture) {
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
  return pooling;
}

}  // namespace cenote::cli
