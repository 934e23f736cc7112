// Memory for arrays: aligned for any SIMD lanes, and on large pages where it is large.
#pragma once

#include <cstddef>

namespace cenote {

/// At least `bytes` bytes, not initialised, to be given back with std::free. Throws std::bad_alloc.
void* allocate_memory(std::size_t bytes);

/// The bytes of memory that this machine has.
std::size_t machine_memory() noexcept;

}  // namespace cenote
