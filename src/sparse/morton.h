// Morton keys: the bits of all axes interleaved, so that a cell of 2^n points a side is a run of keys.
#pragma once

#include <variant>

#include "sparse/buffer.h"
#include "sparse/keys.h"

namespace cenote::sparse {

/// Which bit of a row each bit of a Morton key is. The order is that of all 64 bits of each axis, signs first and the
/// last axis lowest at every level, whatever the range: bits that a range does not need are left out. The batch lies on
/// top.
struct MortonCodec {
  int columns = 0, bits = 0;
  std::array<std::int64_t, max_columns> origin{};
  std::array<int, max_columns> width{};
  std::array<bool, max_columns> has_sign{};  // the highest bit of the column tells negative numbers from the others

  MortonCodec() = default;
  /// Throws std::invalid_argument with the range in its text where more than 128 bits are needed.
  MortonCodec(std::string_view who, const Range& range);

  /// Whether dropping n levels divides every coordinate by 2^n.
  bool divisible(int n) const noexcept;
  /// The bits of n levels.
  int level_bits(int n) const noexcept;
  /// The codec of keys that have been shifted by level_bits(n).
  MortonCodec parent(int n) const noexcept;
  /// The column and the bit of it at each place of a key, low to high.
  struct Place {
    int column, bit;
  };
  std::array<Place, 128> places() const noexcept;

 private:
  void count_bits() noexcept;
};

/// The keys of rows in Morton order.
struct MortonKeys {
  MortonCodec codec;
  std::variant<Buffer<std::uint32_t>, Buffer<u64>, Buffer<u128>> keys;
};

/// The key of every row, in the rows' order.
template <class K>
Buffer<K> morton_keys(const MortonCodec& codec, const Rows& rows);

/// The rows that keys stand for, as an array of the given coordinate type.
Array morton_rows(const MortonKeys& keys, Type type);

}  // namespace cenote::sparse
