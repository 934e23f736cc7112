// Chooses how a pooling is run, cuts it into blocks and hands them to threads.
#include "cpu/execute.h"

#include <algorithm>

#include "core/parallel.h"
#include "cpu/block.h"
#include "cpu/machine.h"
#include "cpu/power_sums.h"
#include "cpu/slices.h"
#include "cpu/volumes.h"
#include "cpu/woven.h"
#include "plan/apart.h"
#include "reduce/reducers.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t serial_bytes = 128 << 10;  // less than this is not worth waking a thread
constexpr std::int64_t task_bytes = 256 << 10;    // what one task should move at least
constexpr std::int64_t most_lanes = 2048;         // along the inner axis at a time
constexpr std::int64_t least_row = 64;            // bytes of a row that fills one
constexpr std::int64_t most_small = 2048;         // cells of a small plane
constexpr std::int64_t least_small = 16;          // cells of a window in it that is worth a sweep
constexpr std::int64_t least_rows = 4;            // of a window in larger planes,
constexpr std::int64_t least_wide = 256;          // and outputs of their lines
constexpr std::int64_t least_deep = 12288;        // of the states of a plane: less wait in L1
constexpr std::int64_t swept_bytes = 256 << 10;   // of rows side by side that wait to be joined
constexpr std::int64_t least_swept = 64;          // lanes of them: shorter runs of memory are slow
// Cells between windows that share none up to which rows of large arrays are not joined first where only the processor
// asks memory ahead: it does so for one run of addresses at a time, and rows in turn are many. EPYC, k3 s3 of 100 MB:
// 7.1 ms joined first, 5.4 else; of 2 MB 0.038 and 0.069. Not so of many rows, which are read one after the other, and
// of windows of one column: k3x1 of 26 MB 1.6 and 4.1.
constexpr std::int64_t most_plain_far = 3;
constexpr std::int64_t tile_lanes = 8192;  // of rows that lie side by side: shorter runs of memory are slow,
constexpr std::int64_t ring_lanes = 2048;  // but where windows share several, those should wait in L1

bool reads_directly(const Plan::Impl& plan) {
  return plan.type == plan.lane_type || is_keyed(plan) || (is_half(plan.type) && plan.lane_type == Type::f32);
}

// Whether the few rows of a window that no other shares are folded as they are read.
bool folds_directly(const SweepRules& rules, const Layout& layout, bool staged, std::int64_t read_bytes) {
  const bool lines = layout.inner.extent == 1;
  if (layout.depth != 2 || !folds(layout.axes[0], lines ? layout.axes[1].n * read_bytes : 0)) return false;
  const bool narrow = lines && layout.axes[1].out < least_line;
  return layout.axes[0].size == 1 || (!staged && !narrow && !rules.sweeps(layout.axes[1], true));
}

// Lanes of rows side by side that are swept at a time: as many as leave the rows of two blocks in the cache.
std::int64_t swept_lanes(const Run& run) {
  const Axis &across = run.layout.axes[0], &line = run.layout.axes[1];
  const std::int64_t strip = strip_bytes / run.lane_bytes;
  const std::int64_t rows = std::min(across.n, 2 * across.size), most = swept_bytes / run.lane_bytes / rows / line.out;
  return std::min(most / strip * strip, most_lanes);
}

// Whether windows lie at every place of planes, and are long enough for a sweep both ways to pay.
bool is_swept(const Run& run) {
  const Layout& layout = run.layout;
  const Axis &across = layout.axes[0], &line = layout.axes[1];
  const SweepRules& rules = run.rules;
  if (!run.kernels.swept || run.plan.role != Role::value || run.staged || layout.depth != 2 ||
      !run.emitter.is_straight() || rules.sweep == Sweep::never || !is_dense(across) || !is_dense(line))
    return false;
  const bool averages = run.plan.traits.counts == Counts::divisor;
  const bool direct = run.plan.output_type == run.plan.type && (!averages || is_float(run.plan.type));
  const bool lines = layout.inner.extent == 1;
  if (lines ? !direct && (layout.levels[0].y != line.out || run.tile < line.out)
            : !direct || layout.inner.extent * run.lane_bytes < least_row ||
                  swept_lanes(run) < std::min(layout.inner.extent, least_swept))
    return false;
  const bool small = across.n < most_small && line.n < most_small && across.n * line.n <= most_small;
  const bool wide = across.size >= least_rows && line.out >= least_wide && run.lane_bytes >= 4;
  return rules.sweep == Sweep::always || rules.sweeps(across, false) || sweeps_planes(across, line) ||
         (across.size * line.size >= least_small && (small || wide));
}

