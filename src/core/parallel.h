// Threads: one loop over blocks, on at most threads() of them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cenote {

/// The threads a call may use, at least 1.
int thread_limit() noexcept;

namespace detail {
void run_parallel(std::int64_t n, void (*body)(const void*, std::int64_t), const void* context);
}

/// Calls body(i) for every i in [0, n), in any order, possibly at once. What a body throws reaches the caller.
template <class Body>
void parallel_for(std::int64_t n, const Body& body) {
  if (n <= 1 || thread_limit() == 1) {
    for (std::int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  detail::run_parallel(
      n, [](const void* context, std::int64_t i) { (*static_cast<const Body*>(context))(i); }, &body);
}

}  // namespace cenote
