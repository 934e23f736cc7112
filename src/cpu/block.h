// One block of a pooling's output: how its rows are made, kept and merged.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "cpu/emit.h"
#include "cpu/row_sweep.h"
#include "cpu/scratch.h"
#include "plan/phases.h"

namespace cenote::cpu {

inline constexpr std::int64_t stage_bytes = 4096;  // states on their way out: a small part of L1
inline constexpr std::int64_t swept_cells = 4096;  // of lines that are made as one
inline constexpr std::int64_t least_line = 16;     // outputs that fill a pack by themselves

/// The positions that outputs [begin, end) of an axis reach, and some between.
inline std::pair<std::int64_t, std::int64_t> reach(const Axis& axis, std::int64_t begin, std::int64_t end) {
  if (!axis.irregular()) {
    const std::int64_t from = std::clamp<std::int64_t>(begin * axis.stride - axis.low, 0, axis.n);
    const std::int64_t to = (end - 1) * axis.stride - axis.low + (axis.size - 1) * axis.dilation + 1;
    return {from, std::clamp<std::int64_t>(to, from, axis.n)};
  }
  if (axis.transposed) {
    // The windows that begin at or before the last output, and reach the first.
    const std::int64_t last = end - 1 + axis.low, gap = begin + axis.low - (axis.size - 1) * axis.dilation;
    const std::int64_t to = last < 0 ? 0 : std::min(axis.n, last / axis.stride + 1);
    return {std::min(gap > 0 ? ceil_div(gap, axis.stride) : 0, to), to};
  }
  std::int64_t from = axis.n, to = 0;
  for (std::int64_t o = begin; o < end; ++o) {
    const Axis::Span span = axis.span(o);
    if (span.count == 0) continue;
    from = std::min(from, span.first);
    to = std::max(to, span.first + (span.count - 1) * axis.step() + 1);
  }
  return {std::min(from, to), to};
}

/// How many outputs of an axis a part should have at least, so that little is repeated by the next.
inline std::int64_t least_part(const Axis& axis) {
  constexpr std::int64_t least = 4;  // for each that its neighbours repeat
  return least * std::max<std::int64_t>(1, std::min((axis.size - 1) * axis.dilation / axis.stride, axis.out));
}

/// Whether windows are few whole rows that no other window shares. Lines must be short for that: memory is fast in its
/// own order only.
inline bool folds(const Axis& axis, std::int64_t line_bytes) {
  return !axis.irregular() && (axis.size == 1 || line_bytes < least_apart) && axis.size <= most_folded &&
         axis.low == 0 && (axis.size - 1) * axis.dilation < axis.stride &&
         axis.interior() == std::pair<std::int64_t, std::int64_t>(0, axis.out);
}

/// Lanes between the rows of a plane that is swept: outputs [begin, end) of a line, and what separates lines that are
/// made as one, or rows of lanes side by side.
inline std::int64_t swept_pitch(const Axis& line, std::int64_t begin, std::int64_t end, std::int64_t len,
                                std::int64_t lane_bytes) {
  const std::int64_t pack = 64 / lane_bytes, strip = strip_bytes / lane_bytes;
  const auto [from, to] = reach(line, begin, end);
  const std::int64_t pad = from - (begin - line.low), outputs = end - begin;
  const std::int64_t lanes =
      len > 1 ? outputs * ceil_div(len, strip) * strip : std::max(pad + to - from, outputs + line.size - 1 - pad);
  // An odd number of packs: rows that lie powers of two apart would meet in the cache.
  const std::int64_t packs = ceil_div(lanes, pack);
  return (packs < 16 ? packs : packs | 1) * pack;
}

/// Equal pieces of [0, n), none longer than `most`.
struct Pieces {
  std::int64_t n = 0, count = 0, length = 0;
  static Pieces of(std::int64_t n, std::int64_t most) {
    const std::int64_t count = std::max<std::int64_t>(1, ceil_div(n, std::max<std::int64_t>(most, 1)));
    return {n, count, ceil_div(n, count)};
  }
  /// Rows of channels: never a single one, unless there is but one, since that would be taken for a line.
  static Pieces of_rows(std::int64_t n, std::int64_t most) {
    Pieces pieces = of(n, most);
    while (n > 1 && pieces.length > 1 && n % pieces.length == 1) ++pieces.length;
    pieces.count = std::max<std::int64_t>(1, ceil_div(n, std::max<std::int64_t>(pieces.length, 1)));
    return pieces;
  }
  std::int64_t begin(std::int64_t i) const { return std::min(n, i * length); }
  std::int64_t end(std::int64_t i) const { return std::min(n, (i + 1) * length); }
};

/// Rows of states of one level, made for some outputs at a time.
struct Ring : RowsOfStates {
  std::int64_t outputs = 1;      // that are emitted together, and
  std::int64_t together = 1;     // those whose rows are there at the same time
  std::int64_t* held = nullptr;  // the position in each slot
  bool carries = false;          // rows outlive the chunk of outputs they were made for
  std::int64_t reached = 0;      // rows before this are made or not wanted any more; of dense windows only
  RowSweep* sweeps = nullptr;    // where windows are long, one for each phase of a dilated axis
  std::int64_t phases = 0;