// The form that the plan has chosen for planes, if they lie so in memory.
PlaneWay way_of_form(const Plan::Impl& plan, const Layout& layout, bool far) {
  const Algorithm& algorithm = plan.algorithm;
  if (algorithm.weave != Weave::automatic || algorithm.sweep != Sweep::automatic) return PlaneWay::none;
  if (plan.role != Role::value || layout.depth != 2 || layout.inner.extent > 1) return PlaneWay::none;
  const Axis &across = layout.axes[0], &line = layout.axes[1];
  const std::vector<Axis>& planned = plan.geometry.axes;
  if (algorithm.form == Form::rows_first && joins_rows_first(across, line) && layout.levels[0].x >= line.n) {
    const bool few = across.size <= most_rows_first && line.size > 1 && line.size <= most_rows_first;
    return far && few && !algorithm.small && line.stride <= most_plain_far && asked_ahead() == 0 ? PlaneWay::none
                                                                                                 : PlaneWay::rows_first;
  }
  // Levels are the axes that the plan has looked at, unless some were merged, or planes cut.
  const bool flat = algorithm.form == Form::flat && !layout.kept_top && across == planned[planned.size() - 2] &&
                    line == planned.back() && layout.outer_count > 0 && layout.levels[0].x == line.n &&
                    layout.levels[0].y == line.out &&
                    layout.outer[static_cast<std::size_t>(layout.outer_count - 1)].x == across.n * line.n;
  return flat ? PlaneWay::flat : PlaneWay::none;
}

// Whether one kernel can make the planes of the two innermost levels: short windows over rows of lines.
bool makes_planes(const Run& run, bool exists) {
  const Layout& layout = run.layout;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const Axis &across = layout.axes[last - 1], &line = layout.axes[last];
  const SweepRules& rules = run.rules;
  if (!exists || run.staged || across.irregular() || line.irregular() || across.dilation > 1 ||
      across.size > most_folded || rules.sweeps(across, false))
    return false;
  if (layout.inner.extent == 1)
    return rules.sweeps(line, true) ? !overhangs(line) : line.size <= most_folded || rules.has_lanes(line);
  // Where states are cells or winners, columns of fewer lanes too.
  const bool fills = layout.inner.extent * run.lane_bytes >= least_row;
  return (fills || run.kernels.swept || run.plan.role == Role::winner) && layout.inner.extent <= most_lanes &&
         line.dilation == 1 && line.size <= most_folded && !rules.sweeps(line, true);
}

// Whether rows are so short that all those of a plane are better made as one line: windows tile each exactly.
bool joins_rows(const Run& run) {
  const Axis &across = run.layout.axes[0], &line = run.layout.axes[1];
  return !run.direct && run.plan.role == Role::value && run.layout.inner.extent == 1 && line.out < least_line &&
         line.low == 0 && line.n == line.out * line.stride && (line.size - 1) * line.dilation < line.stride &&
         run.layout.levels[0].x == line.n && across.n < most_small && across.n * line.out <= most_small;
}

// Whether the cells of windows are pairs, and one more at most: few of them, two apart, some of which lie in the line.
bool has_pairs(const Axis& line) {
  return line.stride == 2 && (line.size == 2 || line.size == 3) && line.dilation == 1 && line.low < 2 && line.n > 0 &&
         (line.out - 1) * 2 - line.low < line.n && line.out <= tile_lanes;
}

// Whether those planes are made of pairs of cells and tangents: windows share at most one row, and are side by side or
// of few cells two apart, each of which lies in the line.
bool follows(const Run& run) {
  const Axis &across = run.layout.axes[0], &line = run.layout.axes[1];
  if (across.size > across.stride + 1) return false;
  if (run.layout.inner.extent > 1) return true;
  return has_pairs(line);
}

