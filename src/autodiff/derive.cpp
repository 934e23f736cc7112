// The two sweeps that turn a graph into its derivative.
#include "autodiff/derive.h"

#include <algorithm>
#include <cassert>

#include <cenote/error.h>

#include "autodiff/language.h"

namespace cenote::autodiff {
namespace {

std::size_t at(Value value) { return static_cast<std::size_t>(value.id); }

// "tangent of input x", "cotangent of output 1".
std::string seed_name(const Nodes& nodes, std::string_view kind, std::string_view what, Value value, std::size_t i) {
  const std::string& label = nodes[nodes.node_of(value)].label;
  const bool named = what == "input" && !label.empty();
  return std::string(kind) + " of " + std::string(what) + " " + (named ? label : std::to_string(i));
}

// Errors inside a rule name the node whose derivative was asked for.
template <class Rule>
std::vector<Maybe> call_rule(const Nodes& nodes, int number, std::size_t expected, Rule&& rule) {
  try {
    std::vector<Maybe> result = rule(nodes[number]);
    assert(result.size() == expected);
    result.resize(expected);
    return result;
  } catch (const Unsupported& error) {
    throw Unsupported("[graph] node " + std::to_string(number) + " (" + nodes[number].name() +
                      "): " + without_sender(error.what()));
  }
}

bool any_of(const std::vector<bool>& marked, std::span<const Value> values) {
  return std::any_of(values.begin(), values.end(), [&](Value value) { return marked[at(value)]; });
}

// Whether each value depends on an input in a way that has a derivative.
std::vector<bool> active_values(const Nodes& nodes, std::span<const Value> inputs, std::span<const int> order) {
  std::vector<bool> active(static_cast<std::size_t>(nodes.values()), false);
  for (const Value input : inputs) active[at(input)] = is_float(nodes.signature(input).type);
  for (const int number : order) {
    const Node& node = nodes[number];
    const bool any = any_of(active, node.inputs);
    for (const Value output : node.outputs) active[at(output)] = any && is_float(nodes.signature(output).type);
  }
  return active;
}

// Whether each value reaches an output in a way that has a derivative.
std::vector<bool> useful_values(const Nodes& nodes, std::span<const Value> outputs, std::span<const int> order) {
  std::vector<bool> useful(static_cast<std::size_t>(nodes.values()), false);
  for (const Value output : outputs) useful[at(output)] = true;
  for (auto number = order.rbegin(); number != order.rend(); ++number)
    if (any_of(useful, nodes[*number].outputs))
      for (const Value input : nodes[*number].inputs) useful[at(input)] = true;
  return useful;
}

bool any_flows(std::span<const Maybe> derivatives) {
  return std::any_of(derivatives.begin(), derivatives.end(), [](const Maybe& d) { return d.has_value(); });
}

std::vector<Maybe> pick(std::span<const Maybe> all, std::span<const Value> values) {
  std::vector<Maybe> picked;
  for (const Value value : values) picked.push_back(all[at(value)]);
  return picked;
}

// Collects the derivatives of the floating-point values, zeros where there are none.
void collect(Derivative& d, std::span<const Maybe> derivatives, std::span<const Value> values) {
  for (const Value value : values) {
    const Signature signature = d.nodes.signature(value);
    if (!is_float(signature.type)) continue;
    const Maybe& found = derivatives[at(value)];
    assert(!found || d.nodes.signature(*found) == signature);
    d.results.push_back(found ? *found : d.nodes.zeros(signature));
  }
}

}  // namespace

std::vector<int> needed_nodes(const Nodes& nodes, std::span<const Value> outputs) {
  std::vector<bool> needed(static_cast<std::size_t>(nodes.size()), false);
  for (const Value output : outputs) needed[static_cast<std::size_t>(nodes.node_of(output))] = true;
  std::vector<int> order;
  for (int number = nodes.size() - 1; number >= 0; --number) {
    if (!needed[static_cast<std::size_t>(number)] || nodes[number].kind != Node::Kind::operation) continue;
    order.push_back(number);
    for (const Value input : nodes[number].inputs) needed[static_cast<std::size_t>(nodes.node_of(input))] = true;
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Derivative tangents_of(const Nodes& nodes, std::span<const Value> inputs, std::span<const Value> outputs) {
  Derivative d{nodes, {}, {}};
  std::vector<Maybe> tangents(static_cast<std::size_t>(nodes.values()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Signature& signature = nodes.signature(inputs[i]);
    if (!is_float(signature.type)) continue;
    d.seeds.push_back(d.nodes.input(signature, seed_name(nodes, "tangent", "input", inputs[i], i)));
    tangents[at(inputs[i])] = d.seeds.back();
  }
  const std::vector<int> order = needed_nodes(nodes, outputs);
  const std::vector<bool> useful = useful_values(nodes, outputs, order);
  for (const int number : order) {
    const std::vector<Maybe> given = pick(tangents, nodes[number].inputs);
    if (!any_flows(given) || !any_of(useful, nodes[number].outputs)) continue;
    const auto made = call_rule(nodes, number, nodes[number].outputs.size(), [&](const Node& node) {
      return node.op->jvp(d.nodes, node.inputs, node.outputs, given);
    });
    for (std::size_t i = 0; i < made.size(); ++i) tangents[at(nodes[number].outputs[i])] = made[i];
  }
  collect(d, tangents, outputs);
  return d;
}

Derivative cotangents_of(const Nodes& nodes, std::span<const Value> inputs, std::span<const Value> outputs) {
  Derivative d{nodes, {}, {}};
  std::vector<Maybe> cotangents(static_cast<std::size_t>(nodes.values()));
  const auto receive = [&](Value value, const Maybe& cotangent) {
    cotangents[at(value)] = add(d.nodes, cotangents[at(value)], cotangent);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Signature& signature = nodes.signature(outputs[i]);
    if (!is_float(signature.type)) continue;
    d.seeds.push_back(d.nodes.input(signature, seed_name(nodes, "cotangent", "output", outputs[i], i)));
    receive(outputs[i], d.seeds.back());
  }
  const std::vector<int> order = needed_nodes(nodes, outputs);
  const std::vector<bool> active = active_values(nodes, inputs, order);
  for (auto number = order.rbegin(); number != order.rend(); ++number) {
    const Node& node = nodes[*number];
    const std::vector<Maybe> given = pick(cotangents, node.outputs);
    if (!any_flows(given) || !any_of(active, node.outputs)) continue;
    const auto made = call_rule(nodes, *number, node.inputs.size(),
                                [&](const Node& n) { return n.op->vjp(d.nodes, n.inputs, n.outputs, given); });
    for (std::size_t i = 0; i < made.size(); ++i)
      if (active[at(node.inputs[i])]) receive(node.inputs[i], made[i]);
  }
  collect(d, cotangents, inputs);
  return d;
}

}  // namespace cenote::autodiff
