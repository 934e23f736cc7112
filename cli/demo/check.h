// Holds results against the slow oracle of reference/.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <cenote/cenote.h>

namespace cenote::demo {

/// The largest difference from the oracle, and whether every element is as close as semantics promises.
struct Verdict {
  bool ok = true;
  double error = 0;
  /// False for a reducer that the oracle has no words for.
  bool known = true;
};

/// f32 arrays. max and min must be equal; the others within their stated bounds.
Verdict check(const Plan& plan, const View& x, const View& y);
/// The same with the winners' indices, which must be equal too.
Verdict check(const Plan& plan, const View& x, const View& y, const View& indices);
/// A fold by hand, equal in every bit.
Verdict check_fold(const Plan& windows, const View& x, const View& y, float init,
                   const std::function<float(float, float)>& fn);

/// The gradient gx for a cotangent gy: as close to what the definition of the reducer gives, window by window, as its
/// sums allow, and adjoint to forward mode: <jvp(dx), gy> = <dx, gx>.
Verdict check_gradient(const Plan& plan, const View& x, const View& gy, const View& gx);

/// A sparse pooling of i32 coordinates and f32 features, in the oracle's rows and their order.
Verdict check(const SparseTensor& x, const SparsePooling& pooling, const SparseTensor& y);
/// f32 features (rows, channels), each output of the inputs that are listed for it.
Verdict check_rows(const Reduction& reduction, const View& x, const View& y,
                   const std::vector<std::vector<std::int64_t>>& inputs);

}  // namespace cenote::demo