// Whether planes are made as if all cells were tame, at first: where such sums exist, by the kernels that make
// followers. Of a smooth max no window may reach over an end, since there is no cell whose power is 0.
bool is_hopeful(const Run& run) {
  const Plan::Impl& plan = run.plan;
  const Layout& layout = run.layout;
  const bool lp = plan.pooling.reducer == Reducer::lp;
  const double most =
      lp ? scalar::Lp(plan.params).tame_cells<float>().high : scalar::SmoothMax(plan.params).tame_cells<float>().high;
  const auto inside = [](const Axis& axis) {
    return axis.interior() == std::pair<std::int64_t, std::int64_t>(0, axis.out);
  };
  return layout.depth == 2 && run.emitter.is_straight() && most > 0 &&
         makes_planes(run, run.kernels.tame_planes != nullptr) && follows(run) &&
         (layout.inner.extent > 1 || run.tile == 0 || run.tile >= layout.axes[1].out) &&
         (lp || (inside(layout.axes[0]) && inside(layout.axes[1])));
}

// Whether the planes of a volume that windows hold are made together: they share none, nor any row.
bool is_deep(const Run& run) {
  const Axis &top = run.layout.axes[0], &across = run.layout.axes[1], &line = run.layout.axes[2];
  const bool side_by_side = run.layout.inner.extent > 1;
  return !run.rules.sweeps(line, true) &&
         across.out * line.out * run.layout.inner.extent * run.lane_bytes >= least_deep && top.low == 0 &&
         top.size <= top.stride && top.interior() == std::pair<std::int64_t, std::int64_t>(0, top.out) &&
         across.size <= across.stride && across.low == 0 &&
         across.interior() == std::pair<std::int64_t, std::int64_t>(0, across.out) && !across.irregular() &&
         !line.irregular() && (side_by_side || has_pairs(line)) && run.rules.sweep != Sweep::always;
}

// Cuts the work so that every thread has some, without ever changing a bit of the result.
void cut(Run& run) {
  const Layout& layout = run.layout;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const Axis &top = layout.axes[0], &tail = layout.axes[last];
  for (int i = 0; i < layout.outer_count; ++i) run.outers *= layout.outer[static_cast<std::size_t>(i)].extent;
  const bool side_by_side = layout.inner.extent > 1;
  run.inner =
      Pieces::of_rows(layout.inner.extent, run.way == PlaneWay::swept && side_by_side ? swept_lanes(run) : most_lanes);
  const bool unbroken = run.way == PlaneWay::joined || run.way == PlaneWay::flat || run.way == PlaneWay::rows_first;
  const bool swept = run.way == PlaneWay::swept;
  const bool whole = run.direct || unbroken || run.deep || (swept && side_by_side) || run.plan.role == Role::follower ||
                     (run.hopeful && !side_by_side) || run.tile == 0;
  run.tiles = Pieces::of(tail.out, whole ? tail.out : run.tile);
  if ((run.way != PlaneWay::none || run.hopeful) && !swept && !run.direct && layout.inner.extent > 1)
    run.tiles = Pieces::of(tail.out, std::max<std::int64_t>(1, (top.size > top.stride + 1 ? ring_lanes : tile_lanes) /
                                                                   layout.inner.extent));
  run.tops = Pieces::of(top.out, top.out);
  if (unbroken && run.way != PlaneWay::rows_first) return;
  const std::int64_t wanted = run.alone || run.plan.bytes < serial_bytes ? 1 : 4 * std::int64_t{thread_limit()};
  const auto have = [&] { return run.outers * run.inner.count * run.tiles.count * run.tops.count; };
  const auto split = [&](const Axis& axis) {
    const std::int64_t pieces = std::min(ceil_div(wanted, have()), ceil_div(run.plan.bytes, task_bytes));
    // A piece should be several windows long, or neighbours would repeat most of each other's work.
    const std::int64_t overlap =
        axis.irregular() ? 1 : std::min((axis.size - 1) * axis.dilation / axis.stride, axis.out);
    return Pieces::of(axis.out, std::max(ceil_div(axis.out, pieces), 4 * overlap));
  };
  if (have() < wanted) run.tops = split(top);
  // Followers along lines, and tame sums, have no maker that begins anywhere.
  if (have() < wanted && run.direct && !unbroken && run.plan.role != Role::follower && !(run.hopeful && !side_by_side))
    run.tiles = split(tail);
}

