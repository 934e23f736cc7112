// The derivative rules of the poolings. With P the pooling, T its tangent and C its cotangent:
//
//   operation   along (dx, da)                  back from g to x             back from g to a
//   P(x)        T(x, dx)                        C(x, g)
//   T(x, a)     T(x, da) + bend(x, a, dx)       curve(x, g, a)               C(x, g)
//   C(x, a)     C(x, da) + curve(x, a, dx)      curve(x, a, g)               T(x, g)
//
// bend and curve are what the weights change by: nothing for max, min, sum and avg, whose weights are constant wherever
// they have a derivative.
#include "autodiff/pool_ops.h"

#include <functional>
#include <limits>

#include <cenote/error.h>

#include "autodiff/language.h"
#include "core/reject.h"
#include "ops/arrays.h"
#include "ops/derivative.h"

namespace cenote::autodiff {
namespace {

Value pool(Tracer& t, const Pooling& p, Value x) { return t.apply_one(pool_op(p), {x}); }
Value tangent(Tracer& t, const Pooling& p, Value x, Value dx) { return t.apply_one(pool_tangent_op(p), {x, dx}); }
Value cotangent(Tracer& t, const Pooling& p, Value x, Value gy) { return t.apply_one(pool_cotangent_op(p), {x, gy}); }

/// Halves are widened, so that a rule of several operations rounds once.
using Formula = std::function<Value(Tracer&, Value, Value, Value)>;
Value in_float(Tracer& t, Value x, Value a, Value b, const Formula& formula) {
  const Type type = t.signature(x).type;
  if (!is_half(type)) return formula(t, x, a, b);
  const auto wide = [&](Value v) { return cast(t, v, Type::f32); };
  return cast(t, formula(t, wide(x), wide(a), wide(b)), type);
}

/// Whether the weights of a pooling change with x. A reducer that weighs must say below what they change by.
bool bends(const Pooling& p, Type type) {
  const double largest =
      type == Type::f64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  if (p.reducer == Reducer::smooth_max) return true;
  if (p.reducer == Reducer::lp) return p.p > 1 && p.p <= largest;
  if (traits(p.reducer).weighs)
    throw Unsupported("[" + std::string(cenote::name(p.reducer)) + "_pool] has no second derivative");
  return false;
}

/// The derivative of T(x, a) along b in x.
Maybe bend(Tracer& t, const Pooling& p, Value x, Value a, Value b) {
  if (!bends(p, t.signature(x).type)) return std::nullopt;
  return in_float(t, x, a, b, [&](Tracer& u, Value xs, Value as, Value bs) {
    const Value both = mul(u, as, bs), product = mul(u, tangent(u, p, xs, as), tangent(u, p, xs, bs));
    // smooth max: beta * (T(ab) - T(a) T(b))
    if (p.reducer == Reducer::smooth_max) return scale(u, sub(u, tangent(u, p, xs, both), product), p.beta);
    // lp: (p - 1) * (T(ab / x) - T(a) T(b) / y)
    return scale(u, sub(u, tangent(u, p, xs, ratio(u, both, xs)), ratio(u, product, pool(u, p, xs))), p.p - 1);
  });
}

/// What poolings, their tangents and their cotangents share: how many inputs, and where their shapes come from.
class PoolBase : public Op {
 public:
  explicit PoolBase(const Pooling& pooling) : pooling_(pooling) {}
  std::string name() const override { return std::string(cenote::name(pooling_.reducer)) + "_pool"; }

 protected:
  /// The plan of x. A derivative has a second input, which must have the type and shape that follow from x.
  Plan made(std::span<const Signature> inputs, const char* second, bool of_output) const {
    const Plan result = plan(pooling_, inputs[0].type, inputs[0].shape);
    if (!second) return result;
    const Signature expected = of_output ? Signature{result.output_type(), result.output_shape()} : inputs[0];
    if (!is_float(inputs[0].type))
      reject(name(), "derivative for type ", cenote::name(inputs[0].type), ": must be f16, bf16, f32 or f64");
    if (inputs[1].type != expected.type)
      reject(name(), second, " has type ", cenote::name(inputs[1].type), ": must be ", cenote::name(expected.type));
    if (inputs[1].shape != expected.shape)
      reject(name(), second, " has shape ", inputs[1].shape, ": must be ", expected.shape);
    return result;
  }
  static ImplPtr impl(const Plan& plan) { return {std::make_shared<Plan>(plan), &plan.impl()}; }

