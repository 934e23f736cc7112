// The derivative rules of the poolings. With P the pooling, T its tangent and C its cotangent:
//
//   operation   along (dx, da)                  back from g to x             back from g to a
//   P(x)        T(x, dx)                        C(x, g)
//   T(x, a)     T(x, da) + bend(x, a, dx)       curve(x, g, a)               C(x, g)
//   C(x, a)     C(x, da) + curve(x, a, dx)      curve(x, a, g)               T(x, g)
//
// bend and curve are what the weights change by: nothing for max, min, sum and avg, whose weights are constant wherever
// they have a derivative.
#include "autodiff/pool_rules.h"

#include <functional>
#include <limits>

#include <cenote/error.h>

#include "autodiff/language.h"
#include "reduce/traits.h"

namespace cenote::autodiff {
namespace {

OpPtr tangent_op(const FamilyPtr& family);
OpPtr cotangent_op(const FamilyPtr& family);

Value pool(Tracer& t, const FamilyPtr& f, Value x) { return t.apply_one(pool_op(f), {x}); }
Value tangent(Tracer& t, const FamilyPtr& f, Value x, Value dx) { return t.apply_one(tangent_op(f), {x, dx}); }
Value cotangent(Tracer& t, const FamilyPtr& f, Value x, Value gy) { return t.apply_one(cotangent_op(f), {x, gy}); }

/// Halves are widened, so that a rule of several operations rounds once.
using Formula = std::function<Value(Tracer&, Value, Value, Value)>;
Value in_float(Tracer& t, Value x, Value a, Value b, const Formula& formula) {
  const Type type = t.signature(x).type;
  if (!is_half(type)) return formula(t, x, a, b);
  const auto wide = [&](Value v) { return cast(t, v, Type::f32); };
  return cast(t, formula(t, wide(x), wide(a), wide(b)), type);
}

/// Whether the weights of a pooling change with x. A reducer that weighs must say below what they change by.
bool bends(const PoolFamily& f, Type type) {
  const double largest =
      type == Type::f64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  if (f.reducer == Reducer::smooth_max) return true;
  if (f.reducer == Reducer::lp) return f.p > 1 && f.p <= largest;
  if (traits(f.reducer).weighs) throw Unsupported("[" + f.name() + "] has no second derivative");
  return false;
}

/// (p - 1) times a difference of coarse ratios, which may overflow where neither of them does.
Value curved(Tracer& t, const FamilyPtr& f, Value difference) {
  const bool wide = t.signature(difference).type == Type::f64;
  return scale(t, scale(t, difference, f->p - 1), coarse_unit(wide));
}

/// The derivative of T(x, a) along b in x.
Maybe bend(Tracer& t, const FamilyPtr& f, Value x, Value a, Value b) {
  if (!bends(*f, t.signature(x).type)) return std::nullopt;
  return in_float(t, x, a, b, [&](Tracer& u, Value xs, Value as, Value bs) {
    const Value both = mul(u, as, bs), product = mul(u, tangent(u, f, xs, as), tangent(u, f, xs, bs));
    // smooth max: beta * (T(ab) - T(a) T(b))
    if (f->reducer == Reducer::smooth_max) return scale(u, sub(u, tangent(u, f, xs, both), product), f->beta);
    // lp: (p - 1) * (T(ab / x) - T(a) T(b) / y)
    return curved(u, f, sub(u, tangent(u, f, xs, coarse_ratio(u, both, xs)), coarse_ratio(u, product, pool(u, f, xs))));
  });
}

/// What poolings, their tangents and their cotangents share.
class FamilyOp : public Op {
 public:
  explicit FamilyOp(const FamilyPtr& family) : family_(family) {}
  std::string name() const override { return family_->name(); }

 protected:
  FamilyPtr family_;
};

class PoolOp final : public FamilyOp {
 public:
  using FamilyOp::FamilyOp;
  Prepared prepare(std::span<const Signature> inputs) const override { return family_->pool(inputs); }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    if (!d[0]) return {std::nullopt};
    return {tangent(t, family_, in[0], *d[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt};
    return {cotangent(t, family_, in[0], *g[0])};
  }
};

class TangentOp final : public FamilyOp {
 public:
  using FamilyOp::FamilyOp;
  std::string name() const override { return FamilyOp::name() + "_tangent"; }
  Prepared prepare(std::span<const Signature> inputs) const override { return family_->tangent(inputs); }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    Maybe sum;
    if (d[1]) sum = tangent(t, family_, in[0], *d[1]);
    if (d[0]) sum = add(t, sum, bend(t, family_, in[0], in[1], *d[0]));
    return {sum};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt, std::nullopt};
    return {curve(t, family_, in[0], *g[0], in[1]), cotangent(t, family_, in[0], *g[0])};
  }
};

class CotangentOp final : public FamilyOp {
 public:
  using FamilyOp::FamilyOp;
  std::string name() const override { return FamilyOp::name() + "_cotangent"; }
  Prepared prepare(std::span<const Signature> inputs) const override { return family_->cotangent(inputs); }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    Maybe sum;
    if (d[1]) sum = cotangent(t, family_, in[0], *d[1]);
    if (d[0]) sum = add(t, sum, curve(t, family_, in[0], in[1], *d[0]));
    return {sum};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt, std::nullopt};
    return {curve(t, family_, in[0], in[1], *g[0]), tangent(t, family_, in[0], *g[0])};
  }
};

OpPtr tangent_op(const FamilyPtr& family) { return std::make_shared<TangentOp>(family); }
OpPtr cotangent_op(const FamilyPtr& family) { return std::make_shared<CotangentOp>(family); }

}  // namespace

Maybe curve(Tracer& t, const FamilyPtr& f, Value x, Value g, Value v) {
  if (!bends(*f, t.signature(x).type)) return std::nullopt;
  return in_float(t, x, g, v, [&](Tracer& u, Value xs, Value gs, Value vs) {
    const Value plain = cotangent(u, f, xs, gs), seen = mul(u, gs, tangent(u, f, xs, vs));
    // smooth max: beta * (v C(g) - C(g T(v)))
    if (f->reducer == Reducer::smooth_max)
      return scale(u, sub(u, mul(u, vs, plain), cotangent(u, f, xs, seen)), f->beta);
    // lp: (p - 1) * (v C(g) / x - C(g T(v) / y))
    const Value back = cotangent(u, f, xs, coarse_ratio(u, seen, pool(u, f, xs)));
    return curved(u, f, sub(u, mul(u, vs, coarse_ratio(u, plain, xs)), back));
  });
}

OpPtr pool_op(const FamilyPtr& family) { return std::make_shared<PoolOp>(family); }

}  // namespace cenote::autodiff
