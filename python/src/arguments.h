// Arguments of Python as those of the library: integers, lists, names, and what is made of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <nanobind/nanobind.h>

#include "reject.h"

namespace cenote::python {

namespace nb = nanobind;

/// Anything with __index__, but no bool.
std::int64_t integer(std::string_view who, const std::string& what, nb::handle value);
/// Anything with __float__, but no bool.
double number(std::string_view who, const std::string& what, nb::handle value, const char* allowed = "a number");
/// True or False, NumPy's, or 1 or 0.
bool flag(std::string_view who, const std::string& what, nb::handle value);
/// Whether it has a length and items in order; strings have not.
bool is_sequence(nb::handle value);
/// A sequence of integers.
Extents integers(std::string_view who, const std::string& what, nb::handle values);
/// The same, or one integer.
Extents extents_of(std::string_view who, const std::string& what, nb::handle values);
/// One integer or a sequence of them.
PerAxis per_axis(std::string_view who, const std::string& what, nb::handle values);
/// None, one integer or a sequence.
std::optional<Extents> optional_axes(std::string_view who, nb::handle axes);
std::optional<bool> optional_flag(std::string_view who, const std::string& what, nb::handle value);
Padding padding_of(std::string_view who, nb::handle padding);
/// What an object looks like in an error, on one line.
std::string shown(nb::handle value);

/// One of a few names.
template <class E>
E choice(std::string_view who, std::string_view what, nb::handle value,
         std::initializer_list<std::pair<const char*, E>> choices) {
  if (PyUnicode_Check(value.ptr()))
    for (const auto& [name, chosen] : choices)
      if (PyUnicode_CompareWithASCIIString(value.ptr(), name) == 0) return chosen;
  std::string names;
  for (const auto& [name, chosen] : choices) names += (names.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  reject(who, what, " = ", shown(value), ": must be one of ", names);
}

/// The arguments of a sliding window, as they come.
struct WindowArguments {
  nb::handle window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes;
  Window parse(std::string_view who) const;
};
Adaptive adaptive_of(std::string_view who, nb::handle output, nb::handle channels_last, nb::handle axes);
Global global_of(std::string_view who, nb::handle rank, nb::handle channels_last, nb::handle axes, nb::handle keepdims);
Plane plane_of(std::string_view who, nb::handle rank, nb::handle channels_last, nb::handle axes);

/// A pooling without its region. The options are those of the reducer: max, min: ties and (return_indices, index_kind);
/// sum: dtype; avg: divisor; smooth_max: beta and pad; lp: p.
Pooling pooling_of(std::string_view who, Reducer reducer, nb::handle option, nb::handle second);
IndexKind index_kind_of(std::string_view who, nb::handle kind);
Ties ties_of(std::string_view who, nb::handle ties);

}  // namespace cenote::python
