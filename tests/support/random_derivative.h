// Random derivatives: a pooling of floats with a tangent and a cotangent, and what the oracle expects of both modes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <cenote/plan.h>

#include "../../reference/derivatives.h"
#include "oracle.h"
#include "random_problem.h"
#include "show.h"

namespace cenote::test {

/// A case whose tangents and cotangents have layouts and elements of their own.
struct SlopeCase : Case {
  Layout dx, gy, dy, gx;
  Data slopes = Data::few;
};

inline std::ostream& operator<<(std::ostream& out, const SlopeCase& c) {
  out << static_cast<const Case&>(c) << (c.pooling.ties == Ties::split ? "; ties split" : "");
  show(out, "dx", c.dx);
  show(out, "gy", c.gy);
  show(out, "dy", c.dy);
  show(out, "gx", c.gx);
  return out << "; slopes " << static_cast<int>(c.slopes);
}

/// A case of a reducer with a floating-point type. No indices: derivatives have none.
inline rc::Gen<SlopeCase> slope_cases(Reducer reducer, Ties ties, Region region) {
  const auto any = cases(reducer, region);
  return rc::gen::exec([=] {
    using namespace detail;
    SlopeCase c;
    static_cast<Case&>(c) = *any;
    c.type = one_of<Type>({Type::f32, Type::f64, Type::f16, Type::bf16});
    if (c.pooling.dtype) c.pooling.dtype = one_of<Type>({c.type, Type::f64});
    c.pooling.indices.reset();
    c.pooling.ties = ties;
    c.slopes = one_of<Data>({Data::few, Data::unit});
    const auto in = static_cast<int>(c.x.order.size()), out = static_cast<int>(c.y.order.size());
    // Equal layouts of x and dx take a way of their own.
    c.dx = chance(40) ? c.x : layout(in, true);
    c.gy = layout(out, true);
    c.dy = layout(out, false);
    c.gx = layout(in, false);
    return c;
  });
}

/// An array without gaps of random elements.
inline Array drawn(const Extents& shape, Type type, Data data, std::uint64_t number) {
  Strided values(type, shape, Layout::plain(shape.size()));
  fill(values, data, number);
  return Array(std::as_const(values).view());
}

inline bool picks(const Pooling& p) { return p.reducer == Reducer::max || p.reducer == Reducer::min; }
/// Whether each output has one winner that gets all of its derivative.
inline bool is_routed(const Pooling& p) { return picks(p) && p.ties == Ties::first; }

/// The elements of any view of floats.
inline std::vector<double> doubles(const View& view) {
  return visit(view.type, [&](auto element) -> std::vector<double> {
    using T = decltype(element);
    if constexpr (std::is_same_v<Carrier<T>, double>)
      return read<T>(view).values;
    else
      return {};
  });
}

inline reference::Weights weights_of(const Pooling& p, const reference::Cells<double>& window) {
  const bool split = p.ties == Ties::split, most = p.reducer == Reducer::max;
  switch (p.reducer) {
    case Reducer::max:
    case Reducer::min:
      if (most)
        return split ? shared_weights(window, reference::Greater{}) : winner_weight(window, reference::Greater{});
      return split ? shared_weights(window, reference::Less{}) : winner_weight(window, reference::Less{});
    case Reducer::sum: return even_weights(window);
    case Reducer::avg:
      if (p.divisor.rule() == Divisor::Rule::number) return even_weights(window, p.divisor.number());
      return even_weights(window, static_cast<long double>(
                                      reference::divisor(window, static_cast<reference::Divide>(p.divisor.rule()))));
    case Reducer::smooth_max: return smooth_max_weights(window, p.beta, p.pad == SmoothPadding::zero);
    default: return lp_weights(window, p.p);
  }
}

/// The share of the result's last rounding in an error, relative and absolute.
inline long double last_rounding(Type type, long double value) {
  const long double relative = type == Type::f16    ? 0x1p-11L
                               : type == Type::bf16 ? 0x1p-8L
                               : type == Type::f32  ? 0x1p-24L
                                                    : 0x1p-53L;
  return std::fabs(value) * relative + (type == Type::f16 ? 0x1p-25L : type == Type::f64 ? 0x1p-1075L : 0x1p-133L);
}

/// What <found, by> may be off where the elements found are as far from `slopes` as those may be.
inline long double inner_error(const std::vector<reference::Slope>& slopes, const std::vector<double>& by, Type type) {
  long double error = 0;
  for (std::size_t i = 0; i < by.size(); ++i)
    error += std::fabs(by[i]) * (slopes[i].error + last_rounding(type, slopes[i].value));
  return error;
}

/// <dy, gy> and <dx, gx> must not differ by more than `error`. False where they are NaN, and so say nothing.
inline bool check_adjoint(const std::vector<double>& dy, const std::vector<double>& gy, const std::vector<double>& gx,
                          const std::vector<double>& dx, long double error) {
  const long double left = std::inner_product(dy.begin(), dy.end(), gy.begin(), 0.0L);
  const long double right = std::inner_product(gx.begin(), gx.end(), dx.begin(), 0.0L);
  if (left != left || right != right) return false;
  if (!(std::fabs(left - right) <= error))
    RC_FAIL("<dy, gy> = " + std::to_string(left) + ", <dx, gx> = " + std::to_string(right));
  return true;
}

/// What a product weight * slope may be off, at most: (16 + g + 2 log2 n + 4 c d) rounding units of the compute type,
/// where g is the growth of a sum as in the semantics, n the cells of a window, d the distance of the cell (smooth max:
/// beta (x-p), lp: log of x / largest) and c = 1, for lp p - 1; cells beyond the smallest normal number may be lost.
/// Sums of small integers are exact.
using SlopeError = std::function<long double(const reference::Weight&, long double)>;
inline SlopeError slope_error(const Pooling& pooling, Type type, double units, double cells, bool small_integers) {
  const bool plain = is_routed(pooling) || pooling.reducer == Reducer::sum;
  if (plain && small_integers) return [](const reference::Weight&, long double) { return 0.0L; };
  const bool wide = type == Type::f64;
  const long double u = unit(type), most = wide ? 700 : 86, tiny = wide ? 0x1p-1020L : 0x1p-124L;
  const long double steep = pooling.reducer == Reducer::lp && std::isfinite(pooling.p) ? pooling.p - 1 : 1;
  const long double flat = 16 + units + 2 * std::log2(cells);
  return [=](const reference::Weight& w, long double by) -> long double {
    const long double term = std::fabs(w.weight * by);
    if (w.distance > most) return 2 * term + tiny * std::fabs(by);
    return term * u * (flat + 4 * steep * w.distance) + tiny * std::fabs(by);
  };
}

/// What both modes of a case must give: products within their error, then one rounding to the type. Winners' tangents
/// are copies.
class Slopes {
 public:
  Slopes(const Pooling& pooling, Type type, const Extents& shape, const View& x)
      : pooling_(pooling), type_(type), windows_(windows_of(pooling, shape)) {
    const reference::Tensor<double> cells{to_shape(shape), doubles(x)};
    cells_ = cells.values.size();
    jacobian_ = reference::jacobian(cells, windows_, [&](const auto& window) { return weights_of(pooling, window); });
    result_ = result_type_of(pooling, type);
    for (const reference::Axis& axis : windows_.axes)
      most_ *= static_cast<double>(std::max<std::int64_t>(axis.taps, 1));
  }

