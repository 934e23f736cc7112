// Reductions of rows of features: over a relation, over the rows of each batch, or by multilinear weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <cenote/array.h>
#include <cenote/linearized.h>
#include <cenote/reducers.h>
#include <cenote/relation.h>

namespace cenote {

/// What an average over a relation divides by.
class EdgeDivisor {
 public:
  enum class Rule { count, volume, number };
  /// count: the edges of the output. volume: the cells of the kernel.
  EdgeDivisor(Rule rule) : rule_(rule) {}
  /// A given number, finite and > 0.
  EdgeDivisor(double number) : rule_(Rule::number), number_(number) {}
  Rule rule() const noexcept { return rule_; }
  double number() const noexcept { return number_; }
  friend bool operator==(const EdgeDivisor&, const EdgeDivisor&) = default;

 private:
  Rule rule_ = Rule::count;
  double number_ = 1;
};

/// What max, min and smooth max make of an output without inputs: an error, or the infinity that they start from.
/// To sum, avg and lp it is zero.
enum class Empty : std::uint8_t { reject, identity };

/// What becomes of the rows that feed an output: the reducers of dense poolings, channel by channel.
struct Reduction {
  Reducer reducer = Reducer::sum;
  /// avg: what to divide by.
  EdgeDivisor divisor = EdgeDivisor::Rule::count;
  /// smooth_max: sharpness, finite and not 0; absent cells are ignored.
  double beta = 1;
  /// lp: the exponent, at least 1; infinity is the largest absolute value.
  double p = 2;
  /// max, min: who gets the derivative at ties.
  Ties ties = Ties::first;
  /// max, min, smooth_max: whether outputs may be without inputs.
  Empty empty = Empty::reject;
};

/// Values and, for each, the input row that it came from: i32, -1 where there is none.
struct PooledRows {
  Array values, rows;
};

/// A function from features (inputs, C) to features (outputs, C), checked and ready, for any C and any floating-point
/// type. Every output reduces its rows in a fixed order, halves in f32, so that threads do not change a bit.
/// Immutable, cheap to copy, safe to share between threads.
class RowPooling {
 public:
  /// Over the edges of a relation, in the order of their kernel ids. Throws std::invalid_argument for a reduction that
  /// is none, and where a row must not be empty and is.
  RowPooling(const Relation& relation, const Reduction& reduction);
  /// Over the rows of each batch, in their order: sum, avg, max or min, and the others too.
  static RowPooling global(const std::shared_ptr<const Coordinates>& coords, const Reduction& reduction);
  /// Over a transposed relation of size 2s - 1, stride s and padding s - 1 per axis: an edge that lies i along an axis
  /// weighs 1 - |i - (s - 1)| / s, and outputs are divided by the sum of their weights. See upsample().
  static RowPooling multilinear(const Relation& relation);

  std::int64_t inputs() const noexcept;
  std::int64_t outputs() const noexcept;
  const Reduction& reduction() const noexcept;

  /// (outputs, C) of (inputs, C).
  Array operator()(const View& x) const;
  /// As above into memory of the caller's, which must not overlap x.
  void run(const View& x, const MutableView& y) const;
  /// max and min: also which rows won, the first of equals.
  PooledRows with_rows(const View& x) const;

  struct Impl;
  explicit RowPooling(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Takes cotangents of a row pooling's output back to its input, at the x it was made at.
class RowPullback {
 public:
  /// gx (inputs, C) of gy (outputs, C).
  Array operator()(const View& gy) const;
  /// As above into memory of the caller's, which must not overlap gy.
  void run(const View& gy, const MutableView& gx) const;

  struct Impl;
  explicit RowPullback(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};
struct DifferentiatedRows {
  Array y;
  RowPullback pullback;
};

/// y and its derivative along dx.
Linearized jvp(const RowPooling& pooling, const View& x, const View& dx);
/// y and the function that takes cotangents of y back to x.
DifferentiatedRows vjp(const RowPooling& pooling, const View& x);
/// The second derivative of <gy, y> at x, times v.
Array hvp(const RowPooling& pooling, const View& x, const View& gy, const View& v);

/// A pullback is an operation itself, of x and gy. Its value, and its derivative along (dx, dgy).
LinearizedPullback jvp(const RowPullback& pullback, const View& gy, const View& dx, const View& dgy);

/// Takes cotangents of a pulled back gx back to the x and the gy that it came from.
class SecondRowPullback {
 public:
  SecondRowPullback(RowPullback pullback, const View& gy) : pullback_(std::move(pullback)), gy_(gy) {}
  Cotangents operator()(const View& h) const;

 private:
  RowPullback pullback_;
  Array gy_;
};
struct DifferentiatedRowPullback {
  Array gx;
  SecondRowPullback pullback;
};
DifferentiatedRowPullback vjp(const RowPullback& pullback, const View& gy);

}  // namespace cenote