  void clear() {
    if (carries) std::fill(held, held + capacity, std::int64_t{-1});
    origin = reached = 0;
    for (std::int64_t i = 0; i < phases; ++i) sweeps[i].clear();
  }
};

/// One run of a plan: what all blocks share.
struct Run {
  const Plan::Impl& plan;
  SweepRules rules;
  const Layout& layout;
  const std::byte* x;
  Kernels kernels;
  Kernels sums;  // of lanes, for what is tame
  Emitter emitter;
  std::int64_t tile;  // outputs of the innermost level at a time, 0: all
  bool alone;         // on this thread
  std::int64_t lane_bytes, read_bytes, x_plane;
  bool staged;                    // x must be converted or gathered before the kernels can read it
  bool direct;                    // the outermost level's few rows are folded as they are read, without a ring
  PlaneWay way = PlaneWay::none;  // how one kernel makes whole planes, if it does
  bool fused_inside = false;      // one makes those of the two innermost levels of several,
  bool ends_with_planes = false;  // of which the last that a window holds is written as it is made
  bool deep = false;              // or all that a window holds are made together
  bool hopeful = false;           // one kernel makes whole planes if all of their cells are tame
  Pieces inner, tiles, tops;
  std::int64_t outers = 1;
};

/// One block: an outer index, a piece of the inner axis, of the outermost and of the innermost level.
class Block {
 public:
  Block(const Run& run, Scratch& scratch) : run_(run), scratch_(scratch), last_(run.layout.depth - 1) {}

  /// Makes block `number`, and as many of the following as go with it, at most `most` in all; says how many.
  std::int64_t operator()(std::int64_t number, std::int64_t most);

