// A request, checked once (Pooling -> Plan), then run many times.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <cenote/array.h>
#include <cenote/reducers.h>
#include <cenote/window.h>

namespace cenote {

/// A whole pooling operation but for the array: reducer, where the windows lie, and the options of the reducer.
struct Pooling {
  Reducer reducer = Reducer::max;
  std::variant<Window, Adaptive, Global> region{};
  /// avg: what to divide by.
  Divisor divisor = Divisor::Rule::window;
  /// smooth_max: sharpness, finite and not 0; negative values give a smooth min.
  double beta = 1;
  /// smooth_max: what padded cells are.
  SmoothPadding pad = SmoothPadding::zero;
  /// lp: the exponent, at least 1; infinity is the largest absolute value.
  double p = 2;
  /// sum: the type of sum and result, the input's or a wider one of its kind.
  std::optional<Type> dtype{};
  /// max, min: also return where each winner is.
  std::optional<IndexKind> indices{};
  /// max, min: who gets the derivative at ties.
  Ties ties = Ties::first;
};

/// A checked request for arrays of one type and shape. Immutable, cheap to copy, safe to share between threads.
class Plan {
 public:
  Type input_type() const noexcept;
  const Extents& input_shape() const noexcept;
  Type output_type() const noexcept;
  const Extents& output_shape() const noexcept;
  /// The type of the indices; nullopt when none were asked for.
  std::optional<Type> index_type() const noexcept;
  const Pooling& pooling() const noexcept;
  /// The numbers of the pooled axes, increasing, and their geometry.
  const Extents& pooled() const noexcept;
  const std::vector<Axis>& axes() const noexcept;
  /// Bytes that must be moved at least: input, output and indices.
  std::int64_t bytes() const noexcept;
  /// Working memory per thread, in bytes.
  std::int64_t scratch_bytes() const noexcept;

  /// Pools x into y. Both must have the planned type and shape, and must not overlap.
  void run(const View& x, const MutableView& y) const;
  /// As above, and writes the winners' indices; only for a plan that asked for indices.
  void run(const View& x, const MutableView& y, const MutableView& indices) const;

  /// Forward mode, floating-point types only: dy, the derivative at x along dx. x and dx have the planned input's type
  /// and shape, dy the output's.
  void jvp(const View& x, const View& dx, const MutableView& dy) const;
  /// Reverse mode: gx, the cotangent of x for a cotangent gy of the output.
  void vjp(const View& x, const View& gy, const MutableView& gx) const;
  /// Second order: the derivative of gx along v, which is that of <gy, y> twice.
  void hvp(const View& x, const View& gy, const View& v, const MutableView& hx) const;
  /// max and min with ties to the first: the same from the winners' offsets (IndexKind::offset) instead of x. They are
  /// checked.
  void jvp_from_offsets(const View& offsets, const View& dx, const MutableView& dy) const;
  void vjp_from_offsets(const View& offsets, const View& gy, const MutableView& gx) const;

  /// One line: the problem, the algorithm and why it was chosen.
  std::string explain() const;

  struct Impl;
  struct Derivatives;
  explicit Plan(std::shared_ptr<const Impl> impl);
  const Impl& impl() const noexcept { return *impl_; }
  const std::shared_ptr<Derivatives>& derivatives() const noexcept { return derivatives_; }

 private:
  std::shared_ptr<const Impl> impl_;
  std::shared_ptr<Derivatives> derivatives_;  // made ready when first asked for
};

/// Checks a request against a type and a shape. Throws std::invalid_argument for anything that cannot be run.
Plan plan(const Pooling& pooling, Type type, const Extents& shape);

}  // namespace cenote
