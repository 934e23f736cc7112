// The cenote, pooled: one sheet of reducers and one of winners.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "page.h"
#include "scene.h"
#include "sheets.h"

namespace cenote::demo {
namespace {

constexpr int tile_height = 256, tile_width = 384, zoom = 4;

const Window overlapping{.size = {8, 8}, .stride = 4, .padding = same, .channels_last = true};

// A picture without its batch axis.
View without_batch(const Array& x) {
  const Extents& shape = x.shape();
  return View(x.data(), x.type(), {shape[1], shape[2], shape[3]});
}

Array mapped(const View& x, const auto& f) {
  Array y(x);
  for (float& value : y.values<float>()) value = f(value);
  return y;
}

// What a result is shown as: the reducers differ in scale.
struct Showing {
  Pooling pooling;
  std::string detail;
  float factor = 1;
};

Showing showing(Reducer reducer) {
  Showing s{{.reducer = reducer, .region = overlapping}, "8x8 step 4"};
  if (reducer == Reducer::sum) s.detail += ", a long exposure", s.factor = 1.0f / 32;
  if (reducer == Reducer::smooth_max) s.pooling.beta = 0.08, s.detail = "beta 0.08";
  if (reducer == Reducer::lp) s.pooling.p = 4, s.detail = "p 4, scaled", s.factor = std::pow(1.0f / 64, 0.25f);
  if (reducer == Reducer::avg) s.pooling.divisor = Divisor::Rule::valid;
  return s;
}

void add_globals(Page& sheet, Lab& lab, const Array& picture) {
  int x = 0, y = 0;
  sheet.next("global", "max, avg and min colour", x, y);
  int at = 0;
  for (const Reducer reducer : {Reducer::max, Reducer::avg, Reducer::min}) {
    const Array color = lab.pool(picture, {.reducer = reducer, .region = Global{.channels_last = true}});
    const auto c = color.values<float>();
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(c[i] + 0.5f); };
    sheet.canvas().box(x + at * tile_width / 3, y, tile_width / 3, tile_height, {byte(0), byte(1), byte(2)});
    ++at;
  }
}

// The colour wheel by where in its window the winner lies, paler towards the middle.
Array directions(const View& offsets, const Extents& window) {
  const auto* offset = static_cast<const std::uint8_t*>(offsets.data);
  const std::int64_t count = offsets.shape[1] * offsets.shape[2] * offsets.shape[3];
  Array colors(Type::f32, {offsets.shape[1], offsets.shape[2], 3});
  const auto to = colors.values<float>();
  for (std::int64_t i = 0; i < count; i += offsets.shape[3]) {
    const float height = static_cast<float>(window[0] - 1) / 2, width = static_cast<float>(window[1] - 1) / 2;
    const float dy = (static_cast<float>(offset[i] / window[1]) - height) / height;
    const float dx = (static_cast<float>(offset[i] % window[1]) - width) / width;
    const float far = std::min(1.0f, std::sqrt(dx * dx + dy * dy));
    const Rgb color = hue_color(std::atan2(dy, dx) / 6.2831853f, 0.35f + 0.5f * far, 0.45f + 0.5f * far);
    const auto pixel = static_cast<std::size_t>(i / offsets.shape[3] * 3);
    to[pixel] = color.r, to[pixel + 1] = color.g, to[pixel + 2] = color.b;
  }
  return colors;
}

// The brightness of a picture as (1, 1, height, width).
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

// Every place takes the colour of the pixel that won there.
Array painted_by_winners(const Array& picture, const Array& plane_indices) {
  Array painted(Type::f32, {tile_height, tile_width, 3});
  const auto from = picture.values<float>();
  const auto to = painted.values<float>();
  const auto winners = plane_indices.values<std::int64_t>();
  for (std::size_t i = 0; i < winners.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) to[3 * i + c] = from[3 * static_cast<std::size_t>(winners[i]) + c];
  }
  return painted;
}

View plane(const Array& x) { return View(x.data(), x.type(), {x.shape()[2], x.shape()[3]}); }

}  // namespace

Canvas picture_sheet(Lab& lab) {
  const Array picture = cenote_picture(tile_height * zoom, tile_width * zoom);
  Page sheet("cenote: one picture, every reducer", "1024 x 1536 x 3, f32, channels last", 4, 3, tile_width,
             tile_height);
  const Window plain{.size = {zoom, zoom}, .stride = zoom, .channels_last = true};
  sheet.add("input", "shown at a quarter",
            without_batch(lab.pool(picture, {.reducer = Reducer::avg, .region = plain})));
  for (const Reducer reducer : all_reducers) {
    const Showing s = showing(reducer);
    const Array y = lab.pool(picture, s.pooling);
    sheet.add(name(reducer), s.detail, mapped(without_batch(y), [&](float v) { return v * s.factor; }));
  }
  const Array unit = mapped(picture, [](float v) { return v / 255; });
  const Array product = lab.product(unit, plain);
  sheet.add("product", "custom, its 16th root",
            mapped(without_batch(product), [](float v) { return 255 * std::pow(v, 1.0f / 16); }));
  const Adaptive bins{.output = {16, 24}, .channels_last = true};
  sheet.add("adaptive", "avg into 16 x 24", without_batch(lab.pool(picture, {.reducer = Reducer::avg, .region = bins})),
            tile_width / 24);
  add_globals(sheet, lab, picture);
  Pooling where{.reducer = Reducer::max, .region = overlapping};
  where.indices = IndexKind::offset;
  const Pooled winners = lab.pool_with_indices(picture, where);
  sheet.add("winners", "hue: which way the max lies", directions(winners.indices, {8, 8}));
  where.reducer = Reducer::min;
  sheet.add("winners", "the same of the min", directions(lab.pool_with_indices(picture, where).indices, {8, 8}));
  return sheet.canvas();
}

Canvas winner_sheet(Lab& lab) {
  const Array large = cenote_picture(tile_height * zoom, tile_width * zoom);
  const Window plain{.size = {zoom, zoom}, .stride = zoom, .channels_last = true};
  const Array small = cenote::pool(large, {.reducer = Reducer::avg, .region = plain});
  const Array grey = luminance(small);
  Page sheet("winners: where the largest and the smallest came from", "256 x 384 brightness, window 15 x 15, step 1", 3,
             2, tile_width, tile_height);
  Pooling pooling{.reducer = Reducer::max, .region = Window{.size = {15, 15}, .padding = same}};
  pooling.indices = IndexKind::plane;
  const Pooled most = lab.pool_with_indices(grey, pooling);
  pooling.reducer = Reducer::min;
  const Pooled least = lab.pool_with_indices(grey, pooling);
  sheet.add("input", "", without_batch(small));
  sheet.add("max", "of the brightness", plane(most.values));
  sheet.add("min", "of the brightness", plane(least.values));
  sheet.add("stained glass", "colour of each max's winner", painted_by_winners(small, most.indices));
  sheet.add("ink wash", "colour of each min's winner", painted_by_winners(small, least.indices));
  const Window apart{.size = {4, 4}, .stride = 4};
  pooling = {.reducer = Reducer::max, .region = apart};
  pooling.indices = IndexKind::plane;
  const Pooled kept = lab.pool_with_indices(grey, pooling);
  sheet.add("max_unpool", "4x4 maxima put back", plane(max_unpool(kept.values, kept.indices, grey.shape())));
  return sheet.canvas();
}

}  // namespace cenote::demo
