// cenote voxelize: thins a cloud of points, one for each voxel that has any.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>

#include "arguments.h"
#include "clouds.h"
#include "commands.h"
#include "numbers.h"
#include "progress.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string input, output, voxel, origin = "0", mode = "avg";
  bool ascii = false, skip_invalid = false, verbose = false;
  std::optional<int> threads;
};

constexpr std::array<std::pair<std::string_view, Merge>, 5> modes{
    {{"avg", Merge::mean}, {"sum", Merge::sum}, {"max", Merge::max}, {"min", Merge::min}, {"first", Merge::first}}};

// Cells of equal sides, one of which has a corner at the origin.
struct Grid {
  std::array<double, 3> origin, side;

  double low(std::size_t axis, std::int64_t index) const {
    return origin[axis] + static_cast<double>(index) * side[axis];
  }
  double centre(std::size_t axis, std::int64_t index) const {
    return origin[axis] + (static_cast<double>(index) + 0.5) * side[axis];
  }
  /// Positions are averaged as seen from here, the point of the cell nearest to 0: differences to it are exact.
  double anchor(std::size_t axis, std::int64_t index) const {
    const double from = low(axis, index);
    return std::clamp(0.0, from, std::max(from, low(axis, index) + side[axis]));
  }
};

Grid read_grid(const Options& options) {
  const Grid grid{read_triple("--origin", options.origin), read_triple("--voxel", options.voxel)};
  for (const double value : grid.origin)
    if (!std::isfinite(value)) reject_value("--origin", options.origin, "must be finite");
  for (const double value : grid.side)
    if (!(value > 0) || std::isinf(value)) reject_value("--voxel", options.voxel, "must be finite and more than 0");
  return grid;
}

/// A cloud as numbers: positions, the points that have one, and the properties besides.
struct Points {
  std::array<Array, 3> position;
  std::vector<std::size_t> valid;
  std::vector<std::size_t> others;
};

Points read_points(const Options& options, const io::PointCloud& cloud) {
  Points points;
  constexpr std::array<const char*, 3> axes{"x", "y", "z"};
  for (std::size_t a = 0; a < 3; ++a) {
    const auto at = static_cast<std::size_t>(cloud.find(axes[a]));
    points.position[a] = to_doubles(options.input, cloud.properties[at].values);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(cloud.size()); ++i) {
    bool finite = true;
    for (std::size_t a = 0; a < 3; ++a) {
      const double value = points.position[a].values<double>()[i];
      finite = finite && std::isfinite(value);
      if (finite || options.skip_invalid) continue;
      throw FileError(fmt::format("{}: vertex {}: {} = {}: must be finite (--skip-invalid leaves such points out)",
                                  options.input, i, axes[a], value));
    }
    if (finite) points.valid.push_back(i);
  }
  for (std::size_t p = 0; p < cloud.properties.size(); ++p) {
    const std::string& name = cloud.properties[p].name;
    if (name != "x" && name != "y" && name != "z") points.others.push_back(p);
  }
  return points;
}

std::int64_t index_of(const Options& options, const Grid& grid, std::size_t axis, std::size_t point, double value) {
  const double index = std::floor((value - grid.origin[axis]) / grid.side[axis]);
  if (index >= -0x1p63 && index < 0x1p63) return static_cast<std::int64_t>(index);
  throw std::invalid_argument(fmt::format("--voxel {}: vertex {} is in voxel {:g} along {}: an index must fit 64 bits",
                                          options.voxel, point, index, "xyz"[axis]));
}

// Rows (0, voxel) and the features that are merged: where positions are averaged or kept they come first.
SparseTensor merge(const Options& options, const Grid& grid, const io::PointCloud& cloud, const Points& points,
                   Merge mode) {
  const bool placed = mode == Merge::mean || mode == Merge::first;
  const std::size_t n = points.valid.size(), width = (placed ? 3 : 0) + points.others.size();
  Array coords(Type::i64, {static_cast<std::int64_t>(n), 4});
  Array feats(Type::f64, {static_cast<std::int64_t>(n), static_cast<std::int64_t>(width)});
  const auto voxels = coords.values<std::int64_t>();
  const auto values = feats.values<double>();
  for (std::size_t r = 0; r < n; ++r) {
    voxels[4 * r] = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const double at = points.position[a].values<double>()[points.valid[r]];
      const std::int64_t index = index_of(options, grid, a, points.valid[r], at);
      voxels[4 * r + 1 + a] = index;
      if (placed) values[r * width + a] = mode == Merge::mean ? at - grid.anchor(a, index) : at;
    }
  }
  std::size_t column = placed ? 3 : 0;
  for (const std::size_t p : points.others) {
    const Array numbers = to_doubles(options.input, cloud.properties[p].values);
    for (std::size_t r = 0; r < n; ++r) values[r * width + column] = numbers.values<double>()[points.valid[r]];
    ++column;
  }
  return told_in({{"coordinates (batch first)", "--voxel " + options.voxel + ": voxels (0, x, y, z)"}},
                 [&] { return SparseTensor::coalesced(coords, feats, mode); });
}

