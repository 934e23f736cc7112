// Neighbouring outputs that have the same winner, added up before they are sent to it.
#pragma once

#include <cstdint>

#include <cenote/types.h>

namespace cenote::cpu {

/// Outputs of one row, side by side: at most `most`, as lanes and as u8 or u16 offsets. What lies behind the last ones,
/// up to a multiple of `group` and one offset more, is read too.
struct WinnerRuns {
  static constexpr std::int64_t most = 256, group = 16;
  const void* gy;
  const void* offsets;
  std::int64_t count;
  std::int64_t width;   // of a window along the row; or 0 where no offset is the last stride or the first
  std::int64_t stride;  // of windows along the row
  // For each run the sum of gy, and the number of its last output; a group more may be overrun.
  void* sums;
  std::int32_t* ends;
};

/// Gives the number of runs. They are cut where a group begins, so that sums are the same wherever rows are cut, if
/// only they are cut at groups; and on every SIMD target.
using WinnerRunsFunction = std::int64_t (*)(const WinnerRuns&);

/// Lanes of one output and of the next: as above, the runs going from output to output.
struct LaneRuns {
  const void* gy;
  const void* offsets;
  const void* next;  // offsets too, or null where all runs end
  std::int64_t count;
  std::int64_t width, stride;
  void* open;  // sums of the runs that have not ended; what lies behind the last, up to a group, is changed
  void* sums;
  std::int32_t* ends;  // the lanes whose runs end here
};
using LaneRunsFunction = std::int64_t (*)(const LaneRuns&);

struct WinnerRunsFunctions {
  WinnerRunsFunction along;  // null for other offsets
  LaneRunsFunction lanes;    //
};
WinnerRunsFunctions winner_runs_functions(Type lane, Type offset) noexcept;

}  // namespace cenote::cpu
