// The cenote, differentiated: which cells of the picture a gradient reaches, for every reducer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "page.h"
#include "scene.h"
#include "sheets.h"

namespace cenote::demo {
namespace {

constexpr int zoom = 2, shrink = 6, levels = 12;

const Window window{.size = {8, 8}, .stride = 4, .padding = same};

// Brightness in a few levels, so that there are areas where all cells are equal.
Array posterised(const Array& grey) {
  Array flat = grey;
  for (float& value : flat.values<float>()) value = std::round(value / 255 * levels) * 255 / levels;
  return flat;
}

View plane(const Array& x) { return View(x.data(), x.type(), {x.shape()[2], x.shape()[3]}); }

// Magnitudes in colours of water. A few cells may be far above the rest: the scale ends where all but one in 500 do.
Array heat(const Array& gradient) {
  const auto from = gradient.values<float>();
  std::vector<float> sorted;
  for (const float value : from) sorted.push_back(std::fabs(value));
  const auto top = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() - 1 - sorted.size() / 500);
  std::nth_element(sorted.begin(), top, sorted.end());
  Array colors(Type::f32, {gradient.shape()[2], gradient.shape()[3], 3});
  const auto to = colors.values<float>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Rgb color = water_color(std::sqrt(std::fabs(from[i]) / std::max(*top, 1e-6f)));
    to[3 * i] = color.r, to[3 * i + 1] = color.g, to[3 * i + 2] = color.b;
  }
  return colors;
}

}  // namespace

Canvas gradient_sheet(Lab& lab, const Array& picture) {
  const Window blocks{.size = {shrink, shrink}, .stride = shrink, .channels_last = true};
  const Array grey = luminance(cenote::pool(picture, {.reducer = Reducer::avg, .region = blocks}));
  const Array flat = posterised(grey);
  const auto height = static_cast<int>(grey.shape()[2]), width = static_cast<int>(grey.shape()[3]);
  Page sheet("where the gradient goes",
             "128 x 192, brightness, window 8 x 8, step 4; of half the sum of squared outputs", 4, 3, zoom * width,
             zoom * height);
  const auto add = [&](const std::string& detail, const Array& x, const Pooling& pooling) {
    // The gradient of half the sum of squares: every output counts as much as it is.
    const Array gx = lab.gradient(x, pooling, cenote::pool(x, pooling));
    sheet.add(name(pooling.reducer), detail, heat(gx), zoom);
  };
  sheet.add("input", "", plane(grey), zoom);
  add("to each winner", grey, {.reducer = Reducer::max, .region = window});
  add("to each winner", grey, {.reducer = Reducer::min, .region = window});
  add("to every cell", grey, {.reducer = Reducer::sum, .region = window});
  add("by the real cells", grey, {.reducer = Reducer::avg, .region = window, .divisor = Divisor::Rule::valid});
  for (const double beta : {0.02, 0.2}) {
    add(beta < 0.1 ? "beta 0.02" : "beta 0.2", grey,
        {.reducer = Reducer::smooth_max, .region = window, .beta = beta, .pad = SmoothPadding::ignore});
  }
  add("p 4", grey, {.reducer = Reducer::lp, .region = window, .p = 4});
  sheet.add("input", "in 12 levels", plane(flat), zoom);
  for (const Ties ties : {Ties::first, Ties::split}) {
    add(ties == Ties::first ? "12 levels, first" : "12 levels, split", flat,
        {.reducer = Reducer::max, .region = window, .ties = ties});
  }
  add("12 levels, split", flat, {.reducer = Reducer::min, .region = window, .ties = Ties::split});
  return sheet.canvas();
}

}  // namespace cenote::demo
