// What forward mode returns.
#pragma once

#include <cenote/array.h>

namespace cenote {

/// A result and its derivative along the tangent that was given, of the same type and shape.
struct Linearized {
  Array y, dy;
};

}  // namespace cenote
