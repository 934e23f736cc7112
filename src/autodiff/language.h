// The elementwise operations and their like, as rules and builders speak them.
#pragma once

#include <cenote/extents.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

// Makers of operations. Binary ones broadcast as NumPy does and want equal floating-point types.
OpPtr add_op();
OpPtr sub_op();
OpPtr mul_op();
OpPtr div_op();
/// a / b, and 0 where a or b is 0.
OpPtr ratio_op();
OpPtr coarse_ratio_op();
OpPtr neg_op();
OpPtr exp_op();
OpPtr log_op();
/// max(x, 0); its derivative at 0 is 0, and NaN stays NaN.
OpPtr relu_op();
/// x times a fixed number.
OpPtr scale_op(double factor);
/// 1 where x > 0, else 0: constant wherever it has a derivative.
OpPtr positive_op();
OpPtr magnitude_op();
/// -1, 0 or 1; NaN stays.
OpPtr sign_op();
/// The same elements in row-major order under another shape; one extent may be -1.
OpPtr reshape_op(const Extents& shape);
/// Repeats axes of size 1, and new axes in front, up to `shape`.
OpPtr broadcast_op(const Extents& shape);
/// The adjoint of broadcasting: sums down to `shape`.
OpPtr sum_to_op(const Extents& shape);
/// The sum, or the mean, of all elements, as an array of rank 0; of none they are 0 and NaN, as in NumPy.
OpPtr sum_op();
OpPtr mean_op();
/// To another floating-point type.
OpPtr cast_op(Type type);
/// Passes its input on, without a derivative.
OpPtr detach_op();

// The same, applied.
inline Value add(Tracer& t, Value a, Value b) { return t.apply_one(add_op(), {a, b}); }
inline Value sub(Tracer& t, Value a, Value b) { return t.apply_one(sub_op(), {a, b}); }
inline Value mul(Tracer& t, Value a, Value b) { return t.apply_one(mul_op(), {a, b}); }
inline Value div(Tracer& t, Value a, Value b) { return t.apply_one(div_op(), {a, b}); }
inline Value ratio(Tracer& t, Value a, Value b) { return t.apply_one(ratio_op(), {a, b}); }
constexpr double coarse_unit(bool wide) { return wide ? 0x1p54 : 0x1p24; }
inline Value coarse_ratio(Tracer& t, Value a, Value b) { return t.apply_one(coarse_ratio_op(), {a, b}); }
inline Value neg(Tracer& t, Value a) { return t.apply_one(neg_op(), {a}); }
inline Value scale(Tracer& t, Value a, double factor) { return t.apply_one(scale_op(factor), {a}); }
inline Value cast(Tracer& t, Value a, Type type) { return t.apply_one(cast_op(type), {a}); }

/// The sum of two derivatives, either of which may be zero.
inline Maybe add(Tracer& t, Maybe a, Maybe b) {
  if (!a) return b;
  return b ? add(t, *a, *b) : a;
}

}  // namespace cenote::autodiff
