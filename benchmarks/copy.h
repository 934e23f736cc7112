// The yardstick of every speed here: how long this machine needs to copy as many bytes as a pooling moves.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cenote::bench {

/// Copies with stores that pass by the caches, so that the target is not read first; memcpy where there are none.
inline void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__SSE2__)
  const std::size_t head = std::min(bytes, (16 - reinterpret_cast<std::uintptr_t>(to) % 16) % 16);
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const auto load = [&](std::size_t j) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + j)); };
    const auto store = [&](std::size_t j, __m128i v) { _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + j), v); };
    const __m128i a = load(0), b = load(16), c = load(32), d = load(48);
    store(0, a), store(16, b), store(32, c), store(48, d);
  }
  std::memcpy(to + i, from + i, bytes - i);
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Two arrays and a team of threads that copies one to the other, each thread its own part.
class Copier {
 public:
  Copier(std::size_t bytes, int threads) : from_(bytes), to_(bytes), parts_(static_cast<std::size_t>(threads)) {}

  /// The shortest of several copies, in seconds, over at least `least` seconds.
  double best_seconds(double least) {
    double best = std::numeric_limits<double>::infinity();
    for (const bool streaming : {true, false}) best = std::min(best, best_of(streaming, least / 2));
    return best;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Buffer {
    std::byte* data;
    std::size_t bytes;
    explicit Buffer(std::size_t size)
        : data(static_cast<std::byte*>(::operator new(std::max<std::size_t>(size, 1), page))), bytes(size) {
#if defined(MADV_HUGEPAGE)
      madvise(data, size, MADV_HUGEPAGE);  // as the library's arrays do: a copy must not be at a disadvantage
#endif
      std::memset(data, 1, size);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { ::operator delete(data, page); }
    static constexpr std::align_val_t page{1 << 21};
  };

  void copy_part(std::size_t part, bool streaming) noexcept {
    const std::size_t step = (from_.bytes / parts_ + 63) / 64 * 64;
    const std::size_t begin = std::min(from_.bytes, part * step);
    const std::size_t end = part + 1 == parts_ ? from_.bytes : std::min(from_.bytes, begin + step);
    if (streaming) {
      stream_copy(to_.data + begin, from_.data + begin, end - begin);
    } else {
      std::memcpy(to_.data + begin, from_.data + begin, end - begin);
    }
  }

  double best_of(bool streaming, double least) {
    std::barrier gate(static_cast<std::ptrdiff_t>(parts_));
    bool stop = false;
    std::vector<std::jthread> team;
    for (std::size_t part = 1; part < parts_; ++part) {
      team.emplace_back([&, part] {
        for (;;) {
          gate.arrive_and_wait();
          if (stop) return;
          copy_part(part, streaming);
          gate.arrive_and_wait();
        }
      });
    }
    // Short copies are timed many at once: reading the clock costs as much as copying a few kilobytes.
    const int batch = parts_ == 1 ? static_cast<int>(std::max<std::size_t>(1, 100000 / (from_.bytes + 1))) : 1;
    double best = std::numeric_limits<double>::infinity();
    const auto begin = Clock::now();
    for (int run = 0; run < 4 || seconds(begin, Clock::now()) < least; ++run) {
      const auto start = Clock::now();
      for (int i = 0; i < batch; ++i) {
        gate.arrive_and_wait();
        copy_part(0, streaming);
        gate.arrive_and_wait();
      }
      if (run > 0) best = std::min(best, seconds(start, Clock::now()) / batch);
    }
    stop = true;
    gate.arrive_and_wait();
    return best;
  }
  static double seconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  Buffer from_, to_;
  std::size_t parts_;
};

/// Seconds that a copy needs to move `bytes`, half of them read and half written, on up to `threads` threads: the
/// better of streaming stores and memcpy. A thread with less than 64 KiB to move would only wait for the others.
inline double copy_seconds(std::int64_t bytes, int threads, double least = 0.1) {
  const auto worth = static_cast<int>(std::clamp<std::int64_t>(bytes / 65536, 1, std::max(threads, 1)));
  return Copier(static_cast<std::size_t>(std::max<std::int64_t>(bytes / 2, 1)), worth).best_seconds(least);
}

}  // namespace cenote::bench
