// What is known of the processor: how much of the last cache is ours, what has to be asked early, what is slow.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// Bytes of the last cache that one core can use: results beyond it are written past the caches.
std::int64_t last_level_cache() noexcept;

/// How many bytes behind those that it reads a kernel should ask memory for, of all rows together that it reads in
/// turn; 0: none, the processor does so by itself.
std::int64_t asked_ahead() noexcept;

/// Whether two products and two corrections are sooner than a division.
bool divides_slowly() noexcept;

}  // namespace cenote::cpu
