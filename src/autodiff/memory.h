// Where the values of a program live: in the caller's arrays, in constants, or in buffers shared by liveness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/nodes.h"

namespace cenote::autodiff {

/// The place of one value.
struct Place {
  enum class Kind { none, input, output, buffer, constant, zeros };
  Kind kind = Kind::none;
  /// Number of the input, the output or the buffer; the node of a constant.
  int index = 0;
};

/// Buffers are laid out one after the other in one piece of memory, each aligned to 64 bytes, and scratch after them.
struct Memory {
  /// By number of the value; a detached one has the place of what it reads.
  std::vector<Place> places;
  std::vector<std::int64_t> buffers, offsets;
  std::int64_t scratch_offset = 0, bytes = 0;
};

/// A value that is an output lives there; others get a buffer from their node to the last node that reads them.
Memory plan_memory(const Nodes& nodes, std::span<const int> order, std::span<const Value> inputs,
                   std::span<const Value> outputs);

}  // namespace cenote::autodiff
