// Point clouds: the vertices of .ply files, ASCII or binary, with all of their scalar properties.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cenote/array.h>

#include <io/file.h>

namespace cenote::io {

/// One number per point, of a type that PLY has: i8, u8, i16, u16, i32, u32, f32 or f64.
struct PointProperty {
  std::string name;
  /// Rank 1.
  Array values;
};

/// Points by their properties, in the order of the file; x, y and z are among them.
struct PointCloud {
  std::vector<PointProperty> properties;

  std::int64_t size() const noexcept { return properties.empty() ? 0 : properties.front().values.size(); }
  /// The place of a property among all, -1 where there is none of that name.
  int find(std::string_view name) const noexcept;
};

enum class PlyEncoding : std::uint8_t { ascii, binary };

/// Whether properties can be of this type.
bool is_ply_type(Type type) noexcept;

/// Reads the vertices of an ASCII, little-endian or big-endian file; other elements are passed over, and what follows
/// the vertices is not looked at. Coordinates may be NaN or infinite. Throws FileError naming the file and the cause;
/// counts are held against the size of the file before anything is allocated.
PointCloud read_ply(const std::string& path);

/// Writes vertices, binary ones little-endian. ASCII numbers have the fewest digits that read back as the same.
/// Throws std::invalid_argument for properties of other types, of different lengths, or without a proper name.
void write_ply(OutputFile& file, const PointCloud& cloud, PlyEncoding encoding = PlyEncoding::binary);
/// The same into a file of its own, which appears when it is complete.
void write_ply(const std::string& path, const PointCloud& cloud, PlyEncoding encoding = PlyEncoding::binary);

}  // namespace cenote::io
