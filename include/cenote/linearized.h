// What derivatives return.
#pragma once

#include <cenote/array.h>

namespace cenote {

/// A result and its derivative along the tangent that was given, of the same type and shape.
struct Linearized {
  Array y, dy;
};

/// A pulled back cotangent and its derivative along tangents of x and of gy.
struct LinearizedPullback {
  Array gx, dgx;
};

/// Cotangents of the two that a pullback depends on: the x it was made at, and the gy it was given.
struct Cotangents {
  Array x, gy;
};

}  // namespace cenote
