// Outputs that are floor(c / stride) of the inputs: divided, made unique and numbered, by sorting or by hashing.
#include <numeric>
#include <span>
#include <vector>

#include "sparse/support.h"
#include "sparse/table.h"

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

using RowOf = std::span<std::int32_t>;

/// The inputs to number: their divided keys, and a mask of those that count (empty: all).
struct Source {
  KeyCodec codec;
  Rows rows;
  Divisors divisors;
  Buffer<std::uint8_t> mask;

  bool counts(std::int64_t i) const noexcept { return mask.size() == 0 || mask[i] != 0; }
};

/// Items of the inputs that count, sorted by key.
template <class K>
Buffer<Item<K>> sorted_items(const Source& source) {
  Buffer<Item<K>> items(source.rows.count);
  const auto row_number = [](std::int64_t i) { return static_cast<std::int32_t>(i); };
  for_chunks(Chunks::of(source.rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for_packed_blocks<K>(source.codec, source.rows, source.divisors, first, last,
                         [&](std::int64_t at, std::int64_t n, const K* keys) {
                           for (std::int64_t i = 0; i < n; ++i) items[at + i] = {keys[i], row_number(at + i)};
                         });
  });
  if (source.mask.size() > 0) {
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < source.rows.count; ++i)
      if (source.mask[i] != 0) items[kept++] = items[i];
    Buffer<Item<K>> fewer(kept);
    std::copy_n(items.data(), kept, fewer.data());
    items = std::move(fewer);
  }
  radix_sort(items, source.codec.bits);
  return items;
}

/// Calls visit(chunk, begin, end) for every run of equal keys. A run belongs to the chunk that it begins in.
template <class K, class Visit>
void for_runs(const Chunks& chunks, const Buffer<Item<K>>& items, const Visit& visit) {
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t i = first;
    while (i > 0 && i < last && items[i].key == items[i - 1].key) ++i;
    while (i < last) {
      std::int64_t end = i + 1;
      while (end < items.size() && items[end].key == items[i].key) ++end;
      visit(c, i, end);
      i = end;
    }
  });
}

/// Numbers the keys by sorting them. In first_seen order a run's number is the rank of its first row among such rows.
template <class K>
Buffer<K> number_sorted(const Source& source, Order order, RowOf row_of) {
  const Buffer<Item<K>> items = sorted_items<K>(source);
  const Chunks chunks = Chunks::of(items.size());
  std::vector<std::int32_t> number(static_cast<std::size_t>(chunks.count), 0);
  Buffer<std::int32_t> rank(order == Order::first_seen ? static_cast<std::int64_t>(row_of.size()) : 0);
  std::fill(rank.begin(), rank.end(), 0);
  for_runs(chunks, items, [&](std::int64_t c, std::int64_t begin, std::int64_t) {
    ++number[static_cast<std::size_t>(c)];
    if (order == Order::first_seen) rank[items[begin].row] = 1;
  });
  std::int32_t count = 0;
  for (std::int32_t& n : number) n = std::exchange(count, count + n);
  std::int32_t seen = 0;
  for (std::int32_t& r : rank) r = std::exchange(seen, seen + r);
  Buffer<K> keys(count);
  for_runs(chunks, items, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
    const std::int32_t out =
        order == Order::first_seen ? rank[items[begin].row] : number[static_cast<std::size_t>(c)]++;
    keys[out] = items[begin].key;
    for (std::int64_t i = begin; i < end; ++i) row_of[static_cast<std::size_t>(items[i].row)] = out;
  });
  return keys;
}

/// Numbers the keys by a table, in the order of the inputs: one thread, since each number depends on all before it.
template <class K>
std::vector<K> number_hashed(const Source& source, RowOf row_of) {
  Table<K> table(1024);
  std::vector<K> keys;
  for_packed_blocks<K>(source.codec, source.rows, source.divisors, 0, source.rows.count,
                       [&](std::int64_t at, std::int64_t n, const K* block) {
                         table.reserve(n);
                         // Far enough ahead for memory to answer, near enough for the line to be still there.
                         constexpr std::int64_t ahead = 24;
                         for (std::int64_t i = 0; i < std::min(ahead, n); ++i) table.prefetch(block[i]);
                         for (std::int64_t i = 0; i < n; ++i) {
                           if (i + ahead < n) table.prefetch(block[i + ahead]);
                           if (!source.counts(at + i)) continue;
                           const auto next = static_cast<std::int32_t>(keys.size());
                           row_of[static_cast<std::size_t>(at + i)] = table.insert(block[i], next);
                           if (row_of[static_cast<std::size_t>(at + i)] == next) keys.push_back(block[i]);
                         }
                       });
  return keys;
}

/// Renumbers keys that were numbered as they were seen in the order of the keys.
template <class K>
void sort_numbers(std::vector<K>& keys, int bits, RowOf row_of) {
  Buffer<Item<K>> items(static_cast<std::int64_t>(keys.size()));
  for (std::int64_t i = 0; i < items.size(); ++i)
    items[i] = {keys[static_cast<std::size_t>(i)], static_cast<std::int32_t>(i)};
  radix_sort(items, bits);
  Buffer<std::int32_t> number(items.size());
  for (std::int64_t i = 0; i < items.size(); ++i) {
    number[items[i].row] = static_cast<std::int32_t>(i);
    keys[static_cast<std::size_t>(i)] = items[i].key;
  }
  for (std::int32_t& row : row_of)
    if (row >= 0) row = number[row];
}

