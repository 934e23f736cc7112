// The derivatives of a pooling, made ready for one plan: forward mode (Tangent) and reverse mode (Cotangent).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cenote/array.h>

#include "plan/impl.h"

namespace cenote {

/// How the derivative of a pooling is found.
enum class Rule {
  linear,  // sum, avg: the pooling itself, and a sum over the transposed windows
  routed,  // max, min, lp of infinity: to and from the winner
  weighed  // smooth max, lp, ties that share: by a weight of every cell
};
Rule rule_of(const Plan::Impl& plan);

using ImplPtr = std::shared_ptr<const Plan::Impl>;

/// dy of (x, dx), linear in dx. Runs are thread-safe, and allocate nothing when x and dx have the same strides.
class Tangent {
 public:
  explicit Tangent(ImplPtr forward);
  /// Bytes that run needs, aligned to 64.
  std::int64_t scratch() const noexcept { return scratch_; }
  /// Precondition, here and below: arrays are checked, and have all axes.
  void run(const View& x, const View& dx, const MutableView& dy, std::byte* scratch) const;
  /// From the winners' offsets, which are checked. Only for a routed rule.
  void run_saved(const View& offsets, const View& dx, const MutableView& dy) const;

 private:
  ImplPtr forward_, part_, follower_;
  Rule rule_;
  std::int64_t scratch_ = 0;
};

class TameCotangent;

/// gx of (x, gy), linear in gy.
class Cotangent {
 public:
  /// Weights are plain sums where cells are tame, unless that is not wanted.
  explicit Cotangent(ImplPtr forward, bool may_be_tame = true);
  std::int64_t scratch() const noexcept { return scratch_; }
  /// x may be null for a linear rule.
  void run(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const;
  void run_saved(const View& offsets, const View& gy, const MutableView& gx) const;
  /// How the windows that hold a cell are summed; null for a routed rule.
  const Algorithm* sums() const noexcept { return transposed_ ? &transposed_->algorithm : nullptr; }

 private:
  void run_linear(const View& gy, const MutableView& gx, std::byte* scratch) const;
  void run_weighed(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const;
  void divide(const View& gy, void* quotients, const void* divisors) const;

  ImplPtr forward_, part_, transposed_;
  std::shared_ptr<const TameCotangent> tame_;
  Rule rule_;
  std::vector<std::vector<double>> counts_;  // cells per window along each axis, where an average divides by them
  std::int64_t scratch_ = 0, outputs_ = 0;
};

/// The offsets of the winners of x, for either. Precondition: a routed rule.
ImplPtr winners_of(const Plan::Impl& plan);

}  // namespace cenote
