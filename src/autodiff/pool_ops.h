// The poolings and their like as differentiable operations.
#pragma once

#include <cenote/plan.h>
#include <cenote/pooling.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// y of x: any pooling without indices.
OpPtr pool_op(const Pooling& pooling);
/// dy of (x, dx), linear in dx.
OpPtr pool_tangent_op(const Pooling& pooling);
/// gx of (x, gy), linear in gy.
OpPtr pool_cotangent_op(const Pooling& pooling);

/// Second order, written in the operations above: the cotangent of x in <g, T(x, v)>, which is that of <C(x, g), v>
/// too.
Maybe curve(Tracer& t, const Pooling& pooling, Value x, Value g, Value v);

/// y of (x, indices): the elements of x at plane indices (i64), shaped as the indices. Adjoint: sums at the indices.
OpPtr gather_op(const Plane& plane);
/// x of (y, indices): max_unpool into zeros of `shape`.
OpPtr unpool_op(const Extents& shape, const Plane& plane);

}  // namespace cenote::autodiff
