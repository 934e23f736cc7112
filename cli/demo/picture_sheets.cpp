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

constexpr int tile_height = 256, tile_width = 384, zoom = 3;

const Window plain{.size = {zoom, zoom}, .stride = zoom, .channels_last = true};
const Window overlapping{.size = {6, 6}, .stride = zoom, .padding = same, .channels_last = true};

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

// What is asked of a reducer, and how its result is brought to the scale of a picture: (value - shift) * factor.
struct Showing {
  Pooling pooling;
  std::string detail;
  float factor = 1, shift = 0;
};

Showing showing(Reducer reducer) {
  Showing s{{.reducer = reducer, .region = overlapping}, "6x6 step 3"};
  constexpr float cells = 36;
  switch (reducer) {
    case Reducer::sum:
      s.detail += ", a long exposure";
      s.factor = 2 / cells;
      break;
    case Reducer::avg: s.pooling.divisor = Divisor::Rule::valid; break;
    case Reducer::smooth_max:
      s.pooling.beta = 0.08;
      s.detail = "beta 0.08, centred";
      s.shift = std::log(cells) / 0.08f;
      break;
    case Reducer::lp:
      s.pooling.region = plain;
      s.pooling.p = 4;
      s.detail = "3x3, p 4, as a mean";
      s.factor = std::pow(1.0f / (zoom * zoom), 0.25f);
      break;
    default: break;
  }
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

// The colour wheel by which way the winner lies from the middle of its window, lit by the winner's value.
// dx and dy run from -1 to 1.
Rgb direction_color(float dx, float dy, float light) {
  const float far = std::min(1.0f, std::sqrt(dx * dx + dy * dy));
  return hue_color(std::atan2(dy, dx) / 6.2831853f, 0.30f + 0.55f * far, 0.12f + 0.88f * std::sqrt(light / 255));
}

// The winners of the green channel by their offsets in a window of size x size.
Array directions(const Pooled& winners, std::int64_t size) {
  const Extents& shape = winners.indices.shape();
  const auto offsets = winners.indices.values<std::uint8_t>();
  const auto light = winners.values.values<float>();
  Array colors(Type::f32, {shape[1], shape[2], 3});
  const auto to = colors.values<float>();
  const float middle = static_cast<float>(size - 1) / 2;
  for (std::size_t i = 0; i < to.size(); i += 3) {
    const float dy = static_cast<float>(offsets[i + 1] / size) - middle;
    const float dx = static_cast<float>(offsets[i + 1] % size) - middle;
    const Rgb color = direction_color(dx / middle, dy / middle, light[i + 1]);
    to[i] = color.r, to[i + 1] = color.g, to[i + 2] = color.b;
  }
  return colors;
}

// The same by plane indices, for windows of step 1 around each place of a (1, 1, height, width) array.
Array plane_directions(const Pooled& winners, std::int64_t size) {
  const std::int64_t width = winners.indices.shape()[3];
  const auto places = winners.indices.values<std::int64_t>();
  const auto light = winners.values.values<float>();
  Array colors(Type::f32, {winners.indices.shape()[2], width, 3});
  const auto to = colors.values<float>();
  const float reach = static_cast<float>(size) / 2;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto here = static_cast<std::int64_t>(i);
    const auto dy = static_cast<float>(places[i] / width - here / width);
    const auto dx = static_cast<float>(places[i] % width - here % width);
    const Rgb color = direction_color(dx / reach, dy / reach, light[i]);
    to[3 * i] = color.r, to[3 * i + 1] = color.g, to[3 * i + 2] = color.b;
  }
  return colors;
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

Canvas picture_sheet(Lab& lab, const Array& picture) {
  Page sheet("cenote: one picture, every reducer", "768 x 1152 x 3, f32, channels last", 4, 3, tile_width, tile_height);
  sheet.add("input", "shown at a third", without_batch(lab.pool(picture, {.reducer = Reducer::avg, .region = plain})));
  for (const Reducer reducer : all_reducers) {
    const Showing s = showing(reducer);
    const Array y = lab.pool(picture, s.pooling);
    sheet.add(name(reducer), s.detail, mapped(without_batch(y), [&](float v) { return (v - s.shift) * s.factor; }));
  }
  const Array unit = mapped(picture, [](float v) { return v / 255; });
  sheet.add("product", "custom, its 9th root",
            mapped(without_batch(lab.product(unit, plain)), [](float v) { return 255 * std::pow(v, 1.0f / 9); }));
  const Adaptive bins{.output = {16, 24}, .channels_last = true};
  sheet.add("adaptive", "avg into 16 x 24", without_batch(lab.pool(picture, {.reducer = Reducer::avg, .region = bins})),
            tile_width / 24);
  add_globals(sheet, lab, picture);
  for (const Reducer reducer : {Reducer::max, Reducer::min}) {
    Pooling where{.reducer = reducer, .region = overlapping};
    where.indices = IndexKind::offset;
    sheet.add("winners", reducer == Reducer::max ? "hue: where the max is" : "hue: where the min is",
              directions(lab.pool_with_indices(picture, where), 6));
  }
  return sheet.canvas();
}

Canvas winner_sheet(Lab& lab, const Array& picture) {
  const Array small = cenote::pool(picture, {.reducer = Reducer::avg, .region = plain});
  const Array grey = luminance(small);
  Page sheet("winners: where the extremes came from", "256 x 384, brightness, window 11 x 11, step 1", 3, 2, tile_width,
             tile_height);
  const auto winners = [&](Reducer reducer, const Window& window) {
    Pooling pooling{.reducer = reducer, .region = window};
    pooling.indices = IndexKind::plane;
    return lab.pool_with_indices(grey, pooling);
  };
  const Window around{.size = {11, 11}, .padding = same};
  const Pooled most = winners(Reducer::max, around), least = winners(Reducer::min, around);
  sheet.add("input", "", without_batch(small));
  sheet.add("stained glass", "colour of each max", painted_by_winners(small, most.indices));
  sheet.add("ink wash", "colour of each min", painted_by_winners(small, least.indices));
  const Pooled kept = winners(Reducer::max, {.size = {2, 2}, .stride = 2});
  sheet.add("max_unpool", "2x2 maxima put back", plane(max_unpool(kept.values, kept.indices, grey.shape())));
  sheet.add("winner map", "hue: where the max is", plane_directions(most, 11));
  sheet.add("winner map", "hue: where the min is", plane_directions(least, 11));
  return sheet.canvas();
}

}  // namespace cenote::demo
