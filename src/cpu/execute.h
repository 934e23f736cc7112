// Runs a checked plan on the CPU.
#pragma once

#include <cenote/array.h>

#include "plan/impl.h"

namespace cenote::cpu {

/// Pools x into y, and the winners' numbers into `indices` where the plan has them (otherwise it is ignored).
/// Precondition: types and shapes are the planned ones, with pooled axes of size 1 kept; nothing overlaps.
void execute(const Plan::Impl& plan, const View& x, const MutableView& y, const MutableView& indices);

}  // namespace cenote::cpu
