// Numbers for keys: equal keys get one number, or that of the equal key among given ones; by sorting or by hashing.
#pragma once

#include <span>
#include <vector>

#include "sparse/sort.h"
#include "sparse/store.h"
#include "sparse/table.h"

namespace cenote::sparse {

// A source of keys has `units` of `width` keys each, a `codec`, and `whole` if all of its keys count. Its
// for_blocks<K>(first, last, body) calls body(at, n, keys, counts) for the keys of units [first, last): n of them from
// position `at` on, and for each whether it counts; nullptr says that all do.

/// The number of the key at each position, -1 where it has none.
using RowOf = std::span<std::int32_t>;

/// Units are cut so that a chunk has enough keys to be worth a thread.
template <class Source>
Chunks unit_chunks(const Source& source) {
  return Chunks::of(source.units, std::max<std::int64_t>(1, (1 << 14) / source.width));
}

/// The keys that count with their positions, which must fit 32 bits, sorted.
template <class K, class Source>
Buffer<Item<K>> sorted_items(const Source& source) {
  Buffer<Item<K>> items(source.units * source.width);
  for_chunks(unit_chunks(source), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    source.template for_blocks<K>(
        first, last, [&](std::int64_t at, std::int64_t n, const K* keys, const std::uint8_t* counts) {
          for (std::int64_t i = 0; i < n; ++i)
            items[at + i] = {keys[i], counts == nullptr || counts[i] != 0 ? static_cast<std::int32_t>(at + i) : -1};
        });
  });
  if (!source.whole)
    items.truncate(std::remove_if(items.begin(), items.end(), [](const Item<K>& item) { return item.row < 0; }) -
                   items.begin());
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

/// Numbers the keys by sorting them. In first_seen order a run's number is the rank of its first position among such
/// positions. Gives the keys by number.
template <class K, class Source>
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

/// Numbers the keys by a table, in their order: one thread, since each number depends on all before it.
template <class K, class Source>
std::vector<K> number_hashed(std::string_view who, const Source& source, RowOf row_of) {
  Table<K> table(1024);
  std::vector<K> numbered;
  source.template for_blocks<K>(
      0, source.units, [&](std::int64_t at, std::int64_t n, const K* keys, const std::uint8_t* counts) {
        // Far enough ahead for memory to answer, near enough for the line to be still there.
        constexpr std::int64_t ahead = 24;
        table.reserve(n);
        for (std::int64_t i = 0; i < std::min(ahead, n); ++i) table.prefetch(keys[i]);
        for (std::int64_t i = 0; i < n; ++i) {
          if (i + ahead < n) table.prefetch(keys[i + ahead]);
          if (counts != nullptr && counts[i] == 0) continue;
          const auto next = static_cast<std::int32_t>(numbered.size());
          std::int32_t& row = row_of[static_cast<std::size_t>(at + i)] = table.insert(keys[i], next);
          if (row == next) numbered.push_back(keys[i]);
        }
        check_output_rows(who, static_cast<std::int64_t>(numbered.size()));
      });
  return numbered;
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

/// Numbers the keys of a source; where not all of them count, `row_of` holds -1 before. Gives the rows of the keys.
template <class Source>
Array number_rows(std::string_view who, const Source& source, Type type, Order order, Engine engine, RowOf row_of) {
  return with_key(source.codec.bits, [&](auto zero) {
    using K = decltype(zero);
    if (engine == Engine::sorted) {
      const Buffer<K> keys = number_sorted<K>(source, order, row_of);
      return unpack_rows(source.codec, type, keys.data(), keys.size());
    }
    std::vector<K> keys = number_hashed<K>(who, source, row_of);
    if (order == Order::sorted) sort_numbers(keys, source.codec.bits, row_of);
    return unpack_rows(source.codec, type, keys.data(), static_cast<std::int64_t>(keys.size()));
  });
}

template <class K, class Source>
void find_hashed(const Source& source, const Buffer<Item<K>>& given, RowOf row_of) {
  Table<K> table(given.size());
  for (const Item<K>& item : given) table.insert(item.key, item.row);
  for_chunks(unit_chunks(source), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    source.template for_blocks<K>(first, last,
                                  [&](std::int64_t at, std::int64_t n, const K* keys, const std::uint8_t* counts) {
                                    constexpr std::int64_t ahead = 64;
                                    for (std::int64_t i = 0; i < std::min(ahead, n); ++i) table.prefetch(keys[i]);
                                    for (std::int64_t i = 0; i < n; ++i) {
                                      if (i + ahead < n) table.prefetch(keys[i + ahead]);
                                      const bool wanted = counts == nullptr || counts[i] != 0;
                                      row_of[static_cast<std::size_t>(at + i)] = wanted ? table.find(keys[i]) : -1;
                                    }
                                  });
  });
}

template <class K, class Source>
void find_sorted(const Source& source, const Buffer<Item<K>>& given, RowOf row_of) {
  const Buffer<Item<K>> items = sorted_items<K>(source);
  const auto below = [](const Item<K>& item, K key) { return item.key < key; };
  std::fill(row_of.begin(), row_of.end(), -1);
  for_chunks(Chunks::of(items.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    const Item<K>* at = std::lower_bound(given.begin(), given.end(), items[first].key, below);
    for (std::int64_t i = first; i < last; ++i) {
      while (at != given.end() && at->key < items[i].key) ++at;
      if (at != given.end() && at->key == items[i].key) row_of[static_cast<std::size_t>(items[i].row)] = at->row;
    }
  });
}

/// The row of the equal key among `given`, which the source's codec has packed, or -1, for each position.
template <class Source>
void find_rows(const Source& source, const Index& given, Engine engine, RowOf row_of) {
  std::visit(
      [&](const auto& items) {
        if (engine == Engine::sorted)
          find_sorted(source, items, row_of);
        else
          find_hashed(source, items, row_of);
      },
      given.items);
}

}  // namespace cenote::sparse
