// Numbers of any type as f64 and back, for commands that compute in f64.
#pragma once

#include <string_view>

#include <cenote/array.h>

namespace cenote::cli {

/// The largest integer up to which f64 holds all of them.
inline constexpr double exact_integers = 0x1p53;

/// All elements as f64, in row-major order. Throws std::invalid_argument, beginning with `what`, for an integer that
/// f64 does not hold.
Array to_doubles(std::string_view what, const View& x);

/// f64 elements rounded to nearest, ties to even; integers are clamped to the range of their type and NaN becomes 0.
Array from_doubles(const Array& x, Type type);

}  // namespace cenote::cli
