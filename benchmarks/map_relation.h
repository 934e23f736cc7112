// What one would write first: a map from coordinates to rows, and one lookup per output and offset.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <unordered_map>

#include <cenote/array.h>

namespace cenote::bench {

/// Seconds per voxel to relate rows (batch, x, y, z) by std::unordered_map, for a window of `size` cells a side that
/// begins `first` cells from an output. Where there are many outputs only some of them are looked at.
inline double map_seconds(const Array& coords, std::int64_t size, std::int64_t stride, std::int64_t first) {
  using Clock = std::chrono::steady_clock;
  const auto c = coords.values<std::int32_t>();
  const auto key = [](std::int64_t b, std::int64_t x, std::int64_t y, std::int64_t z) {
    return ((b * 65536 + x + 16384) * 65536 + y + 16384) * 65536 + z + 16384;
  };
  const auto floor_of = [&](std::int64_t a) { return a / stride - (a % stride < 0); };
  const auto start = Clock::now();
  std::unordered_map<std::int64_t, std::int32_t> rows, outputs;
  rows.reserve(c.size() / 4);
  for (std::size_t i = 0; i < c.size(); i += 4) {
    rows.emplace(key(c[i], c[i + 1], c[i + 2], c[i + 3]), static_cast<std::int32_t>(i / 4));
    if (stride > 1)
      outputs.emplace(key(c[i], floor_of(c[i + 1]), floor_of(c[i + 2]), floor_of(c[i + 3])),
                      static_cast<std::int32_t>(i / 4));
  }
  const auto made = Clock::now();
  // The rows that reach a new output stand for it.
  std::size_t looked = 0, found = 0, count = stride > 1 ? outputs.size() : c.size() / 4;
  const auto look = [&](std::size_t i) {
    std::int64_t at[3];
    for (std::size_t a = 0; a < 3; ++a) at[a] = floor_of(c[4 * i + a + 1]) * stride + first;
    for (std::int64_t x = 0; x < size; ++x)
      for (std::int64_t y = 0; y < size; ++y)
        for (std::int64_t z = 0; z < size; ++z) found += rows.count(key(c[4 * i], at[0] + x, at[1] + y, at[2] + z));
    ++looked;
  };
  const std::size_t some = std::min<std::size_t>(count, 100000);
  if (stride == 1)
    for (std::size_t i = 0; i < some; ++i) look(i * (count / some));
  else
    for (auto output = outputs.begin(); looked < some; ++output) look(static_cast<std::size_t>(output->second));
  const auto done = Clock::now();
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  const double lookups = seconds(made, done) * static_cast<double>(count) / static_cast<double>(std::max(looked, some));
  // Nobody reads what was found; the sum must not be left out for that.
  return (seconds(start, made) + lookups + (found == 0 ? 1e-12 : 0)) / static_cast<double>(c.size() / 4);
}

}  // namespace cenote::bench
