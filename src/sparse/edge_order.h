// The order of edges: (out_row, kernel_id) in one key each, sorted, and taken apart again.
#pragma once

#include <bit>
#include <vector>

#include "sparse/relation.h"
#include "sparse/sort.h"

namespace cenote::sparse {

/// Keys of edges: the output's row above, the kernel id below. Those of edges that do not exist come after all others.
struct EdgeKeys {
  int id_bits = 0, bits = 0;
  std::int64_t outputs = 0;

  EdgeKeys(std::int64_t rows, std::int64_t volume)
      : id_bits(static_cast<int>(std::bit_width(static_cast<u64>(volume - 1)))),
        bits(id_bits + static_cast<int>(std::bit_width(static_cast<u64>(rows)))),
        outputs(rows) {}
  /// `out` is negative where there is no edge; the id means nothing then.
  template <class K>
  K key(std::int32_t out, u64 id) const noexcept {
    return static_cast<K>(out < 0 ? static_cast<K>(outputs) << id_bits
                                  : static_cast<K>(out) << id_bits | static_cast<K>(id));
  }
  template <class K>
  std::int64_t out_row(K key) const noexcept {
    return static_cast<std::int64_t>(key >> id_bits);
  }
  template <class K>
  std::int32_t kernel_id(K key) const noexcept {
    return static_cast<std::int32_t>(key & ((K{1} << id_bits) - 1));
  }
};

/// Edges, and where those of each output begin, from the key and the input of each; `items` may be in any order and
/// have more after the first `count` in it, which are left out.
template <class K>
Found ordered_edges(const EdgeKeys& keys, Buffer<Item<K>> items, std::int64_t count) {
  radix_sort(items, keys.bits);
  Found found{Array(Type::i64, {keys.outputs + 1}), {Array(Type::i32, {count}), Array(Type::i32, {count})}};
  std::int64_t* const offsets = found.row_offsets.values<std::int64_t>().data();
  std::int32_t* const in_row = found.edges.in_row.values<std::int32_t>().data();
  std::int32_t* const kernel_id = found.edges.kernel_id.values<std::int32_t>().data();
  std::fill_n(offsets, keys.outputs + 1, 0);
  const Item<K>* const item = items.data();
  // A row belongs to the chunk that it begins in.
  const auto row_start = [=](std::int64_t e) {
    while (e > 0 && e < count && keys.out_row(item[e].key) == keys.out_row(item[e - 1].key)) ++e;
    return e;
  };
  for_chunks(Chunks::of(count), [=](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t e = row_start(first), end = row_start(last); e < end; ++e) {
      in_row[e] = item[e].row;
      kernel_id[e] = keys.kernel_id(item[e].key);
      offsets[keys.out_row(item[e].key) + 1] = e + 1;  // the last edge of a row has the last word
    }
  });
  for (std::int64_t o = 0; o < keys.outputs; ++o) offsets[o + 1] = std::max(offsets[o + 1], offsets[o]);
  return found;
}

}  // namespace cenote::sparse
