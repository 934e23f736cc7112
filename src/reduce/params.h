// What a reducer may be told when it is made.
#pragma once

namespace cenote {

/// What a run makes of a reducer: its value, also with the winner's place, the state that weights hang on, one of
/// the two derivatives, or the tangent of the winner.
enum class Role { value, winner, states, tangent, cotangent, follower };
inline constexpr int role_count = 6;

/// Magnitudes from low to high.
struct Bounds {
  double low, high;
};

/// Options of the reducers, already checked: beta finite and not 0, p at least 1.
struct Params {
  double beta = 1;
  double p = 2;
  // Smooth max where every window holds several cells: a logarithm is accurate enough beside those of their number.
  bool crowded = false;
  // The same of cells that lie so near to each other that plain sums hold their powers, in units of 2^origin.
  bool tame = false;
  double origin = 0;
  // The same of cells that may lie far from each other, but none so far from 0 that it has no whole number next to it:
  // states carry those numbers in place of cells. Only for values: weights hang on the cells.
  bool near = false;
};

}  // namespace cenote
