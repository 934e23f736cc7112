// The poolings and their like as differentiable operations.
#pragma once

#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <cenote/row_pooling.h>

#include "autodiff/op.h"
#include "autodiff/pool_rules.h"

namespace cenote::autodiff {

/// Any pooling without indices.
FamilyPtr family(const Pooling& pooling);
/// A pooling of rows.
FamilyPtr family(const RowPooling& pooling);
template <class AnyPooling>
OpPtr pool_op(const AnyPooling& pooling) requires requires {
  family(pooling);
}
{ return pool_op(family(pooling)); }

/// Rejects the second input of a derivative that has not the type and shape it must have.
void check_second(const std::string& who, const char* what, std::span<const Signature> inputs,
                  const Signature& expected);

/// y of (x, indices): the elements of x at plane indices (i64), shaped as the indices. Adjoint: sums at the indices.
OpPtr gather_op(const Plane& plane);
/// x of (y, indices): max_unpool into zeros of `shape`.
OpPtr unpool_op(const Extents& shape, const Plane& plane);

}  // namespace cenote::autodiff
