// The demo's contact sheets: what goes in, what comes out, where each winner was, and what a gradient sees.
#pragma once

#include "canvas.h"
#include "lab.h"

namespace cenote::demo {

/// Of the cenote, (1, 768, 1152, 3).
Canvas picture_sheet(Lab& lab, const Array& picture);
Canvas winner_sheet(Lab& lab, const Array& picture);
Canvas gradient_sheet(Lab& lab, const Array& picture);
Canvas volume_sheet(Lab& lab);
Canvas signal_sheet(Lab& lab);

/// The points of a street scan, (n, 6), as the mean colours of voxels.
SparseTensor street_voxels(const Array& scan);
Canvas street_sheet(Lab& lab, const Array& scan, const SparseTensor& voxels);

}  // namespace cenote::demo
