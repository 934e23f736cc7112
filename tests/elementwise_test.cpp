// The elementwise operations and their like: values, derivatives, errors.
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/device.h>

#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "support/arrays.h"
#include "support/oracle.h"
#include "support/property.h"
#include "support/random_data.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

using namespace autodiff;
using detail::between;
using detail::chance;

Array apply(const OpPtr& op, std::vector<View> inputs) { return std::move(autodiff::run(*op, inputs).front()); }

TEST(Elementwise, KnownValues) {
  const Array a = array<double>({2, 2}, {1, -2, 3, 0}), b = array<double>({2}, {2, 0});
  EXPECT_TRUE(holds(apply(add_op(), {a, b}), {2, 2}, {3, -2, 5, 0}));
  EXPECT_TRUE(holds(apply(sub_op(), {a, b}), {2, 2}, {-1, -2, 1, 0}));
  EXPECT_TRUE(holds(apply(mul_op(), {a, b}), {2, 2}, {2, -0.0, 6, 0}));
  EXPECT_TRUE(holds(apply(div_op(), {a, b}), {2, 2}, {.5, -inf, 1.5, nan}));
  EXPECT_TRUE(holds(apply(ratio_op(), {a, b}), {2, 2}, {.5, 0, 1.5, 0}));
  EXPECT_TRUE(holds(apply(neg_op(), {b}), {2}, {-2, -0.0}));
  EXPECT_TRUE(holds(apply(exp_op(), {b}), {2}, {std::exp(2.0), 1}));
  EXPECT_TRUE(holds(apply(log_op(), {b}), {2}, {std::log(2.0), -inf}));
  EXPECT_TRUE(holds(apply(relu_op(), {a}), {2, 2}, {1, 0, 3, 0}));
  EXPECT_TRUE(holds(apply(scale_op(-2), {b}), {2}, {-4, -0.0}));
  EXPECT_TRUE(holds(apply(positive_op(), {a}), {2, 2}, {1, 0, 1, 0}));
  EXPECT_TRUE(holds(apply(magnitude_op(), {a}), {2, 2}, {1, 2, 3, 0}));
  EXPECT_TRUE(holds(apply(sign_op(), {a}), {2, 2}, {1, -1, 1, 0}));
  EXPECT_TRUE(holds(apply(reshape_op({4, -1}), {a}), {4, 1}, {1, -2, 3, 0}));
  EXPECT_TRUE(holds(apply(broadcast_op({2, 2}), {b}), {2, 2}, {2, 0, 2, 0}));
  EXPECT_TRUE(holds(apply(sum_to_op({2}), {a}), {2}, {4, -2}));
  EXPECT_TRUE(holds(apply(sum_to_op({2, 1}), {a}), {2, 1}, {-1, 3}));
  EXPECT_TRUE(holds(apply(sum_op(), {a}), {}, {2}));
  EXPECT_TRUE(holds(apply(mean_op(), {a}), {}, {.5}));
  EXPECT_TRUE(holds(apply(cast_op(Type::f16), {a}), {2, 2}, {1, -2, 3, 0}));
  EXPECT_TRUE(holds(apply(detach_op(), {a}), {2, 2}, {1, -2, 3, 0}));
}

// Broadcasting, layouts and types, against a loop over every element.

struct Formula {
  OpPtr op;
  std::size_t arity;
  std::function<double(double, double)> of;
};

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all{
      {add_op(), 2, [](double a, double b) { return a + b; }},
      {sub_op(), 2, [](double a, double b) { return a - b; }},
      {mul_op(), 2, [](double a, double b) { return a * b; }},
      {div_op(), 2, [](double a, double b) { return a / b; }},
      {ratio_op(), 2, [](double a, double b) { return a == 0 || b == 0 ? 0 : a / b; }},
      {neg_op(), 1, [](double a, double) { return -a; }},
      {relu_op(), 1, [](double a, double) { return a > 0 || a != a ? a : 0; }},
      {scale_op(1.5), 1, [](double a, double) { return 1.5 * a; }},
      {positive_op(), 1, [](double a, double) { return a > 0 ? 1 : 0; }},
      {magnitude_op(), 1, [](double a, double) { return std::fabs(a); }},
      {sign_op(), 1, [](double a, double) { return a > 0   ? 1
                                                   : a < 0 ? -1
                                                           : a; }},
  };
  return all;
}