// The merged rows with the names and types that the cloud had.
io::PointCloud thinned(const Grid& grid, const io::PointCloud& cloud, const Points& points, const SparseTensor& merged,
                       Merge mode) {
  const auto rows = static_cast<std::size_t>(merged.rows()), width = static_cast<std::size_t>(merged.channels());
  const auto voxels = merged.coords().values<std::int64_t>();
  const auto values = merged.feats().values<double>();
  const std::size_t first = width - points.others.size();
  io::PointCloud result;
  for (const io::PointProperty& p : cloud.properties) result.properties.push_back({p.name, Array()});
  const auto store = [&](std::size_t p, const auto& value) {
    Array column(Type::f64, {merged.rows()});
    for (std::size_t r = 0; r < rows; ++r) column.values<double>()[r] = value(r);
    result.properties[p].values = from_doubles(column, cloud.properties[p].values.type());
  };
  for (std::size_t a = 0; a < 3; ++a) {
    store(static_cast<std::size_t>(cloud.find(std::string_view("xyz").substr(a, 1))), [&](std::size_t r) {
      const std::int64_t index = voxels[4 * r + 1 + a];
      if (first == 0) return grid.centre(a, index);
      return mode == Merge::mean ? grid.anchor(a, index) + values[r * width + a] : values[r * width + a];
    });
  }
  for (std::size_t c = 0; c < points.others.size(); ++c)
    store(points.others[c], [&](std::size_t r) { return values[r * width + first + c]; });
  return result;
}

void describe(const std::string& path, const io::PointCloud& cloud, const SparseTensor& merged) {
  std::string properties;
  for (const io::PointProperty& p : cloud.properties)
    properties += fmt::format("{}{} {}", properties.empty() ? "" : ", ", p.name, name(p.values.type()));
  const Extents low = merged.coordinates()->low(), high = merged.coordinates()->high();
  fmt::print(stderr, "{}: {} points with {}; voxels from ({}, {}, {}) to ({}, {}, {})\n", path, cloud.size(),
             properties, low[1], low[2], low[3], high[1], high[2], high[3]);
}

void run(const Options& options) {
  require_cloud(options.input);
  require_cloud(options.output);
  if (options.ascii && !is_ply(options.output))
    reject_value("--ascii", options.output, "is for names that end in .ply");
  const Merge mode = read_name("--mode", options.mode, modes);
  const Grid grid = read_grid(options);
  use_threads(options.threads);
  Progress progress("reading " + options.input);
  const io::PointCloud cloud = read_cloud(options.input);
  const Points points = read_points(options, cloud);

  progress.say("thinning " + options.input);
  // Opened before the work: that a file cannot be made is told at once.
  io::OutputFile file(options.output);
  const SparseTensor merged = merge(options, grid, cloud, points, mode);
  if (options.verbose) {
    progress.hide();
    describe(options.input, cloud, merged);
  }
  progress.say("writing " + options.output);
  write_cloud(file, thinned(grid, cloud, points, merged, mode),
              options.ascii ? io::PlyEncoding::ascii : io::PlyEncoding::binary);
  file.commit();
  progress.hide();
  const std::int64_t skipped = cloud.size() - static_cast<std::int64_t>(points.valid.size());
  fmt::print("{} points became {}{}\n", cloud.size(), merged.rows(),
             skipped > 0 ? fmt::format("; {} without a position were left out", skipped) : "");
}

constexpr const char* examples =
    "The voxel of a point is floor((position - origin) / side) on each axis, in f64. Points of one voxel become\n"
    "one, in the order in which voxels are first seen. Where it lies: avg puts it at the average of its points,\n"
    "first at the first of them, and sum, max and min at the centre of the voxel. All other properties\n"
    "(intensity, red, ...) are reduced by the mode, in f64, and rounded back to their type; integers are\n"
    "rounded to nearest and clamped. Files are .ply, ASCII or binary, or .npy arrays (points, 3 or more) whose\n"
    "first columns are x, y and z; the output may be of the other kind.\n"
    "Examples:\n"
    "  cenote voxelize scan.ply thin.ply --voxel 0.05\n"
    "  cenote voxelize scan.ply brightest.ply --voxel 0.2,0.2,0.5 --mode max --ascii\n"
    "  cenote voxelize scan.ply thin.npy --voxel 1 --origin 500000,5400000,0 --mode first --skip-invalid";

}  // namespace

void add_voxelize(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("voxelize", "Thin a cloud of points (.ply, .npy): one point per voxel");
  command.footer(examples);
  command.add_option("IN", options->input, "The points to read")->required();
  command.add_option("OUT", options->output, "The file to write")->required();
  command.add_option("--voxel", options->voxel, "The side of a voxel, or three: 0.05")->type_name("LIST")->required();
  command.add_option("--mode", options->mode, "avg, sum, max, min or first (avg)")->type_name("NAME");
  command.add_option("--origin", options->origin, "A corner of a voxel, one number or three (0)")->type_name("LIST");
  command.add_flag("--ascii", options->ascii, "Write an ASCII .ply file instead of a binary one");
  command.add_flag("--skip-invalid", options->skip_invalid,
                   "Leave out points at NaN or infinity; else they are errors");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_flag("-v,--verbose", options->verbose, "Say on standard error what was read");
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
