// The choice of algorithm, with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cenote/types.h>

#include "plan/geometry.h"

namespace cenote {

/// How a pooling is carried out on a row-major array.
struct Algorithm {
  std::string name;    // "lines", "lines+rows", "rows", …
  std::string reason;  // half a sentence
  /// Outputs of the innermost pooled axis that are worked on at once when rows are kept in a ring; 0: all of them.
  std::int64_t tile = 0;
  /// Working memory per thread, about.
  std::int64_t scratch = 0;
};

/// Never depends on the number of threads. `state_bytes` is what one output carries between passes.
Algorithm choose(const Geometry& geometry, const Extents& shape, std::int64_t state_bytes);

/// Rows of an axis that must be at hand at once to make `outputs` of them.
std::int64_t ring_rows(const Axis& axis, std::int64_t outputs) noexcept;

}  // namespace cenote
