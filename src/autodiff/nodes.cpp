// How nodes are added, checked and merged.
#include "autodiff/nodes.h"

#include <cassert>

#include <cenote/error.h>

#include "core/checked.h"
#include "core/reject.h"

namespace cenote::autodiff {

std::string to_string(const Signature& signature) {
  return std::string(name(signature.type)) + " " + to_string(signature.shape);
}

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 42;

// Sums of sizes must not overflow either, and no program comes near 2^20 values of that size.
void check_size(const Signature& s) {
  const Checked bytes = Checked(element_count(s.shape)) * Checked(static_cast<std::int64_t>(size_of(s.type)));
  if (!bytes.ok() || bytes.value() > most_bytes)
    reject("graph", "an array of ", to_string(s), ": must have at most ", most_bytes, " bytes");
}

}  // namespace

std::string without_sender(const std::string& message) {
  const std::size_t end = message.find("] ");
  return message.starts_with('[') && end != std::string::npos ? message.substr(end + 2) : message;
}

std::string Node::name() const {
  switch (kind) {
    case Kind::input: return label.empty() ? "input" : "input " + label;
    case Kind::constant: return "constant";
    case Kind::zeros: return "zeros";
    case Kind::operation: break;
  }
  return op->name();
}

Value Nodes::append_value(const Signature& signature, int node) {
  const Value value{values()};
  entries_.push_back({signature, node, false, value});
  return value;
}

Value Nodes::append_source(Node node, const Signature& signature) {
  try {
    check_size(signature);
  } catch (const std::invalid_argument& error) {
    reject("graph", "node ", size(), " (", node.name(), "): ", without_sender(error.what()));
  }
  const Value value = append_value(signature, size());
  node.outputs = {value};
  nodes_.push_back(std::move(node));
  return value;
}

Value Nodes::input(const Signature& signature, std::string name) {
  return append_source({.kind = Node::Kind::input, .label = std::move(name)}, signature);
}

Value Nodes::constant(std::shared_ptr<const Array> array) {
  const Signature signature{array->type(), array->shape()};
  return append_source({.kind = Node::Kind::constant, .constant = std::move(array)}, signature);
}

Value Nodes::zeros(const Signature& signature) { return append_source({.kind = Node::Kind::zeros}, signature); }

Value Nodes::detach(Value value) {
  Entry alias = entry(value);
  alias.detached = true;
  entries_.push_back(alias);
  return {values() - 1};
}

Prepared Nodes::prepare(const Op& op, std::span<const Value> inputs) const {
  std::vector<Signature> given;
  for (const Value input : inputs) given.push_back(signature(input));
  const auto rethrow_as = [&]<class Error>(const Error& error) {
    std::string text = "[graph] node " + std::to_string(size()) + " (" + op.name() + "): ";
    text += without_sender(error.what()) + "; given ";
    for (std::size_t i = 0; i < given.size(); ++i)
      text += (i ? ", " : "") + this->text(inputs[i]) + " " + to_string(given[i]);
    throw Error(text);
  };
  try {
    Prepared made = op.prepare(given);
    for (const Signature& output : made.outputs) check_size(output);
    return made;
  } catch (const std::invalid_argument& error) {
    rethrow_as(error);
  } catch (const Unsupported& error) {
    rethrow_as(error);
  }
  return {};
}

std::vector<Value> Nodes::apply(const OpPtr& op, std::span<const Value> inputs) {
  Key key{op.get(), {}};
  for (const Value input : inputs) {
    assert(input.id >= 0 && input.id < values());
    key.second.push_back(input.id);
  }
  if (const auto found = known_.find(key); found != known_.end()) return (*this)[found->second].outputs;
  Node node{.op = op, .prepared = std::make_shared<const Prepared>(prepare(*op, inputs))};
  node.inputs.assign(inputs.begin(), inputs.end());
  for (const Signature& made : node.prepared->outputs) node.outputs.push_back(append_value(made, size()));
  known_.emplace(std::move(key), size());
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

std::string Nodes::text(Value value) const {
  const Value stored = storage(value);
  const int number = node_of(value);
  const std::vector<Value>& outputs = (*this)[number].outputs;
  std::string text = "%" + std::to_string(number);
  return outputs.size() < 2 ? text : text + "." + std::to_string(stored.id - outputs.front().id);
}

}  // namespace cenote::autodiff
