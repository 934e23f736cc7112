// Sorting keys: a stable radix sort over the bits that keys have, and grouping of positions by small numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/buffer.h"

namespace cenote::sparse {

/// A key and the row it belongs to.
template <class K>
struct Item {
  K key;
  std::int32_t row;
};

/// A key alone.
template <class K>
struct Bare {
  K key;
};

template <class T>
bool keys_ascend(const Buffer<T>& items) {
  for (std::int64_t i = 1; i < items.size(); ++i)
    if (items[i].key < items[i - 1].key) return false;
  return true;
}

namespace detail {

/// One pass of the sort: a stable move from `from` to `to` by the digit at `shift`; false if all digits are equal.
template <class T>
bool radix_pass(const Buffer<T>& from, Buffer<T>& to, int shift, int width) {
  const Chunks chunks = Chunks::of(from.size(), 1 << 16);
  const std::size_t buckets = std::size_t{1} << width;
  const auto digit = [=](const T& item) { return static_cast<std::size_t>(item.key >> shift) & (buckets - 1); };
  std::vector<std::int64_t> places(static_cast<std::size_t>(chunks.count) * buckets, 0);
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t* mine = places.data() + static_cast<std::size_t>(c) * buckets;
    for (std::int64_t i = first; i < last; ++i) ++mine[digit(from[i])];
  });
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::int64_t before = sum;
    for (std::size_t c = 0; c < static_cast<std::size_t>(chunks.count); ++c) {
      const std::int64_t count = places[c * buckets + b];
      places[c * buckets + b] = sum;
      sum += count;
    }
    if (sum - before == from.size()) return false;
  }
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t* mine = places.data() + static_cast<std::size_t>(c) * buckets;
    for (std::int64_t i = first; i < last; ++i) to[mine[digit(from[i])]++] = from[i];
  });
  return true;
}

}  // namespace detail

/// Sorts items by their keys, of which only the low `bits` may be set. Equal keys keep their order.
template <class T>
void radix_sort(Buffer<T>& items, int bits) {
  if (keys_ascend(items)) return;
  if (items.size() < 256) {
    std::stable_sort(items.begin(), items.end(), [](const T& a, const T& b) { return a.key < b.key; });
    return;
  }
  // Digits of equal width, at most 11 bits: their counters and open cache lines still fit the first caches.
  const int passes = (bits + 10) / 11, width = (bits + passes - 1) / passes;
  Buffer<T> other(items.size());
  for (int shift = 0; shift < bits; shift += width) {
    if (detail::radix_pass(items, other, shift, std::min(width, bits - shift))) std::swap(items, other);
  }
}

/// Groups the positions [0, n) by bucket[i] in [0, buckets); negative ones are left out. Within a bucket they ascend.
/// `offsets` takes buckets + 1 numbers; `order` as many as are not left out.
template <class Position>
void group_positions(const std::int32_t* bucket, std::int64_t n, std::int64_t buckets, std::int64_t* offsets,
                     Position* order) {
  // Every chunk of positions counts for itself, so there are no more chunks than positions to a bucket: the counters
  // take no more memory than the result.
  Chunks chunks = Chunks::of(n, 1 << 16);
  chunks.count = std::clamp<std::int64_t>(n / std::max<std::int64_t>(buckets, 1), n > 0 ? 1 : 0, chunks.count);
  Buffer<std::int64_t> next(chunks.count * buckets);
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t* const mine = next.data() + c * buckets;
    std::fill_n(mine, buckets, 0);
    for (std::int64_t i = first; i < last; ++i)
      if (bucket[i] >= 0) ++mine[bucket[i]];
  });
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < buckets; ++b) {
    offsets[b] = sum;
    for (std::int64_t c = 0; c < chunks.count; ++c) {
      std::int64_t& place = next[c * buckets + b];
      sum += std::exchange(place, sum);
    }
  }
  offsets[buckets] = sum;
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t* const mine = next.data() + c * buckets;
    for (std::int64_t i = first; i < last; ++i)
      if (bucket[i] >= 0) order[mine[bucket[i]]++] = static_cast<Position>(i);
  });
}

}  // namespace cenote::sparse
