// Pictures: .png files of 8 or 16 bits per channel, as arrays (height, width) or (height, width, channels).
#pragma once

#include <string>

#include <cenote/array.h>

#include <io/file.h>

namespace cenote::io {

/// Reads a picture as u8 or u16. Grey is (height, width); grey with alpha, colour and colour with alpha have 2, 3 and
/// 4 channels; palettes become colour. Throws FileError naming the file and the cause.
Array read_png(const std::string& path);

/// Throws std::invalid_argument unless arrays of this shape are pictures.
void require_picture(const Extents& shape);

/// Writes a picture whose samples are of type `depth`, u8 or u16. Values are rounded to the nearest integer, ties to
/// even, and clamped; NaN becomes 0. Of a bool array true is white.
void write_png(OutputFile& file, const View& pixels, Type depth = Type::u8);
/// The same into a file of its own, which appears when it is complete.
void write_png(const std::string& path, const View& pixels, Type depth = Type::u8);

}  // namespace cenote::io
