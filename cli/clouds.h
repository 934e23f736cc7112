// Point clouds that commands read and write: .ply files, and .npy arrays with a row for each point.
#pragma once

#include <string>

#include <io/ply.h>

namespace cenote::cli {

bool is_ply(const std::string& path);

/// Throws std::invalid_argument where a name ends in neither .ply nor .npy.
void require_cloud(const std::string& path);

/// Of an array (points, 3 or more) the columns are x, y, z, column_3, column_4, …, all of its type.
io::PointCloud read_cloud(const std::string& path);

/// Writes in the format of the name. An array has the columns x, y, z and the others in their order, and the type of
/// all properties: their own if it is one, else f32 or f64 so that nothing is lost. PLY gets the next type that it has.
void write_cloud(io::OutputFile& file, io::PointCloud cloud, io::PlyEncoding encoding);

}  // namespace cenote::cli
