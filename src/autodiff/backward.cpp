// The reverse sweep over the graph of a tensor. No step here recurses: chains may be as long as memory allows.
#include <unordered_map>
#include <utility>

#include <cenote/error.h>

#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "autodiff/record.h"

namespace cenote {

// Nodes that nobody else has lose their inputs here, one after the other.
Tensor::Node::~Node() {
  std::vector<std::shared_ptr<Node>> orphans = std::move(inputs);
  while (!orphans.empty()) {
    const std::shared_ptr<Node> node = std::move(orphans.back());
    orphans.pop_back();
    if (node.use_count() > 1) continue;
    for (std::shared_ptr<Node>& input : node->inputs) orphans.push_back(std::move(input));
    node->inputs.clear();
  }
}

namespace autodiff {
namespace {

using Node = Tensor::Node;
using Shared = std::shared_ptr<const Array>;

/// What the sweep knows of a variable: how often the graph uses it, how many of these uses have yet to give their
/// share, and the sum of the shares; null is zero.
struct Visit {
  long uses = 0, pending = 0;
  bool held = true;
  Shared grad{};
};
using Visits = std::unordered_map<Node*, Visit>;

void check_alive(const Node& node) {
  if (node.released)
    throw InvalidBackprop(
        "[backward] a part of the graph was released by an earlier backward(): run its operations again to make a new "
        "one");
}

/// The variables that root was made of, with their uses.
Visits collect(const std::shared_ptr<Node>& root) {
  check_alive(*root);
  Visits visits;
  visits.try_emplace(root.get());
  std::vector<Node*> open{root.get()};
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    for (const std::shared_ptr<Node>& input : node->inputs) {
      if (input->constant) continue;
      check_alive(*input);
      const auto [at, is_new] = visits.try_emplace(input.get());
      ++at->second.pending;
      // Whoever else has it may ask for its gradient.
      at->second.held = input.use_count() > ++at->second.uses;
      if (is_new) open.push_back(input.get());
    }
  }
  return visits;
}

Shared sum_of(const Shared& a, const Shared& b) {
  const View parts[] = {*a, *b};
  return std::make_shared<const Array>(std::move(run(*add_op(), parts).front()));
}

/// The cotangents of a node's inputs, null for zeros and for constants.
std::vector<Shared> pull_back(const Node& node, const Shared& grad) {
  EagerTracer tracer;
  std::vector<Value> inputs;
  for (const std::shared_ptr<Node>& input : node.inputs) inputs.push_back(tracer.borrow(input->data));
  const Value output = tracer.borrow(node.data);
  const Maybe cotangent = tracer.hold(grad);
  const std::vector<Maybe> parts = node.op->vjp(tracer, inputs, {&output, 1}, {&cotangent, 1});
  std::vector<Shared> grads(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (parts[i] && !node.inputs[i]->constant) grads[i] = tracer.share(*parts[i]);
  return grads;
}

}  // namespace

void sweep_back(const std::shared_ptr<Node>& root, Shared grad) {
  Visits visits = collect(root);
  visits.at(root.get()).grad = std::move(grad);
  std::vector<Node*> ready{root.get()};
  while (!ready.empty()) {
    Node* node = ready.back();
    ready.pop_back();
    Visit& visit = visits.at(node);
    std::vector<Shared> parts(node->inputs.size());
    if (node->op && visit.grad) parts = pull_back(*node, visit.grad);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Node* input = node->inputs[i].get();
      if (input->constant) continue;
      Visit& share = visits.at(input);
      if (parts[i]) share.grad = share.grad ? sum_of(share.grad, parts[i]) : std::move(parts[i]);
      if (--share.pending == 0) ready.push_back(input);
    }
    if (!visit.held) visit.grad = nullptr;
  }
  for (auto& [node, visit] : visits)
    if (visit.held && !visit.grad)
      visit.grad = std::make_shared<const Array>(Array::zeros(node->data.type(), node->data.shape()));
  for (auto& [node, visit] : visits) node->grad = std::move(visit.grad);
}

void release_graph(const std::shared_ptr<Node>& root) noexcept {
  std::vector<std::shared_ptr<Node>> open{root};
  while (!open.empty()) {
    const std::shared_ptr<Node> node = std::move(open.back());
    open.pop_back();
    if (!node->op) continue;
    node->op = nullptr;
    node->released = true;
    for (std::shared_ptr<Node>& input : node->inputs) open.push_back(std::move(input));
    node->inputs.clear();
  }
}

}  // namespace autodiff
}  // namespace cenote