 private:
  /// Where block `number` lies; all else that is said of a block is its.
  Origin enter(std::int64_t number);
  /// This block of `count` planes, which lie as the loop says, by one call.
  void planes(const Origin& origin, std::int64_t count, const Loop& beside);
  /// The same as if all cells were tame; says whether they are.
  bool tame_planes(const Origin& origin, std::int64_t count, const Loop& beside);
  /// The same of one plane, one pass after the other.
  void by_passes(const Origin& origin);
  /// The same of winners whose offsets become indices, a few at a time.
  void number_planes(const Planes& all, const Loop& beside);
  /// Makes planes. Those whose windows tile their rows, and that follow each other without a gap, are one of more rows.
  void join_tiles(Planes call, void (*make)(const Planes&));
  /// The two innermost levels of one plane; where it goes is up to the caller.
  Planes planes_of_two_levels(const std::byte* x);
  /// Makes the planes of two levels leave winners, whose values are lanes and whose numbers are bytes, and those bytes
  /// lanes, too.
  void number_inside();
  void widen_numbers(std::byte* dst) const;
  /// Lengths of rows and the memory of rings, for this block's tile.
  void prepare();
  void make_ring(int l);
  /// Memory for sweeps along the innermost level: of a few windows at a time.
  void make_work();
  std::int64_t slack_lanes() const { return 64 / run_.lane_bytes; }
  /// Of what the kernels read: cells as they lie, or as they were brought together.
  std::int64_t source_bytes() const { return staged_ ? run_.lane_bytes : run_.read_bytes; }
  std::int64_t stage_plane() const { return stage_lanes_ + slack_lanes(); }
  const Loop& loop(int l) const { return run_.layout.levels[static_cast<std::size_t>(l)]; }
  const Axis& axis(int l) const { return run_.layout.axes[static_cast<std::size_t>(l)]; }
  /// Looks whether the cells of some outputs of the outermost level are tame: then their powers are staged and summed.
  void tame(const std::byte* x, std::int64_t begin, std::int64_t end);
  /// The least and the greatest of them, as kernels see that.
  struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    void include(double other) { low = std::min(low, other), high = std::max(high, other); }
  };
  using Look = void (*)(const void* line, std::int64_t n, double& low, double& high);
  Range range_of_cells(const std::byte* x, std::int64_t begin, std::int64_t end, Look look);
  Params tamed_cells(const Range& range) const;
  /// Of windows, by what lies beside those outputs too: the cells that they hold.
  Params tamed_windows(const std::byte* x, std::int64_t begin, std::int64_t end);
  bool range_beside(std::int64_t begin, std::int64_t end, Look look, Range& range) const;
  /// Both levels at once: reduced straight into the stage, several rows at a time where they are short.
  void batch(const std::byte* x);
  void top_level(const std::byte* x);
  /// The call that writes outputs of the outermost level from o on, the first of whose planes is at position p.
  Planes planes_at(const std::byte* x, std::int64_t o, std::int64_t p) const;
  /// One output of the outermost level, whose last plane is written as it is made; says whether it could be.
  bool end_with_plane(const std::byte* x, std::int64_t o);
  /// All outputs of level l and those inside it, for one position of the levels outside.
  void level(int l, const std::byte* x, std::byte* dst, std::int64_t plane);
  /// Makes the rows of level l that outputs [begin, end) need and that the ring does not hold, but the last few.
  void fill(int l, const std::byte* x, std::int64_t begin, std::int64_t end, std::int64_t but = 0);
  /// Makes the rows of positions [from, to) that are not there, as many at a time as lie side by side in the ring.
  void make(int l, const std::byte* x, std::int64_t from, std::int64_t to);
  /// Asks memory for what the tile needs of one more row.
  void expect(const std::byte* row) const;
  /// Outputs [begin, end) of level l, lanes [from, to) of each. A sweep goes from output to output, all lanes of one
  /// before the next.
  void merge(int l, std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to, std::byte* dst,
             std::int64_t dst_step, std::int64_t dst_plane);
  /// Outputs [begin, end) of the innermost level for a batch of rows.
  Pass first_pass_of(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin, std::int64_t end,
                     std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane) const;
  void first_pass(const std::byte* x, std::int64_t rows, std::int64_t x_row, std::int64_t begin, std::int64_t end,
                  std::byte* dst, std::int64_t dst_row, std::int64_t dst_plane);
  void launch(Pass& pass);
  /// Windows that are mostly padding: swept as those of as many cells as there are, which begin or end with the same
  /// cell, but for those between, which hold all there is.
  void launch_overhanging(const Pass& pass);
  /// Outputs of one row, each of which holds every cell that lies as far apart as its own.
  void repeat_whole(const Pass& pass);
  /// A transposed axis, phase by phase, and then woven together.
  void launch_phases(const Pass& pass);
  /// Positions that lie so far apart, side by side: `lanes` for each of as many phases, of `count` positions in all,
  /// from position `from` of each on.
  struct Lattice {
    std::int64_t lanes = 0, from = 0, count = 0;
  };
  /// Brings together what the outputs of a pass reach.
  Lattice thin_out(Pass& pass, std::int64_t apart);
  /// As above, after bringing the cells together in the lane type, some outputs at a time.
  void staged_pass(Pass pass);
  /// Cells at `count` positions, converted to the lane type, side by side, each of their numbers in a plane.
  void gather(const std::byte* x, std::int64_t count, Pass& pass);

  const Run& run_;
  Scratch& scratch_;
  int last_;
  std::int64_t len_ = 1, begin_ = 0, end_ = 0, tile_begin_ = 0, tile_end_ = 0, stage_lanes_ = 0;
  std::array<std::int64_t, max_rank> row_lens_{};  // lanes of one row of each level
  std::array<Ring, max_rank> rings_{};
  Params params_;
  const Kernels* kernels_ = nullptr;  // the run's, or for sums
  bool staged_ = false;
  std::int64_t looked_at_ = 0;  // cells that were looked at together
  std::int64_t beside_ = 0;     // where what lies beside this block's outputs begins
  std::byte* stage_ = nullptr;
  std::byte* work_ = nullptr;
  std::int64_t work_lanes_ = 0;
  bool in_phases_ = false;           // the innermost level is transposed and made phase by phase
  std::int64_t swept_together_ = 0;  // outputs along it that repeat no more than they make
  std::int64_t across_ = 0;          // cells_across() of the innermost level, wherever it is cut
  bool nan_ = false;                 // some cell of this block may be NaN
  Planes inside_{};                  // where one kernel makes the planes of the two innermost levels
  Axis joined_{};                    // all rows of a plane
  std::int64_t place_ = 0;           // what winners' numbers of this block begin with
  std::int64_t y_ = 0;               // where the outputs of this block's outer index begin
  Emitter::Block emit_;
};

}  // namespace cenote::cpu
