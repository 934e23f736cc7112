// Procedural data, the same in every run and on every machine.
#include "scene.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "noise.h"
#include "parallel.h"

namespace cenote::demo {
namespace {

constexpr float pi = std::numbers::pi_v<float>;

// Bright curved lines, as the sun draws them through waves.
float caustics(float x, float y) {
  const float wx = x + 1.1f * fractal(x * 0.7f, y * 0.7f, 3, 71), wy = y + 1.1f * fractal(x * 0.7f, y * 0.7f, 3, 83);
  float near = 9, second = 9;
  const int ix = floor_to_int(wx), iy = floor_to_int(wy);
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const float px = static_cast<float>(ix + dx) + hash(ix + dx, iy + dy, 91) - wx;
      const float py = static_cast<float>(iy + dy) + hash(ix + dx, iy + dy, 97) - wy;
      const float d = std::sqrt(px * px + py * py);
      second = std::min(second, std::max(d, near));
      near = std::min(near, d);
    }
  }
  const float edge = 1 - smooth(0, 0.35f, second - near);
  return edge * edge;
}

// The cave in coordinates of its own: x from -1.5 to 1.5, y from 0 at the top to 2 at the bottom.
constexpr float water_line = 1.22f, hole_x = 0.18f, hole_y = 0.22f, pool_x = -0.22f;

// Below 0 inside the opening of the roof.
float opening(float x, float y) {
  const float dx = (x - hole_x) / 0.62f, dy = (y - hole_y) / 0.30f;
  const float angle = std::atan2(dy, dx);
  const float ragged = 0.30f * (fractal(2.2f * std::cos(angle) + 5, 2.2f * std::sin(angle) + 5, 5, 11) - 0.5f);
  return std::sqrt(dx * dx + dy * dy) - 1 - ragged;
}

// How much sunlight passes through this point of the air: slanting shafts below the opening.
float shafts(float x, float y) {
  const float t = (y - hole_y) / (water_line - hole_y);
  if (t < 0.05f) return 0;
  const float centre = between(hole_x, pool_x, t), half = between(0.50f, 0.60f, t);
  const float across = (x - centre) / half;
  if (std::abs(across) > 1.6f) return 0;
  const float body = std::exp(-2.2f * across * across * across * across);
  const float ray = fractal(across * 5.5f + 30, 0.15f * t, 4, 23);
  return smooth(0.05f, 0.40f, t) * body * (0.22f + 1.15f * smooth(0.40f, 0.78f, ray)) * between(1.0f, 0.60f, t);
}

Color sky(float x, float y) {
  const float cloud = smooth(0.45f, 0.75f, fractal(x * 3.1f, y * 6.0f, 5, 3));
  const float sun = std::exp(-9 * ((x - 0.36f) * (x - 0.36f) + 2.4f * (y - 0.16f) * (y - 0.16f)));
  return mix(mix({96, 176, 232}, {206, 232, 244}, smooth(-0.1f, 0.5f, y)), {250, 250, 246}, 0.7f * cloud) +
         sun * Color{130, 100, 40};
}

// Banded limestone, cracked, lit through the opening and by the water below.
Color rock(float x, float y, float distance) {
  const float fold = fractal(x * 1.7f, y * 2.3f, 3, 31);
  const float bands = 0.5f + 0.5f * std::sin(24 * y + 9 * fold);
  const float grain = fractal(x * 7 + 2 * fold, y * 9, 5, 41);
  const float crack = std::abs(fractal(x * 3.3f - 2 * fold, y * 5.1f, 4, 43) - 0.5f);
  const float bounce = 0.45f * smooth(0.2f, water_line, y) * std::exp(-0.9f * (x - pool_x) * (x - pool_x));
  const float lit = 0.34f + bounce + 1.5f * std::exp(-2.4f * std::max(0.0f, distance));
  const Color stone = mix({50, 46, 46}, {150, 124, 94}, 0.55f * grain + 0.40f * bands) + bounce * Color{0, 26, 30};
  return lit * (0.20f + 1.25f * grain * grain + 0.35f * bands * grain) * (0.35f + 0.65f * smooth(0, 0.07f, crack)) *
         stone;
}