  const reference::Windows& windows() const { return windows_; }
  const std::vector<reference::Weights>& jacobian() const { return jacobian_; }

  std::vector<reference::Slope> tangents(const std::vector<double>& dx, bool small_integers) const {
    return reference::jvp(jacobian_, dx, error(growth(windows_), small_integers));
  }
  std::vector<reference::Slope> cotangents(const std::vector<double>& gy, bool small_integers) const {
    return reference::vjp(jacobian_, gy, cells_, error(reach(), small_integers));
  }

  std::vector<Element> jvp(const std::vector<double>& dx, bool small_integers) const {
    std::vector<Element> result;
    if (is_routed(pooling_)) {
      for (const reference::Weights& w : jacobian_)
        result.push_back(Element::exactly(w.empty() ? 0.0 : dx[static_cast<std::size_t>(w[0].cell)]));
      return result;
    }
    for (const reference::Slope& dy : tangents(dx, small_integers)) result.push_back(near(result_, dy.value, dy.error));
    return result;
  }
  std::vector<Element> vjp(const std::vector<double>& gy, bool small_integers) const {
    std::vector<Element> result;
    for (const reference::Slope& gx : cotangents(gy, small_integers)) result.push_back(near(type_, gx.value, gx.error));
    return result;
  }

 private:
  // How far sums over all windows that hold a cell may be off, as for sums over windows.
  double reach() const {
    double units = 0;
    for (const reference::Axis& axis : windows_.axes) {
      std::vector<double> held(static_cast<std::size_t>(axis.n), 0);
      for (const reference::Bin& bin : axis.bins)
        for (const auto& tap : bin.real) ++held[static_cast<std::size_t>(tap.position)];
      units += growth(held.empty() ? 1 : std::max(1.0, *std::max_element(held.begin(), held.end())));
    }
    return units;
  }

  SlopeError error(double units, bool small_integers) const {
    return slope_error(pooling_, type_, units, most_, small_integers);
  }

  const Pooling& pooling_;
  Type type_, result_ = Type::f32;
  reference::Windows windows_;
  std::vector<reference::Weights> jacobian_;
  std::size_t cells_ = 0;
  double most_ = 1;
};

}  // namespace cenote::test
