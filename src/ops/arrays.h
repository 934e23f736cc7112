// What operations check of the arrays they are given.
#pragma once

#include <string>

#include <cenote/array.h>

#include "core/views.h"
#include "plan/geometry.h"

namespace cenote {

/// Rejects a view that has not the type, the shape or the memory it must have.
void check_view(const std::string& who, const char* what, const View& view, Type type, const Extents& shape);

/// The view of an output with all axes of its pooling: those that were dropped get size 1 and a stride.
template <class V>
V with_all_axes(const V& view, const Geometry& geometry) {
  V result = view;
  result.shape = geometry.kept_shape;
  result.strides = Extents::filled(geometry.kept_shape.size(), 0);
  const bool dropped = view.rank() != geometry.kept_shape.size();
  for (int i = 0, from = 0, level = 0; i < geometry.kept_shape.size(); ++i) {
    const bool pooled = level < geometry.pooled.size() && geometry.pooled[level] == i;
    level += pooled;
    if (!dropped || !pooled) result.strides[i] = view.strides[from++];
  }
  return result;
}

}  // namespace cenote
