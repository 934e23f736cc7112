// Voxels to measure with: a scanner's sweeps, wavy surfaces, and a cube filled at random; always the same ones.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <cenote/array.h>

namespace cenote::bench {

/// (batch, x, y, z).
using Voxel = std::array<std::int32_t, 4>;

/// A street of boxes, seen by a scanner that moves along it: where a ray from height 2 m ends, or nothing.
class Street {
 public:
  explicit Street(double x) : x_(x) {}

  /// The distance to the ground or to a box; infinite where the ray meets neither.
  double meet(double dx, double dy, double dz) const {
    double nearest = dz < 0 ? height / -dz : std::numeric_limits<double>::infinity();
    const auto first = static_cast<int>(std::floor(x_ / spacing)) - 4;
    for (int i = first; i < first + 9; ++i) {
      const double side = i % 2 == 0 ? 6.0 + i % 5 : -9.0 - i % 3;
      const double tall = 1.5 + (i % 7 + 7) % 7;
      const double low[]{i * spacing - x_, side, -height}, high[]{i * spacing + 5 - x_, side + 4, tall - height};
      nearest = std::min(nearest, enter(low, high, {dx, dy, dz}));
    }
    return nearest;
  }
  static constexpr double height = 2;

 private:
  static constexpr double spacing = 9;

  static double enter(const double* low, const double* high, const std::array<double, 3>& d) {
    double from = 0, to = std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < 3; ++a) {
      const double s = low[a] / d[a], t = high[a] / d[a];
      from = std::max(from, std::min(s, t));
      to = std::min(to, std::max(s, t));
    }
    return from <= to && from > 0 ? from : std::numeric_limits<double>::infinity();
  }

  double x_;
};

/// Sweeps of a scanner with 64 beams, one per batch, in voxels of 10 cm, in the order of the scan.
inline std::vector<Voxel> lidar(std::int64_t n) {
  constexpr int beams = 64, steps = 4096;
  constexpr double pi = 3.14159265358979323846, farthest = 80, side = 0.1;
  std::vector<Voxel> voxels;
  std::unordered_set<std::uint64_t> seen;
  for (std::int32_t sweep = 0; static_cast<std::int64_t>(voxels.size()) < n; ++sweep) {
    const Street street(3.0 * sweep);
    seen.clear();
    for (int step = 0; step < steps; ++step) {
      for (int beam = 0; beam < beams; ++beam) {
        const double turn = 2 * pi * (step + 0.31) / steps, tilt = (-24.8 + 26.8 * beam / (beams - 1)) * pi / 180;
        const double dx = std::cos(tilt) * std::cos(turn), dy = std::cos(tilt) * std::sin(turn), dz = std::sin(tilt);
        const double distance = street.meet(dx, dy, dz);
        if (distance > farthest) continue;
        const auto cell = [&](double d) { return static_cast<std::int32_t>(std::floor(d * distance / side)); };
        const Voxel voxel{sweep, cell(dx), cell(dy), cell(dz)};
        const auto part = [&](std::size_t a) { return static_cast<std::uint64_t>(voxel[a] + 4096); };
        if (seen.insert(part(1) << 40 | part(2) << 20 | part(3)).second) voxels.push_back(voxel);
      }
    }
  }
  voxels.resize(static_cast<std::size_t>(n));
  return voxels;
}

/// Wavy surfaces of two layers, in four batches, row by row.
inline std::vector<Voxel> surface(std::int64_t n) {
  std::vector<Voxel> voxels;
  const auto side = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(n) / 8)));
  for (int b = 0; b < 4; ++b) {
    for (int x = 0; x < side; ++x) {
      for (int y = 0; y < side; ++y) {
        const double height = 300 + 40 * b + 60 * std::sin(x * 0.02) + 50 * std::cos(y * 0.03);
        for (int layer = 0; layer < 2; ++layer) voxels.push_back({b, x, y, static_cast<std::int32_t>(height) + layer});
      }
    }
  }
  voxels.resize(static_cast<std::size_t>(n));
  return voxels;
}

/// A cube of which every eighth cell is taken, at random, row by row.
inline std::vector<Voxel> cube(std::int64_t n) {
  std::mt19937_64 random(1);
  const auto side = static_cast<std::int32_t>(std::ceil(std::cbrt(8.0 * static_cast<double>(n))));
  auto cells = static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side);
  auto wanted = static_cast<std::uint64_t>(n);
  std::vector<Voxel> voxels;
  for (std::int32_t x = 0; x < side; ++x) {
    for (std::int32_t y = 0; y < side; ++y) {
      for (std::int32_t z = 0; z < side; ++z, --cells) {
        if (random() % cells >= wanted) continue;
        voxels.push_back({0, x, y, z});
        --wanted;
      }
    }
  }
  return voxels;
}

inline constexpr std::array<std::string_view, 3> cloud_names{"lidar", "surface", "cube"};

/// n voxels of the cloud of that name, in random order, as rows of coordinates.
inline Array cloud(std::string_view name, std::int64_t n) {
  std::vector<Voxel> voxels = name == cloud_names[0] ? lidar(n) : name == cloud_names[1] ? surface(n) : cube(n);
  std::shuffle(voxels.begin(), voxels.end(), std::mt19937_64(1));
  Array array(Type::i32, {n, 4});
  std::span<std::int32_t> rows = array.values<std::int32_t>();
  for (const Voxel& voxel : voxels) {
    std::copy(voxel.begin(), voxel.end(), rows.begin());
    rows = rows.subspan(4);
  }
  return array;
}

}  // namespace cenote::bench
