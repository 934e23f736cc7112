// Timing a pooling, and its efficiency against a copy in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <cenote/cenote.h>

namespace cenote::cli {

struct Timing {
  double best = 0, median = 0;
  std::int64_t runs = 0;
  /// Bytes that must be moved at least, and how long a copy needs to move as many.
  std::int64_t bytes = 0;
  double copy_seconds = 0;

  double gigabytes_per_second() const { return static_cast<double>(bytes) / best * 1e-9; }
  /// 0 where there was nothing to copy.
  double copy_gigabytes_per_second() const {
    return copy_seconds > 0 ? static_cast<double>(bytes) / copy_seconds * 1e-9 : 0;
  }
  /// 1 is the speed of a copy.
  double efficiency() const { return copy_seconds / best; }
};

/// Repeats `work`, which moves `bytes`, for at least `least` seconds; the copy uses threads() threads. Without bytes
/// there is no copy.
Timing measure(const std::function<void()>& work, std::int64_t bytes, double least);

/// One run, not repeated; without a copy.
Timing measure_once(const std::function<void()>& work);

/// Elements that look like data: floats within (-1, 1), integers and bool of any value. Always the same ones.
Array noise(Type type, const Extents& shape);

/// What this runs on: the processor's name as the system gives it, and how many may be used.
std::string machine();

/// The name of the algorithm that a plan explains.
std::string algorithm(const Plan& plan);

}  // namespace cenote::cli
