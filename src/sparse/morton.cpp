// Morton keys: where the bits go, and rows to keys and back by tables of bytes.
#include "sparse/morton.h"

#include <algorithm>
#include <vector>

#include "core/reject.h"

namespace cenote::sparse {
namespace {

struct Field {
  std::int64_t origin;
  int width;
  bool has_sign;
};

// Zero, or minus a power of two that both ends lie within: every power of two up to it divides such an origin.
Field natural(std::int64_t low, std::int64_t high) {
  if (low >= 0) return {0, static_cast<int>(std::bit_width(static_cast<u64>(high))), false};
  const u64 reach = std::max(~static_cast<u64>(low), high > 0 ? static_cast<u64>(high) : 0);
  const int m = static_cast<int>(std::bit_width(reach));
  return {m == 63 ? INT64_MIN : static_cast<std::int64_t>(~u64{0} << m), m + 1, true};
}

// Without the bits in which both ends agree.
Field compact(std::int64_t low, std::int64_t high) {
  if ((low < 0) != (high < 0)) return natural(low, high);
  const int width = static_cast<int>(std::bit_width(static_cast<u64>(low) ^ static_cast<u64>(high)));
  return {static_cast<std::int64_t>(static_cast<u64>(low) & (~u64{0} << width)), width, false};
}

}  // namespace

MortonCodec::MortonCodec(std::string_view who, const Range& range) : columns(range.columns) {
  const auto lay_out = [&](auto field) {
    origin[0] = range.low[0];
    width[0] = static_cast<int>(std::bit_width(range.extent(0)));
    for (std::size_t a = 1; a < Range::at(columns); ++a) {
      const Field f = field(range.low[a], range.high[a]);
      origin[a] = f.origin;
      width[a] = f.width;
      has_sign[a] = f.has_sign;
    }
    count_bits();
  };
  lay_out(natural);
  if (bits > 64) lay_out(compact);
  if (bits > 128)
    reject(who, "coordinates (batch first) in ", to_string(range), ": their Morton keys need ", bits,
           " bits and must fit 128");
}

void MortonCodec::count_bits() noexcept {
  bits = 0;
  for (const int w : width) bits += w;
}

bool MortonCodec::divisible(int n) const noexcept {
  if (n > 62) return false;
  for (int a = 1; a < columns; ++a)
    if ((origin[Range::at(a)] & ((std::int64_t{1} << n) - 1)) != 0) return false;
  return true;
}

int MortonCodec::level_bits(int n) const noexcept {
  int sum = 0;
  for (int a = 1; a < columns; ++a) sum += std::min(n, width[Range::at(a)]);
  return sum;
}

MortonCodec MortonCodec::parent(int n) const noexcept {
  MortonCodec result = *this;
  for (std::size_t a = 1; a < Range::at(columns); ++a) {
    result.origin[a] >>= n;
    result.width[a] -= std::min(n, width[a]);
  }
  result.count_bits();
  return result;
}

std::array<MortonCodec::Place, 128> MortonCodec::places() const noexcept {
  std::array<Place, 128> result{};
  std::size_t at = 0;
  for (int level = 0; level < 64; ++level)
    for (int a = columns - 1; a >= 1; --a)
      if (level < width[Range::at(a)] - has_sign[Range::at(a)]) result[at++] = {a, level};
  for (int a = columns - 1; a >= 1; --a)
    if (has_sign[Range::at(a)] && width[Range::at(a)] > 0) result[at++] = {a, width[Range::at(a)] - 1};
  for (int bit = 0; bit < width[0]; ++bit) result[at++] = {0, bit};
  return result;
}

template <class K>
Buffer<K> morton_keys(const MortonCodec& codec, const Rows& rows) {
  // spread[a][byte][value]: the bits of one byte of column a at their places in the key.
  std::vector<std::array<std::array<K, 256>, 8>> spread(Range::at(codec.columns));
  for (auto& column : spread)
    for (auto& byte : column) byte.fill(0);
  const auto places = codec.places();
  for (int at = 0; at < codec.bits; ++at) {
    const auto [column, bit] = places[static_cast<std::size_t>(at)];
    auto& byte = spread[Range::at(column)][static_cast<std::size_t>(bit / 8)];
    for (std::size_t value = 0; value < 256; ++value)
      if (value >> (bit % 8) & 1) byte[value] |= K{1} << at;
  }
  Buffer<K> keys(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    std::int64_t column[block_rows];
    for (std::int64_t start = first; start < last; start += block_rows) {
      const std::int64_t n = std::min(block_rows, last - start);
      std::fill_n(keys.data() + start, n, K{0});
      for (int a = 0; a < codec.columns; ++a) {
        rows.column(a, start, n, column);
        const auto origin = static_cast<u64>(codec.origin[Range::at(a)]);
        for (int byte = 0; byte * 8 < codec.width[Range::at(a)]; ++byte) {
          const auto& table = spread[Range::at(a)][static_cast<std::size_t>(byte)];
          for (std::int64_t i = 0; i < n; ++i)
            keys[start + i] |= table[(static_cast<u64>(column[i]) - origin) >> (byte * 8) & 255];
        }
      }
    }
  });
  return keys;
}

template Buffer<std::uint32_t> morton_keys(const MortonCodec&, const Rows&);
template Buffer<u64> morton_keys(const MortonCodec&, const Rows&);
template Buffer<u128> morton_keys(const MortonCodec&, const Rows&);

namespace {

template <class K, class T>
void gather_rows(const MortonCodec& codec, const Buffer<K>& keys, T* rows) {
  // collect[byte][value][a]: what one byte of a key adds to column a.
  std::vector<std::array<std::array<u64, max_columns>, 256>> collect(static_cast<std::size_t>(codec.bits + 7) / 8);
  for (auto& byte : collect) byte.fill({});
  const auto places = codec.places();
  for (int at = 0; at < codec.bits; ++at) {
    const auto [column, bit] = places[static_cast<std::size_t>(at)];
    for (std::size_t value = 0; value < 256; ++value)
      if (value >> (at % 8) & 1) collect[static_cast<std::size_t>(at / 8)][value][Range::at(column)] |= u64{1} << bit;
  }
  for_chunks(Chunks::of(keys.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      std::array<u64, max_columns> row{};
      for (std::size_t byte = 0; byte < collect.size(); ++byte) {
        const auto& part = collect[byte][static_cast<std::size_t>(keys[i] >> (byte * 8)) & 255];
        for (std::size_t a = 0; a < max_columns; ++a) row[a] |= part[a];
      }
      for (std::size_t a = 0; a < Range::at(codec.columns); ++a)
        rows[i * codec.columns + static_cast<std::int64_t>(a)] =
            static_cast<T>(static_cast<std::int64_t>(row[a] + static_cast<u64>(codec.origin[a])));
    }
  });
}

}  // namespace

Array morton_rows(const MortonKeys& keys, Type type) {
  return std::visit(
      [&](const auto& buffer) {
        Array rows(type, {buffer.size(), keys.codec.columns});
        if (type == Type::i64)
          gather_rows(keys.codec, buffer, rows.values<std::int64_t>().data());
        else
          gather_rows(keys.codec, buffer, rows.values<std::int32_t>().data());
        return rows;
      },
      keys.keys);
}

}  // namespace cenote::sparse
