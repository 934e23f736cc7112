// Output coordinates: which output rows a relation has, before its edges are known.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sparse/kernel.h"
#include "sparse/store.h"

namespace cenote::sparse {

/// How rows are found, and why.
struct EngineChoice {
  Engine engine;
  bool asked;
  std::string reason;
  std::string name() const {
    return std::string(engine == Engine::sorted ? "sorted" : "hashed") + (asked ? " as asked" : "");
  }
  std::string why() const { return name() + (asked ? "" : ", since " + reason); }
};
/// What the caller asks for, or else `best`.
inline EngineChoice choose_engine(Engine asked, Engine best, std::string reason) {
  if (asked != Engine::automatic) return {asked, true, {}};
  return {best, false, std::move(reason)};
}

/// Output rows that are a function of the inputs.
struct Quotient {
  std::shared_ptr<const Coordinates> coords;  // null: the input's own
  Array row_of;                               // i32, per input: its output row, or -1 where it was left out
};

/// The rows floor(c / stride) of all inputs, or with `only_edges` of those at a tap of a grouping kernel.
Quotient quotient(std::string_view who, const Coordinates::Impl& in, const Shape& shape, Order order, Engine engine,
                  bool only_edges);

/// The distinct rows of coordinates that may repeat, in first-seen order.
Quotient distinct(std::string_view who, const Coordinates::Impl& in);

/// For windows that do not overlap, onto given rows: the one whose window holds the input, or -1, as i32.
Array quotient_onto(std::string_view who, const Coordinates::Impl& in, const Shape& shape,
                    const Coordinates::Impl& targets, Engine engine);

/// For windows that do not overlap: 1 for each input at a tap of an existing output, 0 for the others.
Buffer<std::uint8_t> tap_mask(const Coordinates::Impl& in, const Shape& shape);
/// The kernel ids of inputs [first, first + n), n <= block_rows. Those of inputs without a tap mean nothing.
void cell_ids(const Shape& shape, const Rows& rows, std::int64_t first, std::int64_t n, u64* ids);

/// Every output whose window holds an input, in lexicographic order.
std::shared_ptr<const Coordinates> window_support(std::string_view who, const Coordinates::Impl& in,
                                                  const Shape& shape);
}  // namespace cenote::sparse
