// A laser scan of a street, computed from nothing.
#pragma once

#include <cenote/array.h>

namespace cenote::demo {

/// Where the street lies, in metres.
inline constexpr float street_length = 48, street_near = -14, street_far = 17, street_height = 11;

/// Points in the order of the rays that found them, f32 (n, 6): x, y, z in metres and red, green, blue from 0 to 255.
Array street_scan();

}  // namespace cenote::demo
