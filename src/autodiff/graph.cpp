// The builder of graphs: every function appends one node.
#include <cenote/graph.h>

#include "autodiff/indexed_pool.h"
#include "autodiff/language.h"
#include "autodiff/nodes.h"
#include "autodiff/pool_ops.h"
#include "autodiff/program.h"
#include "autodiff/user_op.h"
#include "core/reject.h"

namespace cenote::graph {

struct Builder::Impl {
  autodiff::Nodes nodes;
  std::vector<autodiff::Value> inputs;
};

namespace {

using autodiff::OpPtr;
using autodiff::Value;
using Nodes = std::shared_ptr<Builder::Impl>;

// A Var that may be used in the graph `of`; `what` stands in the error.
Value value_in(const Nodes& of, const Var& x, const std::string& what, std::size_t i) {
  if (x.builder() == nullptr) reject("graph", what, ": argument ", i, " is an empty Var");
  if (x.builder() != of)
    reject("graph", what, ": argument ", i, ", ", x.builder()->nodes.text({x.id()}), " ",
           autodiff::to_string(x.signature()), ", is a Var of another builder");
  return {x.id()};
}

std::string next_node(const Nodes& nodes, const std::string& name) {
  return "node " + std::to_string(nodes->nodes.size()) + " (" + name + ")";
}

std::vector<Var> append(const Nodes& to, const OpPtr& op, std::span<const Var> inputs) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values.push_back(value_in(to, inputs[i], next_node(to, op->name()), i));
  std::vector<Var> made;
  for (const Value value : to->nodes.apply(op, values)) made.emplace_back(to, value.id);
  return made;
}

const Nodes& nodes_of(const Var& x, const std::string& name) {
  if (x.builder() == nullptr) reject("graph", name, ": argument 0 is an empty Var");
  return x.builder();
}

Var append(const OpPtr& op, std::initializer_list<Var> inputs) {
  const Nodes& to = nodes_of(*inputs.begin(), op->name());
  return append(to, op, std::span<const Var>(inputs.begin(), inputs.size())).front();
}

// TorchLean's form of a window.
Window window2d(const char* name, const Var& x, const Extents& size, std::int64_t stride, std::int64_t padding) {
  if (size.size() != 2)
    reject("graph", next_node(nodes_of(x, name), name), ": window ", size, ": must have two extents");
  return {.size = size, .stride = stride, .padding = padding};
}

}  // namespace

Builder::Builder() : impl_(std::make_shared<Impl>()) {}

Var Builder::input(Type type, const Extents& shape, const std::string& name) {
  impl_->inputs.push_back(impl_->nodes.input({type, shape}, name));
  return Var(impl_, impl_->inputs.back().id);
}

Var Builder::constant(const View& array) {
  return Var(impl_, impl_->nodes.constant(std::make_shared<const Array>(array)).id);
}

std::vector<Var> Builder::call(const UserNode& node, const std::vector<Var>& inputs) {
  return append(impl_, autodiff::user_op(node), inputs);
}

Program Builder::compile(const std::vector<Var>& outputs) const {
  if (outputs.empty()) reject("graph", "compile: a program needs at least one output");
  std::vector<Value> values;
  for (std::size_t i = 0; i < outputs.size(); ++i) values.push_back(value_in(impl_, outputs[i], "compile", i));
  return Program(std::make_shared<const Program::Impl>(impl_->nodes, impl_->inputs, std::move(values)));
}

Signature Var::signature() const {
  if (builder_ == nullptr) reject("graph", "an empty Var has neither type nor shape");
  return builder_->nodes.signature({id_});
}

Var call(const UserNode& node, const Var& x) { return append(autodiff::user_op(node), {x}); }

Var detach(const Var& x) {
  const Nodes& nodes = nodes_of(x, "detach");
  return Var(nodes, nodes->nodes.detach({x.id()}).id);
}

Var pool(const Var& x, const Pooling& pooling) {
  if (pooling.indices)
    reject("graph", next_node(nodes_of(x, "pool"), "pool"), ": indices: pool_with_indices returns them");
  return append(autodiff::pool_op(pooling), {x});
}

