// What must hold of memory that a caller hands in.
#pragma once

#include <string_view>

#include <cenote/array.h>

namespace cenote {

/// Rejects a view whose strides, address or reach cannot be those of an array. `who` and `what` stand in the error.
void check_memory(std::string_view who, std::string_view what, const View& view);

/// Rejects a view in which two elements may share memory.
void check_writable(std::string_view who, std::string_view what, const MutableView& view);

/// Whether the bytes from the first to the last element of a and of b have any in common.
bool overlap(const View& a, const View& b);

}  // namespace cenote
