// Indices of winners, in their countings.
#include <algorithm>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/oracle.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

// So many that they are written past the caches, in lines that begin anywhere in memory: the cell that an offset names.
TEST(Indices, NameTheCellsOfOffsetsPastTheCaches) {
  struct Problem {
    Extents shape;
    Window window;
  };
  const Problem problems[] = {
      {{30, 449, 452}, {.size = {2, 2}, .stride = 2}},
      {{30, 448, 451}, {.size = {3, 3}, .stride = 2, .padding = 1}},
      {{1, 2000, 3001}, {.size = {3, 3}, .padding = 1}},
      {{3000, 57, 55}, {.size = {5, 3}, .stride = {1, 2}, .padding = Padding{{2, 2}, {1, 1}}}},
      {{30000, 13, 14}, {.size = {3, 3}, .padding = 1}},
      {{30000, 180}, {.size = {4}, .stride = 2, .padding = 1}},
      {{40, 120, 20, 70}, {.size = {3, 2}, .stride = 2, .padding = Padding{{1, 1}, {0, 0}}, .channels_last = true}},
      {{3, 60, 150, 301}, {.size = {3, 2, 3}, .stride = {1, 2, 2}, .padding = Padding{{1, 1}, {0, 0}, {1, 1}}}},
  };
  for (const auto& [shape, window] : problems) {
    Strided x(Type::f32, shape, Layout::plain(shape.size()));
    fill(x, Data::few, 1);
    const View cells = std::as_const(x).view();
    const Pooled offsets = max_pool_with_indices(cells, window, IndexKind::offset);
    const int pooled = static_cast<int>(window.size.values().size()),
              first = shape.size() - pooled - window.channels_last;
    for (const IndexKind kind : {IndexKind::plane, IndexKind::tensor}) {
      const Plan planned = plan({.region = window, .indices = kind}, Type::f32, shape);
      const Pooled named = max_pool_with_indices(cells, window, kind);
      const auto values = named.values.values<float>();
      ASSERT_TRUE(std::equal(values.begin(), values.end(), offsets.values.values<float>().begin()));
      const auto indices = named.indices.values<std::int64_t>();
      const auto numbers = offsets.indices.values<std::uint8_t>();
      const Extents out = named.values.shape();
      Extents o = Extents::filled(out.size(), 0);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        // The cell that the offset names, row-major.
        Extents at = o;
        std::int64_t rest = numbers[i], index = 0;
        for (int a = pooled; a-- > 0;) {
          const Axis& axis = planned.axes()[static_cast<std::size_t>(a)];
          at[first + a] = o[first + a] * axis.stride - axis.low + rest % axis.size * axis.dilation;
          rest /= axis.size;
        }
        for (int a = 0; a < shape.size(); ++a)
          if (kind == IndexKind::tensor || (a >= first && a < first + pooled)) index = index * shape[a] + at[a];
        ASSERT_EQ(indices[i], index) << "output " << i << " of " << planned.explain();
        for (int a = out.size(); a-- > 0;) {
          if (++o[a] < out[a]) break;
          o[a] = 0;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cenote::test
