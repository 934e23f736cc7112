// What the demo pools, computed from nothing: a sunlit cenote, a knot in a volume, a signal.
#pragma once

#include <cenote/array.h>

namespace cenote::demo {

/// A picture of shape (1, height, width, 3), f32 from 0 to 255: light falling through the roof of a cave into water.
Array cenote_picture(int height, int width);

/// The brightness of a picture as (1, 1, height, width).
Array luminance(const Array& picture);

/// A volume of shape (1, 1, n, n, n), f32 from 0 to 1: a trefoil knot of light in mist.
Array knot_volume(int n);

/// A signal of shape (1, 1, n), f32 within (-1, 1): a chirp under a swelling envelope, with noise and clicks.
Array chirp_signal(int n);

}  // namespace cenote::demo
