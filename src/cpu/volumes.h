// Volumes of short windows: planes are pooled each by itself, and what is left of those that a window holds is joined.
#pragma once

#include <functional>

#include "cpu/execute.h"
#include "cpu/layout.h"
#include "cpu/numbering.h"

namespace cenote::cpu {

/// Pools planes on this thread. False if there are no kernels for it.
using PoolPlanes = std::function<bool(const Plan::Impl&, const Layout&, const Operands&)>;

/// The outputs of a layout of three levels and more, past the caches or not, on this thread alone or on several. False
/// if the plan does not want it, or memory does not suit.
bool pool_volumes(const Plan::Impl& plan, const Layout& layout, const Operands& operands, const Numbering& numbering,
                  bool stream, bool alone, const PoolPlanes& pool);

}  // namespace cenote::cpu
