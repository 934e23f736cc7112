// Derivative graphs: the nodes of a graph, and after them those that compute its tangents or cotangents.
#pragma once

#include <span>
#include <vector>

#include "autodiff/nodes.h"

namespace cenote::autodiff {

/// The nodes that `outputs` need, in order; sources are not among them.
std::vector<int> needed_nodes(const Nodes& nodes, std::span<const Value> outputs);

/// A graph with its derivative. Both lists have one value for each one that is floating-point.
struct Derivative {
  Nodes nodes;
  /// New inputs: tangents of the inputs, or cotangents of the outputs.
  std::vector<Value> seeds;
  /// Tangents of the outputs, or cotangents of the inputs; zeros where nothing flows.
  std::vector<Value> results;
};

/// Forward mode: one rule for each node that a tangent reaches.
Derivative tangents_of(const Nodes& nodes, std::span<const Value> inputs, std::span<const Value> outputs);
/// Reverse mode: one rule for each node between inputs and outputs, so the cost is linear in their number.
Derivative cotangents_of(const Nodes& nodes, std::span<const Value> inputs, std::span<const Value> outputs);

}  // namespace cenote::autodiff
