// Runs a checked plan on the CPU.
#pragma once

#include <cenote/array.h>

#include "plan/impl.h"

namespace cenote::cpu {

/// The arrays of a run. Only some roles have more than x and y.
struct Operands {
  View x;
  MutableView y;
  MutableView indices{};     // winner: where the winners' numbers go,
  bool as_offsets = false;   // as offsets, whatever the plan wants
  std::int64_t x_plane = 0;  // tangent, cotangent, follower: elements from the first number of a cell to its second
  void* second = nullptr;    // states: the array of second numbers, laid out as y
  View cells{};              // cotangent: the cells that the elements of y belong to
};

/// Runs a plan. False if there are no kernels for it, which only followers lack. Precondition: types and shapes are the
/// planned ones, with pooled axes of size 1 kept; nothing overlaps.
bool execute(const Plan::Impl& plan, const Operands& operands);

}  // namespace cenote::cpu