Var max_pool(const Var& x, const Window& window) { return pool(x, {.reducer = Reducer::max, .region = window}); }
Var min_pool(const Var& x, const Window& window) { return pool(x, {.reducer = Reducer::min, .region = window}); }
Var sum_pool(const Var& x, const Window& window, std::optional<Type> dtype) {
  return pool(x, {.reducer = Reducer::sum, .region = window, .dtype = dtype});
}
Var avg_pool(const Var& x, const Window& window, Divisor divisor) {
  return pool(x, {.reducer = Reducer::avg, .region = window, .divisor = divisor});
}
Var smooth_max_pool(const Var& x, const Window& window, double beta, SmoothPadding pad) {
  return pool(x, {.reducer = Reducer::smooth_max, .region = window, .beta = beta, .pad = pad});
}
Var lp_pool(const Var& x, const Window& window, double p) {
  return pool(x, {.reducer = Reducer::lp, .region = window, .p = p});
}

Var adaptive_max_pool(const Var& x, const Adaptive& region) {
  return pool(x, {.reducer = Reducer::max, .region = region});
}
Var adaptive_avg_pool(const Var& x, const Adaptive& region) {
  return pool(x, {.reducer = Reducer::avg, .region = region});
}

Var global_max_pool(const Var& x, const Global& region) { return pool(x, {.reducer = Reducer::max, .region = region}); }
Var global_min_pool(const Var& x, const Global& region) { return pool(x, {.reducer = Reducer::min, .region = region}); }
Var global_sum_pool(const Var& x, const Global& region, std::optional<Type> dtype) {
  return pool(x, {.reducer = Reducer::sum, .region = region, .dtype = dtype});
}
Var global_avg_pool(const Var& x, const Global& region) { return pool(x, {.reducer = Reducer::avg, .region = region}); }

Var pool(const Var& x, const RowPooling& pooling) { return append(autodiff::pool_op(pooling), {x}); }

Pooled pool_with_indices(const Var& x, const Pooling& pooling) {
  Pooling request = pooling;
  if (!request.indices) request.indices = IndexKind::plane;
  const std::vector<Var> made =
      append(nodes_of(x, "pool_with_indices"), autodiff::indexed_pool_op(request), std::span(&x, 1));
  return {made[0], made[1]};
}
Pooled max_pool_with_indices(const Var& x, const Window& window, IndexKind kind) {
  return pool_with_indices(x, {.reducer = Reducer::max, .region = window, .indices = kind});
}
Pooled min_pool_with_indices(const Var& x, const Window& window, IndexKind kind) {
  return pool_with_indices(x, {.reducer = Reducer::min, .region = window, .indices = kind});
}

Var max_pool2d(const Var& x, const Extents& window, std::int64_t stride) {
  return max_pool(x, window2d("max_pool2d", x, window, stride, 0));
}
Var max_pool2d_pad(const Var& x, const Extents& window, std::int64_t stride, std::int64_t padding) {
  return max_pool(x, window2d("max_pool2d_pad", x, window, stride, padding));
}
Var avg_pool2d(const Var& x, const Extents& window, std::int64_t stride) {
  return avg_pool(x, window2d("avg_pool2d", x, window, stride, 0));
}
Var avg_pool2d_pad(const Var& x, const Extents& window, std::int64_t stride, std::int64_t padding) {
  return avg_pool(x, window2d("avg_pool2d_pad", x, window, stride, padding));
}
Var smooth_max_pool2d(const Var& x, const Extents& window, std::int64_t stride, double beta) {
  return smooth_max_pool(x, window2d("smooth_max_pool2d", x, window, stride, 0), beta);
}

Var gather(const Var& x, const Var& indices, const Plane& plane) {
  return append(autodiff::gather_op(plane), {x, indices});
}
Var max_unpool(const Var& y, const Var& indices, const Extents& shape, const Plane& plane) {
  return append(autodiff::unpool_op(shape, plane), {y, indices});
}

Var add(const Var& a, const Var& b) { return append(autodiff::add_op(), {a, b}); }
Var sub(const Var& a, const Var& b) { return append(autodiff::sub_op(), {a, b}); }
Var mul(const Var& a, const Var& b) { return append(autodiff::mul_op(), {a, b}); }
Var div(const Var& a, const Var& b) { return append(autodiff::div_op(), {a, b}); }
Var neg(const Var& x) { return append(autodiff::neg_op(), {x}); }
Var exp(const Var& x) { return append(autodiff::exp_op(), {x}); }
Var log(const Var& x) { return append(autodiff::log_op(), {x}); }
Var relu(const Var& x) { return append(autodiff::relu_op(), {x}); }
Var scale(const Var& x, double factor) { return append(autodiff::scale_op(factor), {x}); }
Var reshape(const Var& x, const Extents& shape) { return append(autodiff::reshape_op(shape), {x}); }
Var sum(const Var& x) { return append(autodiff::sum_op(), {x}); }
Var mean(const Var& x) { return append(autodiff::mean_op(), {x}); }

}  // namespace cenote::graph
