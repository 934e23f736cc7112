// Averages whose outputs are divided by different numbers, and those of integers, as sums: a slice at a time, so that
// they are divided in the cache.
#pragma once

#include "cpu/execute.h"
#include "cpu/layout.h"
#include "cpu/volumes.h"

namespace cenote::cpu {

/// Makes plan.sums of slices with `pool`, of cells that are widened before if need be, and divides those. On this
/// thread alone or on several; y is written past the caches or not. False if memory does not suit.
bool pool_slices(const Plan::Impl& plan, const Layout& layout, const Operands& operands, bool stream, bool alone,
                 const PoolPlanes& pool);

/// Divides each element of gy as the average divides that output, in the type of `quotients`: one true division each.
/// False if memory does not suit. The gradient is that of plain sums, to an array laid out as x.
bool divide_outputs(const Plan::Impl& plan, const View& x, const View& gy, const MutableView& quotients);

}  // namespace cenote::cpu