// Leaves and roots around the rim.
Color fringe(Color under, float x, float y, float distance) {
  if (distance < -0.10f || distance > 0.34f) return under;
  const float leaf = fractal(x * 21 + 3 * y, y * 23 - 4 * x, 4, 53);
  const float rim = smooth(0.34f, 0.0f, distance) * smooth(-0.10f, 0.02f, distance);
  const float cover = rim * smooth(0.42f, 0.56f, leaf + 0.30f * rim);
  const Color green =
      mix({18, 52, 20}, {118, 172, 62}, smooth(0.30f, 0.75f, fractal(x * 60 - 20 * y, y * 60 + 20 * x, 3, 59)));
  return mix(under, green, cover);
}

// Depth of the hanging stone at x: the roof comes down in points.
float stalactites(float x) {
  float lowest = 0;
  for (int layer = 0; layer < 3; ++layer) {
    const float scale = 3.2f + 2.9f * static_cast<float>(layer);
    const int id = floor_to_int(x * scale);
    const float centre = (static_cast<float>(id) + 0.25f + 0.5f * hash(id, layer, 61)) / scale;
    const float away = std::abs(x - centre) * scale / 0.30f;
    const float side = smooth(0.35f, 1.1f, std::abs(x - hole_x));
    const float length = (0.12f + 0.75f * hash(id, layer, 67)) * side;
    lowest = std::max(lowest, length * std::pow(std::max(0.0f, 1 - away), 0.75f));
  }
  return 0.10f * smooth(0.2f, 1.2f, std::abs(x - hole_x)) + lowest;
}

// Three small birds crossing the light.
float birds(float x, float y) {
  constexpr float places[][3] = {{0.05f, 0.66f, 0.060f}, {0.24f, 0.60f, 0.042f}, {-0.16f, 0.79f, 0.048f}};
  float dark = 0;
  for (const auto& [bx, by, size] : places) {
    const float u = (x - bx) / size, v = (y - by) / size;
    const float wing = std::abs(v + 0.30f * std::sqrt(std::abs(u)) * (1 - std::abs(u)) * 2 - 0.16f);
    if (std::abs(u) < 1)
      dark = std::max(dark, smooth(0.17f * (1.1f - std::abs(u)), 0.06f * (1.1f - std::abs(u)), wing));
  }
  return dark;
}

Color air(float x, float y) {
  const float hanging = stalactites(x) + 0.05f * (fractal(x * 14, y * 5, 3, 101) - 0.5f);
  const float stone = smooth(0.006f, -0.006f, y - hanging), distance = opening(x, y);
  const Color wall = distance > -0.015f || stone > 0 ? rock(x, y, distance) : Color{};
  Color color = distance >= 0.015f ? wall : mix(sky(x, y), wall, smooth(-0.015f, 0.015f, distance));
  color = fringe(color, x, y, distance);
  if (stone > 0) color = mix(color, (0.30f + 0.35f * fractal(x * 30, y * 4, 3, 103)) * wall, stone);
  color = color + shafts(x, y) * Color{96, 108, 92};
  return mix(color, {16, 24, 28}, 0.85f * birds(x, y));
}

Color water(float x, float y) {
  const float depth = (y - water_line) / (2 - water_line);
  const float far = 1 / (0.09f + depth);
  const float ripple = 0.030f * (fractal(x * 3 * far * 0.35f, far * 6, 3, 113) - 0.5f);
  const Color mirrored = air(x + ripple, std::max(0.0f, 2 * water_line - y * 0.98f - 0.02f + ripple));
  const float spot = std::exp(-2.3f * (x - pool_x) * (x - pool_x) / (0.35f + 0.5f * depth)) * smooth(0, 0.10f, depth);
  const Color deep = mix({4, 40, 58}, {24, 168, 176}, 0.25f + 0.75f * spot);
  const float light = caustics((x - pool_x) * far * 2.6f + 40, far * 5.5f);
  const float glance = std::pow(1 - std::min(1.0f, depth), 3.0f);
  return mix(deep, mirrored, 0.12f + 0.55f * glance) + (0.10f + 0.90f * spot) * light * Color{92, 110, 88};
}

// Dust in the light: single bright points.
Color motes(Color color, int px, int py, float x, float y) {
  if (y > water_line || hash(px, py, 131) < 0.9988f) return color;
  return color + (0.1f + std::min(1.0f, 1.2f * shafts(x, y))) * hash(px, py, 137) * Color{190, 180, 140};
}

}  // namespace

