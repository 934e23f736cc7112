// Packed keys: layout of the fields, ranges of columns, and rows back from keys.
#include "sparse/keys.h"

#include <algorithm>

#include "core/reject.h"
#include "sparse/buffer.h"

namespace cenote::sparse {

std::string to_string(const Range& range) {
  std::string text;
  for (int a = 0; a < range.columns; ++a) {
    text += a > 0 ? " x [" : "[";
    text += std::to_string(range.low[Range::at(a)]) + ", " + std::to_string(range.high[Range::at(a)]) + "]";
  }
  return text;
}

void Rows::column(int a, std::int64_t first, std::int64_t n, std::int64_t* out) const noexcept {
  const std::int64_t step = columns, start = first * columns + a;
  if (wide) {
    const auto* from = static_cast<const std::int64_t*>(data) + start;
    for (std::int64_t i = 0; i < n; ++i) out[i] = from[i * step];
  } else {
    const auto* from = static_cast<const std::int32_t*>(data) + start;
    for (std::int64_t i = 0; i < n; ++i) out[i] = from[i * step];
  }
}

std::string row_text(const Rows& rows, std::int64_t row) {
  Extents numbers;
  for (int a = 0; a < rows.columns; ++a) numbers.push_back(rows.at(row, a));
  return cenote::to_string(numbers);
}

Range range_of(const Rows& rows) {
  Range whole;
  whole.columns = rows.columns;
  if (rows.count == 0) return whole;
  const Chunks chunks = Chunks::of(rows.count);
  std::vector<Range> parts(static_cast<std::size_t>(chunks.count));
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    Range& part = parts[static_cast<std::size_t>(c)];
    part.columns = rows.columns;
    std::int64_t column[block_rows];
    for (int a = 0; a < rows.columns; ++a) {
      std::int64_t low = rows.at(first, a), high = low;
      for (std::int64_t at = first; at < last; at += block_rows) {
        const std::int64_t n = std::min(block_rows, last - at);
        rows.column(a, at, n, column);
        for (std::int64_t i = 0; i < n; ++i) low = std::min(low, column[i]), high = std::max(high, column[i]);
      }
      part.low[Range::at(a)] = low;
      part.high[Range::at(a)] = high;
    }
  });
  whole = parts.front();
  for (const Range& part : parts) {
    for (std::size_t a = 0; a < max_columns; ++a) {
      whole.low[a] = std::min(whole.low[a], part.low[a]);
      whole.high[a] = std::max(whole.high[a], part.high[a]);
    }
  }
  return whole;
}

KeyCodec::KeyCodec(std::string_view who, const Range& range) {
  std::array<int, max_columns> widths{};
  for (int a = 0; a < range.columns; ++a) widths[Range::at(a)] = static_cast<int>(std::bit_width(range.extent(a)));
  lay_out(who, range, widths);
}

KeyCodec::KeyCodec(std::string_view who, const Range& range, const Range& other) {
  std::array<int, max_columns> widths{};
  for (int a = 0; a < range.columns; ++a)
    widths[Range::at(a)] = static_cast<int>(std::bit_width(std::max(range.extent(a), other.extent(a))));
  lay_out(who, range, widths);
}

void KeyCodec::lay_out(std::string_view who, const Range& range, const std::array<int, max_columns>& widths) {
  columns = range.columns;
  low = range.low;
  for (int a = columns - 1; a >= 0; --a) {
    const int width = widths[Range::at(a)];
    // A field without bits shifts by 0: shifting by all the bits of a key is not defined.
    shift[Range::at(a)] = width > 0 ? bits : 0;
    mask[Range::at(a)] = width == 64 ? ~u64{0} : (u64{1} << width) - 1;
    bits += width;
  }
  if (bits > 128)
    reject(who, "coordinates (batch first) in ", to_string(range), ": their keys need ", bits,
           " bits and must fit 128");
}

template <class K>
Array unpack_rows(const KeyCodec& codec, Type type, const K* keys, std::int64_t n) {
  Array rows(type, {n, codec.columns});
  const std::int64_t step = codec.columns;
  for_chunks(Chunks::of(n), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (int a = 0; a < codec.columns; ++a) {
      if (type == Type::i64) {
        auto* to = static_cast<std::int64_t*>(rows.data()) + a;
        for (std::int64_t i = first; i < last; ++i) to[i * step] = codec.number(a, keys[i]);
      } else {
        auto* to = static_cast<std::int32_t*>(rows.data()) + a;
        for (std::int64_t i = first; i < last; ++i) to[i * step] = static_cast<std::int32_t>(codec.number(a, keys[i]));
      }
    }
  });
  return rows;
}

template Array unpack_rows(const KeyCodec&, Type, const std::uint32_t*, std::int64_t);
template Array unpack_rows(const KeyCodec&, Type, const u64*, std::int64_t);
template Array unpack_rows(const KeyCodec&, Type, const u128*, std::int64_t);

}  // namespace cenote::sparse
