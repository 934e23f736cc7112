// Working memory of one thread: a stack that keeps its largest size from call to call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cenote::cpu {

/// Pieces stay valid until they are released; memory is aligned to 64 bytes and kept for the thread's next call.
class Scratch {
 public:
  struct Mark {
    std::size_t chunk, used;
  };

  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }

  /// The same for what lasts while others make their blocks of it.
  static Scratch& around_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }

  std::byte* take(std::int64_t bytes) {
    const std::size_t size = (static_cast<std::size_t>(bytes) + 127) / 64 * 64;
    while (chunk_ < chunks_.size() && used_ + size > chunks_[chunk_].size) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
      const std::size_t fresh = std::max(size, least_);
      chunks_.push_back(
          {std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(::operator new(fresh, std::align_val_t(64)))),
           fresh});
      used_ = 0;
    }
    std::byte* piece = chunks_[chunk_].memory.get() + used_;
    used_ += size;
    return piece;
  }
  Mark mark() const noexcept { return {chunk_, used_}; }
  void release(Mark mark) noexcept {
    chunk_ = mark.chunk;
    used_ = mark.used;
  }
  /// Releases everything. Memory that came in several pieces will come in one.
  void reset() noexcept {
    if (chunks_.size() > 1) {
      for (const Chunk& chunk : chunks_) least_ += chunk.size;
      chunks_.clear();
    }
    chunk_ = used_ = 0;
  }
  /// Gives back what an unusually large call has taken; otherwise the next one like it finds all it needs.
  void trim() noexcept {
    reset();
    if (least_ > most_kept) {
      chunks_.clear();
      least_ = least_chunk;
    } else if (chunks_.capacity() > 0 && chunks_.empty()) {
      if (void* memory = ::operator new(least_, std::align_val_t(64), std::nothrow))
        chunks_.push_back({std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(memory)), least_});
    }
  }

 private:
  static constexpr std::size_t least_chunk = 512 << 10, most_kept = 64 << 20;
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t(64)); }
  };
  struct Chunk {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0, least_ = least_chunk;
};

}  // namespace cenote::cpu
