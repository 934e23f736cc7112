// Reading the values of options: lists, paddings, numbers and names. Every failure names the option and the value.
#pragma once

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cenote/cenote.h>

namespace cenote::cli {

/// "3", "3,3" or "-2,-1". Throws std::invalid_argument like all functions here.
Extents read_integers(std::string_view option, std::string_view text);
/// One integer stands for every pooled axis.
PerAxis read_per_axis(std::string_view option, std::string_view text);
/// "7,7"; an entry may be "_" to keep that axis.
std::vector<std::optional<std::int64_t>> read_outputs(std::string_view option, std::string_view text);
/// valid, same, same_lower, "1", "1,2" or "1:2,0:1" (low:high).
Padding read_padding(std::string_view option, std::string_view text);
/// window, valid, clipped or a number.
Divisor read_divisor(std::string_view option, std::string_view text);
double read_number(std::string_view option, std::string_view text);
/// "0.05", which stands for all three, or "1,2,3".
std::array<double, 3> read_triple(std::string_view option, std::string_view text);

/// The value whose name is `text`.
template <class Value, std::size_t n>
Value read_name(std::string_view option, std::string_view text,
                const std::array<std::pair<std::string_view, Value>, n>& names);

/// Throws std::invalid_argument "--option value: allowed".
[[noreturn]] void reject_value(std::string_view option, std::string_view text, std::string_view allowed);

/// Words of the library and what stands for them on the command line.
using Words = std::vector<std::pair<std::string_view, std::string>>;
/// An error of the library without the function in brackets that it begins with, and in the words of the command line.
std::string in_options(std::string text, const Words& words);
/// Does work of the library; what that refuses is refused in such words.
template <class Work>
auto told_in(const Words& words, const Work& work) {
  try {
    return work();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(in_options(error.what(), words));
  }
}

/// Sets the number of threads for the whole run when the option was given.
void use_threads(std::optional<int> threads);

template <class Value, std::size_t n>
Value read_name(std::string_view option, std::string_view text,
                const std::array<std::pair<std::string_view, Value>, n>& names) {
  std::string allowed = "one of";
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    allowed += (allowed.size() == 6 ? " " : ", ") + std::string(name);
  }
  reject_value(option, text, allowed);
}

}  // namespace cenote::cli
