// Random poolings of planes whose axes a test draws itself.
#pragma once

#include <cstdint>
#include <vector>

#include "random_problem.h"

namespace cenote::test {

struct PlaneAxis {
  std::int64_t cells, size, stride;
  Padding::Sides padding;
  std::int64_t dilation = 1;
};

/// A few planes of any type, mostly without gaps, with draw_axis(0) across rows and draw_axis(1) along them.
template <class DrawAxis>
Case draw_planes(Reducer reducer, const DrawAxis& draw_axis) {
  using namespace detail;
  Case c;
  c.type =
      one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16, Type::i8, Type::u8, Type::u16, Type::i64});
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  c.shape = {between(1, 3), one_of<std::int64_t>({1, 2, 3, 40})};
  Extents size, stride, dilation;
  std::vector<Padding::Sides> padding;
  for (int i = 0; i < 2; ++i) {
    const PlaneAxis axis = draw_axis(i);
    c.shape.push_back(axis.cells);
    size.push_back(axis.size);
    stride.push_back(axis.stride);
    padding.push_back(axis.padding);
    dilation.push_back(axis.dilation);
  }
  c.pooling.reducer = reducer;
  options(c.pooling, c.type);
  c.pooling.dtype.reset();
  c.pooling.indices.reset();
  c.pooling.region = Window{.size = size, .stride = stride, .dilation = dilation, .padding = Padding(padding)};
  const bool plain = chance(75);
  c.x = plain ? Layout::plain(4) : layout(4, true);
  c.y = c.indices = plain ? Layout::plain(4) : layout(4, false);
  return c;
}

}  // namespace cenote::test
