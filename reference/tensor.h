// The oracle's arrays, and the walk over the cells of each window in row-major order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "windows.h"

namespace reference {

/// A dense row-major array of any number type.
template <class T>
struct Tensor {
  Shape shape;
  std::vector<T> values;
};

inline std::int64_t count(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

/// Steps an index to the next one in row-major order; false after the last.
inline bool next(Shape& index, const Shape& shape) {
  for (std::size_t a = shape.size(); a-- > 0;) {
    if (++index[a] < shape[a]) return true;
    index[a] = 0;
  }
  return false;
}

/// The row-major position of an index.
inline std::int64_t position(const Shape& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) flat = flat * shape[a] + index[a];
  return flat;
}

/// How a cell is named. offset: among the window's taps. plane: among the pooled axes. tensor: in the whole array.
/// tensor_column: in the array whose pooled axes are taken in reverse order, so that the plane is column-major.
enum class Index { offset, plane, tensor, tensor_column };

/// One real cell of a window.
template <class T>
struct Cell {
  T value{};
  std::int64_t offset = 0, plane = 0, tensor = 0, tensor_column = 0;

  std::int64_t index(Index kind) const {
    switch (kind) {
      case Index::offset: return offset;
      case Index::plane: return plane;
      case Index::tensor: return tensor;
      default: return tensor_column;
    }
  }
};

/// One window: its real cells in row-major order, and how many taps it has in all and inside the padded array.
template <class T>
struct Cells {
  std::vector<Cell<T>> real;
  std::int64_t taps = 1, clipped = 1;
  std::int64_t padded() const { return clipped - static_cast<std::int64_t>(real.size()); }
};

/// Strides of a row-major array.
inline Shape strides(const Shape& shape) {
  Shape result(shape.size(), 1);
  for (std::size_t a = shape.size(); a-- > 1;) result[a - 1] = result[a] * shape[a];
  return result;
}

/// Strides of the array whose pooled axes are stored in reverse order.
inline Shape column_strides(const Shape& shape, const std::vector<int>& pooled) {
  std::vector<std::size_t> stored(shape.size());
  for (std::size_t a = 0; a < shape.size(); ++a) stored[a] = a;
  for (std::size_t a = 0; a < pooled.size(); ++a) {
    stored[static_cast<std::size_t>(pooled[a])] = static_cast<std::size_t>(pooled[pooled.size() - 1 - a]);
  }
  Shape extents(shape.size());
  for (std::size_t a = 0; a < shape.size(); ++a) extents[stored[a]] = shape[a];
  const Shape by_place = strides(extents);
  Shape result(shape.size());
  for (std::size_t a = 0; a < shape.size(); ++a) result[a] = by_place[stored[a]];
  return result;
}

/// The window of one output, named by its index in the shape with all axes kept.
template <class T>
Cells<T> cells(const Tensor<T>& x, const Windows& w, const Shape& output) {
  const Shape row = strides(x.shape), column = column_strides(x.shape, w.pooled);
  Cells<T> result;
  std::vector<const Bin*> bins;
  Shape taps, corner = output;
  for (std::size_t a = 0; a < w.pooled.size(); ++a) {
    const auto axis = static_cast<std::size_t>(w.pooled[a]);
    bins.push_back(&w.axes[a].bins[static_cast<std::size_t>(output[axis])]);
    taps.push_back(static_cast<std::int64_t>(bins[a]->real.size()));
    corner[axis] = 0;
    result.taps *= bins[a]->taps;
    result.clipped *= bins[a]->clipped;
  }
  if (count(taps) == 0) return result;
  result.real.reserve(static_cast<std::size_t>(count(taps)));
  Cell<T> kept;
  for (std::size_t a = 0; a < corner.size(); ++a) {
    kept.tensor += corner[a] * row[a];
    kept.tensor_column += corner[a] * column[a];
  }
  Shape tap(taps.size(), 0);
  do {
    Cell<T> cell = kept;
    for (std::size_t a = 0; a < bins.size(); ++a) {
      const auto axis = static_cast<std::size_t>(w.pooled[a]);
      const Bin::Tap& t = bins[a]->real[static_cast<std::size_t>(tap[a])];
      cell.offset = cell.offset * bins[a]->taps + t.number;
      cell.plane = cell.plane * w.axes[a].n + t.position;
      cell.tensor += t.position * row[axis];
      cell.tensor_column += t.position * column[axis];
    }
    cell.value = x.values[static_cast<std::size_t>(cell.tensor)];
    result.real.push_back(cell);
  } while (next(tap, taps));
  return result;
}

/// Reduces every window: `reduce` maps Cells to an element of the result.
template <class T, class F>
auto pool(const Tensor<T>& x, const Windows& w, F reduce) {
  using Result = decltype(reduce(std::declval<const Cells<T>&>()));
  Tensor<Result> y{w.output_shape(), {}};
  Windows kept = w;
  kept.keepdims = true;
  const Shape shape = kept.output_shape();
  if (count(shape) == 0) return y;
  y.values.reserve(static_cast<std::size_t>(count(shape)));
  Shape output(shape.size(), 0);
  do y.values.push_back(reduce(cells(x, w, output)));
  while (next(output, shape));
  return y;
}

}  // namespace reference
