// Max and min the other way: what belongs to an output goes to its winner, or comes from it.
#pragma once

#include <cenote/array.h>

#include "plan/impl.h"

namespace cenote::cpu {

/// Rejects offsets that no winner of the plan's windows can have. Those of windows without a real cell do not matter.
/// Precondition, here and below: offsets have the planned type and, with pooled axes kept, the planned shape.
void check_offsets(const Plan::Impl& plan, const View& offsets);

/// dy = dx at the winners, 0 for windows without a real cell. Precondition: the offsets were checked.
void fetch(const Plan::Impl& plan, const View& offsets, const View& dx, const MutableView& dy);

/// How outputs come to their winners: as small planes, or cells ask the few windows that hold them, or outputs are
/// sent, neighbours of one winner together.
enum class Sending { automatic, small, asked, together };

/// gx = for each cell the sum of gy over the windows that it wins, in an order that only the problem decides. As above.
/// False, and nothing is done, where it is not done in the way that is asked for.
bool send(const Plan::Impl& plan, const View& offsets, const View& gy, const MutableView& gx,
          Sending sending = Sending::automatic);

/// gx = for each cell the sum of gy over the windows that hold it, divided. False, and nothing is done, where many
/// windows hold a cell, or elements do not lie side by side.
bool spread(const Plan::Impl& plan, const View& gy, const MutableView& gx, double divisor);

}  // namespace cenote::cpu
