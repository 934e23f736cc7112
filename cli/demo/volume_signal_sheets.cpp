// The knot and the chirp, pooled: projections of a volume, envelopes of a signal.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "page.h"
#include "scene.h"
#include "sheets.h"

namespace cenote::demo {
namespace {

constexpr int edge = 96, tile = 288;

// A volume seen from the front: the brightest cell on each line of sight.
Array projection(const Array& volume) {
  const Extents& shape = volume.shape();
  return cenote::pool(volume, {.reducer = Reducer::max, .region = Window{.size = {shape[2], 1, 1}}});
}

// The last two axes in colours of water, from `shift` to the largest value.
Array colored(const Array& flat, float shift = 0) {
  const Extents& shape = flat.shape();
  const auto from = flat.values<float>();
  float top = shift + 1e-6f;
  for (const float value : from) top = std::max(top, value);
  Array colors(Type::f32, {shape[3], shape[4], 3});
  const auto to = colors.values<float>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Rgb color = water_color((from[i] - shift) / (top - shift));
    to[3 * i] = color.r, to[3 * i + 1] = color.g, to[3 * i + 2] = color.b;
  }
  return colors;
}

// Hue by the depth at which the brightest cell lies, lit by its brightness.
Array depths(const Pooled& front) {
  const auto depth = front.indices.values<std::uint8_t>();
  const auto light = front.values.values<float>();
  Array colors(Type::f32, {edge, edge, 3});
  const auto to = colors.values<float>();
  for (std::size_t i = 0; i < depth.size(); ++i) {
    const float near = static_cast<float>(depth[i]) / edge;
    const Rgb color = hue_color(0.05f + 0.75f * near, 0.75f, std::clamp(1.3f * (light[i] - 0.13f), 0.0f, 1.0f));
    to[3 * i] = color.r, to[3 * i + 1] = color.g, to[3 * i + 2] = color.b;
  }
  return colors;
}

void add_volume(Page& sheet, const std::string& title, const std::string& detail, const Array& volume,
                float shift = 0) {
  const Array colors = colored(projection(volume), shift);
  sheet.add(title, detail, colors, tile / static_cast<int>(volume.shape()[4]));
}

// Samples as columns of a panel: one value per column, from the middle up.
class Panel {
 public:
  Panel(Page& sheet, std::string_view title, std::string_view detail, int width, int height)
      : canvas_(sheet.canvas()), width_(width), height_(height) {
    sheet.next(title, detail, x_, y_);
    canvas_.box(x_, y_ + height / 2, width, 1, faint, 0.4f);
  }
  /// The waveform as a screen shows it: from the least to the most of the samples under each column.
  void wave(const Array& low, const Array& high, Rgb color, float cover) {
    for (int i = 0; i < width_; ++i) {
      const int top = static_cast<int>(row(high.values<float>()[static_cast<std::size_t>(i)]));
      const int bottom = static_cast<int>(row(low.values<float>()[static_cast<std::size_t>(i)]));
      canvas_.box(x_ + i, top, 1, bottom - top + 1, color, cover);
    }
  }
  void line(const Array& samples, Rgb color, float factor = 1) {
    const auto from = samples.values<float>();
    const auto step = from.size() / static_cast<std::size_t>(width_);
    std::vector<float> rows;
    for (int i = 0; i < width_; ++i) rows.push_back(row(factor * from[static_cast<std::size_t>(i) * step]));
    canvas_.curve(x_, rows.data(), width_, color);
  }
  void bars(const Array& low, const Array& high, Rgb color) {
    const auto count = static_cast<int>(low.size());
    for (int i = 0; i < count; ++i) {
      const int top = static_cast<int>(row(high.values<float>()[static_cast<std::size_t>(i)]));
      const int bottom = static_cast<int>(row(low.values<float>()[static_cast<std::size_t>(i)]));
      canvas_.box(x_ + i * width_ / count + 1, top, width_ / count - 2, bottom - top + 1, color, 0.85f);
    }
  }

 private:
  float row(float value) const {
    return static_cast<float>(y_) + 0.5f * static_cast<float>(height_) * (1 - 0.94f * std::clamp(value, -1.0f, 1.0f));
  }
  Canvas& canvas_;
  int x_ = 0, y_ = 0, width_, height_;
};

}  // namespace

