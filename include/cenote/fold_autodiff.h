// Derivatives of the generic pool: forward and reverse mode of first and second order, through a generic callable.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include <cenote/array.h>
#include <cenote/detail/fold_numbers.h>
#include <cenote/detail/fold_pullback.h>
#include <cenote/dual.h>
#include <cenote/fold.h>
#include <cenote/linearized.h>
#include <cenote/window.h>

namespace cenote {

/// A generic pool but for the array: pool(x, init, fn, region, Fold::associative). fn must be associative, since its
/// derivative relies on that: with another fn the derivatives below are not those of the fold. For derivatives, fn must
/// also be generic over the number type: it is called with Dual numbers.
template <class C, class F>
struct CustomPooling {
  C init;
  F fn;
  std::variant<Window, Adaptive, Global> region;
};

/// A fold, described by a value. init has the type that x computes in: float for f16, bf16 and f32, double for f64.
template <class C, class F>
CustomPooling<C, F> custom_pooling(C init, F fn, std::variant<Window, Adaptive, Global> region) {
  return {init, std::move(fn), std::move(region)};
}

/// The fold itself.
template <class C, class F>
Array pool(const View& x, const CustomPooling<C, F>& op) {
  return detail::fold(x, op.init, op.fn, op.region, Fold::associative);
}

namespace detail {

template <class C, class F>
constexpr void require_derivatives() {
  static_assert(std::is_same_v<C, float> || std::is_same_v<C, double>,
                "derivatives of a custom pooling need an init of type float or double");
  static_assert(std::is_invocable_r_v<Dual<C>, const F&, Dual<C>, Dual<C>>,
                "derivatives of a custom pooling need an fn that is generic over the number type, such as "
                "[](auto a, auto b) { return a * b; }: it is called with cenote::Dual numbers");
}

/// A custom pooling at one x, which is held in the type that it computes in.
template <class C, class F>
struct FoldPoint {
  CustomPooling<C, F> op;
  Type type;
  Extents output_shape;
  Array x;

  FoldPoint(const CustomPooling<C, F>& given, const View& at) : op(given), type(at.type) {
    check_differentiable(at);
    output_shape = fold_space("custom_pool", at, type_of<C>, op.region).output_shape;
    x = to_numbers(at);
  }

  void check_input(const char* what, const View& view) const { check_direction(what, view, type, x.shape()); }
  void check_output(const char* what, const View& view) const { check_direction(what, view, type, output_shape); }

  /// dy along dx, which is given as numbers.
  Array push_forward(const Array& dx) const {
    FoldSpace space = fold_space("custom_pool", x, type_of<C>, op.region);
    const std::int64_t size = element_count(output_shape);
    const DualNumbers<C> from = join<C>(x, &dx);
    const auto to = std::make_unique_for_overwrite<Dual<C>[]>(static_cast<std::size_t>(size));
    if (size > 0)
      run_fold(space, Folding<Dual<C>, F>{from.get(), to.get(), nullptr, op.init, op.fn}, size, Fold::associative);
    return part<C>(to, &Dual<C>::tangent, type, output_shape);
  }

  /// The cotangent of `at`, which is x in some number type. gx must hold zeros.
  template <class N>
  void pull_back(const N* at, const N* gy, N* gx) const {
    if (x.size() == 0 || element_count(output_shape) == 0) return;
    const PullbackPlan plan = plan_pullback(fold_space("custom_pool", x, type_of<C>, op.region));
    FoldPullback<N, F>(plan, op.fn, N(op.init), at, gy, gx).run();
  }

  /// The cotangent of x and its derivative along dx and dgy (0 if null), all given as numbers.
  DualNumbers<C> pull_back_along(const Array& gy, const Array& dx, const Array* dgy) const {
    static_assert(std::is_invocable_r_v<Dual<Dual<C>>, const F&, Dual<Dual<C>>, Dual<Dual<C>>>,
                  "second derivatives need an fn that can also be called with Dual numbers of Dual numbers");
    auto gx = std::make_unique<Dual<C>[]>(static_cast<std::size_t>(x.size()));
    pull_back<Dual<C>>(join<C>(x, &dx).get(), join<C>(gy, dgy).get(), gx.get());
    return gx;
  }
};

}  // namespace detail

/// The map gy -> gx of a custom pooling at one x, of which it holds a copy; cheap to copy itself. It is an operation of
/// two arguments, x and gy, and has derivatives in both: jvp and vjp below.
template <class C, class F>
class CustomPullback {
 public:
  using Point = std::shared_ptr<const detail::FoldPoint<C, F>>;
  explicit CustomPullback(Point point) : point_(std::move(point)) {}

