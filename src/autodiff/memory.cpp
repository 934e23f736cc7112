// Shares buffers between values that are not alive at the same time.
#include "autodiff/memory.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace cenote::autodiff {
namespace {

std::size_t at(Value value) { return static_cast<std::size_t>(value.id); }
std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Buffers by size while the program is laid out. Growing one costs nothing yet.
class Pool {
 public:
  int take(std::int64_t bytes) {
    auto found = free_.lower_bound(bytes);
    if (found == free_.end() && !free_.empty()) found = std::prev(found);
    int buffer = static_cast<int>(sizes_.size());
    if (found == free_.end()) {
      sizes_.push_back(0);
    } else {
      buffer = found->second;
      free_.erase(found);
    }
    auto& size = sizes_[static_cast<std::size_t>(buffer)];
    size = std::max(size, bytes);
    return buffer;
  }
  void give_back(int buffer) { free_.emplace(sizes_[static_cast<std::size_t>(buffer)], buffer); }
  const std::vector<std::int64_t>& sizes() const noexcept { return sizes_; }

 private:
  std::vector<std::int64_t> sizes_;
  std::multimap<std::int64_t, int> free_;
};

void place_sources(Memory& memory, const Nodes& nodes, std::span<const Value> inputs, std::span<const Value> outputs) {
  for (int number = 0; number < nodes.size(); ++number) {
    const Node& node = nodes[number];
    if (node.kind == Node::Kind::constant) memory.places[at(node.outputs[0])] = {Place::Kind::constant, number};
    if (node.kind == Node::Kind::zeros) memory.places[at(node.outputs[0])] = {Place::Kind::zeros, number};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    memory.places[at(inputs[i])] = {Place::Kind::input, static_cast<int>(i)};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Place& place = memory.places[at(nodes.storage(outputs[i]))];
    if (place.kind == Place::Kind::none) place = {Place::Kind::output, static_cast<int>(i)};
  }
}

// The step after which nothing reads a value any more.
std::vector<std::size_t> last_uses(const Nodes& nodes, std::span<const int> order) {
  std::vector<std::size_t> last(static_cast<std::size_t>(nodes.values()), 0);
  for (std::size_t step = 0; step < order.size(); ++step) {
    for (const Value output : nodes[order[step]].outputs) last[at(output)] = step;
    for (const Value input : nodes[order[step]].inputs) last[at(nodes.storage(input))] = step;
  }
  return last;
}

}  // namespace

Memory plan_memory(const Nodes& nodes, std::span<const int> order, std::span<const Value> inputs,
                   std::span<const Value> outputs) {
  Memory memory;
  memory.places.resize(static_cast<std::size_t>(nodes.values()));
  place_sources(memory, nodes, inputs, outputs);
  const std::vector<std::size_t> last = last_uses(nodes, order);
  std::vector<std::vector<int>> ending(order.size());
  Pool pool;
  std::int64_t scratch = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    const Node& node = nodes[order[step]];
    for (const Value output : node.outputs) {
      Place& place = memory.places[at(output)];
      if (place.kind != Place::Kind::none) continue;
      const Signature& signature = nodes.signature(output);
      const std::int64_t bytes = element_count(signature.shape) * static_cast<std::int64_t>(size_of(signature.type));
      place = {Place::Kind::buffer, pool.take(aligned(bytes))};
      ending[last[at(output)]].push_back(place.index);
    }
    for (const int buffer : ending[step]) pool.give_back(buffer);
    scratch = std::max(scratch, node.prepared->scratch);
  }
  for (int v = 0; v < nodes.values(); ++v)
    memory.places[static_cast<std::size_t>(v)] = memory.places[at(nodes.storage({v}))];
  memory.buffers = pool.sizes();
  for (const std::int64_t size : memory.buffers) {
    memory.offsets.push_back(memory.scratch_offset);
    memory.scratch_offset += size;
  }
  memory.bytes = memory.scratch_offset + aligned(scratch);
  return memory;
}

}  // namespace cenote::autodiff
