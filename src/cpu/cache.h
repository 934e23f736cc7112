// What is known of the caches: how much of the last one is ours, and whether memory has to be asked early.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// Bytes of the last cache that one core can use: results beyond it are written past the caches.
std::int64_t last_level_cache() noexcept;

/// Bytes behind those that a kernel reads which it should ask memory for; 0: none, the processor does so by itself.
std::int64_t asked_ahead() noexcept;

}  // namespace cenote::cpu
