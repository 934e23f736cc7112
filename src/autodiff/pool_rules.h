// A pooling as its derivative rules see it, dense or sparse: three operations that know each other.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <cenote/reducers.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// How a pooling, its tangent and its cotangent run, and what its reducer was told. Immutable.
class PoolFamily {
 public:
  PoolFamily(Reducer of, double sharpness, double exponent) : reducer(of), beta(sharpness), p(exponent) {}
  virtual ~PoolFamily() = default;
  /// "max_pool".
  virtual std::string name() const = 0;
  /// y of x.
  virtual Prepared pool(std::span<const Signature> inputs) const = 0;
  /// dy of (x, dx), linear in dx.
  virtual Prepared tangent(std::span<const Signature> inputs) const = 0;
  /// gx of (x, gy), linear in gy.
  virtual Prepared cotangent(std::span<const Signature> inputs) const = 0;

  const Reducer reducer;
  const double beta, p;
};
using FamilyPtr = std::shared_ptr<const PoolFamily>;

/// The pooling as an operation; its rules apply the other two.
OpPtr pool_op(const FamilyPtr& family);

/// Second order, written in these operations: the cotangent of x in <g, T(x, v)>, which is that of <C(x, g), v> too.
Maybe curve(Tracer& t, const FamilyPtr& family, Value x, Value g, Value v);

}  // namespace cenote::autodiff
