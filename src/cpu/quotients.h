// What is done to cells before they are summed, and to sums afterwards: integers are widened, and all are divided.
#pragma once

#include <cstdint>

#include <cenote/types.h>

namespace cenote::cpu {

/// Quotients of cells and divisors that repeat, each divided once and rounded once.
struct Quotients {
  Type from, to;            // floats become floats, integers f32
  bool in_doubles = false;  // integers that f32 does not hold, or numbers by which they are divided
  const void* cells = nullptr;
  void* dst = nullptr;
  std::int64_t count = 0;
  /// `period` of them and divisor_slack more, in f64 or in the lanes of `to`; or null, and all are `same`. So are
  /// [first, last) of each period, of which only the outermost divisor_slack are looked at.
  const void* divisors = nullptr;
  std::int64_t period = 1, first = 0, last = 0;
  double same = 1;
  bool stream = false;  // past the caches
};
inline constexpr std::int64_t divisor_slack = 16;

/// Integers: as many as fill a pack may be read behind them.
void divide(const Quotients& call) noexcept;

/// Integers as those of a wider type.
void widen(Type to, void* dst, Type from, const void* cells, std::int64_t count) noexcept;

}  // namespace cenote::cpu
