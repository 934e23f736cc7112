// Derivatives of poolings: forward mode (jvp), reverse mode (vjp), and of second order, as functions of arrays.
#pragma once

#include <memory>

#include <cenote/array.h>
#include <cenote/linearized.h>
#include <cenote/plan.h>
#include <cenote/pooling.h>

namespace cenote {

/// Takes cotangents of a pooling's output back to its input, at the x it was made at. Immutable, cheap to copy, safe to
/// share between threads. It keeps what its reducer needs: the winners' offsets, a copy of x, or nothing.
class Pullback {
 public:
  /// gx, with the type and shape of x. gy must have those of the output.
  Array operator()(const View& gy) const;
  /// As above into memory of the caller's.
  void run(const View& gy, const MutableView& gx) const;

  struct Impl;
  explicit Pullback(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// A result and the way back from it.
struct Differentiated {
  Array y;
  Pullback pullback;
};

/// y and its derivative along dx. Floating-point types only, here and below.
Linearized jvp(const Pooling& pooling, const View& x, const View& dx);
/// y and the function that takes cotangents of y back to x.
Differentiated vjp(const Pooling& pooling, const View& x);
/// The second derivative of <gy, y> at x, times v.
Array hvp(const Pooling& pooling, const View& x, const View& gy, const View& v);

/// A pullback is an operation itself, of x and gy. Its value, and its derivative along (dx, dgy).
LinearizedPullback jvp(const Pullback& pullback, const View& gy, const View& dx, const View& dgy);

/// Takes cotangents of a pulled back gx back to the x and the gy that it came from.
class SecondPullback {
 public:
  SecondPullback(Pullback pullback, const View& gy) : pullback_(std::move(pullback)), gy_(gy) {}
  Cotangents operator()(const View& h) const;

 private:
  Pullback pullback_;
  Array gy_;
};
struct DifferentiatedPullback {
  Array gx;
  SecondPullback pullback;
};
DifferentiatedPullback vjp(const Pullback& pullback, const View& gy);

/// Smooth max: the derivative of y in beta, for every output.
Array beta_derivative(const Pooling& pooling, const View& x);

/// max_unpool as an operation of y: it is linear, so that its derivative along dy is max_unpool of dy, and this is the
/// way back: gy of a cotangent gx of the result. Values that another one overwrote get 0.
Array max_unpool_vjp(const View& gx, const View& indices, const Plane& plane = {});

}  // namespace cenote
