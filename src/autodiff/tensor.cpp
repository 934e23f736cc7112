// Tensors: what they hold, and the operations that record.
#include <cenote/tensor.h>

#include <algorithm>

#include "autodiff/checks.h"
#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "autodiff/pool_ops.h"
#include "autodiff/record.h"
#include "autodiff/user_op.h"
#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"

namespace cenote {
namespace {

thread_local int silent = 0;

bool is_constant(Type type, std::optional<bool> asked) {
  if (asked == false && !is_float(type))
    reject("Tensor", "constant = false for data of type ", name(type), ": must be true, ",
           type == Type::boolean ? "bool has" : "integers have", " no derivative");
  return asked.value_or(!is_float(type));
}

/// A number as a constant of rank 0, for use beside x.
Tensor number(double value, const Tensor& x) {
  Array data(is_float(x.type()) ? x.type() : Type::f64, {});
  narrow_line(data.type(), data.data(), Type::f64, &value, 1);
  return Tensor(std::move(data), true);
}

}  // namespace

namespace autodiff {

Tensor record(const OpPtr& op, std::initializer_list<const Tensor*> inputs, std::optional<bool> constant) {
  std::vector<View> views;
  for (const Tensor* x : inputs) views.push_back(x->data());
  Array data = std::move(run(*op, views).front());
  const bool stops = constant.value_or(false) || !is_float(data.type()) ||
                     std::all_of(inputs.begin(), inputs.end(), [](const Tensor* x) { return x->constant(); });
  auto node = std::make_shared<Tensor::Node>(std::move(data), stops);
  if (silent > 0) return Tensor(std::move(node));
  bool in_graph = false;
  for (const Tensor* x : inputs) {
    x->null_grad();
    in_graph = in_graph || !x->constant() || x->node()->op;
  }
  // A constant remembers too, as its backward() releases what it was made of.
  if (in_graph) {
    node->op = op;
    for (const Tensor* x : inputs) node->inputs.push_back(x->node());
  }
  return Tensor(std::move(node));
}

}  // namespace autodiff

using namespace autodiff;

Tensor::Tensor(Array data, std::optional<bool> constant) {
  const bool is_fixed = is_constant(data.type(), constant);
  node_ = std::make_shared<Node>(std::move(data), is_fixed);
}

Tensor::Tensor(std::shared_ptr<Node> node) noexcept : node_(std::move(node)) {}

const Array& Tensor::data() const noexcept { return node_->data; }
bool Tensor::constant() const noexcept { return node_->constant; }
std::shared_ptr<const Array> Tensor::grad() const noexcept { return node_->grad; }

const Tensor& Tensor::null_grad() const noexcept {
  node_->grad = nullptr;
  return *this;
}

void Tensor::backward() const {
  const Tensor one = number(1, *this);
  backward(one.data());
}

void Tensor::backward(const View& grad) const {
  if (!constant()) {
    if (grad.type != type())
      reject("backward", "grad has type ", name(grad.type), ": must be ", name(type()), ", as the tensor");
    check_memory("backward", "grad", grad);
    if (!broadcasts(grad.shape, shape()))
      reject("backward", "grad has shape ", grad.shape, ": must broadcast to that of the tensor, ", shape());
    sweep_back(node_, std::make_shared<const Array>(std::move(run(*broadcast_op(shape()), {&grad, 1}).front())));
  }
  release_graph(node_);
}

Tensor Tensor::sum(std::optional<bool> constant) const { return cenote::sum(*this, constant); }
Tensor Tensor::mean(std::optional<bool> constant) const { return cenote::mean(*this, constant); }
Tensor Tensor::reshape(const Extents& shape, std::optional<bool> constant) const {
  return cenote::reshape(*this, shape, constant);
}

NoAutodiff::NoAutodiff() noexcept { ++silent; }
NoAutodiff::~NoAutodiff() { --silent; }

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator+(const Tensor& a, double b) { return add(a, number(b, a)); }
Tensor operator+(double a, const Tensor& b) { return add(number(a, b), b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
Tensor operator-(const Tensor& a, double b) { return subtract(a, number(b, a)); }
Tensor operator-(double a, const Tensor& b) { return subtract(number(a, b), b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
Tensor operator*(const Tensor& a, double b) { return record(scale_op(b), {&a}, {}); }
Tensor operator*(double a, const Tensor& b) { return record(scale_op(a), {&b}, {}); }
Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
Tensor operator/(const Tensor& a, double b) { return divide(a, number(b, a)); }
Tensor operator/(double a, const Tensor& b) { return divide(number(a, b), b); }
Tensor operator-(const Tensor& x) { return negative(x); }

// clang-format off
Tensor add(const Tensor& a, const Tensor& b, std::optional<bool> constant) { return record(add_op(), {&a, &b}, constant); }
Tensor subtract(const Tensor& a, const Tensor& b, std::optional<bool> constant) { return record(sub_op(), {&a, &b}, constant); }
Tensor multiply(const Tensor& a, const Tensor& b, std::optional<bool> constant) { return record(mul_op(), {&a, &b}, constant); }
Tensor divide(const Tensor& a, const Tensor& b, std::optional<bool> constant) { return record(div_op(), {&a, &b}, constant); }
Tensor negative(const Tensor& x, std::optional<bool> constant) { return record(neg_op(), {&x}, constant); }
Tensor exp(const Tensor& x, std::optional<bool> constant) { return record(exp_op(), {&x}, constant); }
Tensor log(const Tensor& x, std::optional<bool> constant) { return record(log_op(), {&x}, constant); }
Tensor relu(const Tensor& x, std::optional<bool> constant) { return record(relu_op(), {&x}, constant); }
Tensor sum(const Tensor& x, std::optional<bool> constant) { return record(sum_op(), {&x}, constant); }
Tensor mean(const Tensor& x, std::optional<bool> constant) { return record(mean_op(), {&x}, constant); }
// clang-format on

Tensor reshape(const Tensor& x, const Extents& shape, std::optional<bool> constant) {
  return record(reshape_op(shape), {&x}, constant);
}

Tensor pool(const Tensor& x, const Pooling& pooling, std::optional<bool> constant) {
  if (pooling.indices) reject("pool", "indices: pool_with_indices, of a tensor's data, returns them");
  return record(pool_op(pooling), {&x}, constant);
}
Tensor max_pool(const Tensor& x, const Window& window, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::max, .region = window}, constant);
}
Tensor min_pool(const Tensor& x, const Window& window, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::min, .region = window}, constant);
}
Tensor sum_pool(const Tensor& x, const Window& window, std::optional<Type> dtype, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::sum, .region = window, .dtype = dtype}, constant);
}
Tensor avg_pool(const Tensor& x, const Window& window, Divisor divisor, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::avg, .region = window, .divisor = divisor}, constant);
}
Tensor smooth_max_pool(const Tensor& x, const Window& window, double beta, SmoothPadding pad,
                       std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::smooth_max, .region = window, .beta = beta, .pad = pad}, constant);
}
Tensor lp_pool(const Tensor& x, const Window& window, double p, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::lp, .region = window, .p = p}, constant);
}
Tensor adaptive_max_pool(const Tensor& x, const Adaptive& region, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::max, .region = region}, constant);
}
Tensor adaptive_avg_pool(const Tensor& x, const Adaptive& region, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::avg, .region = region}, constant);
}
Tensor global_max_pool(const Tensor& x, const Global& region, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::max, .region = region}, constant);
}
Tensor global_min_pool(const Tensor& x, const Global& region, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::min, .region = region}, constant);
}
Tensor global_sum_pool(const Tensor& x, const Global& region, std::optional<Type> dtype, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::sum, .region = region, .dtype = dtype}, constant);
}
Tensor global_avg_pool(const Tensor& x, const Global& region, std::optional<bool> constant) {
  return pool(x, {.reducer = Reducer::avg, .region = region}, constant);
}

Tensor max_unpool(const Tensor& y, const View& indices, const Extents& shape, const Plane& plane,
                  std::optional<bool> constant) {
  check_memory("max_unpool", "indices", indices);
  const Tensor places(Array(indices), true);
  return record(unpool_op(shape, plane), {&y, &places}, constant);
}

Tensor pool(const Tensor& x, const RowPooling& pooling, std::optional<bool> constant) {
  return record(pool_op(pooling), {&x}, constant);
}

Tensor call(const graph::UserNode& node, const Tensor& x, std::optional<bool> constant) {
  return record(user_op(node), {&x}, constant);
}

Tensor nnet::max_pool(const Tensor& x, const Extents& pool, const PerAxis& stride, std::optional<bool> constant) {
  return cenote::max_pool(x, {.size = pool, .stride = stride, .exact = true}, constant);
}

}  // namespace cenote
