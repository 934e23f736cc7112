// Packed keys: (batch, coordinates) in one integer, so that equal rows are equal keys and sorted keys are sorted rows.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include <cenote/array.h>
#include <cenote/coordinates.h>

namespace cenote::sparse {

__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;
using u64 = std::uint64_t;

inline constexpr int max_columns = 1 + max_lattice_dimension;

/// The smallest and the largest number of each column. Without rows, all are 0.
struct Range {
  int columns = 0;
  std::array<std::int64_t, max_columns> low{}, high{};

  u64 extent(int a) const noexcept { return static_cast<u64>(high[at(a)]) - static_cast<u64>(low[at(a)]); }
  static std::size_t at(int a) noexcept { return static_cast<std::size_t>(a); }
  friend bool operator==(const Range&, const Range&) = default;
};

/// "[0, 3] x [-5, 12]".
std::string to_string(const Range& range);

/// Rows of coordinates in memory, without gaps, as 32- or 64-bit integers.
struct Rows {
  const void* data = nullptr;
  bool wide = false;
  int columns = 0;
  std::int64_t count = 0;

  Rows() = default;
  explicit Rows(const Array& array)
      : data(array.data()),
        wide(array.type() == Type::i64),
        columns(static_cast<int>(array.shape()[1])),
        count(array.shape()[0]) {}
  std::int64_t at(std::int64_t row, int column) const noexcept {
    const std::int64_t i = row * columns + column;
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
  /// Reads n numbers of one column.
  void column(int a, std::int64_t first, std::int64_t n, std::int64_t* out) const noexcept;
};

/// The row as a caller would write it: "(0, 4, -2)".
std::string row_text(const Rows& rows, std::int64_t row);

Range range_of(const Rows& rows);

/// floor((c + plus) / by), fast where the divisor is a power of two. The sum must fit 64 bits.
struct FloorDivide {
  std::int64_t by = 1;
  int shift = 0;  // -1: not a power of two
  std::int64_t plus = 0;

  FloorDivide() = default;
  explicit FloorDivide(std::int64_t by, std::int64_t plus = 0)
      : by(by),
        shift(std::has_single_bit(static_cast<u64>(by)) ? std::countr_zero(static_cast<u64>(by)) : -1),
        plus(plus) {}
  std::int64_t operator()(std::int64_t c) const noexcept {
    if (shift >= 0) return (c + plus) >> shift;
    const std::int64_t q = (c + plus) / by;
    return q - ((c + plus) % by < 0);
  }
  std::int64_t remainder(std::int64_t c) const noexcept {
    if (shift >= 0) return (c + plus) & (by - 1);
    const std::int64_t r = (c + plus) % by;
    return r < 0 ? r + by : r;
  }
};

/// Divisors of the lattice columns; the batch column is never divided.
using Divisors = std::array<FloorDivide, max_columns>;

/// Where each column of a row lies in a key: the batch in the high bits, the last axis in the low ones.
struct KeyCodec {
  int columns = 0, bits = 0;
  std::array<std::int64_t, max_columns> low{};
  std::array<u64, max_columns> mask{};
  std::array<int, max_columns> shift{};

  /// Throws std::invalid_argument with the range in its text where more than 128 bits are needed.
  KeyCodec() = default;
  KeyCodec(std::string_view who, const Range& range);
  /// Fields wide enough for either range, with the lows of the first.
  KeyCodec(std::string_view who, const Range& range, const Range& other);

  template <class K>
  K field(int a, u64 relative) const noexcept {
    return static_cast<K>(relative) << shift[Range::at(a)];
  }
  template <class K>
  u64 relative(int a, K key) const noexcept {
    return static_cast<u64>(key >> shift[Range::at(a)]) & mask[Range::at(a)];
  }
  /// The number in column a of the row that a key stands for.
  template <class K>
  std::int64_t number(int a, K key) const noexcept {
    return static_cast<std::int64_t>(static_cast<u64>(low[Range::at(a)]) + relative(a, key));
  }

 private:
  void lay_out(std::string_view who, const Range& range, const std::array<int, max_columns>& widths);
};

/// Calls f with a zero of the narrowest key type that has so many bits.
template <class F>
decltype(auto) with_key(int bits, F&& f) {
  if (bits <= 32) return f(std::uint32_t{0});
  if (bits <= 64) return f(u64{0});
  return f(u128{0});
}

/// Rows are packed and unpacked a block at a time and column by column: the loops are short of branches that way.
inline constexpr std::int64_t block_rows = 512;

/// The keys of rows [first, first + n), n <= block_rows, each lattice coordinate divided. Every result must be in
/// range.
template <class K>
void pack_block(const KeyCodec& codec, const Rows& rows, const Divisors& divisors, std::int64_t first, std::int64_t n,
                K* keys) noexcept {
  std::int64_t column[block_rows];
  for (std::int64_t i = 0; i < n; ++i) keys[i] = 0;
  for (int a = 0; a < codec.columns; ++a) {
    const FloorDivide divide = divisors[Range::at(a)];
    const auto low = static_cast<u64>(codec.low[Range::at(a)]);
    const int shift = codec.shift[Range::at(a)];
    rows.column(a, first, n, column);
    if (divide.shift >= 0 && divide.plus == 0)
      for (std::int64_t i = 0; i < n; ++i)
        keys[i] = static_cast<K>(keys[i] | static_cast<K>(static_cast<u64>(column[i] >> divide.shift) - low) << shift);
    else
      for (std::int64_t i = 0; i < n; ++i)
        keys[i] = static_cast<K>(keys[i] | static_cast<K>(static_cast<u64>(divide(column[i])) - low) << shift);
  }
}

/// The keys of rows [first, last).
template <class K>
void for_packed_blocks(const KeyCodec& codec, const Rows& rows, const Divisors& divisors, std::int64_t first,
                       std::int64_t last, const auto& body) {
  K keys[block_rows];
  for (std::int64_t at = first; at < last; at += block_rows) {
    const std::int64_t n = std::min(block_rows, last - at);
    pack_block(codec, rows, divisors, at, n, keys);
    body(at, n, keys);
  }
}

/// Writes the rows that keys stand for into an array of the given coordinate type.
template <class K>
Array unpack_rows(const KeyCodec& codec, Type type, const K* keys, std::int64_t n);

}  // namespace cenote::sparse
