// Elementwise operations: each a formula and its slopes.
#include <cmath>

#include "autodiff/checks.h"
#include "autodiff/language.h"
#include "autodiff/loops.h"

namespace cenote::autodiff {
namespace {

Value apply(Tracer& t, OpPtr (*op)(), Value x) { return t.apply_one(op(), {x}); }

/// A derivative brought to the shape of the value it belongs to.
Value broadcast_to(Tracer& t, Value d, const Extents& shape) {
  return t.signature(d).shape == shape ? d : t.apply_one(broadcast_op(shape), {d});
}
Value sum_to(Tracer& t, Value d, const Extents& shape) {
  return t.signature(d).shape == shape ? d : t.apply_one(sum_to_op(shape), {d});
}

/// What a slope may be written in: the inputs x, the output y, and the derivative d that it multiplies.
struct Site {
  Tracer& t;
  std::span<const Value> x;
  Value y;
  Value d;
};

// One struct per operation: its formula, and slope(site, i), the product of d and the derivative by input i. An
// elementwise operation's Jacobian is diagonal, so one slope serves tangents and cotangents alike.
// clang-format off
struct Add {
  static constexpr const char* name = "add";
  template <class C> C operator()(C a, C b) const { return a + b; }
  Maybe slope(Site s, std::size_t) const { return s.d; }
};
struct Sub {
  static constexpr const char* name = "sub";
  template <class C> C operator()(C a, C b) const { return a - b; }
  Maybe slope(Site s, std::size_t i) const { return i == 0 ? s.d : neg(s.t, s.d); }
};
struct Mul {
  static constexpr const char* name = "mul";
  template <class C> C operator()(C a, C b) const { return a * b; }
  Maybe slope(Site s, std::size_t i) const { return mul(s.t, s.d, s.x[1 - i]); }
};
struct Div {
  static constexpr const char* name = "div";
  template <class C> C operator()(C a, C b) const { return a / b; }
  Maybe slope(Site s, std::size_t i) const {
    return i == 0 ? div(s.t, s.d, s.x[1]) : neg(s.t, div(s.t, mul(s.t, s.d, s.y), s.x[1]));
  }
};
struct Ratio {
  static constexpr const char* name = "ratio";
  template <class C> C operator()(C a, C b) const { const C q = a / b; return a == 0 || b == 0 ? C{0} : q; }
  Maybe slope(Site s, std::size_t i) const {
    return i == 0 ? ratio(s.t, s.d, s.x[1]) : neg(s.t, ratio(s.t, mul(s.t, s.d, s.y), s.x[1]));
  }
};
/// A ratio in units so large that it is finite for subnormal numbers, too.
struct CoarseRatio {
  static constexpr const char* name = "coarse_ratio";
  template <class C> C operator()(C a, C b) const {
    constexpr C unit = static_cast<C>(coarse_unit(sizeof(C) == 8));
    const C q = std::fabs(b) < 1 ? a / (b * unit) : a / unit / b;
    return a == 0 || b == 0 ? C{0} : q;
  }
  Maybe slope(Site s, std::size_t i) const {
    return i == 0 ? coarse_ratio(s.t, s.d, s.x[1]) : neg(s.t, ratio(s.t, mul(s.t, s.d, s.y), s.x[1]));
  }
};
struct Neg {
  static constexpr const char* name = "neg";
  template <class C> C operator()(C x) const { return -x; }
  Maybe slope(Site s, std::size_t) const { return neg(s.t, s.d); }
};
struct Exp {
  static constexpr const char* name = "exp";
  template <class C> C operator()(C x) const { return std::exp(x); }
  Maybe slope(Site s, std::size_t) const { return mul(s.t, s.d, s.y); }
};
struct Log {
  static constexpr const char* name = "log";
  template <class C> C operator()(C x) const { return std::log(x); }
  Maybe slope(Site s, std::size_t) const { return div(s.t, s.d, s.x[0]); }
};
struct Relu {
  static constexpr const char* name = "relu";
  template <class C> C operator()(C x) const { return x <= 0 ? C{0} : x; }
  // A ratio and not a product, so that an infinite d is 0 too where x is not positive.
  Maybe slope(Site s, std::size_t) const { return ratio(s.t, s.d, apply(s.t, positive_op, s.x[0])); }
};
struct Scale {
  static constexpr const char* name = "scale";
  double factor;
  template <class C> C operator()(C x) const { return x * static_cast<C>(factor); }
  Maybe slope(Site s, std::size_t) const { return scale(s.t, s.d, factor); }
};
struct Positive {
  static constexpr const char* name = "positive";
  template <class C> C operator()(C x) const { return x > 0 ? C{1} : C{0}; }
  Maybe slope(Site, std::size_t) const { return {}; }
};
struct Magnitude {
  static constexpr const char* name = "magnitude";
  template <class C> C operator()(C x) const { return std::fabs(x); }
  Maybe slope(Site s, std::size_t) const { return mul(s.t, s.d, apply(s.t, sign_op, s.x[0])); }
};
struct Sign {
  static constexpr const char* name = "sign";
  template <class C> C operator()(C x) const { return x > 0 ? C{1} : x < 0 ? C{-1} : x; }
  Maybe slope(Site, std::size_t) const { return {}; }
};
// clang-format on

/// Rule made an operation of N inputs.
template <class Rule, std::size_t N>
class Elementwise final : public Op {
 public:
  explicit Elementwise(Rule rule) : rule_(rule) {}
  std::string name() const override { return Rule::name; }

