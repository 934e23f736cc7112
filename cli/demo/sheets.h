// The demo's contact sheets: what goes in, what comes out, and where each winner was.
#pragma once

#include "canvas.h"
#include "lab.h"

namespace cenote::demo {

Canvas picture_sheet(Lab& lab);
Canvas winner_sheet(Lab& lab);
Canvas volume_sheet(Lab& lab);
Canvas signal_sheet(Lab& lab);

}  // namespace cenote::demo
