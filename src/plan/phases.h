// Transposed axes in phases: outputs that lie as far apart as windows and their cells agree on are those of a regular
// axis.
#pragma once

#include <cstdint>
#include <numeric>

#include "plan/choose.h"

namespace cenote {

inline constexpr std::int64_t most_folded_phases = 16;  // larger strides leave most cells alone
inline constexpr std::int64_t most_phases = 64;         // of windows that are swept

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// How many phases a transposed axis has, or more than anyone wants.
inline std::int64_t phases_of(const Axis& axis) {
  const std::int64_t windows = axis.stride / std::gcd(axis.stride, axis.dilation);
  return windows > most_phases || axis.dilation > most_phases ? most_phases + 1 : windows * axis.dilation;
}

/// Outputs first, first + phases_of(axis), … of a transposed axis, as a regular one; first < phases_of(axis), which are
/// few. It has no cells where windows leave gaps.
inline Axis phase_of(const Axis& axis, std::int64_t first) {
  const std::int64_t common = std::gcd(axis.stride, axis.dilation), place = first + axis.low;
  const std::int64_t stride = axis.stride / common, step = axis.dilation / common;
  Axis result{0, 1, step, step, 0, 0, first < axis.out ? ceil_div(axis.out - first, phases_of(axis)) : 0};
  if (place % common != 0) return result;
  // The first tap that any window has at this place, and the last window that has one there.
  std::int64_t tap = 0;
  while ((place / common - tap * step) % stride != 0) ++tap;
  if (tap >= axis.size) return result;
  result.n = axis.n;
  result.size = (axis.size - 1 - tap) / stride + 1;
  result.low = (result.size - 1) * step - (place / common - tap * step) / stride;
  return result;
}

/// A regular axis whose windows begin as far apart as their cells lie, or a multiple of that, on the cells alone that
/// they hold: those are `first`, first + dilation, …
struct Thinned {
  std::int64_t first;
  Axis axis;
};
inline Thinned thinned(const Axis& axis) {
  const std::int64_t rest = -axis.low % axis.dilation, first = rest < 0 ? rest + axis.dilation : rest;
  Axis result = axis;
  result.n = axis.n > first ? ceil_div(axis.n - first, axis.dilation) : 0;
  result.low = (axis.low + first) / axis.dilation;
  result.stride /= axis.dilation;
  result.dilation = 1;
  return {first, result};
}

/// The phase of the longest windows, on the cells alone that they hold, wherever they lie.
inline Axis longest_phase(const Axis& axis) {
  const std::int64_t common = std::gcd(axis.stride, axis.dilation);
  return Axis{ceil_div(axis.n, axis.dilation / common), (axis.size - 1) / (axis.stride / common) + 1, 1, 1, 0, 0,
              ceil_div(axis.out, phases_of(axis))};
}

/// Whether the windows of a transposed axis, seen phase by phase, are swept.
inline bool sweeps_phases(const SweepRules& rules, const Axis& axis, bool innermost) {
  return axis.transposed && phases_of(axis) <= most_phases && rules.sweeps(longest_phase(axis), innermost);
}

/// Whether the innermost axis is made phase by phase: lines wherever that is simple, others if they are swept.
inline bool makes_phases(const SweepRules& rules, const Axis& axis, bool lines) {
  return (lines && axis.transposed && axis.dilation == 1 && axis.stride <= most_folded_phases) ||
         sweeps_phases(rules, axis, true);
}

}  // namespace cenote
