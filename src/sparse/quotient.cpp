// Outputs that are floor(c / stride) of the inputs: divided, made unique and numbered, by sorting or by hashing.
#include <numeric>

#include "sparse/numbering.h"
#include "sparse/support.h"

namespace cenote::sparse {
namespace {

Range divided(const Range& range, const Divisors& divisors) {
  Range result = range;
  for (std::size_t a = 0; a < Range::at(range.columns); ++a) {
    result.low[a] = divisors[a](range.low[a]);
    result.high[a] = divisors[a](range.high[a]);
  }
  return result;
}

/// Packs a block, and says which of its rows the codec's range holds; the keys of the others mean nothing.
template <class K>
void pack_inside(const KeyCodec& codec, const Rows& rows, const Divisors& divisors, std::int64_t first, std::int64_t n,
                 K* keys, std::uint8_t* inside) {
  std::int64_t column[block_rows];
  std::fill_n(keys, n, K{0});
  std::fill_n(inside, n, std::uint8_t{1});
  for (int a = 0; a < codec.columns; ++a) {
    const auto low = static_cast<u64>(codec.low[Range::at(a)]);
    const u64 mask = codec.mask[Range::at(a)];
    rows.column(a, first, n, column);
    for (std::int64_t i = 0; i < n; ++i) {
      const u64 relative = static_cast<u64>(divisors[Range::at(a)](column[i])) - low;
      inside[i] = static_cast<std::uint8_t>(inside[i] & (relative <= mask));
      keys[i] = static_cast<K>(keys[i] | codec.field<K>(a, relative & mask));
    }
  }
}

/// Divided rows as a source of keys. Onto given rows a key may be out of the codec's range; such do not count.
struct DividedRows {
  static constexpr std::int64_t width = 1;
  KeyCodec codec;
  Rows rows;
  Divisors divisors;
  Buffer<std::uint8_t> mask;  // empty: all rows count
  bool onto = false;
  bool whole = !onto && mask.size() == 0;
  std::int64_t units = rows.count;

  template <class K>
  void for_blocks(std::int64_t first, std::int64_t last, const auto& body) const {
    K keys[block_rows];
    std::uint8_t inside[block_rows];
    for (std::int64_t at = first; at < last; at += block_rows) {
      const std::int64_t n = std::min(block_rows, last - at);
      const std::uint8_t* counts = mask.size() == 0 ? nullptr : mask.data() + at;
      if (onto) {
        pack_inside(codec, rows, divisors, at, n, keys, inside);
        if (counts != nullptr)
          for (std::int64_t i = 0; i < n; ++i) inside[i] &= counts[i];
        counts = inside;
      } else {
        pack_block(codec, rows, divisors, at, n, keys);
      }
      body(at, n, keys, counts);
    }
  }
};

}  // namespace

Buffer<std::uint8_t> tap_mask(const Coordinates::Impl& in, const Shape& shape) {
  const Rows rows = in.view();
  const Divisors cells = shape.cells();
  Buffer<std::uint8_t> mask(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    std::int64_t column[block_rows];
    std::fill_n(mask.data() + first, last - first, std::uint8_t{1});
    for (std::int64_t at = first; at < last; at += block_rows) {
      const std::int64_t n = std::min(block_rows, last - at);
      for (int a = 1; a < shape.columns; ++a) {
        const FloorDivide divide = cells[Range::at(a)];
        rows.column(a, at, n, column);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t r = divide.remainder(column[i]);
          const bool tap = r % shape[a].dilation == 0 && r / shape[a].dilation < shape[a].size;
          mask[at + i] = static_cast<std::uint8_t>(mask[at + i] & (tap && shape.inside(a, divide(column[i]))));
        }
      }
    }
  });
  return mask;
}

// An id is made of the digits of a place in the cell.
void cell_ids(const Shape& shape, const Rows& rows, std::int64_t first, std::int64_t n, u64* ids) {
  std::int64_t column[block_rows];
  const Divisors cells = shape.cells();
  std::fill_n(ids, n, 0);
  for (int a = 1; a < shape.columns; ++a) {
    const FloorDivide divide = cells[Range::at(a)];
    const auto size = static_cast<u64>(shape[a].size), dilation = static_cast<u64>(shape[a].dilation);
    rows.column(a, first, n, column);
    if (divide.shift >= 0 && dilation == 1)
      for (std::int64_t i = 0; i < n; ++i)
        ids[i] = ids[i] * size + static_cast<u64>((column[i] + divide.plus) & (divide.by - 1));
    else
      for (std::int64_t i = 0; i < n; ++i)
        ids[i] = ids[i] * size + static_cast<u64>(divide.remainder(column[i])) / dilation;
  }
}

namespace {

// Of the rows at a tap of `masked` alone, where it is given.
Quotient number(std::string_view who, const Coordinates::Impl& in, const Divisors& divisors, Order order, Engine engine,
                const Shape* masked = nullptr) {
  const Range range = divided(in.range, divisors);
  const KeyCodec codec(who, range);  // may refuse the range, so before any work
  Quotient result{nullptr, Array(Type::i32, {in.rows})};
  const RowOf row_of = result.row_of.values<std::int32_t>();
  const DividedRows source{codec, in.view(), divisors, masked ? tap_mask(in, *masked) : Buffer<std::uint8_t>()};
  if (masked) std::fill(row_of.begin(), row_of.end(), -1);
  Array rows = number_rows(who, source, in.type, order, engine, row_of);
  const Range exact = masked ? range_of(Rows(rows)) : range;
  result.coords = made_coordinates(std::move(rows), exact, in.batch_size);
  return result;
}

}  // namespace

Quotient quotient(std::string_view who, const Coordinates::Impl& in, const Shape& shape, Order order, Engine engine,
                  bool only_edges) {
  const bool masked = only_edges && !shape.covers();
  if (!shape.unit_stride() || order != Order::first_seen || masked)
    return number(who, in, shape.divisors(), order, engine, masked ? &shape : nullptr);
  Quotient own{nullptr, Array(Type::i32, {in.rows})};
  const RowOf row_of = own.row_of.values<std::int32_t>();
  std::iota(row_of.begin(), row_of.end(), 0);
  return own;
}

Quotient distinct(std::string_view who, const Coordinates::Impl& in) {
  return number(who, in, Divisors{}, Order::first_seen, Engine::hashed);
}

Array quotient_onto(std::string_view who, const Coordinates::Impl& in, const Shape& shape,
                    const Coordinates::Impl& targets, Engine engine) {
  const Index& index = targets.index(who);
  const DividedRows source{index.codec, in.view(), shape.cells(),
                           shape.covers() ? Buffer<std::uint8_t>() : tap_mask(in, shape), true};
  Array found(Type::i32, {in.rows});
  find_rows(source, index, engine, found.values<std::int32_t>());
  return found;
}

}  // namespace cenote::sparse