Canvas volume_sheet(Lab& lab) {
  const Array volume = knot_volume(edge);
  Page sheet("a knot of light, pooled in three dimensions", "96 x 96 x 96, f32, seen from the front", 5, 2, tile, tile);
  Pooling front{.reducer = Reducer::max, .region = Window{.size = {edge, 1, 1}}};
  front.indices = IndexKind::offset;
  const Pooled seen = lab.pool_with_indices(volume, front);
  sheet.add("input", "max over depth", colored(seen.values), tile / edge);
  sheet.add("winners", "hue: how deep", depths(seen), tile / edge);
  for (const Reducer reducer : all_reducers) {
    Pooling pooling{.reducer = reducer, .region = Window{.size = {4, 4, 4}, .stride = 4}};
    // A smooth max of n equal cells is log(n) / beta above them.
    const float shift = reducer == Reducer::smooth_max ? std::log(64.0f) / 12 : 0;
    if (reducer == Reducer::smooth_max) pooling.beta = 12;
    if (reducer == Reducer::lp) pooling.p = 3;
    add_volume(sheet, std::string(name(reducer)), "4x4x4 step 4", lab.pool(volume, pooling), shift);
  }
  const Window wide{.size = {3, 3, 3}, .dilation = 3, .padding = same};
  add_volume(sheet, "max", "3x3x3 dilation 3", lab.pool(volume, {.reducer = Reducer::max, .region = wide}));
  add_volume(sheet, "adaptive", "avg into 16^3",
             lab.pool(volume, {.reducer = Reducer::avg, .region = Adaptive{.output = {16, 16, 16}}}));
  return sheet.canvas();
}

Canvas signal_sheet(Lab& lab) {
  constexpr int width = 1536, height = 168, per_column = 8;
  constexpr Rgb warm{255, 178, 92}, cool{96, 176, 255}, green{126, 220, 140};
  const Array signal = chirp_signal(width * per_column);
  Page sheet("a signal and its envelopes", "12288 samples, f32", 1, 4, width, height);
  const auto pooled = [&](Reducer reducer, std::int64_t size, std::int64_t stride = 1) {
    return lab.pool(signal, {.reducer = reducer,
                             .region = Window{.size = {size}, .stride = stride, .padding = stride == 1 ? same : valid},
                             .divisor = Divisor::Rule::valid});
  };
  const Array low = pooled(Reducer::min, per_column, per_column), high = pooled(Reducer::max, per_column, per_column);

  Panel extremes(sheet, "max, min", "window 257 around each sample, over the waveform", width, height);
  extremes.wave(low, high, faint, 0.55f);
  extremes.line(pooled(Reducer::max, 257), warm);
  extremes.line(pooled(Reducer::min, 257), cool);

  Panel means(sheet, "avg, smooth_max", "window 257: the mean, and log-sum-exp with beta 48 and -48", width, height);
  means.wave(low, high, faint, 0.30f);
  means.line(pooled(Reducer::avg, 257), ink);
  for (const double beta : {48.0, -48.0}) {
    const Window window{.size = {257}, .padding = same};
    means.line(lab.pool(signal,
                        {.reducer = Reducer::smooth_max, .region = window, .beta = beta, .pad = SmoothPadding::ignore}),
               beta > 0 ? warm : cool);
  }

  Panel norms(sheet, "lp, sum", "window 257: root mean square, and the sum in green", width, height);
  norms.wave(low, high, faint, 0.30f);
  norms.line(pooled(Reducer::lp, 257), warm, 1 / std::sqrt(257.0f));
  norms.line(pooled(Reducer::sum, 257), green, 1.0f / 64);

  Panel bins(sheet, "adaptive", "max and min of 96 bins", width, height);
  const Adaptive into{.output = {96}};
  bins.bars(lab.pool(signal, {.reducer = Reducer::min, .region = into}),
            lab.pool(signal, {.reducer = Reducer::max, .region = into}), accent);
  return sheet.canvas();
}

}  // namespace cenote::demo
