// max_unpool: values put back at the plane indices they came from.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include <cenote/detail/fold_space.h>
#include <cenote/pooling.h>

#include "core/checked.h"
#include "core/reject.h"
#include "core/views.h"
#include "plan/geometry.h"

namespace cenote {
namespace {

constexpr const char* who = "max_unpool";

bool contains(const Extents& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// One axis of the loops over y.
struct Loop {
  std::int64_t n = 1, y_stride = 0, index_stride = 0, x_stride = 0;
};

// Where everything lies: slices are the kept axes, each with planes of its own; `line` is the last axis, pooled or not.
struct Layout {
  std::vector<Loop> slices, inside;
  Loop line;
  // Extents and strides of the plane in the result, innermost first; one entry if the pooled axes are neighbours.
  std::vector<std::pair<std::int64_t, std::int64_t>> plane;
  std::int64_t plane_size = 1;

  std::int64_t place(std::int64_t index) const noexcept {
    if (plane.size() == 1) return index * plane[0].second;
    std::int64_t result = 0;
    for (const auto& [extent, stride] : plane) {
      result += index % extent * stride;
      index /= extent;
    }
    return result;
  }
};

Layout lay_out(const View& y, const View& indices, const Extents& shape, const Extents& pooled) {
  Layout layout;
  const Extents strides = row_major_strides(shape);
  const int last = shape.size() - 1;
  for (int i = 0; i <= last; ++i) {
    const bool kept = !contains(pooled, i);
    const Loop loop{y.shape[i], y.strides[i], indices.strides[i], kept ? strides[i] : 0};
    if (i == last)
      layout.line = loop;
    else
      (kept ? layout.slices : layout.inside).push_back(loop);
  }
  Checked size = 1;
  for (const std::int64_t axis : pooled) size = size * Checked(shape[static_cast<int>(axis)]);
  if (!size.ok()) reject(who, "shape ", shape, ": the size of its planes must fit 64 bits");
  layout.plane_size = size.value();
  const std::int64_t inner = pooled[pooled.size() - 1];
  if (inner - pooled[0] + 1 == pooled.size()) {
    layout.plane.emplace_back(layout.plane_size, strides[static_cast<int>(inner)]);
  } else {
    for (int i = pooled.size() - 1; i >= 0; --i)
      layout.plane.emplace_back(shape[static_cast<int>(pooled[i])], strides[static_cast<int>(pooled[i])]);
  }
  return layout;
}

// Every index must lie in its plane; the first that does not, in row-major order, is named.
void check_indices(const View& indices, std::int64_t plane_size) {
  const int last = indices.rank() - 1;
  const std::int64_t n = indices.shape[last], step = indices.strides[last];
  const auto* data = static_cast<const std::int64_t*>(indices.data);
  detail::Counter lines;
  for (int i = 0; i < last; ++i) lines.add(indices.shape[i]);
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> first_bad{none};
  const auto line_at = [&](const detail::Counter& at) {
    const std::int64_t* line = data;
    for (int i = 0; i < last; ++i) line += at[static_cast<std::size_t>(i)] * indices.strides[i];
    return line;
  };
  const auto inside = [&](std::int64_t index) {
    return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(plane_size);
  };
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / n);
  detail::parallel_parts(lines.total(), grain, [&](std::int64_t begin, std::int64_t end) {
    detail::Counter at = lines;
    at.seek(begin);
    for (; begin < end; ++begin, at.next()) {
      const std::int64_t* line = line_at(at);
      bool good = true;
      for (std::int64_t i = 0; i < n; ++i) good = good && inside(line[i * step]);
      if (good) continue;
      std::int64_t i = 0, seen = first_bad.load();
      while (inside(line[i * step])) ++i;
      while (begin * n + i < seen && !first_bad.compare_exchange_weak(seen, begin * n + i)) continue;
      return;
    }
  });
  const std::int64_t bad = first_bad.load();
  if (bad == none) return;
  lines.seek(bad / n);
  Extents index = indices.shape;
  for (int i = 0; i < last; ++i) index[i] = lines[static_cast<std::size_t>(i)];
  index[last] = bad % n;
  reject(who, "indices", index, " = ", line_at(lines)[bad % n * step], ": must be from 0 to ", plane_size - 1,
         ", inside its plane of ", plane_size, " elements");
}

// Copies the elements, of which only the size matters, but that a bool is any byte and becomes 0 or 1.
template <class Unit>
void scatter(const Layout& layout, const View& y, const View& indices, Array& x) {
  const Loop& line = layout.line;
  // A kept last axis is shared out too, so that one picture with its channels last is done by all threads.
  const std::int64_t block = line.x_stride == 0 ? line.n : std::min<std::int64_t>(line.n, 64);
  detail::Counter slices;
  for (const Loop& loop : layout.slices) slices.add(loop.n);
  slices.add((line.n + block - 1) / block);
  const bool normalise = y.type == Type::boolean;
  detail::parallel_parts(slices.total(), 1, [&](std::int64_t number, std::int64_t end) {
    for (detail::Counter at = slices; number < end; ++number) {
      at.seek(number);
      const Unit* from = static_cast<const Unit*>(y.data);
      const std::int64_t* index = static_cast<const std::int64_t*>(indices.data);
      Unit* to = static_cast<Unit*>(x.data());
      std::size_t i = 0;
      for (const Loop& loop : layout.slices) {
        from += at[i] * loop.y_stride;
        index += at[i] * loop.index_stride;
        to += at[i++] * loop.x_stride;
      }
      const std::int64_t first = at[i] * block, count = std::min(block, line.n - first);
      detail::Counter rows;
      for (const Loop& loop : layout.inside) rows.add(loop.n);
      do {
        const Unit* values = from + first * line.y_stride;
        const std::int64_t* places = index + first * line.index_stride;
        for (std::size_t p = 0; p < layout.inside.size(); ++p) {
          values += rows[p] * layout.inside[p].y_stride;
          places += rows[p] * layout.inside[p].index_stride;
        }
        for (std::int64_t o = 0; o < count; ++o) {
          const Unit value = values[o * line.y_stride];
          to[(first + o) * line.x_stride + layout.place(places[o * line.index_stride])] =
              normalise ? static_cast<Unit>(value != 0) : value;
        }
      } while (rows.next());
    }
  });
}

}  // namespace

Array max_unpool(const View& y, const View& indices, const Extents& shape, const Plane& plane) {
  if (y.rank() != shape.size()) reject(who, "shape ", shape, ": must have ", y.rank(), " axes, as many as y");
  if (indices.type != Type::i64) reject(who, "indices of type ", name(indices.type), ": must be i64");
  if (indices.shape != y.shape) reject(who, "indices of shape ", indices.shape, ": must have that of y, ", y.shape);
  check_memory(who, "y", y);
  check_memory(who, "indices", indices);
  const Extents pooled = plane_axes(who, shape.size(), plane.rank, plane.channels_last, plane.axes);
  element_count(shape);
  for (int i = 0; i < shape.size(); ++i)
    if (!contains(pooled, i) && y.shape[i] != shape[i])
      reject(who, "shape[", i, "] = ", shape[i], ": must be that of y, ", y.shape[i], ", as the axis is not pooled");
  const Layout layout = lay_out(y, indices, shape, pooled);
  const bool empty = element_count(y.shape) == 0;
  if (!empty) check_indices(indices, layout.plane_size);
  Array x = Array::zeros(y.type, shape);
  if (empty) return x;
  switch (size_of(y.type)) {
    case 1: scatter<std::uint8_t>(layout, y, indices, x); break;
    case 2: scatter<std::uint16_t>(layout, y, indices, x); break;
    case 4: scatter<std::uint32_t>(layout, y, indices, x); break;
    default: scatter<std::uint64_t>(layout, y, indices, x); break;
  }
  return x;
}

}  // namespace cenote