Type float_type() { return static_cast<Type>(between(0, 3)); }

Extents small_shape(int rank) {
  Extents shape;
  for (int i = 0; i < rank; ++i) shape.push_back(chance(5) ? 0 : between(1, 5));
  return shape;
}

/// A shape that broadcasts to the given one.
Extents narrowed(const Extents& shape) {
  Extents result;
  for (int i = static_cast<int>(between(0, shape.size())); i < shape.size(); ++i)
    result.push_back(chance(30) ? 1 : shape[i]);
  return result;
}

Strided random_array(Type type, const Extents& shape, Data data) {
  Strided x(type, shape, detail::layout(shape.size(), true));
  fill(x, data, static_cast<std::uint64_t>(between(0, 1000000)));
  return x;
}

/// Elements of any float type, in row-major order.
std::vector<double> doubles(const View& x) { return numbers(Array(x)); }

/// The element of x that stands at an index of the shape it is broadcast to.
double element(const Extents& x_shape, const std::vector<double>& x, const reference::Shape& index) {
  const std::size_t extra = index.size() - static_cast<std::size_t>(x_shape.size());
  reference::Shape own;
  for (int i = 0; i < x_shape.size(); ++i)
    own.push_back(x_shape[i] == 1 ? 0 : index[extra + static_cast<std::size_t>(i)]);
  return x[static_cast<std::size_t>(reference::position(own, to_shape(x_shape)))];
}

TEST(Elementwise, EqualsALoopForEveryTypeLayoutAndBroadcast) {
  check(600, [] {
    const Formula& formula = formulas()[static_cast<std::size_t>(between(0, std::ssize(formulas()) - 1))];
    const Type type = float_type();
    const Extents shape = small_shape(static_cast<int>(between(0, 4)));
    const Data data = static_cast<Data>(between(0, 3));
    std::vector<Strided> inputs{random_array(type, shape, data)};
    if (formula.arity == 2) inputs.push_back(random_array(type, narrowed(shape), data));
    if (formula.arity == 2 && chance(50)) std::swap(inputs[0], inputs[1]);
    std::vector<View> views;
    std::vector<Signature> signatures;
    std::vector<std::vector<double>> values;
    for (const Strided& x : inputs) {
      views.push_back(x.view());
      signatures.push_back({type, x.shape()});
      values.push_back(doubles(x.view()));
    }
    const Prepared prepared = formula.op->prepare(signatures);
    RC_ASSERT(prepared.outputs.at(0) == (Signature{type, shape}));
    Strided y(type, shape, detail::layout(shape.size(), false));
    const MutableView out = y.view();
    std::vector<double> scratch(static_cast<std::size_t>(prepared.scratch) / 8 + 1);
    prepared.run(views, {&out, 1}, reinterpret_cast<std::byte*>(scratch.data()));
    RC_ASSERT(y.gaps_untouched());
    const std::vector<double> actual = doubles(std::as_const(y).view());
    if (actual.empty()) return;
    reference::Shape index(static_cast<std::size_t>(shape.size()), 0);
    std::size_t i = 0;
    do {
      const double a = element(inputs[0].shape(), values[0], index);
      const double b = formula.arity == 2 ? element(inputs[1].shape(), values[1], index) : 0;
      const double wide = formula.of(a, b);
      const double expected = rounded(type, type == Type::f64 ? wide : static_cast<float>(wide));
      RC_ASSERT(actual[i] == expected || (actual[i] != actual[i] && expected != expected));
      ++i;
    } while (reference::next(index, to_shape(shape)));
  });
}