template <class K>
Array numbered_rows(const Source& source, Type type, Order order, Engine engine, RowOf row_of) {
  if (engine == Engine::sorted) {
    const Buffer<K> keys = number_sorted<K>(source, order, row_of);
    return unpack_rows(source.codec, type, keys.data(), keys.size());
  }
  std::vector<K> keys = number_hashed<K>(source, row_of);
  if (order == Order::sorted) sort_numbers(keys, source.codec.bits, row_of);
  return unpack_rows(source.codec, type, keys.data(), static_cast<std::int64_t>(keys.size()));
}

}  // namespace

Buffer<std::uint8_t> tap_mask(const Coordinates::Impl& in, const Shape& shape) {
  const Rows rows = in.view();
  Buffer<std::uint8_t> mask(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    std::int64_t column[block_rows];
    std::fill_n(mask.data() + first, last - first, std::uint8_t{1});
    for (std::int64_t at = first; at < last; at += block_rows) {
      const std::int64_t n = std::min(block_rows, last - at);
      for (int a = 1; a < shape.columns; ++a) {
        const FloorDivide divide(shape[a].stride);
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

namespace {

Quotient number(std::string_view who, const Coordinates::Impl& in, const Divisors& divisors, Order order, Engine engine,
                Buffer<std::uint8_t> mask) {
  Quotient result{nullptr, Array(Type::i32, {in.rows})};
  const RowOf row_of = result.row_of.values<std::int32_t>();
  const bool masked = mask.size() > 0;
  const Range range = divided(in.range, divisors);
  const Source source{KeyCodec(who, range), in.view(), divisors, std::move(mask)};
  if (masked) std::fill(row_of.begin(), row_of.end(), -1);
  Array rows = with_key(source.codec.bits, [&](auto zero) {
    return numbered_rows<decltype(zero)>(source, in.type, order, engine, row_of);
  });
  const Range exact = masked ? range_of(Rows(rows)) : range;
  result.coords = made_coordinates(std::move(rows), exact, in.batch_size);
  return result;
}

}  // namespace

Quotient quotient(std::string_view who, const Coordinates::Impl& in, const Shape& shape, Order order, Engine engine,
                  bool only_edges) {
  const bool masked = only_edges && !shape.covers();
  if (!shape.unit_stride() || order != Order::first_seen || masked)
    return number(who, in, shape.divisors(), order, engine, masked ? tap_mask(in, shape) : Buffer<std::uint8_t>());
  Quotient own{nullptr, Array(Type::i32, {in.rows})};
  const RowOf row_of = own.row_of.values<std::int32_t>();
  std::iota(row_of.begin(), row_of.end(), 0);
  return own;
}

Quotient distinct(std::string_view who, const Coordinates::Impl& in) {
  return number(who, in, Divisors{}, Order::first_seen, Engine::hashed, {});
}

namespace {

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

template <class K>
void find_hashed(const Source& source, const Buffer<Item<K>>& targets, RowOf row_of) {
  Table<K> table(targets.size());
  for (const Item<K>& item : targets) table.insert(item.key, item.row);
  for_chunks(Chunks::of(source.rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    K keys[block_rows];
    std::uint8_t inside[block_rows];
    for (std::int64_t at = first; at < last; at += block_rows) {
      const std::int64_t n = std::min(block_rows, last - at);
      pack_inside(source.codec, source.rows, source.divisors, at, n, keys, inside);
      for (std::int64_t i = 0; i < n; ++i) table.prefetch(keys[i]);
      for (std::int64_t i = 0; i < n; ++i)
        row_of[static_cast<std::size_t>(at + i)] = inside[i] && source.counts(at + i) ? table.find(keys[i]) : -1;
    }
  });
}

template <class K>
void find_sorted(const Source& source, const Buffer<Item<K>>& targets, RowOf row_of) {
  Buffer<Item<K>> items(source.rows.count);
  std::int64_t kept = 0;
  for (std::int64_t at = 0; at < source.rows.count; at += block_rows) {
    K keys[block_rows];
    std::uint8_t inside[block_rows];
    const std::int64_t n = std::min(block_rows, source.rows.count - at);
    pack_inside(source.codec, source.rows, source.divisors, at, n, keys, inside);
    for (std::int64_t i = 0; i < n; ++i)
      if (inside[i] && source.counts(at + i)) items[kept++] = {keys[i], static_cast<std::int32_t>(at + i)};
  }
  Buffer<Item<K>> inputs(kept);
  std::copy_n(items.data(), kept, inputs.data());
  radix_sort(inputs, source.codec.bits);
  std::fill(row_of.begin(), row_of.end(), -1);
  std::int64_t t = 0;
  for (const Item<K>& input : inputs) {
    while (t < targets.size() && targets[t].key < input.key) ++t;
    if (t < targets.size() && targets[t].key == input.key) row_of[static_cast<std::size_t>(input.row)] = targets[t].row;
  }
}

}  // namespace

Array quotient_onto(std::string_view who, const Coordinates::Impl& in, const Shape& shape,
                    const Coordinates::Impl& targets, Engine engine) {
  const Index& index = targets.index(who);
  Source source{index.codec, in.view(), shape.divisors(), {}};
  if (!shape.covers()) source.mask = tap_mask(in, shape);
  Array found(Type::i32, {in.rows});
  const RowOf row_of = found.values<std::int32_t>();
  std::visit(
      [&](const auto& items) {
        if (engine == Engine::sorted)
          find_sorted(source, items, row_of);
        else
          find_hashed(source, items, row_of);
      },
      index.items);
  return found;
}

}  // namespace cenote::sparse