  /// The cotangent of x for the cotangent gy of y, which has y's type and shape.
  Array operator()(const View& gy) const {
    const detail::FoldPoint<C, F>& point = *point_;
    point.check_output("gy", gy);
    const Array from = detail::to_numbers(gy);
    Array gx = Array::zeros(type_of<C>, point.x.shape());
    const auto data = [](auto& array) { return array.template values<C>().data(); };
    point.template pull_back<C>(data(point.x), data(from), data(gx));
    return detail::from_numbers(std::move(gx), point.type);
  }

  const Point& point() const noexcept { return point_; }

 private:
  Point point_;
};

/// What reverse mode returns: the pool of x, and the map from a cotangent of it to one of x.
template <class C, class F>
struct CustomVjp {
  Array y;
  CustomPullback<C, F> pullback;
};

/// Forward mode: the pool of x and its derivative along dx, which has x's type and shape.
template <class C, class F>
Linearized jvp(const CustomPooling<C, F>& op, const View& x, const View& dx) {
  detail::require_derivatives<C, F>();
  const detail::FoldPoint<C, F> point(op, x);
  point.check_input("dx", dx);
  return {pool(x, op), point.push_forward(detail::to_numbers(dx))};
}

/// Reverse mode: the pool of x, and the pullback that maps a cotangent gy of it to the cotangent gx of x. Its cost is
/// linear in the cells of each window.
template <class C, class F>
CustomVjp<C, F> vjp(const CustomPooling<C, F>& op, const View& x) {
  detail::require_derivatives<C, F>();
  auto point = std::make_shared<const detail::FoldPoint<C, F>>(op, x);
  return {pool(x, op), CustomPullback<C, F>(std::move(point))};
}

/// The second derivative of <gy, pool(x)> in x, times v, which has x's type and shape.
template <class C, class F>
Array hvp(const CustomPooling<C, F>& op, const View& x, const View& gy, const View& v) {
  detail::require_derivatives<C, F>();
  const detail::FoldPoint<C, F> point(op, x);
  point.check_output("gy", gy);
  point.check_input("v", v);
  const auto gx = point.pull_back_along(detail::to_numbers(gy), detail::to_numbers(v), nullptr);
  return detail::part<C>(gx, &Dual<C>::tangent, x.type, x.shape);
}

/// Forward mode of a pullback: gx, and its derivative along a tangent dx of x and dgy of gy.
template <class C, class F>
LinearizedPullback jvp(const CustomPullback<C, F>& pullback, const View& gy, const View& dx, const View& dgy) {
  const detail::FoldPoint<C, F>& point = *pullback.point();
  point.check_output("gy", gy);
  point.check_input("dx", dx);
  point.check_output("dgy", dgy);
  const Array tangents = detail::to_numbers(dgy);
  const auto gx = point.pull_back_along(detail::to_numbers(gy), detail::to_numbers(dx), &tangents);
  return {detail::part<C>(gx, &Dual<C>::value, dx.type, dx.shape),
          detail::part<C>(gx, &Dual<C>::tangent, dx.type, dx.shape)};
}

/// Maps a cotangent h of gx to the cotangents of x and gy. Holds copies of both.
template <class C, class F>
class CustomSecond {
 public:
  CustomSecond(typename CustomPullback<C, F>::Point point, const View& gy)
      : point_(std::move(point)), gy_(detail::to_numbers(gy)) {}

  /// {hvp along h, dy along h}: the second derivative is symmetric, and the pullback is linear in gy.
  Cotangents operator()(const View& h) const {
    point_->check_input("h", h);
    const Array along = detail::to_numbers(h);
    const auto gx = point_->pull_back_along(gy_, along, nullptr);
    return {detail::part<C>(gx, &Dual<C>::tangent, h.type, h.shape), point_->push_forward(along)};
  }

 private:
  typename CustomPullback<C, F>::Point point_;
  Array gy_;
};

/// What reverse mode of a pullback returns: gx, and the map from a cotangent of it to those of x and gy.
template <class C, class F>
struct CustomPullbackVjp {
  Array gx;
  CustomSecond<C, F> pullback;
};

/// Reverse mode of a pullback.
template <class C, class F>
CustomPullbackVjp<C, F> vjp(const CustomPullback<C, F>& pullback, const View& gy) {
  Array gx = pullback(gy);
  return {std::move(gx), CustomSecond<C, F>(pullback.point(), gy)};
}

}  // namespace cenote