TEST(Elementwise, ReshapeKeepsTheOrderForEveryTypeAndLayout) {
  check(200, [] {
    const Type type = static_cast<Type>(between(0, type_count - 1));
    const Extents shape{between(1, 4), between(0, 4), between(1, 6)};
    Extents flat{shape[2], shape[0] * shape[1]};
    Strided x = random_array(type, shape, Data::few), y(type, flat, detail::layout(2, false));
    if (chance(50) && element_count(shape) > 0) flat[static_cast<int>(between(0, 1))] = -1;
    const Signature signature{type, shape};
    const View in = std::as_const(x).view();
    const MutableView out = y.view();
    const Prepared prepared = reshape_op(flat)->prepare({&signature, 1});
    RC_ASSERT(prepared.outputs[0].shape == y.shape());
    prepared.run({&in, 1}, {&out, 1}, nullptr);
    RC_ASSERT(doubles(std::as_const(y).view()) == doubles(in));
    RC_ASSERT(y.gaps_untouched());
  });
}

TEST(Elementwise, CastsRoundOnceBetweenAllFloatTypes) {
  check(100, [] {
    const Type from = float_type(), to = float_type();
    const Strided x = random_array(from, {between(1, 600)}, Data::any_exponent);
    const std::vector<double> values = doubles(x.view()), actual = numbers(apply(cast_op(to), {x.view()}));
    for (std::size_t i = 0; i < values.size(); ++i) RC_ASSERT(actual[i] == rounded(to, values[i]));
  });
}

TEST(Elementwise, RankZeroAndEmptyArrays) {
  const Array two = array<double>({}, {2}), none = array<double>({0, 3}, {}), row = array<double>({3}, {1, 2, 3});
  EXPECT_TRUE(holds(apply(mul_op(), {two, two}), {}, {4}));
  EXPECT_TRUE(holds(apply(sum_op(), {two}), {}, {2}));
  EXPECT_TRUE(holds(apply(reshape_op({1, 1}), {two}), {1, 1}, {2}));
  EXPECT_TRUE(holds(apply(reshape_op({}), {array<double>({1}, {2})}), {}, {2}));
  EXPECT_TRUE(holds(apply(broadcast_op({2, 2}), {two}), {2, 2}, {2, 2, 2, 2}));
  EXPECT_TRUE(holds(apply(add_op(), {none, row}), {0, 3}, {}));
  EXPECT_TRUE(holds(apply(sum_to_op({3}), {none}), {3}, {0, 0, 0}));
  EXPECT_TRUE(holds(apply(sum_to_op({0, 1}), {none}), {0, 1}, {}));
  EXPECT_TRUE(holds(apply(sum_op(), {none}), {}, {0}));
  EXPECT_TRUE(holds(apply(mean_op(), {none}), {}, {nan}));
}

TEST(Elementwise, NaNStaysAndInfinitiesDoNotLeak) {
  const Array x = array({3}, {nan, -inf, inf});
  EXPECT_TRUE(holds(apply(relu_op(), {x}), {3}, {nan, 0, inf}));
  EXPECT_TRUE(holds(apply(sign_op(), {x}), {3}, {nan, -1, 1}));
  EXPECT_TRUE(holds(apply(positive_op(), {x}), {3}, {0, 0, 1}));
}

// Sums: their error, and that threads do not change them.

