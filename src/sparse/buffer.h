// Small helpers: memory that is not initialised, values made when first asked for, and loops over chunks of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "core/memory.h"
#include "core/parallel.h"

namespace cenote::sparse {

/// An array of plain values whose elements are whatever the memory held: what fills it need not pay for zeros first.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size)
      : data_(static_cast<T*>(allocate_memory(static_cast<std::size_t>(size) * sizeof(T)))), size_(size) {}
  Buffer(Buffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  /// Forgets what comes after the first n.
  void truncate(std::int64_t n) noexcept { size_ = n; }

  std::int64_t size() const noexcept { return size_; }
  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  T& operator[](std::int64_t i) noexcept { return data_[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const noexcept { return data_[static_cast<std::size_t>(i)]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<T[], Free> data_;
  std::int64_t size_ = 0;
};

/// A value that is made once, when first asked for, whichever thread asks.
template <class T>
class Lazy {
 public:
  template <class Make>
  const T& get(const Make& make) const {
    std::call_once(once_, [&] { value_ = make(); });
    return value_;
  }
  void set(T value) {
    std::call_once(once_, [&] { value_ = std::move(value); });
  }

 private:
  mutable std::once_flag once_;
  mutable T value_{};
};

/// A division of n rows into chunks, for loops that keep something per chunk.
struct Chunks {
  std::int64_t n = 0, count = 0;

  /// A few chunks per thread, none smaller than `least`. Only for work whose result does not depend on the cuts.
  static Chunks of(std::int64_t n, std::int64_t least = 1 << 14) {
    const std::int64_t wanted = thread_limit() == 1 ? 1 : 4 * std::int64_t{thread_limit()};
    return {n, std::clamp<std::int64_t>(n / least, n > 0 ? 1 : 0, wanted)};
  }
  /// n * c / count without the product, which may leave 64 bits.
  std::int64_t begin(std::int64_t c) const noexcept { return n / count * c + std::min(c, n % count); }
  std::int64_t end(std::int64_t c) const noexcept { return begin(c + 1); }
};

/// Calls body(chunk, first, last) for every chunk, possibly at once.
template <class Body>
void for_chunks(const Chunks& chunks, const Body& body) {
  parallel_for(chunks.count, [&](std::int64_t c) { body(c, chunks.begin(c), chunks.end(c)); });
}

}  // namespace cenote::sparse
