// All cores of the machine for work that is not the library's: drawing, and the slow oracle.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace cenote::demo {

/// Calls work(i) for every i below n, several at once, in no given order.
template <class Work>
void in_parallel(std::int64_t n, const Work& work) {
  std::atomic<std::int64_t> next{0};
  const auto team = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < team; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i = next++; i < n; i = next++) work(i);
    });
  }
}

}  // namespace cenote::demo
