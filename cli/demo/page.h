// The frame of a contact sheet: a heading and rows of labelled tiles.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include "canvas.h"

namespace cenote::demo {

/// Tiles of one size in rows, each with a name and a line of small print below.
class Page {
 public:
  Page(std::string_view title, std::string_view subtitle, int columns, int rows, int width, int height)
      : columns_(columns),
        width_(width),
        height_(height),
        canvas_(margin + columns * (width + margin), head + rows * (height + label + margin)) {
    canvas_.text(margin, 22, title, ink, 3);
    canvas_.text(margin, 54, subtitle, faint, 2);
  }

  /// Takes the next place, labels it and returns its corner through x and y.
  void next(std::string_view name, std::string_view detail, int& x, int& y) {
    x = margin + count_ % columns_ * (width_ + margin);
    y = head + count_ / columns_ * (height_ + label + margin);
    ++count_;
    canvas_.box(x - 1, y - 1, width_ + 2, height_ + 2, paper);
    canvas_.text(x, y + height_ + 8, name, accent, 2);
    canvas_.text(x + Canvas::text_width(name) + 12, y + height_ + 8, detail, faint, 2);
  }
  /// The same with a picture in it.
  void add(std::string_view name, std::string_view detail, const View& pixels, int scale = 1) {
    int x = 0, y = 0;
    next(name, detail, x, y);
    canvas_.picture(x, y, pixels, scale);
  }

  Canvas& canvas() noexcept { return canvas_; }

 private:
  static constexpr int margin = 24, head = 92, label = 28;
  int columns_, width_, height_, count_ = 0;
  Canvas canvas_;
};

}  // namespace cenote::demo
