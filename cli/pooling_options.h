// The options that describe a pooling, for every command that takes one.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include <cenote/cenote.h>

namespace cenote::cli {

using Text = std::optional<std::string>;

/// As they were given.
struct PoolingOptions {
  std::string reducer = "max";
  Text window, stride, dilation, padding, adaptive, axes, divisor, beta, pad, p, dtype, ties;
  bool global = false, drop = false, ceil = false, exact = false, allow_empty = false, channels_last = false;
};

/// The group that help lists options of reducers in.
inline constexpr const char* reducer_group = "Reducers";

/// The names of all reducers, for help.
std::string reducer_names();

void add_pooling_options(CLI::App& command, PoolingOptions& options);

/// Throws std::invalid_argument unless windows were asked for in one of the ways there are; `command` is for the text.
void require_region(const PoolingOptions& options, std::string_view command);

/// Of a picture the two sides are pooled unless the options say otherwise.
Pooling read_pooling(const PoolingOptions& options, bool is_picture);

/// Throws std::invalid_argument if the option was given and the reducer is none of those that have it.
void require_reducer(const char* option, const Text& value, Reducer reducer, std::initializer_list<Reducer> owners);

}  // namespace cenote::cli