  Pooling pooling_;
};

class PoolOp final : public PoolBase {
 public:
  using PoolBase::PoolBase;
  Prepared prepare(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, nullptr, false);
    return {{{forward.output_type(), forward.output_shape()}}, 0, [forward](auto in, auto out, std::byte*) {
              forward.run(in[0], out[0]);
            }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    if (!d[0]) return {std::nullopt};
    return {tangent(t, pooling_, in[0], *d[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt};
    return {cotangent(t, pooling_, in[0], *g[0])};
  }
};

class TangentOp final : public PoolBase {
 public:
  using PoolBase::PoolBase;
  std::string name() const override { return PoolBase::name() + "_tangent"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, "dx", false);
    const auto rule = std::make_shared<const Tangent>(impl(forward));
    return {{{forward.output_type(), forward.output_shape()}},
            rule->scratch(),
            [forward, rule](auto in, auto out, std::byte* scratch) {
              rule->run(in[0], in[1], with_all_axes(out[0], forward.impl().geometry), scratch);
            }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    Maybe sum;
    if (d[1]) sum = tangent(t, pooling_, in[0], *d[1]);
    if (d[0]) sum = add(t, sum, bend(t, pooling_, in[0], in[1], *d[0]));
    return {sum};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt, std::nullopt};
    return {curve(t, pooling_, in[0], *g[0], in[1]), cotangent(t, pooling_, in[0], *g[0])};
  }
};

class CotangentOp final : public PoolBase {
 public:
  using PoolBase::PoolBase;
  std::string name() const override { return PoolBase::name() + "_cotangent"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, "gy", true);
    const auto rule = std::make_shared<const Cotangent>(impl(forward));
    return {{inputs[0]}, rule->scratch(), [forward, rule](auto in, auto out, std::byte* scratch) {
              rule->run(in[0], with_all_axes(in[1], forward.impl().geometry), out[0], scratch);
            }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    Maybe sum;
    if (d[1]) sum = cotangent(t, pooling_, in[0], *d[1]);
    if (d[0]) sum = add(t, sum, curve(t, pooling_, in[0], in[1], *d[0]));
    return {sum};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt, std::nullopt};
    return {curve(t, pooling_, in[0], in[1], *g[0]), tangent(t, pooling_, in[0], *g[0])};
  }
};

}  // namespace

Maybe curve(Tracer& t, const Pooling& p, Value x, Value g, Value v) {
  if (!bends(p, t.signature(x).type)) return std::nullopt;
  return in_float(t, x, g, v, [&](Tracer& u, Value xs, Value gs, Value vs) {
    const Value plain = cotangent(u, p, xs, gs), seen = mul(u, gs, tangent(u, p, xs, vs));
    // smooth max: beta * (v C(g) - C(g T(v)))
    if (p.reducer == Reducer::smooth_max) return scale(u, sub(u, mul(u, vs, plain), cotangent(u, p, xs, seen)), p.beta);
    // lp: (p - 1) * (v C(g) / x - C(g T(v) / y))
    const Value back = cotangent(u, p, xs, ratio(u, seen, pool(u, p, xs)));
    return scale(u, sub(u, mul(u, vs, ratio(u, plain, xs)), back), p.p - 1);
  });
}

OpPtr pool_op(const Pooling& pooling) { return std::make_shared<PoolOp>(pooling); }
OpPtr pool_tangent_op(const Pooling& pooling) { return std::make_shared<TangentOp>(pooling); }
OpPtr pool_cotangent_op(const Pooling& pooling) { return std::make_shared<CotangentOp>(pooling); }

}  // namespace cenote::autodiff
