// The nodes of a graph in the order they were added, by a caller or by the rules of derivatives.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cenote/array.h>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// One step of a graph, or something that is there from the start.
struct Node {
  enum class Kind { input, constant, zeros, operation };
  Kind kind = Kind::operation;
  /// An input's name; may be empty.
  std::string label{};
  std::shared_ptr<const Array> constant{};
  OpPtr op{};
  std::shared_ptr<const Prepared> prepared{};
  std::vector<Value> inputs{};
  /// Its values, in order. A detached one is not among them.
  std::vector<Value> outputs{};

  /// "max_pool", "input x", "constant".
  std::string name() const;
};

/// Values are numbered as they are made, so operations stand after all they read. Copies share everything but the list.
class Nodes final : public Tracer {
 public:
  Value input(const Signature& signature, std::string name);
  Value constant(std::shared_ptr<const Array> array);
  /// Zeros that take no memory.
  Value zeros(const Signature& signature);
  /// The same elements, without a derivative.
  Value detach(Value value);

  /// Appends an operation, or finds the one that is there already: the same Op object with the same inputs.
  /// Errors of the operation come back with the node's number, its name and what it was given.
  std::vector<Value> apply(const OpPtr& op, std::span<const Value> inputs) override;
  const Signature& signature(Value value) const override { return entry(value).signature; }

  int size() const noexcept { return static_cast<int>(nodes_.size()); }
  int values() const noexcept { return static_cast<int>(entries_.size()); }
  const Node& operator[](int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  int node_of(Value value) const { return entry(value).node; }
  bool detached(Value value) const { return entry(value).detached; }
  /// The value whose memory this one reads: itself, or what was detached.
  Value storage(Value value) const { return entry(value).storage; }
  /// "%3", or "%3.1" where a node has several outputs.
  std::string text(Value value) const;

 private:
  struct Entry {
    Signature signature;
    int node = 0;
    bool detached = false;
    Value storage;
  };
  using Key = std::pair<const Op*, std::vector<int>>;

  const Entry& entry(Value value) const { return entries_[static_cast<std::size_t>(value.id)]; }
  Value append_value(const Signature& signature, int node);
  Value append_source(Node node, const Signature& signature);
  Prepared prepare(const Op& op, std::span<const Value> inputs) const;

  std::vector<Node> nodes_;
  // A deque, so that signatures stay where they are while rules add nodes.
  std::deque<Entry> entries_;
  std::map<Key, int> known_;
};

/// "f32 (2, 3)".
std::string to_string(const Signature& signature);

/// A message of an operation without its "[name] ", to stand behind another beginning.
std::string without_sender(const std::string& message);

}  // namespace cenote::autodiff
