// Programs as text: one line per node, or a picture for Graphviz.
#include <algorithm>
#include <sstream>
#include <vector>

#include "autodiff/program.h"

namespace cenote::graph {
namespace {

using autodiff::Node;
using autodiff::Place;
using autodiff::Value;

Place place_of(const Program::Impl& p, Value value) { return p.memory.places[static_cast<std::size_t>(value.id)]; }

// Where a value is: "input 0", "buffer 2", "output 1".
std::string place_text(const Program::Impl& p, Value value) {
  const Place place = place_of(p, value);
  const std::string number = " " + std::to_string(place.index);
  switch (place.kind) {
    case Place::Kind::input: return "input" + number;
    case Place::Kind::output: return "output" + number;
    case Place::Kind::buffer: return "buffer" + number;
    case Place::Kind::constant: return "constant";
    case Place::Kind::zeros: return "zeros";
    case Place::Kind::none: break;
  }
  return "nowhere";
}

// Inputs, the sources that something reads, and the nodes that run, by number.
std::vector<int> shown_nodes(const Program::Impl& p) {
  std::vector<int> shown = p.order;
  for (const Value input : p.input_values) shown.push_back(p.nodes.node_of(input));
  for (const Value output : p.output_values) shown.push_back(p.nodes.node_of(output));
  for (const int number : p.order)
    for (const Value input : p.nodes[number].inputs) shown.push_back(p.nodes.node_of(input));
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::string counted(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string Program::describe() const {
  const Impl& p = *impl_;
  std::ostringstream text;
  text << "program: " << counted(p.inputs.size(), "input") << ", " << counted(p.outputs.size(), "output") << ", "
       << counted(p.order.size(), "operation") << ", " << counted(p.memory.buffers.size(), "buffer") << ", "
       << p.memory.bytes << " bytes\n";
  std::vector<std::string> last_in(p.memory.buffers.size());
  for (const int number : shown_nodes(p)) {
    const Node& node = p.nodes[number];
    text << '%' << number << " = " << node.name();
    if (node.kind == Node::Kind::operation) {
      text << '(';
      for (std::size_t i = 0; i < node.inputs.size(); ++i) text << (i ? ", " : "") << p.nodes.text(node.inputs[i]);
      text << ')';
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Value value = node.outputs[i];
      text << (i ? "; " : ": ") << autodiff::to_string(p.nodes.signature(value)) << " in " << place_text(p, value);
      if (place_of(p, value).kind != Place::Kind::buffer) continue;
      std::string& last = last_in[static_cast<std::size_t>(place_of(p, value).index)];
      if (!last.empty()) text << " after " << last;
      last = p.nodes.text(value);
    }
    text << '\n';
  }
  for (std::size_t i = 0; i < p.output_values.size(); ++i)
    text << "output " << i << " = " << p.nodes.text(p.output_values[i]) << '\n';
  return text.str();
}

std::string Program::dot() const {
  const Impl& p = *impl_;
  std::ostringstream text;
  text << "digraph program {\n  rankdir=TB;\n  node [shape=box];\n";
  for (const int number : shown_nodes(p)) {
    const Node& node = p.nodes[number];
    const bool runs = node.kind == Node::Kind::operation;
    text << "  n" << number << " [label=\"%" << number << ' ' << quoted(node.name());
    for (const Value value : node.outputs)
      text << "\\n" << autodiff::to_string(p.nodes.signature(value)) << ", " << place_text(p, value);
    text << '"' << (runs ? "" : ", style=rounded") << "];\n";
    for (const Value input : node.inputs) text << "  n" << p.nodes.node_of(input) << " -> n" << number << ";\n";
  }
  for (std::size_t i = 0; i < p.output_values.size(); ++i)
    text << "  o" << i << " [label=\"output " << i << "\", shape=plaintext];\n  n"
         << p.nodes.node_of(p.output_values[i]) << " -> o" << i << ";\n";
  text << "}\n";
  return text.str();
}

}  // namespace cenote::graph
