// How large the last cache is: results beyond it are written past the caches.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// Bytes of the last cache that one core can use.
std::int64_t last_level_cache() noexcept;

}  // namespace cenote::cpu
