// Lines of lanes woven into one.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// dst[i * count + k] = lines[k][i] for all places below n, of 4 or 8 bytes each; lines lie `apart` lanes from each
/// other. Up to two packs behind each line are read, and up to `count` of them behind dst are written.
void interleave(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                void* dst) noexcept;

}  // namespace cenote::cpu