bool run_layout(const Plan::Impl& plan, const SweepRules& rules, const Layout& layout, const Operands& operands,
                const Numbering* numbering, std::int64_t tile, bool stream, bool alone,
                PlaneWay form = PlaneWay::none) {
  const Reducer reducer = plan.divides_late ? Reducer::sum : plan.pooling.reducer;
  const auto last = static_cast<std::size_t>(layout.depth - 1);
  const bool lines = layout.inner.extent == 1;
  const bool contiguous = lines ? layout.levels[last].x == 1 : layout.inner.x == 1;
  // Lanes that gather read whole lanes, so that halves are widened before.
  const bool scattered = lines && is_half(plan.type) && !is_keyed(plan) && layout.axes[last].irregular() &&
                         !makes_phases(rules, layout.axes[last], lines);
  const bool staged = !contiguous || scattered || !reads_directly(plan) ||
                      (!kernels(plan.type, reducer, plan.role).lines && plan.role != Role::follower);
  const Type read = staged ? staged_type(plan) : plan.type;
  Run run{plan,
          rules,
          layout,
          static_cast<const std::byte*>(operands.x.data),
          kernels(read, reducer, plan.role),
          kernels(plan.lane_type, Reducer::sum, Role::value),
          Emitter(plan, layout, operands, reducer, stream, numbering),
          tile,
          alone,
          static_cast<std::int64_t>(size_of(plan.lane_type)),
          static_cast<std::int64_t>(size_of(plan.type)),
          operands.x_plane,
          staged,
          folds_directly(rules, layout, staged, static_cast<std::int64_t>(size_of(plan.type))),
          form,
          false,
          false,
          false,
          false,
          {},
          {},
          {},
          1};
  // Halves that are widened leave states to the lane type.
  if (!run.kernels.merge) run.kernels.merge = kernels(plan.lane_type, reducer, plan.role).merge;
  if (!run.kernels.join) run.kernels.join = kernels(plan.lane_type, reducer, plan.role).join;
  if (form != PlaneWay::none) {
    if (!run.kernels.swept || run.staged || !run.emitter.is_straight()) return false;
  } else if (is_swept(run)) {
    run.way = PlaneWay::swept;
  } else if (layout.depth == 2 && run.emitter.is_straight() && makes_planes(run, run.kernels.planes != nullptr)) {
    run.way = joins_rows(run) ? PlaneWay::joined : PlaneWay::rows;
  }
  run.fused_inside =
      layout.depth > 2 && makes_planes(run, run.kernels.planes != nullptr) &&
      (plan.role == Role::value || (plan.role == Role::winner && plan.count && run.emitter.number_inside_by_window()));
  const Axis& top = layout.axes[0];
  run.ends_with_planes = run.fused_inside && plan.role == Role::value && layout.depth == 3 &&
                         run.emitter.is_straight() && !top.irregular() && top.dilation == 1 &&
                         top.size <= most_folded && !run.rules.sweeps(top, false);
  run.deep = run.ends_with_planes && is_deep(run);
  run.hopeful = run.way == PlaneWay::none && run.kernels.tame_planes && is_hopeful(run);
  if (plan.role == Role::follower && !(run.way != PlaneWay::none && follows(run))) return false;
  cut(run);
  const std::int64_t blocks = run.outers * run.inner.count * run.tiles.count * run.tops.count;
  const std::int64_t together =
      alone || plan.bytes < serial_bytes
          ? blocks
          : std::max<std::int64_t>(1, blocks / std::max<std::int64_t>(1, plan.bytes / task_bytes));
  parallel_for(ceil_div(blocks, together), [&](std::int64_t task) {
    Block block(run, Scratch::of_this_thread());
    const std::int64_t end = std::min(blocks, (task + 1) * together);
    for (std::int64_t i = task * together; i < end;) i += block(i, end - i);
    if (stream) run.emitter.flush();
    if (!alone) Scratch::of_this_thread().trim();
  });
  return true;
}

