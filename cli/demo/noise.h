// Noise hashed from coordinates, so that every run and every machine draws the same, and colours to mix.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cenote::demo {

struct Color {
  float r = 0, g = 0, b = 0;
  friend Color operator+(Color a, Color b) { return {a.r + b.r, a.g + b.g, a.b + b.b}; }
  friend Color operator*(float s, Color c) { return {s * c.r, s * c.g, s * c.b}; }
};

inline Color mix(Color a, Color b, float t) { return (1 - t) * a + t * b; }

inline float smooth(float edge0, float edge1, float x) {
  const float t = std::clamp((x - edge0) / (edge1 - edge0), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

inline float hash(int x, int y, int key) {
  auto h = static_cast<std::uint32_t>(x) * 374761393u + static_cast<std::uint32_t>(y) * 668265263u +
           static_cast<std::uint32_t>(key) * 2246822519u;
  h = (h ^ (h >> 13)) * 1274126177u;
  h = (h ^ (h >> 16)) * 2654435769u;
  return static_cast<float>((h ^ (h >> 15)) >> 8) * 0x1p-24f;
}

inline int floor_to_int(float x) {
  const int truncated = static_cast<int>(x);
  return truncated - (static_cast<float>(truncated) > x ? 1 : 0);
}

inline float between(float a, float b, float t) { return a + t * (b - a); }

inline float value_noise(float x, float y, int key) {
  const int ix = floor_to_int(x), iy = floor_to_int(y);
  const float ux = x - static_cast<float>(ix), uy = y - static_cast<float>(iy);
  const float tx = ux * ux * (3 - 2 * ux), ty = uy * uy * (3 - 2 * uy);
  const float top = between(hash(ix, iy, key), hash(ix + 1, iy, key), tx);
  const float low = between(hash(ix, iy + 1, key), hash(ix + 1, iy + 1, key), tx);
  return between(top, low, ty);
}

// Octaves of noise, from 0 to 1.
inline float fractal(float x, float y, int octaves, int key) {
  float sum = 0, weight = 0.5f, total = 0;
  for (int i = 0; i < octaves; ++i) {
    sum += weight * value_noise(x, y, key + i);
    total += weight;
    weight *= 0.5f;
    x = x * 2.03f + 17.1f;
    y = y * 2.03f - 9.7f;
  }
  return sum / total;
}

}  // namespace cenote::demo
