// The choice of algorithm: which passes, and how wide the tiles that keep their intermediates in cache.
#include "plan/choose.h"

#include <algorithm>

#include "plan/apart.h"
#include "plan/phases.h"

namespace cenote {
namespace {

constexpr std::int64_t ring_budget = 256 * 1024;  // bytes of one thread's rings: a part of a common L2
// From this many cells on sweeping is faster, as measured in f32, where windows hold so many times their stride, since
// that makes direct folding cheaper. Of pairs of numbers, and along rows side by side, it is more; but not of rows of
// so few packs that one cell waits for another, and less the emptier those are, since a sweep goes through all lanes.
constexpr std::int64_t shortest_swept_line = 9, shortest_swept_rows = 9, shortest_weighed_line = 3;
constexpr double least_overlap = 3, least_overlap_beside = 9, least_overlap_of_few = 4;
constexpr std::int64_t most_packs_of_few = 3;
// Along lines, cells that lie so far apart are fetched one by one, unless windows are so long that lanes run along
// each; up to a few outputs that nobody wants cost less.
constexpr std::int64_t least_picked = 5, most_picked = 11, most_dropped = 3, least_outputs = 16;
constexpr std::int64_t most_few = 4;     // channels that would leave most lanes empty
constexpr std::int64_t least_tile = 64;  // narrower tiles would re-read too much of their halo

// Outputs of a line, in f32, up to which planes are faster turned, as measured: where windows are pairs, or tile lines
// without a rest; where they lie a few cells apart, none of them over an end; at every place, of up to three cells, and
// of five or so many that they are swept. Others always.
constexpr std::int64_t most_pairs = 12, most_tiles = 6, most_apart = 16, most_dense = 48, most_swept = 28;
// Cells of a line up to which it is so where windows that tile it have lanes of their own.
constexpr std::int64_t most_laned_tiles = 31;
// Rows and columns of windows, and cells and bytes of planes, up to which planes are faster as one line of cells each.
constexpr std::int64_t most_flat = 5, most_flat_cells = 3200, most_flat_bytes = 12 << 10;
constexpr std::int64_t most_flat_halves = 1600, least_flat_halves = 6;
// Cells of a line, in f32, from which on rows are better joined first where windows share cells, and outputs up to
// which they are, at every place and where windows are pairs and one cell more. From this stride on, windows that share
// no cells always.
constexpr std::int64_t least_first = 14, most_dense_first = 144, most_pairs_first = 29;
constexpr std::int64_t least_stride_first = 3;
// Of many rows: blocks of them up to which that is faster than a sweep; and of many rows or columns, outputs of a line
// from which on it is where windows lie two apart.
constexpr std::int64_t most_blocks_first = 10, least_many_rows = 28;
// Where windows tile planes, their stride up to which rows of many are one line, and outputs of a row up to which that
// is faster than to join the rows of windows first.
constexpr std::int64_t most_joint_stride = 4, most_joint_tiles = 4;
// Bytes of states that wait from which on the planes of volumes are better pooled each by itself where they are rows of
// channels.
constexpr std::int64_t least_waiting = 768 * 1024;
constexpr std::int64_t longest_woven = 256;  // cells of lines by themselves
constexpr std::int64_t most_rows = 8;        // of windows

std::int64_t saturating_product(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
std::int64_t saturating_sum(std::int64_t a, std::int64_t b) noexcept { return a > INT64_MAX - b ? INT64_MAX : a + b; }

// Whether lanes are better used across planes, or lines, than along lines. Packs hold `pack` times as many cells as
// those of f32; `alike` is as for choose().
bool is_small(const Geometry& geometry, const SweepRules& rules, bool places, bool alike, double pack) {
  const Axis& line = geometry.axes.back();
  // Lanes run along the cells of a single output.
  if (line.out == 1) return false;
  if (line.irregular()) return true;
  const auto fewer = [&](std::int64_t outputs) {
    return static_cast<double>(line.out) < pack * static_cast<double>(outputs);
  };
  const bool dense = line.dilation == 1, tiles = dense && line.size == line.stride && line.low == 0;
  const bool exact = tiles && tiles_exactly(line);
  const bool inside = line.interior() == std::pair<std::int64_t, std::int64_t>(0, line.out);
  const bool laned = rules.has_lanes(line);
  if (geometry.axes.size() == 1) {
    if (laned) return false;
    if (line.stride >= least_picked && (places || line.size < most_picked)) return places || !fewer(most_tiles);
    if (line.stride >= 3 && line.size <= line.stride) return fewer(most_apart);
    return line.stride >= 2 && line.size >= 4 && line.n <= longest_woven;
  }
  // No kernel makes planes of so many rows a window at once.
  const Axis& across = geometry.axes[geometry.axes.size() - 2];
  if (across.size > most_rows && fewer(most_apart)) return true;
  // The rows of a plane that windows tile are one line if they are short.
  if (laned && exact && line.out < most_apart)
    return static_cast<double>(line.n) <= std::min(pack, 2.0) * static_cast<double>(most_laned_tiles);
  if (laned && inside) return fewer(most_apart);
  // Windows that tile planes make lines of many.
  if (line.stride <= most_joint_stride && !places && tiles_exactly(across) && tiles_exactly(line)) return false;
  if (line.stride == 2 && line.size <= 3 && dense && line.low < 2)
    return fewer(exact && !places ? most_tiles : most_pairs);
  if (line.stride <= 4 && exact && !places) return fewer(most_tiles);
  if (line.stride > 2 && line.stride <= 4 && tiles && inside) return fewer(most_apart);
  const bool swept =
      (line.size >= shortest_swept_line && !places) || (rules.plain_lines && alike && sweeps_planes(across, line));
  if (line.stride == 1 && dense && (line.size <= 3 || line.size == 5 || swept))
    return fewer(line.size <= 3 ? most_dense : most_swept);
  return true;
}

// Whether windows are short, of small planes: along lines as many as there are cells, or two apart and half as many.
bool is_flat(const Axis& across, const Axis& line, std::int64_t lane_bytes, std::int64_t bytes) {
  for (const Axis& axis : {across, line})
    if (axis.irregular() || axis.dilation > 1 || axis.low >= axis.size || axis.size > most_flat || axis.size > axis.n ||
        axis.n > most_flat_cells || axis.stride > most_flat || (axis.out - 1) * axis.stride - axis.low >= axis.n)
      return false;
  const bool halves =
      line.stride == 2 && line.n == 2 * line.out && line.size == 3 && line.low < 2 && line.out >= least_flat_halves;
  const std::int64_t cells = across.n * line.n;
  return (halves || (line.stride == 1 && line.out == line.n)) && across.out <= across.n &&
         cells <= (halves ? most_flat_halves : most_flat_cells) && (halves || cells * bytes <= most_flat_bytes) &&
         across.n * line.out * lane_bytes >= 64;
}

// Whether lines are neither so short that planes are better turned, nor so long that a kernel for them is better than
// to join the rows of windows first. Packs hold `pack` times as many cells as those of f32.
bool is_better_rows_first(const Axis& across, const Axis& line, double pack) {
  // The rows of a plane that windows tile are one line if they are short.
  if (line.stride <= most_joint_stride && line.out <= most_joint_tiles && tiles_exactly(across) && tiles_exactly(line))
    return false;
  const auto fewer = [&](std::int64_t count, std::int64_t most) {
    return static_cast<double>(count) < pack * static_cast<double>(most);
  };
  const bool overlaps = blocks_along(line) > 0;
  if (line.stride > most_apart_cells && 2 * line.size < line.stride) return false;
  // Windows of one row have none to join, but the way along the line may be better.
  if (across.size == 1)
    return line.stride <= most_apart_cells &&
           (overlaps || (across.n > 1 && line.stride >= least_stride_first && line.size <= most_apart_cells));
  if (across.size > most_rows_first && (line.out == 1 || blocks_across(across) > most_blocks_first)) return false;
  if (line.size == 1) return true;
  if (across.size > most_rows_first || overlaps) return line.stride > 2 || !fewer(line.out, least_many_rows);
  if (line.stride >= least_stride_first && line.size <= line.stride) return true;
  if (sweeps_planes(across, line) || fewer(line.out * line.stride, least_first)) return false;
  if (line.stride == 1) return line.dilation > 1 || fewer(line.out, most_dense_first);
  // Windows that tile planes make lines of many.
  if (tiles_exactly(across) && tiles_exactly(line)) return false;
  return line.stride > 2 || line.size > 3 || fewer(line.out, most_pairs_first);
}

// Whether the lines of planes are better made as `form` says than with whole volumes of which `waiting` bytes wait.
bool is_better_by_planes(const Geometry& geometry, const SweepRules& rules, Form form, bool contiguous, bool places,
                         std::int64_t waiting) {
  const Axis &top = geometry.axes[0], &line = geometry.axes.back();
  if (places || form == Form::flat) return true;
  if (!contiguous) return top.size > top.stride && waiting >= least_waiting && !rules.sweeps(top, false);
  return form == Form::rows_first && (line.stride > 2 || (line.stride == 2 && line.size > 3));
}

// Which windows are swept, in words.
std::string swept_axes(const Geometry& geometry, const SweepRules& rules) {
  std::vector<std::string> axes;
  for (int i = 0; i < geometry.pooled.size(); ++i) {
    const Axis& axis = geometry.axes[static_cast<std::size_t>(i)];
    const bool innermost = i == geometry.pooled.size() - 1;
    if (rules.sweeps(axis, innermost) || sweeps_phases(rules, axis, innermost))
      axes.push_back(std::to_string(geometry.pooled[i]));
  }
  if (axes.empty()) return "";
  std::string list = axes[0];
  for (std::size_t i = 1; i < axes.size(); ++i) list += (i + 1 < axes.size() ? ", " : " and ") + axes[i];
  return "windows along " + std::string(axes.size() > 1 ? "axes " : "axis ") + list +
         " are swept, so that their cost hardly grows with them";
}

}  // namespace

bool SweepRules::sweeps(const Axis& axis, bool innermost) const noexcept {
  // Padding costs nothing, whatever is done, and a single window shares nothing.
  const std::int64_t cells = real_cells(axis);
  if (sweep == Sweep::never || axis.irregular() || cells < 2 || axis.out < 2) return false;
  if (sweep == Sweep::always) return true;
  if (innermost && has_lanes(axis)) return false;
  if (innermost && cells <= most_picked &&
      (few_beside ||
       (along_lines && axis.stride >= least_picked && (axis.out >= least_outputs || axis.n == axis.out * axis.stride))))
    return cells >= axis.stride / most_dropped;
  // Of rows, only those are looked at that windows hold.
  const bool apart = !innermost && axis.stride % axis.dilation == 0;
  const std::int64_t stride = axis.stride / (apart ? axis.dilation : 1);
  const bool plain = !innermost || plain_lines || shortest_line != shortest_swept_line;
  const std::int64_t shortest = innermost ? shortest_line : shortest_swept_rows;
  return cells >= shortest &&
         static_cast<double>(cells) >= (plain ? least_overlap : least_beside) * static_cast<double>(stride);
}

bool SweepRules::has_lanes(const Axis& axis) const noexcept {
  return plain_lines && sweep != Sweep::always && lie_apart(axis);
}

std::int64_t ring_rows(const Axis& axis, std::int64_t outputs) noexcept {
  if (axis.transposed)
    return std::min(axis.n,
                    saturating_product((axis.size - 1) / axis.stride + 1, axis.dilation) + outputs / axis.stride + 2);
  if (axis.adaptive) return std::min(axis.n, saturating_product(axis.size + 1, outputs));
  const std::int64_t extent = (axis.size - 1) * axis.dilation + 1;
  const std::int64_t more = saturating_product(outputs - 1, axis.stride);
  return std::max<std::int64_t>(1, std::min(axis.n, more > INT64_MAX - extent ? INT64_MAX : more + extent));
}

Algorithm choose(const Geometry& geometry, const Extents& shape, const States& states) {
  const std::int64_t state_bytes = states.bytes, bytes = states.cell_bytes;
  const bool weighs = states.weighs, places = states.places, alike = states.alike;
  const auto depth = static_cast<int>(geometry.axes.size());
  const int last = static_cast<int>(geometry.pooled[depth - 1]);
  const bool contiguous = last == shape.size() - 1;
  Algorithm result;
  result.shortest_line = weighs ? shortest_weighed_line : shortest_swept_line;
  result.along_lines = contiguous;
  result.plain_lines = contiguous && !weighs && !places;
  std::int64_t beside = 1;
  for (int i = last + 1; i < shape.size(); ++i) beside = saturating_product(beside, shape[i]);
  const Axis outside = depth > 1 ? geometry.axes[static_cast<std::size_t>(depth - 2)] : Axis{};
  const bool plain = alike && !weighs && !places;
  result.few_beside = !contiguous && beside <= most_few && !(plain && joins_columns(outside, geometry.axes.back()));
  const std::int64_t pack_cells = 64 / bytes, packs = beside / pack_cells + (beside % pack_cells > 0);
  result.least_beside = packs > most_packs_of_few
                            ? least_overlap_beside
                            : least_overlap_of_few * static_cast<double>(beside) /
                                  static_cast<double>(std::max<std::int64_t>(packs, 1) * pack_cells);
  result.name = contiguous ? "lines" : "rows";
  result.reason = contiguous ? "the innermost pooled axis is contiguous, so lanes run along outputs"
                             : "a kept axis is contiguous, so lanes run along it";
  std::int64_t planes = 1, cells = 1;
  for (int i = 0, level = 0; i < shape.size(); ++i)
    if (level < depth && geometry.pooled[level] == i)
      ++level;
    else
      planes = saturating_product(planes, shape[i]);
  for (const Axis& axis : geometry.axes)
    cells = saturating_product(cells, std::max<std::int64_t>({axis.n, axis.out, 1}));
  // Outputs of the innermost axis that are made at once, and the bytes of all rings then, from a level on.
  struct Rings {
    std::int64_t tile, bytes;
  };
  const auto rings = [&](int first) {
    std::int64_t per_output = 0, plane = contiguous ? 1 : std::min<std::int64_t>(shape[shape.size() - 1], 1024);
    for (int i = depth - 2; i >= first; --i) {
      const Axis& axis = geometry.axes[static_cast<std::size_t>(i)];
      per_output += saturating_product(saturating_product(ring_rows(axis, 1), plane), state_bytes);
      plane = saturating_product(plane, std::max<std::int64_t>(axis.out, 1));
    }
    const std::int64_t fits = std::max(least_tile, ring_budget / std::max<std::int64_t>(per_output, 1));
    const std::int64_t tile = std::min(geometry.axes.back().out, fits);
    return Rings{tile, saturating_product(per_output, tile)};
  };
  const double pack = 4.0 / static_cast<double>(bytes);
  result.small = contiguous && planes >= least_woven / bytes && cells <= largest_woven / least_woven &&
                 is_small(geometry, result, places, alike, pack);
  if (contiguous && alike && !weighs && !places) {
    // Lines by themselves are windows of one row.
    const Axis alone{1, 1, 1, 1, 0, 0, 1}, &line = geometry.axes.back();
    const Axis& across = depth == 1 ? alone : geometry.axes[static_cast<std::size_t>(depth - 2)];
    // Of windows farther apart than a plane reaches there are hardly several, and distances need not be numbers.
    const bool far = across.n > 1 && across.stride > across.n;
    result.joins_rows = !far && joins_rows_first(across, line);
    if (depth > 1 && is_flat(across, line, state_bytes, bytes))
      result.form = Form::flat;
    else if (result.joins_rows && is_better_rows_first(across, line, pack))
      result.form = Form::rows_first;
  }
  // Volumes that are turned many at a time are better whole.
  result.joins_planes = states.by_planes && joins_planes(geometry.axes, places);
  if (result.joins_planes && !(result.small && cells <= woven_bytes / least_woven))
    result.by_planes = is_better_by_planes(geometry, result, result.form, contiguous, places, rings(0).bytes);
  if (depth > 2 && !result.by_planes) {
    result.joins_rows = false;
    result.form = Form::plain;
  }
  if (result.by_planes) result.reason += "; planes are pooled first and then joined";
  if (result.form == Form::flat)
    result.reason += "; small planes are one line of cells each";
  else if (result.form == Form::rows_first)
    result.reason += "; the rows of each window are joined first, in large arrays where that is faster";
  else if (result.small)
    result.reason += "; of small planes they run across many, which are turned";
  if (result.form != Form::rows_first) result.swept = swept_axes(geometry, result);
  if (!result.swept.empty()) result.reason += "; " + result.swept;
  // Those that are turned, and their outputs.
  const std::int64_t turned = result.small ? std::clamp(woven_bytes, cells * least_woven, cells * most_woven) : 0;
  if (depth == 1) {
    result.scratch = 64 * 1024 + 2 * turned;
    return result;
  }
  result.name += "+rows";
  const auto [tile, scratch] = rings(result.by_planes ? 1 : 0);
  result.tile = tile;
  result.scratch = scratch;
  // Planes that are swept keep the rows of two windows.
  if (depth == 2 && result.sweeps(geometry.axes[0], false)) result.scratch = saturating_product(result.scratch, 2);
  result.reason += result.scratch <= 4 * ring_budget ? "; reduced rows wait in a ring that fits the cache"
                                                     : "; the ring of reduced rows exceeds the cache";
  result.scratch = saturating_sum(result.scratch, 2 * turned + (result.by_planes ? waiting_bytes : 0));
  return result;
}

}  // namespace cenote
