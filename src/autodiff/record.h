// What stands behind a Tensor, and how operations on tensors are recorded.
#pragma once

#include <memory>
#include <vector>

#include <cenote/tensor.h>

#include "autodiff/op.h"

namespace cenote {

/// A leaf has no operation. Releasing a graph takes operations and inputs from all of its nodes.
struct Tensor::Node {
  Node(Array data, bool constant) : data(std::move(data)), constant(constant) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const Array data;
  const bool constant;
  bool released = false;
  autodiff::OpPtr op;
  std::vector<std::shared_ptr<Node>> inputs;
  std::shared_ptr<const Array> grad;
};

namespace autodiff {

/// Applies an operation of one output, and remembers it unless this thread does not record.
Tensor record(const OpPtr& op, std::initializer_list<const Tensor*> inputs, std::optional<bool> constant);

/// Leaves gradients on all variables that `root` was made of, given its own. Then, or when it throws, nothing else has
/// changed.
void sweep_back(const std::shared_ptr<Tensor::Node>& root, std::shared_ptr<const Array> grad);

/// Takes the graph that made `root` apart.
void release_graph(const std::shared_ptr<Tensor::Node>& root) noexcept;

}  // namespace autodiff
}  // namespace cenote
