// Arrays turned.
#pragma once

#include <cstdint>

namespace cenote::cpu {

/// dst[j * dst_row + i] = src[i * src_row + j] for i < rows and j < columns, of 1, 2, 4 or 8 bytes each. What lies
/// src_next and dst_next elements on is wanted soon, unless that is 0.
void transpose(std::int64_t bytes, const void* src, std::int64_t src_row, std::int64_t rows, std::int64_t columns,
               void* dst, std::int64_t dst_row, std::int64_t src_next = 0, std::int64_t dst_next = 0) noexcept;

}  // namespace cenote::cpu