Array cenote_picture(int height, int width) {
  Array picture(Type::f32, {1, height, width, 3});
  const auto pixels = picture.values<float>();
  const float unit = 2.0f / static_cast<float>(height);
  in_parallel(height, [&](std::int64_t row) {
    const int py = static_cast<int>(row);
    for (int px = 0; px < width; ++px) {
      const float y = static_cast<float>(py) * unit,
                  x = (static_cast<float>(px) - 0.5f * static_cast<float>(width)) * unit;
      const float blend = smooth(water_line - 0.003f, water_line + 0.003f, y);
      Color color = blend <= 0 ? air(x, y) : blend >= 1 ? water(x, y) : mix(air(x, y), water(x, y), blend);
      color = motes(color, px, py, x, y);
      const float corner = 1 - 0.10f * (x * x + 0.8f * (y - 1) * (y - 1));
      const float grain = 5 * (hash(px, py, 149) - 0.5f);
      float* pixel = &pixels[static_cast<std::size_t>((py * width + px) * 3)];
      const float channels[] = {color.r, color.g, color.b};
      for (int c = 0; c < 3; ++c) pixel[c] = std::clamp(channels[c] * corner + grain, 0.0f, 255.0f);
    }
  });
  return picture;
}

Array luminance(const Array& picture) {
  const Extents& shape = picture.shape();
  Array grey(Type::f32, {1, 1, shape[1], shape[2]});
  const auto from = picture.values<float>();
  const auto to = grey.values<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = 0.2126f * from[3 * i] + 0.7152f * from[3 * i + 1] + 0.0722f * from[3 * i + 2];
  }
  return grey;
}

Array knot_volume(int n) {
  Array volume(Type::f32, {1, 1, n, n, n});
  const auto cells = volume.values<float>();
  const float scale = static_cast<float>(n);
  in_parallel(n, [&](std::int64_t depth) {
    const int z = static_cast<int>(depth);
    const std::size_t plane = static_cast<std::size_t>(z) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    for (int i = 0; i < n * n; ++i) {
      const float mist = fractal(static_cast<float>(i % n) * 0.07f, static_cast<float>(i / n + 3 * z) * 0.05f, 3, 7);
      cells[plane + static_cast<std::size_t>(i)] = 0.10f * mist + 0.06f * hash(i, z, 5);
    }
    for (int step = 0; step < 900; ++step) {
      const float t = 2 * pi * static_cast<float>(step) / 900;
      const float cx = scale * (0.5f + 0.135f * (std::sin(t) + 2 * std::sin(2 * t)));
      const float cy = scale * (0.5f + 0.135f * (std::cos(t) - 2 * std::cos(2 * t)));
      const float cz = scale * (0.5f - 0.26f * std::sin(3 * t));
      const float radius = scale * (0.030f + 0.012f * std::sin(5 * t)), reach = 2.2f * radius;
      if (std::abs(static_cast<float>(z) - cz) > reach) continue;
      const float glow = 0.55f + 0.45f * std::sin(9 * t);
      const auto low = [&](float c) { return std::max(0, static_cast<int>(c - reach)); };
      const auto high = [&](float c) { return std::min(n - 1, static_cast<int>(c + reach)); };
      for (int y = low(cy); y <= high(cy); ++y) {
        for (int x = low(cx); x <= high(cx); ++x) {
          const float dx = static_cast<float>(x) - cx, dy = static_cast<float>(y) - cy, dz = static_cast<float>(z) - cz;
          const float light =
              std::exp(-1.4f * (dx * dx + dy * dy + dz * dz) / (radius * radius)) * (0.35f + 0.6f * glow);
          float& cell = cells[plane + static_cast<std::size_t>(y * n + x)];
          cell = std::max(cell, std::min(1.0f, light));
        }
      }
    }
  });
  return volume;
}

Array chirp_signal(int n) {
  Array signal(Type::f32, {1, 1, n});
  const auto samples = signal.values<float>();
  for (int i = 0; i < n; ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(n);
    const float swell = 0.15f + 0.75f * std::pow(std::sin(pi * t), 2.0f) * (0.6f + 0.4f * std::sin(2 * pi * 5 * t));
    const float phase = 2 * pi * (18 * t + 70 * t * t);
    const float noise = 0.10f * (hash(i, 0, 17) - 0.5f);
    const float click = hash(i, 1, 19) > 0.9985f ? 0.45f * (hash(i, 2, 29) - 0.5f) : 0;
    samples[static_cast<std::size_t>(i)] = std::clamp(1.02f * swell * std::sin(phase) + noise + click, -0.999f, 0.999f);
  }
  return signal;
}

}  // namespace cenote::demo
