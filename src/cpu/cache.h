// How large the last cache is: results beyond it are written past the caches.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace cenote::cpu {

inline std::int64_t last_level_cache() noexcept {
  static const std::int64_t bytes = [] {
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? std::int64_t{size} : std::int64_t{32} << 20;
  }();
  return bytes;
}

}  // namespace cenote::cpu