TEST(Sums, StayWithinTheBoundForEveryShapeAndLayout) {
  check(300, [] {
    const Type type = float_type();
    Extents shape = small_shape(static_cast<int>(between(0, 4)));
    if (shape.size() > 0 && chance(60)) shape[static_cast<int>(between(0, shape.size() - 1))] = between(1, 700);
    const Extents to = narrowed(shape);
    const Strided x = random_array(type, shape, chance(50) ? Data::unit : Data::offset);
    const Array y = apply(sum_to_op(to), {x.view()});
    RC_ASSERT(y.type() == type);
    RC_ASSERT(y.shape() == to);
    std::vector<long double> sums(static_cast<std::size_t>(y.size())), sizes = sums;
    const std::vector<double> values = doubles(x.view()), actual = numbers(y);
    reference::Shape index(static_cast<std::size_t>(shape.size()), 0);
    std::vector<double> places(actual.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < values.size(); ++i, reference::next(index, to_shape(shape))) {
      const auto at = static_cast<std::size_t>(element(to, places, index));
      sums[at] += values[i];
      sizes[at] += std::fabs(values[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      RC_ASSERT(near(type, sums[i], 24 * unit(type) * sizes[i]).holds(actual[i]));
  });
}

TEST(Sums, HalvesAccumulateWideAndRoundOnce) {
  EXPECT_TRUE(holds(apply(sum_op(), {full<f16>({4096}, 1)}), {}, {4096}));
  EXPECT_TRUE(holds(apply(mean_op(), {full<f16>({64, 64}, 1)}), {}, {1}));
  EXPECT_TRUE(holds(apply(mean_op(), {full<f16>({300, 300}, 2)}), {}, {2}));  // the sum is beyond f16
  EXPECT_TRUE(holds(apply(mean_op(), {full<bf16>({1000}, 3)}), {}, {3}));
}

TEST(Sums, OfMillionsStayAccurate) {
  const Array x = full({1 << 21}, 0.1f);
  const double exact = static_cast<double>(0.1f) * (1 << 21);
  EXPECT_TRUE(holds(apply(sum_op(), {x}), {}, {exact}, 1e-6 * exact));
  EXPECT_TRUE(holds(apply(mean_op(), {x}), {}, {0.1f}, 1e-7));
}

TEST(Sums, AreTheSameBitForBitForAnyNumberOfThreads) {
  const std::vector<std::pair<Extents, Extents>> cases{
      {{300000}, {}}, {{100000, 3}, {3}}, {{3, 100000}, {3, 1}}, {{700, 500}, {500}}, {{50, 70, 90}, {1, 70, 1}}};
  for (const Type type : {Type::f16, Type::f32, Type::f64}) {
    for (const auto& [shape, to] : cases) {
      Strided x(type, shape, Layout::plain(shape.size()));
      fill(x, Data::offset, 7);
      set_threads(1);
      const Array one = apply(sum_to_op(to), {std::as_const(x).view()});
      for (const int count : {2, 3, 16}) {
        set_threads(count);
        const Array many = apply(sum_to_op(to), {std::as_const(x).view()});
        EXPECT_EQ(std::memcmp(one.data(), many.data(), one.bytes()), 0) << to_string(shape) << " on " << count;
      }
      set_threads(0);
    }
  }
}

// Derivatives.

/// A tracer that remembers what was applied, so that the rules can be differentiated themselves.
class Tape final : public Tracer {
 public:
  EagerTracer eager;

  std::vector<Value> apply(const OpPtr& op, std::span<const Value> inputs) override {
    steps_.push_back({op, {inputs.begin(), inputs.end()}, eager.apply(op, inputs)});
    return steps_.back().outputs;
  }
  const Signature& signature(Value value) const override { return eager.signature(value); }

  /// The tangent of `y` when `x` moves along `dx`, through all that was applied.
  Maybe tangent(Value y, Value x, Value dx) {
    std::map<int, Maybe> tangents{{x.id, dx}};
    for (const Step& step : steps_) {
      std::vector<Maybe> moves;
      for (const Value input : step.inputs) moves.push_back(tangents[input.id]);
      const std::vector<Maybe> results = step.op->jvp(eager, step.inputs, step.outputs, moves);
      for (std::size_t i = 0; i < results.size(); ++i) tangents[step.outputs[i].id] = results[i];
    }
    return tangents[y.id];
  }

 private:
  struct Step {
    OpPtr op;
    std::vector<Value> inputs, outputs;
  };
  std::vector<Step> steps_;
};

double dot(const Array& a, const Array& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// a + h * b.
Array moved(const Array& a, const Array& b, double h) { return apply(add_op(), {a, apply(scale_op(h), {b})}); }

Array value_or_zeros(EagerTracer& tracer, Maybe d, const Extents& shape) {
  return d ? tracer.take(*d) : Array::zeros(Type::f64, shape);
}

bool agree(const Array& a, const Array& b, double tolerance) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  if (!(a.shape() == b.shape())) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= tolerance * (1 + std::fabs(x[i]) + std::fabs(y[i])))) return false;
  return true;
}

/// An operation on random f64 inputs, with random directions of all of them.
struct Case {
  OpPtr op;
  std::vector<Array> x, dx;
  Array gy;

  Array value(double h) const {
    std::vector<Array> at;
    for (std::size_t i = 0; i < x.size(); ++i) at.push_back(moved(x[i], dx[i], h));
    return test::apply(op, {at.begin(), at.end()});
  }
};

Array random_numbers(const Extents& shape, double low, double high, bool signs) {
  Array result(Type::f64, shape);
  for (double& value : result.values<double>()) {
    value = low + (high - low) * static_cast<double>(between(0, 1 << 20)) / (1 << 20);
    if (signs && chance(50)) value = -value;
  }
  return result;
}

Case random_case() {
  Extents shape;
  for (int i = static_cast<int>(between(0, 3)); i > 0; --i) shape.push_back(between(1, 4));
  const Extents narrow = narrowed(shape);
  const std::int64_t size = element_count(shape);
  const std::vector<OpPtr> unary{
      neg_op(),       exp_op(),           log_op(),
      relu_op(),      scale_op(-.75),     positive_op(),
      magnitude_op(), sign_op(),          sum_to_op(narrow),
      sum_op(),       mean_op(),          reshape_op({size}),
      detach_op(),    cast_op(Type::f64), broadcast_op({3, shape.size() > 0 ? shape[0] : 2, 1})};
  const std::vector<OpPtr> binary{add_op(), sub_op(), mul_op(), div_op(), ratio_op()};
  Case c;
  std::vector<Extents> shapes{shape};
  if (chance(50)) {
    c.op = detail::one_of(binary);
    shapes.push_back(narrow);
    if (chance(50)) std::swap(shapes[0], shapes[1]);
  } else {
    c.op = detail::one_of(unary);
    if (c.op->name() == "broadcast") shapes[0] = shape.size() > 0 ? Extents{shape[0], 1} : Extents{};
  }
  // Away from the kinks at 0, and from where log has no value.
  const bool signs = c.op->name() != "log";
  for (const Extents& s : shapes) {
    c.x.push_back(random_numbers(s, .5, 2, signs));
    c.dx.push_back(random_numbers(s, 0, 1, true));
  }
  c.gy = random_numbers(c.value(0).shape(), 0, 1, true);
  return c;
}

TEST(Derivatives, ObeyTheAdjointLawAndFiniteDifferences) {
  check(600, [] {
    const Case c = random_case();
    EagerTracer t;
    std::vector<Value> x;
    std::vector<Maybe> dx;
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      x.push_back(t.borrow(c.x[i]));
      dx.push_back(t.borrow(c.dx[i]));
    }
    const std::vector<Value> y = t.apply(c.op, x);
    const Maybe gy = t.borrow(c.gy);
    const Array dy = value_or_zeros(t, c.op->jvp(t, x, y, dx).at(0), c.gy.shape());
    const std::vector<Maybe> gx = c.op->vjp(t, x, y, {&gy, 1});
    RC_ASSERT(gx.size() == x.size());
    double right = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Array g = value_or_zeros(t, gx[i], c.x[i].shape());
      RC_ASSERT(g.shape() == c.x[i].shape());
      right += dot(c.dx[i], g);
    }
    const double left = dot(dy, c.gy);
    RC_ASSERT(std::fabs(left - right) <= 1e-12 * (1 + std::fabs(left)));
    if (c.op->name() == "detach") return;
    const double h = 1e-5;
    const Array slope = apply(scale_op(.5 / h), {apply(sub_op(), {c.value(h), c.value(-h)})});
    RC_ASSERT(agree(dy, slope, 1e-7));
  });
}