  Prepared prepare(std::span<const Signature> inputs) const override {
    assert(inputs.size() == N);
    check_float(Rule::name, N == 1 ? "x" : "a", inputs[0]);
    Signature y = inputs[0];
    if constexpr (N == 2) {
      check_same_type(Rule::name, inputs[0], inputs[1]);
      y.shape = common_shape(Rule::name, inputs[0].shape, inputs[1].shape);
    }
    element_count(y.shape);
    return {{y}, 0, [rule = rule_](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              std::array<View, N> views;
              std::copy_n(in.begin(), N, views.begin());
              visit_compute(out[0].type, [&]<class C>(C) {
                compute<C>([&](auto... x) { return rule(x...); }, views, out[0], std::make_index_sequence<N>());
              });
            }};
  }

  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> tangents) const override {
    Maybe dy;
    for (std::size_t i = 0; i < N; ++i) {
      if (!tangents[i]) continue;
      const Maybe part = rule_.slope({t, inputs, outputs[0], *tangents[i]}, i);
      if (part) dy = add(t, dy, broadcast_to(t, *part, t.signature(outputs[0]).shape));
    }
    return {dy};
  }

  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> cotangents) const override {
    std::vector<Maybe> gx(N);
    if (!cotangents[0]) return gx;
    for (std::size_t i = 0; i < N; ++i) {
      const Maybe part = rule_.slope({t, inputs, outputs[0], *cotangents[0]}, i);
      if (part) gx[i] = sum_to(t, *part, t.signature(inputs[i]).shape);
    }
    return gx;
  }

 private:
  Rule rule_;
};

class Cast final : public Op {
 public:
  explicit Cast(Type type) : type_(type) {}
  std::string name() const override { return "cast"; }

  Prepared prepare(std::span<const Signature> inputs) const override {
    check_float("cast", "x", inputs[0]);
    if (!is_float(type_))
      reject("cast", "type = ", cenote::name(type_), ": must be f16, bf16, f32 or f64, the types with derivatives");
    return {{{type_, inputs[0].shape}}, 0, [](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              const bool wide = in[0].type == Type::f64 || out[0].type == Type::f64;
              visit_compute(wide ? Type::f64 : Type::f32, [&]<class C>(C) {
                compute<C>([](C x) { return x; }, std::array{in[0]}, out[0], std::index_sequence<0>());
              });
            }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe> tangents) const override {
    return {tangents[0] ? Maybe(cast(t, *tangents[0], type_)) : Maybe()};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> cotangents) const override {
    return {cotangents[0] ? Maybe(cast(t, *cotangents[0], t.signature(inputs[0]).type)) : Maybe()};
  }

 private:
  Type type_;
};

/// One object for all uses of an operation without parameters.
template <class Rule, std::size_t N>
const OpPtr& shared() {
  static const OpPtr op = std::make_shared<Elementwise<Rule, N>>(Rule{});
  return op;
}

}  // namespace

OpPtr add_op() { return shared<Add, 2>(); }
OpPtr sub_op() { return shared<Sub, 2>(); }
OpPtr mul_op() { return shared<Mul, 2>(); }
OpPtr div_op() { return shared<Div, 2>(); }
OpPtr ratio_op() { return shared<Ratio, 2>(); }
OpPtr coarse_ratio_op() { return shared<CoarseRatio, 2>(); }
OpPtr neg_op() { return shared<Neg, 1>(); }
OpPtr exp_op() { return shared<Exp, 1>(); }
OpPtr log_op() { return shared<Log, 1>(); }
OpPtr relu_op() { return shared<Relu, 1>(); }
OpPtr scale_op(double factor) { return std::make_shared<Elementwise<Scale, 1>>(Scale{factor}); }
OpPtr positive_op() { return shared<Positive, 1>(); }
OpPtr magnitude_op() { return shared<Magnitude, 1>(); }
OpPtr sign_op() { return shared<Sign, 1>(); }
OpPtr cast_op(Type type) { return std::make_shared<Cast>(type); }

}  // namespace cenote::autodiff