// Calls use(layout, operands) once, or for every phase of the levels outside the innermost whose windows, seen from the
// cells, are so long that they are swept. What is read is small beside what is written where windows lie apart.
template <class Use>
bool each_phase(const Plan::Impl& plan, const SweepRules& rules, const Layout& layout, const Operands& operands,
                const Use& use) {
  for (std::size_t l = 0; l + 1 < static_cast<std::size_t>(layout.depth); ++l) {
    const Axis& axis = layout.axes[l];
    const Loop& level = layout.levels[l];
    if (!sweeps_phases(rules, axis, false)) continue;
    const std::int64_t count = phases_of(axis), bytes = static_cast<std::int64_t>(size_of(plan.output_type));
    for (std::int64_t first = 0; first < std::min(count, axis.out); ++first) {
      Layout phase = layout;
      Operands parts = operands;
      phase.axes[l] = phase_of(axis, first);
      phase.levels[l].y *= count;
      phase.levels[l].beside *= count;
      parts.y.data = static_cast<std::byte*>(operands.y.data) + first * level.y * bytes;
      if (operands.cells.data)
        parts.cells.data = static_cast<const std::byte*>(operands.cells.data) + first * level.beside * bytes;
      each_phase(plan, rules, phase, parts, use);
    }
    return true;
  }
  return use(layout, operands);
}

// All of a layout, written past the caches or not, on this thread alone or on several.
bool run_whole(const Plan::Impl& plan, const Layout& layout, const Operands& operands, bool stream, bool alone) {
  const Numbering numbering(plan, layout);
  const PlaneWay form = way_of_form(plan, layout, stream);
  if (form != PlaneWay::none &&
      run_layout(plan, plan.algorithm, layout, operands, &numbering, plan.algorithm.tile, stream, alone, form))
    return true;
  const PoolPlanes pool_planes = [&](const Plan::Impl& planes, const Layout& part, const Operands& parts) {
    const auto run = [&](PlaneWay way) {
      return run_layout(planes, planes.algorithm, part, parts, nullptr, planes.algorithm.tile, false, true, way);
    };
    const PlaneWay way = way_of_form(planes, part, false);
    return (way != PlaneWay::none && run(way)) || run(PlaneWay::none);
  };
  if (pool_volumes(plan, layout, operands, numbering, stream, alone, pool_planes)) return true;
  const Woven woven(plan, layout, operands, numbering, stream);
  if (!woven.applies())
    return each_phase(plan, plan.algorithm, layout, operands, [&](const Layout& part, const Operands& parts) {
      return run_layout(plan, plan.algorithm, part, parts, &numbering, plan.algorithm.tile, stream, alone);
    });
  SweepRules rules = plan.algorithm;
  rules.along_lines = rules.plain_lines = false;
  const std::int64_t tasks = alone ? 1 : woven.groups();
  parallel_for(tasks, [&](std::int64_t task) {
    for (std::int64_t i = task; i < (tasks == 1 ? woven.groups() : task + 1); ++i)
      woven(i, [&](const Layout& turned, const Operands& group) {
        each_phase(plan, rules, turned, group, [&](const Layout& part, const Operands& parts) {
          return run_layout(plan, rules, part, parts, nullptr, 0, false, true);
        });
      });
  });
  return true;
}

}  // namespace

bool execute(const Plan::Impl& plan, const Operands& operands) {
  if (element_count(operands.y.shape) == 0 || pool_by_sums(plan, operands)) return true;
  const View beside = plan.role == Role::cotangent ? operands.cells : View(operands.indices);
  const Layout layout = make_layout(plan, operands.x, operands.y, beside);
  const bool stream = plan.algorithm.past_caches || plan.bytes > last_level_cache() / 8 * 7;
  const bool alone = plan.bytes < serial_bytes;
  if (plan.sums) {
    // Slices come into the cache, wherever they are read from.
    const PoolPlanes pool = [](const Plan::Impl& sums, const Layout& part, const Operands& parts) {
      const bool done = run_whole(sums, part, parts, false, true);
      Scratch::of_this_thread().trim();
      return done;
    };
    if (pool_slices(plan, layout, operands, stream, alone, pool)) return true;
  }
  const bool done = run_whole(plan, layout, operands, stream, alone);
  if (alone) Scratch::of_this_thread().trim();
  return done;
}

}  // namespace cenote::cpu
