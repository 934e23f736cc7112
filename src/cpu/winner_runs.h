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

/// The lanes of some neighbouring outputs, at most a group of those: as above, the runs going from output to output.
/// What lies behind the last lanes, up to a multiple of a group, is read too.
struct LaneRuns {
  static constexpr std::int64_t most = 128;  // lanes
  const void* gy;
  const void* offsets;
  std::int64_t gy_step, offset_step;  // from output to output
  std::int64_t outputs, count;
  std::int64_t width, stride;
  void* sums;
  std::int32_t* ends;  // of each run its last output times `most` and its lane
};
using LaneRunsFunction = std::int64_t (*)(const LaneRuns&);

struct WinnerRunsFunctions {
  WinnerRunsFunction along;  // null for other offsets
  LaneRunsFunction lanes;    //
};
WinnerRunsFunctions winner_runs_functions(Type lane, Type offset) noexcept;

}  // namespace cenote::cpu
