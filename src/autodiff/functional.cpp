// jvp, vjp and hvp of poolings as functions of arrays.
#include <cenote/autodiff.h>

#include <cmath>
#include <optional>

#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "autodiff/pool_ops.h"
#include "core/copy.h"
#include "core/reject.h"
#include "ops/arrays.h"
#include "ops/plan_derivative.h"

namespace cenote {

using autodiff::EagerTracer;
using autodiff::Maybe;
using autodiff::Value;

/// Offsets serve where winners do, x where weights do; a linear pooling needs neither.
struct Pullback::Impl {
  Plan plan;
  Rule rule;
  std::optional<Array> offsets, x;
};

namespace {

Array or_zeros(EagerTracer& tracer, Maybe value, const Signature& signature) {
  return value ? tracer.take(*value) : Array::zeros(signature.type, signature.shape);
}

Signature input_of(const Plan& plan) { return {plan.input_type(), plan.input_shape()}; }
Signature output_of(const Plan& plan) { return {plan.output_type(), plan.output_shape()}; }

void check(const Plan& plan, const char* what, const View& view, const Signature& expected) {
  check_view(plan.impl().who, what, view, expected.type, expected.shape);
}

/// A request whose derivative was asked for.
Plan differentiable(const Pooling& pooling, const View& x) {
  Plan made = plan(pooling, x.type, x.shape);
  if (!is_float(x.type))
    reject(made.impl().who, "derivative for type ", name(x.type), ": must be f16, bf16, f32 or f64");
  if (pooling.indices) reject(made.impl().who, "indices: a derivative has none");
  return made;
}

Array second_derivative(const Plan& plan, const View& x, const View& gy, const View& v) {
  EagerTracer tracer;
  return or_zeros(
      tracer,
      autodiff::curve(tracer, autodiff::family(plan.pooling()), tracer.borrow(x), tracer.borrow(gy), tracer.borrow(v)),
      input_of(plan));
}

/// dy of a pullback's pooling along dx, with the winners that it has kept.
Array along(const Pullback::Impl& at, const View& dx) {
  Array dy(at.plan.output_type(), at.plan.output_shape());
  if (at.offsets)
    at.plan.jvp_from_offsets(*at.offsets, dx, dy);
  else
    at.plan.jvp(at.x ? View(*at.x) : dx, dx, dy);
  return dy;
}

/// The second derivative there; without an x it is zero.
Array bent(const Pullback::Impl& at, const View& gy, const View& v) {
  if (at.x) return second_derivative(at.plan, *at.x, gy, v);
  return Array::zeros(at.plan.input_type(), at.plan.input_shape());
}

}  // namespace

void Plan::hvp(const View& x, const View& gy, const View& v, const MutableView& hx) const {
  if (!is_float(input_type()))
    reject(impl_->who, "derivative for type ", name(input_type()), ": must be f16, bf16, f32 or f64");
  check(*this, "x", x, input_of(*this));
  check(*this, "gy", gy, output_of(*this));
  check(*this, "v", v, input_of(*this));
  check(*this, "hx", hx, input_of(*this));
  check_writable(impl_->who, "hx", hx);
  for (const View* input : {&x, &gy, &v})
    if (overlap(*input, hx)) reject(impl_->who, "hx overlaps an input in memory: it must not");
  copy_strided(second_derivative(*this, x, gy, v), hx);
}

Linearized jvp(const Pooling& pooling, const View& x, const View& dx) {
  const Plan plan = differentiable(pooling, x);
  Linearized result{Array(plan.output_type(), plan.output_shape()), Array(plan.output_type(), plan.output_shape())};
  plan.jvp(x, dx, result.dy);
  plan.run(x, result.y);
  return result;
}

Differentiated vjp(const Pooling& pooling, const View& x) {
  const Plan plan = differentiable(pooling, x);
  auto impl = std::make_shared<Pullback::Impl>(Pullback::Impl{plan, rule_of(plan.impl()), {}, {}});
  Array y(plan.output_type(), plan.output_shape());
  if (impl->rule == Rule::routed && plan.impl().traits.picks) {
    Pooling with_offsets = pooling;
    with_offsets.indices = IndexKind::offset;
    const Plan winners = cenote::plan(with_offsets, x.type, x.shape);
    impl->offsets.emplace(*winners.index_type(), winners.output_shape());
    winners.run(x, y, *impl->offsets);
  } else {
    plan.run(x, y);
    if (impl->rule != Rule::linear) impl->x.emplace(x);
  }
  return {std::move(y), Pullback(std::move(impl))};
}

void Pullback::run(const View& gy, const MutableView& gx) const {
  const Plan& plan = impl_->plan;
  if (impl_->x) return plan.vjp(*impl_->x, gy, gx);
  check(plan, "gy", gy, output_of(plan));
  check(plan, "gx", gx, input_of(plan));
  check_writable(plan.impl().who, "gx", gx);
  if (overlap(gy, gx)) reject(plan.impl().who, "gx overlaps gy in memory: it must not");
  const Cotangent& cotangent = plan.derivatives()->cotangent();
  const Geometry& geometry = plan.impl().geometry;
  const View all = with_all_axes(gy, geometry);
  // A pullback has found its offsets itself: they need no check.
  if (impl_->offsets) return cotangent.run_saved(with_all_axes(View(*impl_->offsets), geometry), all, gx);
  plan.derivatives()->with_scratch(cotangent.scratch(),
                                   [&](std::byte* scratch) { cotangent.run(View(), all, gx, scratch); });
}

Array Pullback::operator()(const View& gy) const {
  Array gx(impl_->plan.input_type(), impl_->plan.input_shape());
  run(gy, gx);
  return gx;
}

Array hvp(const Pooling& pooling, const View& x, const View& gy, const View& v) {
  const Plan plan = differentiable(pooling, x);
  Array hx(x.type, x.shape);
  plan.hvp(x, gy, v, hx);
  return hx;
}

LinearizedPullback jvp(const Pullback& pullback, const View& gy, const View& dx, const View& dgy) {
  const Pullback::Impl& at = pullback.impl();
  check(at.plan, "dx", dx, input_of(at.plan));
  check(at.plan, "dgy", dgy, output_of(at.plan));
  Array gx = pullback(gy);
  EagerTracer tracer;
  Maybe sum = tracer.hold(pullback(dgy));
  if (at.x) sum = autodiff::add(tracer, sum, Maybe(tracer.hold(bent(at, gy, dx))));
  return {std::move(gx), tracer.take(*sum)};
}

DifferentiatedPullback vjp(const Pullback& pullback, const View& gy) {
  return {pullback(gy), SecondPullback(pullback, gy)};
}

Cotangents SecondPullback::operator()(const View& h) const {
  const Pullback::Impl& at = pullback_.impl();
  check(at.plan, "h", h, input_of(at.plan));
  return {bent(at, gy_, h), along(at, h)};
}

Array beta_derivative(const Pooling& pooling, const View& x) {
  const Plan plan = differentiable(pooling, x);
  const std::string& who = plan.impl().who;
  if (pooling.reducer != Reducer::smooth_max) reject(who, "beta: only smooth_max has one");
  check_view(who, "x", x, x.type, x.shape);
  // (T(x, x) - y) / beta in double precision: both may be large and close.
  Array wide(Type::f64, x.shape);
  copy_strided(x, MutableView(wide));
  const Linearized at = jvp(pooling, wide, wide);
  Array quotients(Type::f64, plan.output_shape());
  const auto y = at.y.values<double>(), mean = at.dy.values<double>();
  const auto to = quotients.values<double>();
  // An infinite y, that of an infinite cell or of a window without cells, is the same for all beta.
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::isinf(y[i]) ? 0 : (mean[i] - y[i]) / pooling.beta;
  if (x.type == Type::f64) return quotients;
  Array result(x.type, plan.output_shape());
  copy_strided(quotients, MutableView(result));
  return result;
}

Array max_unpool_vjp(const View& gx, const View& indices, const Plane& plane) {
  // The adjoint of unpooling into the shape of gx, from its own rule.
  if (!is_float(gx.type))
    reject("max_unpool", "derivative for type ", name(gx.type), ": must be f16, bf16, f32 or f64");
  const auto unpool = autodiff::unpool_op(gx.shape, plane);
  check_memory("max_unpool", "gx", gx);
  check_memory("max_unpool", "indices", indices);
  EagerTracer tracer;
  const Array y = Array::zeros(gx.type, indices.shape);
  const Value inputs[] = {tracer.borrow(y), tracer.borrow(indices)};
  const Value outputs[] = {inputs[0]};
  const Maybe cotangents[] = {tracer.borrow(gx)};
  return tracer.take(*unpool->vjp(tracer, inputs, outputs, cotangents)[0]);
}

}  // namespace cenote
