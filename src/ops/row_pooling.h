// A row pooling, made ready, and its derivatives as reductions of rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <cenote/row_pooling.h>
#include <cenote/signature.h>

#include "ops/derivative.h"
#include "reduce/params.h"
#include "reduce/traits.h"
#include "sparse/segments.h"

namespace cenote {

struct RowPooling::Impl {
  std::string who;
  Reduction reduction;
  Traits traits;
  Params params;
  std::unique_ptr<const sparse::Incidence> rows;
  /// Multilinear: the weight of each kernel id, and the sum of weights of each output.
  std::vector<double> weights{}, weight_sums{};
  /// What all outputs are divided by, if it is the same.
  double divisor = 0;

  bool weighed() const noexcept { return !weights.empty(); }
  bool divides_by_edges() const noexcept;
  /// What each output is divided by, made when first asked for; null where it is `divisor`.
  const double* divisors() const;

  Impl(std::string name, const Reduction& how, std::unique_ptr<const sparse::Incidence> incidence);

 private:
  sparse::Lazy<std::vector<double>> counts_{};
};

/// Rejects features that are not (rows, C) of a floating-point type, or for which the reduction's options do not do.
void check_feats(const RowPooling::Impl& pooling, const char* what, const Signature& feats, std::int64_t rows);
/// The same of an array in memory.
void check_rows(const RowPooling::Impl& pooling, const char* what, const View& view, std::int64_t rows);
/// How the derivative of a row pooling is found, for features of a type.
Rule rule_of(const RowPooling::Impl& pooling, Type type);

// Precondition below: arrays are checked, and channels lie side by side. Working memory is aligned to 64 bytes.

void reduce_values(const RowPooling::Impl& pooling, const View& x, const MutableView& y);
/// max, min: also the rows that won, (outputs, C).
void reduce_winners(const RowPooling::Impl& pooling, const View& x, const MutableView& y, std::int32_t* winners);

/// Bytes that the derivatives below need for features like x.
std::int64_t row_scratch(const RowPooling::Impl& pooling, const Signature& x);
/// dy of (x, dx). Precondition, here and below: no array has gaps.
void row_tangent(const RowPooling::Impl& pooling, const View& x, const View& dx, const MutableView& dy,
                 std::byte* scratch);
/// gx of (x, gy); x may be null for a linear rule.
void row_cotangent(const RowPooling::Impl& pooling, const View& x, const View& gy, const MutableView& gx,
                   std::byte* scratch);
/// The same from the rows that won, for max and min.
void routed_tangent(const RowPooling::Impl& pooling, const std::int32_t* winners, const View& dx,
                    const MutableView& dy);
void routed_cotangent(const RowPooling::Impl& pooling, const std::int32_t* winners, const View& gy,
                      const MutableView& gx);

}  // namespace cenote