TEST(Derivatives, OfTheRulesAreSecondDerivatives) {
  check(300, [] {
    const Case c = random_case();
    const auto gradient = [&](Tracer& t, Value x0, Value gy, EagerTracer& arrays) {
      std::vector<Value> x{x0};
      for (std::size_t i = 1; i < c.x.size(); ++i) x.push_back(arrays.borrow(c.x[i]));
      const std::vector<Value> y = t.apply(c.op, x);
      const Maybe g = gy;
      return c.op->vjp(t, x, y, {&g, 1})[0];
    };
    const auto gradient_at = [&](double h) {
      EagerTracer t;
      const Maybe g = gradient(t, t.hold(moved(c.x[0], c.dx[0], h)), t.borrow(c.gy), t);
      return value_or_zeros(t, g, c.x[0].shape());
    };
    Tape tape;
    const Value x = tape.eager.borrow(c.x[0]), dx = tape.eager.borrow(c.dx[0]);
    const Maybe g = gradient(tape, x, tape.eager.borrow(c.gy), tape.eager);
    const Maybe d = g ? tape.tangent(*g, x, dx) : Maybe();
    const Array hvp = value_or_zeros(tape.eager, d, c.x[0].shape());
    const double h = 1e-5;
    const Array slope = apply(scale_op(.5 / h), {apply(sub_op(), {gradient_at(h), gradient_at(-h)})});
    RC_ASSERT(agree(hvp, slope, 1e-6));
  });
}

