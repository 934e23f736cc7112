// What operations ask of their inputs, and how they say what is wrong.
#pragma once

#include <string_view>

#include <cenote/signature.h>

#include "core/reject.h"

namespace cenote::autodiff {

/// Rejects an input that is not of a floating-point type.
inline void check_float(std::string_view who, std::string_view what, const Signature& x) {
  if (!is_float(x.type))
    reject(who, what, " has type ", name(x.type), ": must be f16, bf16, f32 or f64, ",
           x.type == Type::boolean ? "bool has no " : "integers have no ", who);
}

/// Rejects b unless it has the type of a.
inline void check_same_type(std::string_view who, const Signature& a, const Signature& b) {
  if (a.type != b.type) reject(who, "b has type ", name(b.type), ": must be ", name(a.type), ", as a");
}

/// Whether an array of shape `from` can be repeated along its axes of size 1, and new ones in front, up to `to`.
inline bool broadcasts(const Extents& from, const Extents& to) {
  const int extra = to.size() - from.size();
  if (extra < 0) return false;
  for (int i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[extra + i]) return false;
  return true;
}

/// The shape that a and b are both repeated up to, as in NumPy.
inline Extents common_shape(std::string_view who, const Extents& a, const Extents& b) {
  const Extents& longer = a.size() >= b.size() ? a : b;
  const Extents& shorter = a.size() >= b.size() ? b : a;
  Extents result = longer;
  const int extra = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    if (result[extra + i] == 1) result[extra + i] = shorter[i];
    if (shorter[i] != 1 && shorter[i] != result[extra + i])
      reject(who, "b has shape ", b, ": must broadcast with that of a, ", a,
             ": counted from the last, axes must be equal or 1");
  }
  return result;
}

}  // namespace cenote::autodiff
