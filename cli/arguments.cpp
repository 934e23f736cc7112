// Reading the values of options.
#include "arguments.h"

#include <charconv>
#include <stdexcept>

#include <fmt/core.h>

namespace cenote::cli {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
bool read_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::int64_t read_integer(std::string_view option, std::string_view whole, std::string_view part) {
  std::int64_t value = 0;
  if (!read_whole(part, value)) {
    reject_value(option, whole, fmt::format("'{}' is not a 64-bit integer", part));
  }
  return value;
}

}  // namespace

void reject_value(std::string_view option, std::string_view text, std::string_view allowed) {
  throw std::invalid_argument(fmt::format("{} {}: {}", option, text, allowed));
}

std::string in_options(std::string text, const Words& words) {
  if (text.starts_with('[')) text.erase(0, text.find("] ") + 2);
  for (const auto& [word, option] : words) {
    const std::size_t at = text.find(word);
    if (at != std::string::npos && (at == 0 || text[at - 1] == ' ')) text.replace(at, word.size(), option);
  }
  return text;
}

Extents read_integers(std::string_view option, std::string_view text) {
  Extents values;
  for (const std::string_view part : split(text, ',')) {
    if (values.size() == max_rank) reject_value(option, text, fmt::format("at most {} values", max_rank));
    values.push_back(read_integer(option, text, part));
  }
  return values;
}

PerAxis read_per_axis(std::string_view option, std::string_view text) {
  const Extents values = read_integers(option, text);
  return values.size() == 1 ? PerAxis(values[0]) : PerAxis(values);
}

std::vector<std::optional<std::int64_t>> read_outputs(std::string_view option, std::string_view text) {
  std::vector<std::optional<std::int64_t>> outputs;
  for (const std::string_view part : split(text, ',')) {
    if (part == "_") {
      outputs.push_back(std::nullopt);
    } else {
      outputs.push_back(read_integer(option, text, part));
    }
  }
  return outputs;
}

Padding read_padding(std::string_view option, std::string_view text) {
  if (text == "valid") return valid;
  if (text == "same") return same;
  if (text == "same_lower") return same_lower;
  std::vector<Padding::Sides> sides;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, ':');
    if (ends.size() > 2) reject_value(option, text, "valid, same, same_lower, N, or N or LOW:HIGH for each axis");
    const std::int64_t low = read_integer(option, text, ends.front());
    sides.push_back({low, read_integer(option, text, ends.back())});
  }
  const bool one = sides.size() == 1 && text.find(':') == std::string_view::npos;
  return one ? Padding(sides[0].low) : Padding(std::move(sides));
}

Divisor read_divisor(std::string_view option, std::string_view text) {
  if (text == "window") return Divisor::Rule::window;
  if (text == "valid") return Divisor::Rule::valid;
  if (text == "clipped") return Divisor::Rule::clipped;
  double number = 0;
  if (!read_whole(text, number)) reject_value(option, text, "window, valid, clipped or a number");
  return number;
}

double read_number(std::string_view option, std::string_view text) {
  double value = 0;
  if (!read_whole(text, value)) reject_value(option, text, "not a number");
  return value;
}

std::array<double, 3> read_triple(std::string_view option, std::string_view text) {
  const auto parts = split(text, ',');
  std::array<double, 3> values{};
  const bool known = parts.size() == 1 || parts.size() == 3;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!known || !read_whole(parts[parts.size() == 1 ? 0 : i], values[i]))
      reject_value(option, text, "must be one number or three");
  }
  return values;
}

void use_threads(std::optional<int> threads) {
  if (!threads) return;
  if (*threads < 1) reject_value("--threads", std::to_string(*threads), "at least 1");
  set_threads(*threads);
}

}  // namespace cenote::cli