TEST(Derivatives, OfReluAreZeroAtAndBelowZeroWhateverFlows) {
  EagerTracer t;
  const Value x = t.hold(array({4}, {-1, 0, 2, nan}));
  const Value y = t.apply_one(relu_op(), {x});
  const Maybe gy = t.hold(array({4}, {inf, nan, 3, 4}));
  const Maybe gx = relu_op()->vjp(t, {&x, 1}, {&y, 1}, {&gy, 1})[0];
  EXPECT_TRUE(holds(t.take(*gx), {4}, {0, 0, 3, 0}));
}

TEST(Derivatives, NothingInGivesNothingOut) {
  EagerTracer t;
  const std::vector<Value> x{t.hold(full({2}, 1)), t.hold(full({2}, 1))};
  const std::vector<Maybe> none{std::nullopt, std::nullopt};
  for (const OpPtr& op : {add_op(), mul_op(), div_op()}) {
    const std::vector<Value> y = t.apply(op, x);
    EXPECT_FALSE(op->jvp(t, x, y, none)[0]);
    EXPECT_FALSE(op->vjp(t, x, y, {none.data(), 1})[1]);
  }
}

// Errors.

TEST(Elementwise, SaysWhatIsWrongAndWhatIsAllowed) {
  const Array x = full({2, 3}, 1), wide = full<double>({2, 3}, 1), ints = full<std::int32_t>({2}, 1);
  const Array bad = full({2}, 1), flags = array<bool>({1}, {1});
  const auto error = [](const OpPtr& op, std::vector<View> in) { return error_of([&] { apply(op, in); }); };
  EXPECT_EQ(error(add_op(), {x, wide}), "[add] b has type f64: must be f32, as a");
  EXPECT_EQ(error(mul_op(), {x, bad}),
            "[mul] b has shape (2,): must broadcast with that of a, (2, 3): counted from the last, axes must be equal "
            "or 1");
  EXPECT_EQ(error(log_op(), {ints}), "[log] x has type i32: must be f16, bf16, f32 or f64, integers have no log");
  EXPECT_EQ(error(sum_op(), {flags}), "[sum] x has type bool: must be f16, bf16, f32 or f64, bool has no sum");
  EXPECT_EQ(error(add_op(), {ints, ints}), "[add] a has type i32: must be f16, bf16, f32 or f64, integers have no add");
  EXPECT_EQ(error(cast_op(Type::i8), {x}),
            "[cast] type = i8: must be f16, bf16, f32 or f64, the types with derivatives");
  EXPECT_EQ(error(reshape_op({4, -1}), {x}), "[reshape] shape (4, -1): must have the 6 elements of x, of shape (2, 3)");
  EXPECT_EQ(error(reshape_op({-1, -1}), {x}), "[reshape] shape (-1, -1): at most one extent may be -1");
  EXPECT_EQ(error(reshape_op({-2, 3}), {x}), "[reshape] shape[0] = -2: must be at least 0, or -1 for what is left");
  EXPECT_NE(error(reshape_op({0, -1}), {array({0}, {})}), "");
  EXPECT_NE(error(broadcast_op({3}), {x}), "");
  EXPECT_NE(error(broadcast_op({2, 4}), {x}), "");
  EXPECT_NE(error(sum_to_op({2}), {x}), "");
  EXPECT_NE(error(sum_to_op({1, 2, 3}), {x}), "");
}

}  // namespace
}  // namespace cenote::test
