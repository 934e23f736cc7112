// A page to draw contact sheets on: tiles, lines, words, and colours for numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <cenote/array.h>

namespace cenote::demo {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
};

inline constexpr Rgb page{13, 20, 27}, paper{20, 30, 39}, ink{214, 228, 232}, faint{112, 138, 148},
    accent{64, 206, 196};

/// From deep water to daylight, t from 0 to 1.
Rgb water_color(float t);
/// The colour wheel: hue from 0 to 1, round.
Rgb hue_color(float hue, float saturation, float value);

class Canvas {
 public:
  Canvas(int width, int height);

  int width() const noexcept { return width_; }
  int height() const noexcept { return height_; }
  /// Draws nothing outside the page.
  void dot(int x, int y, Rgb color, float cover = 1);
  void box(int x, int y, int width, int height, Rgb color, float cover = 1);
  /// A line from each column to the next; heights are in pixels.
  void curve(int x, const float* heights, int count, Rgb color, float cover = 1);
  /// Letters of 5 by 7 dots, each dot `scale` pixels wide; ASCII.
  void text(int x, int y, std::string_view words, Rgb color, int scale = 2);
  static int text_width(std::string_view words, int scale = 2) { return static_cast<int>(words.size()) * 6 * scale; }
  /// An f32 picture, (height, width, 3) or (height, width), values from 0 to 255, enlarged `scale` times.
  void picture(int x, int y, const View& pixels, int scale = 1);

  /// The page as (height, width, 3).
  const Array& pixels() const noexcept { return pixels_; }

 private:
  int width_, height_;
  Array pixels_;
};

}  // namespace cenote::demo
