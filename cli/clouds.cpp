// Point clouds as .ply files and as arrays.
#include "clouds.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>

#include "files.h"
#include "numbers.h"

namespace cenote::cli {
namespace {

constexpr std::string_view axes[] = {"x", "y", "z"};

io::PointCloud from_array(const std::string& path, const View& rows) {
  if (rows.rank() != 2 || rows.shape[1] < 3)
    throw FileError(fmt::format("{}: shape {}: points are (points, 3 or more)", path, to_string(rows.shape)));
  io::PointCloud cloud;
  for (std::int64_t c = 0; c < rows.shape[1]; ++c) {
    const auto* first =
        static_cast<const std::byte*>(rows.data) + c * rows.strides[1] * static_cast<std::int64_t>(size_of(rows.type));
    const View column(first, rows.type, {rows.shape[0]}, {rows.strides[0]});
    cloud.properties.push_back({c < 3 ? std::string(axes[c]) : fmt::format("column_{}", c), Array(column)});
  }
  return cloud;
}

// A type for an array that holds every property without loss.
Type common_type(const io::PointCloud& cloud) {
  const Type first = cloud.properties.front().values.type();
  const auto all = [&](const auto& holds) {
    return std::all_of(cloud.properties.begin(), cloud.properties.end(),
                       [&](const io::PointProperty& p) { return holds(p.values.type()); });
  };
  if (all([&](Type type) { return type == first; })) return first;
  return all([](Type type) { return type == Type::f32 || size_of(type) < 4; }) ? Type::f32 : Type::f64;
}

Array to_array(const io::PointCloud& cloud) {
  std::vector<const io::PointProperty*> columns;
  for (const std::string_view axis : axes)
    columns.push_back(&cloud.properties[static_cast<std::size_t>(cloud.find(axis))]);
  for (const io::PointProperty& p : cloud.properties)
    if (std::find(std::begin(axes), std::end(axes), p.name) == std::end(axes)) columns.push_back(&p);
  Array doubles(Type::f64, {cloud.size(), static_cast<std::int64_t>(columns.size())});
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Array column = to_doubles(columns[c]->name, columns[c]->values);
    for (std::size_t i = 0; i < static_cast<std::size_t>(cloud.size()); ++i)
      doubles.values<double>()[i * columns.size() + c] = column.values<double>()[i];
  }
  return from_doubles(doubles, common_type(cloud));
}

Type ply_type(Type type) {
  if (io::is_ply_type(type)) return type;
  if (type == Type::boolean) return Type::u8;
  return is_half(type) ? Type::f32 : Type::f64;
}

}  // namespace

bool is_ply(const std::string& path) { return extension_of(path) == ".ply"; }

void require_cloud(const std::string& path) {
  if (!is_ply(path) && extension_of(path) != ".npy")
    throw std::invalid_argument(path + ": the name must end in .ply or .npy");
}

io::PointCloud read_cloud(const std::string& path) {
  return is_ply(path) ? io::read_ply(path) : from_array(path, io::NpyFile(path).view());
}

void write_cloud(io::OutputFile& file, io::PointCloud cloud, io::PlyEncoding encoding) {
  if (!is_ply(file.path())) return io::write_npy(file, to_array(cloud));
  for (io::PointProperty& p : cloud.properties) {
    const Type type = ply_type(p.values.type());
    if (type != p.values.type()) p.values = from_doubles(to_doubles(p.name, p.values), type);
  }
  io::write_ply(file, cloud, encoding);
}

}  // namespace cenote::cli
