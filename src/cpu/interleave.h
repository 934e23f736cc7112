// Lines of lanes woven into one, and arrays turned.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// dst[i * count + k] = lines[k][i] for all places below n, of 4 or 8 bytes each; lines lie `apart` lanes from each
/// other. Up to two packs behind each line are read, and up to `count` of them behind dst are written.
void interleave(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                void* dst) noexcept;

/// dst[j * dst_row + i] = src[i * src_row + j] for i < rows and j < columns, of 1, 2, 4 or 8 bytes each. What lies
/// src_next and dst_next elements on is wanted soon, unless that is 0.
void transpose(std::int64_t bytes, const void* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns,
               void* dst, std::int64_t dst_row, std::int64_t src_next, std::int64_t dst_next) noexcept;

}  // namespace cenote::cpu
