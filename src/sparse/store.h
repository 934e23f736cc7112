// What a coordinate set keeps: its rows, facts about them, and what was computed from them once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <cenote/coordinates.h>
#include <cenote/relation.h>

#include "sparse/buffer.h"
#include "sparse/keys.h"
#include "sparse/morton.h"
#include "sparse/sort.h"

namespace cenote {

namespace sparse {

/// All rows as packed keys, sorted: the order that a neighbour search walks through.
struct Index {
  KeyCodec codec;
  std::variant<Buffer<Item<std::uint32_t>>, Buffer<Item<u64>>, Buffer<Item<u128>>> items;
};

/// The most rows that a coordinate set may have: rows are numbered in 32 bits.
inline constexpr std::int64_t most_rows = INT32_MAX;
/// Throws std::invalid_argument for more output rows than that, and Unsupported for more than this machine can hold.
void check_output_rows(std::string_view who, std::int64_t rows);
/// Throws Unsupported where rows of so many bytes each do not fit the memory of this machine.
void check_fits(std::string_view who, std::int64_t rows, std::size_t bytes);

}  // namespace sparse

struct Coordinates::Impl {
  int dimension = 1;
  std::int64_t rows = 0;
  Type type = Type::i32;
  std::int64_t batch_size = 0;
  sparse::Range range;
  bool unique = false;
  std::optional<sparse::MortonKeys> morton{};  // present where rows are in Morton order; then the array is made from it

  sparse::Lazy<Array> array_{};
  sparse::Lazy<sparse::Index> index_{};
  sparse::Lazy<std::vector<std::int64_t>> counts_{};
  mutable std::mutex mutex{};
  // Without their inputs, which are these coordinates: nothing here points back.
  mutable std::map<std::string, std::shared_ptr<const Relation::Impl>> kept{};

  const Array& array() const;
  sparse::Rows view() const { return sparse::Rows(array()); }
  /// Throws std::invalid_argument where the range does not fit 128 bits.
  const sparse::Index& index(std::string_view who) const;
};

namespace sparse {

/// Coordinates that the library made: rows that differ and lie in `range`.
std::shared_ptr<const Coordinates> made_coordinates(Array rows, const Range& range, std::int64_t batch_size);
std::shared_ptr<const Coordinates> made_coordinates(MortonKeys keys, Type type, const Range& range,
                                                    std::int64_t batch_size);

/// The rows `order` of an array of any type, one after the other.
Array take_rows(const Array& array, const std::int32_t* order, std::int64_t n);

}  // namespace sparse
}  // namespace cenote
