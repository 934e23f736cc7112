// Smooth max, lp and their tangents as plain sums of powers, a portion of the array at a time.
#pragma once

#include <optional>

#include "cpu/execute.h"
#include "cpu/shares.h"

namespace cenote::cpu {

/// Whether elements lie in row-major order without gaps.
template <class V>
bool lies_side_by_side(const V& view) {
  std::int64_t step = 1;
  for (int i = view.rank() - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides[i] != step) return false;
    step *= view.shape[i];
  }
  return true;
}

/// How cells of such a pooling are tame, if sums of powers are to be had of it at all: within powers of two that f32
/// and f64 bear. What is made of them for a role is normal numbers, whatever the signs.
std::optional<TameRule> tame_rule(const Plan::Impl& plan, Role role);

/// Adds the powers of cells that are padded zeros, where they count, to the sums of windows, which lie side by
/// side.
void add_padded(const Plan::Impl& plan, const TameRule& rule, void* sums);

/// Makes all outputs by sums of powers, but for those whose windows hold something that is not tame: these are what
/// their portion's own pooling makes of them. False, and nothing is done, if the plan does not want it or elements do
/// not lie side by side.
bool pool_by_sums(const Plan::Impl& plan, const Operands& operands);

}  // namespace cenote::cpu
