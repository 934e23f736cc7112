// The street, thinned: a laser scan as voxels, and pyramids of them by average and by maximum.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "page.h"
#include "sheets.h"
#include "street.h"

namespace cenote::demo {
namespace {

constexpr int tile_width = 768, tile_height = 500;
constexpr float voxel = 0.15f;

using Vector = std::array<float, 3>;

float dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// A view from above at an angle, without perspective. Pictures are (tile_height, tile_width, 3).
class View3d {
 public:
  View3d() {
    constexpr float turn = 0.48f, tilt = 0.60f;
    right_ = {std::cos(turn), -std::sin(turn), 0};
    ahead_ = {std::sin(turn) * std::cos(tilt), std::cos(turn) * std::cos(tilt), -std::sin(tilt)};
    up_ = {std::sin(turn) * std::sin(tilt), std::cos(turn) * std::sin(tilt), std::cos(tilt)};
    picture_ = Array(Type::f32, {tile_height, tile_width, 3});
    const auto pixels = picture_.values<float>();
    const std::array<float, 3> ground{paper.r, paper.g, paper.b};
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = ground[i % 3];
    depth_.assign(pixels.size() / 3, std::numeric_limits<float>::max());
  }

  /// A cube with this middle and side.
  void cube(const Vector& middle, float side, const float* color) {
    const Vector seen{middle[0] - centre[0], middle[1] - centre[1], middle[2] - centre[2]};
    const float x = 0.5f * tile_width + scale * dot(seen, right_), y = 0.5f * tile_height - scale * dot(seen, up_);
    // Half the diagonal reaches every corner.
    const float reach = 0.87f * side * scale + 1;
    const auto clip = [](float value, int most) { return std::clamp(static_cast<int>(value), 0, most); };
    for (int py = clip(y - reach, tile_height); py < clip(y + reach + 1, tile_height); ++py) {
      for (int px = clip(x - reach, tile_width); px < clip(x + reach + 1, tile_width); ++px) {
        const float u = (static_cast<float>(px) + 0.5f - x) / scale, v = (y - static_cast<float>(py) - 0.5f) / scale;
        pixel(px, py, u, v, dot(seen, ahead_), side, color);
      }
    }
  }
  const Array& picture() const { return picture_; }

 private:
  static constexpr float scale = 13.4f;
  static constexpr Vector centre{0.5f * street_length, 0.5f * (street_near + street_far), 0.35f * street_height};

  // Where the line of sight through (u, v), seen from the middle of a cube, enters it.
  void pixel(int px, int py, float u, float v, float away, float side, const float* color) {
    float enter = -1e9f, leave = 1e9f;
    std::size_t face = 0;
    Vector from{};
    for (std::size_t a = 0; a < 3; ++a) {
      from[a] = u * right_[a] + v * up_[a];
      const float s = (-0.5f * side - from[a]) / ahead_[a], t = (0.5f * side - from[a]) / ahead_[a];
      if (std::min(s, t) > enter) face = a, enter = std::min(s, t);
      leave = std::min(leave, std::max(s, t));
    }
    const auto at = static_cast<std::size_t>(py * tile_width + px);
    if (enter >= leave || away + enter >= depth_[at]) return;
    depth_[at] = away + enter;
    constexpr std::array<float, 3> light{0.78f, 1.0f, 1.22f};
    // Far cubes fade into the page, and the edges of those that are large enough are drawn.
    const float fade = std::clamp(0.3f + (away + enter) / 80, 0.0f, 0.6f);
    float edge = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      const float across = std::abs(from[a] + enter * ahead_[a]);
      if (a != face && side * scale > 5 && 0.5f * side - across < 0.8f / scale) edge = 0.8f;
    }
    const std::array<float, 3> ground{paper.r, paper.g, paper.b};
    for (std::size_t c = 0; c < 3; ++c) {
      const float lit = color[c] * light[face] * edge;
      picture_.values<float>()[3 * at + c] = lit + fade * fade * (ground[c] - lit);
    }
  }

  Vector right_, ahead_, up_;
  Array picture_;
  std::vector<float> depth_;
};

Array seen_points(const Array& scan) {
  View3d view;
  const auto rows = scan.values<float>();
  for (std::size_t i = 0; i < rows.size(); i += 6) view.cube({rows[i], rows[i + 1], rows[i + 2]}, 0.06f, &rows[i + 3]);
  return view.picture();
}

Array seen_cells(const SparseTensor& cells) {
  View3d view;
  const float side = voxel * static_cast<float>(cells.stride()[0]);
  const auto places = cells.coords().values<std::int32_t>();
  const auto colors = cells.feats().values<float>();
  const auto middle = [&](std::size_t i) { return (static_cast<float>(places[i]) + 0.5f) * side; };
  for (std::size_t i = 0; i < places.size(); i += 4)
    view.cube({middle(i + 1), middle(i + 2), middle(i + 3)}, side, &colors[i / 4 * 3]);
  return view.picture();
}

}  // namespace

SparseTensor street_voxels(const Array& scan) {
  const auto rows = scan.values<float>();
  const std::int64_t n = scan.shape()[0];
  Array coords(Type::i32, {n, 4}), colors(Type::f32, {n, 3});
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    coords.values<std::int32_t>()[4 * i] = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      coords.values<std::int32_t>()[4 * i + 1 + a] = static_cast<std::int32_t>(std::floor(rows[6 * i + a] / voxel));
      colors.values<float>()[3 * i + a] = rows[6 * i + 3 + a];
    }
  }
  return SparseTensor::coalesced(coords, colors, Merge::mean);
}

Canvas street_sheet(Lab& lab, const Array& scan, const SparseTensor& voxels) {
  Page sheet("a street and its pyramids", "a laser scan as a sparse tensor of colours, window 2 x 2 x 2, step 2", 2, 3,
             tile_width, tile_height);
  const auto add = [&](std::string_view title, const std::string& detail, const SparseTensor& cells) {
    const double side = static_cast<double>(voxel) * static_cast<double>(cells.stride()[0]);
    sheet.add(title, fmt::format("{}{} cells of {:.2f} m", detail, cells.rows(), side), seen_cells(cells));
  };
  sheet.add("scan", fmt::format("{} points", scan.shape()[0]), seen_points(scan));
  add("voxels", "the mean of their points, ", voxels);
  std::array<SparseTensor, 2> levels{voxels, voxels};
  const std::array<Reducer, 2> reducers{Reducer::avg, Reducer::max};
  for (const char* detail : {"", "of these again, "}) {
    for (std::size_t i = 0; i < 2; ++i) {
      levels[i] = lab.pool(levels[i], {.reduction = {.reducer = reducers[i]}});
      add(name(reducers[i]), detail, levels[i]);
    }
  }
  // Neighbourhoods that overlap, by every reducer; of 4 x 4 x 4 voxels a cell.
  for (const Reducer reducer : all_reducers) {
    lab.pool(levels[0], {.reduction = {.reducer = reducer, .beta = 0.1, .p = 3}, .kernel = {.size = 3, .stride = 1}});
  }
  return sheet.canvas();
}

}  // namespace cenote::demo
