// What is known of an array before it exists: its type and its shape.
#pragma once

#include <cenote/extents.h>
#include <cenote/types.h>

namespace cenote {

struct Signature {
  Type type = Type::f32;
  Extents shape;
  friend bool operator==(const Signature&, const Signature&) = default;
};

}  // namespace cenote
