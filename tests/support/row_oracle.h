// What the oracle expects of a reduction of rows: values, winners, and derivatives in both modes and of second order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <cenote/row_pooling.h>

#include "../../reference/sparse_reduce.h"
#include "oracle.h"
#include "random_derivative.h"

namespace cenote::test {

/// A reduction in the words of dense poolings: rows are the real cells, and nothing is padded.
inline Pooling pooling_of(const Reduction& r) {
  Pooling p{.reducer = r.reducer, .beta = r.beta, .pad = SmoothPadding::ignore, .p = r.p, .ties = r.ties};
  switch (r.divisor.rule()) {
    case EdgeDivisor::Rule::count: p.divisor = Divisor::Rule::valid; break;
    case EdgeDivisor::Rule::volume: p.divisor = Divisor::Rule::window; break;
    case EdgeDivisor::Rule::number: p.divisor = r.divisor.number(); break;
  }
  return p;
}

/// Expectations of a reduction of x over a relation, whose kernel has `volume` cells.
class RowOracle {
 public:
  RowOracle(const Reduction& reduction, const reference::SparseRelation& relation, std::int64_t volume, const View& x)
      : pooling_(pooling_of(reduction)), type_(x.type), x_(doubles(x)) {
    const std::int64_t channels = x.shape[1];
    cells_ = reference::row_cells(relation, volume, x_, channels);
    std::vector<double> held(static_cast<std::size_t>(x.shape[0]), 0);
    for (const reference::SparseEdge& edge : relation.edges)
      reach_ = std::max(reach_, ++held[static_cast<std::size_t>(edge.in_row)]);
    for (const auto& window : cells_) most_ = std::max(most_, static_cast<double>(window.real.size()));
    for (const auto& window : cells_) jacobian_.push_back(weights_of(pooling_, window));
  }

  std::vector<Element> values() const {
    std::vector<Element> result;
    for (const auto& window : cells_) {
      const double k = std::max(1.0, static_cast<double>(window.real.size()));
      result.push_back(WindowExpectation<double>(pooling_, type_, growth(k)).element(window));
    }
    return result;
  }
  /// The rows that win; -1 where an output has none.
  std::vector<std::int64_t> rows() const {
    std::vector<std::int64_t> result;
    for (const auto& window : cells_) {
      const auto best =
          pooling_.reducer == Reducer::max ? winner(window, reference::Greater{}) : winner(window, reference::Less{});
      result.push_back(best ? best->plane : -1);
    }
    return result;
  }

  std::vector<reference::Slope> tangents(const std::vector<double>& dx, bool small_integers) const {
    return reference::jvp(jacobian_, dx, slope_error(pooling_, type_, growth(most_), most_, small_integers));
  }
  std::vector<reference::Slope> cotangents(const std::vector<double>& gy, bool small_integers) const {
    return reference::vjp(jacobian_, gy, x_.size(),
                          slope_error(pooling_, type_, growth(reach_), most_, small_integers));
  }
  /// A winner's tangent is a copy, but for the sign of a zero.
  std::vector<Element> jvp(const std::vector<double>& dx, bool small_integers) const {
    std::vector<Element> result;
    for (const reference::Slope& dy : tangents(dx, small_integers || routed()))
      result.push_back(near(type_, dy.value, dy.error));
    return result;
  }
  std::vector<Element> vjp(const std::vector<double>& gy, bool small_integers) const {
    std::vector<Element> result;
    for (const reference::Slope& gx : cotangents(gy, small_integers)) result.push_back(near(type_, gx.value, gx.error));
    return result;
  }
  /// Up to 300 rounding units of the products' magnitudes, and one rounding. Zero where the reducer does not bend.
  std::vector<Element> hvp(const std::vector<double>& gy, const std::vector<double>& v) const {
    std::vector<reference::Slope> h(v.size());
    if (pooling_.reducer == Reducer::smooth_max) h = reference::smooth_max_hvp(jacobian_, pooling_.beta, gy, v);
    if (pooling_.reducer == Reducer::lp && pooling_.p > 1 && std::isfinite(pooling_.p)) {
      std::vector<long double> y;
      for (const auto& window : cells_) y.push_back(reference::lp(window, pooling_.p));
      h = reference::lp_hvp(jacobian_, pooling_.p, x_, y, gy, v);
    }
    std::vector<Element> result;
    for (const reference::Slope& s : h) result.push_back(near(type_, s.value, 300 * unit(type_) * s.error));
    return result;
  }

  const std::vector<reference::Cells<double>>& cells() const { return cells_; }
  bool routed() const { return is_routed(pooling_); }
  /// Whether derivatives of small integers are small integers.
  bool exact() const { return (routed() || pooling_.reducer == Reducer::sum) && size_of(type_) > 2; }

 private:
  Pooling pooling_;
  Type type_;
  std::vector<double> x_;
  std::vector<reference::Cells<double>> cells_;
  std::vector<reference::Weights> jacobian_;
  double most_ = 1, reach_ = 1;
};

}  // namespace cenote::test
