// Copies between layouts: whole views, and single strided lines with a change of type.
#pragma once

#include <cstdint>

#include <cenote/array.h>

namespace cenote {

/// Copies a view into another of the same shape that does not overlap it; a change of type is as in convert_line.
void copy_strided(const View& from, const MutableView& to);

/// Writes n elements of type `to`, without gaps, from elements of type `from` that lie `stride` apart.
/// Integers convert modulo 2^bits, bool to 0 or 1, floats to wider floats exactly.
void convert_line(Type to, void* dst, Type from, const void* src, std::int64_t stride, std::int64_t n) noexcept;

/// Narrows n elements: integers that do not fit become the nearest that does, floats round once, bool is != 0.
void narrow_line(Type to, void* dst, Type from, const void* src, std::int64_t n) noexcept;

/// Writes n elements, without gaps in `src`, to places that lie `stride` apart.
void scatter_line(Type type, void* dst, std::int64_t stride, const void* src, std::int64_t n) noexcept;

}  // namespace cenote
