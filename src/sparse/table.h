// A flat table from keys to rows: open addressing with linear probing, never more than half full.
#pragma once

#include <bit>
#include <cstdint>

#include "sparse/buffer.h"
#include "sparse/keys.h"

namespace cenote::sparse {

/// Rows by key. What it answers depends on the order of insertions alone, not on where keys lie.
template <class K>
class Table {
 public:
  explicit Table(std::int64_t expected) {
    allocate(std::bit_ceil(static_cast<u64>(std::max<std::int64_t>(expected, 8))) * 2);
  }

  std::int64_t size() const noexcept { return size_; }
  /// Makes room for n more keys.
  void reserve(std::int64_t n) {
    if (static_cast<u64>(size_ + n) * 2 > static_cast<u64>(slots_.size())) grow(static_cast<u64>(size_ + n));
  }
  void prefetch(K key) const noexcept { __builtin_prefetch(&slots_[home(key)]); }
  /// The row of a key, or -1.
  std::int32_t find(K key) const noexcept {
    for (std::int64_t i = home(key);; i = next(i)) {
      if (slots_[i].row < 0) return -1;
      if (slots_[i].key == key) return slots_[i].row;
    }
  }
  /// The row of a key, which is `row` where the key is new. There must be room.
  std::int32_t insert(K key, std::int32_t row) noexcept {
    for (std::int64_t i = home(key);; i = next(i)) {
      if (slots_[i].row < 0) {
        slots_[i] = {key, row};
        ++size_;
        return row;
      }
      if (slots_[i].key == key) return slots_[i].row;
    }
  }

 private:
  struct Slot {
    K key;
    std::int32_t row;
  };

  // Multiplication by an odd constant near 2^64 / phi; the high bits of the product depend on all bits of the key.
  std::int64_t home(K key) const noexcept {
    u64 folded = static_cast<u64>(key);
    if constexpr (sizeof(K) > 8) folded ^= static_cast<u64>(key >> 64) * 0xd6e8feb86659fd93u;
    if constexpr (sizeof(K) > 4) folded ^= folded >> 32;
    return static_cast<std::int64_t>((folded * 0x9e3779b97f4a7c15u) >> shift_);
  }
  std::int64_t next(std::int64_t i) const noexcept { return i + 1 == slots_.size() ? 0 : i + 1; }
  void allocate(u64 slots) {
    slots_ = Buffer<Slot>(static_cast<std::int64_t>(slots));
    shift_ = 64 - std::countr_zero(slots);
    for (Slot& slot : slots_) slot.row = -1;
  }
  void grow(u64 keys) {
    const Buffer<Slot> old = std::move(slots_);
    allocate(std::bit_ceil(keys) * 2);
    size_ = 0;
    for (const Slot& slot : old)
      if (slot.row >= 0) insert(slot.key, slot.row);
  }

  Buffer<Slot> slots_;
  std::int64_t size_ = 0;
  int shift_ = 64;
};

}  // namespace cenote::sparse
