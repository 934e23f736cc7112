// Max and min pooling with the places of their winners, as an operation with two outputs.
#pragma once

#include <cenote/plan.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// (y, indices) of x; `pooling.indices` says of which kind. The values have the derivatives of the plain pooling.
OpPtr indexed_pool_op(const Pooling& pooling);

}  // namespace cenote::autodiff
