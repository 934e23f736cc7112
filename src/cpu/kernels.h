// The CPU backend's table: plain functions over plain data, one set per element type and reducer.
#pragma once

#include <cstdint>
#include <iterator>

#include <cenote/reducers.h>
#include <cenote/types.h>
#include <cenote/window.h>

#include "plan/apart.h"
#include "reduce/params.h"

namespace cenote::cpu {

/// One pass along one axis, for a batch of independent rows. All distances count elements (of the source's type for
/// src, of the lane type for dst). A state of several parts lies in planes; dst may be overrun by one vector.
struct Pass {
  const Axis* axis;
  std::int64_t begin, end;  // outputs
  const void* src;          // position 0 of the axis
  std::int64_t step;        // between positions of the axis
  std::int64_t wrap;        // positions are taken modulo this (a ring) after subtracting
  std::int64_t origin;      // this; 0: they are not
  std::int64_t src_plane;   // between the parts of a state
  std::int64_t len;         // lanes at each position
  void* dst;                // output `begin`
  std::int64_t dst_step;    // between outputs
  std::int64_t dst_plane;   // between the parts of a state
  std::int64_t rows;        // the batch
  std::int64_t src_row;     // between its rows
  std::int64_t dst_row;     //
  std::int64_t id_scale;    // what one step along this axis adds to a winner's number
  Params params;
  // Raw elements only: so many of the next axis outwards, at most 8, are folded into each output too.
  std::int64_t fold = 1, fold_step = 0, fold_id_scale = 0;
  // Sweeps only: memory for sweep_rows times so many states. Positions lie side by side (step = len, dst_step = len).
  void* work = nullptr;
  std::int64_t work_lanes = 0;
  bool* nan = nullptr;  // set where cells may have been NaN; where not, none was
  // Winners are numbered by their place in the window, not by that among its real cells.
  bool by_window = false;
  std::int64_t ahead = 0;  // elements behind those that are read which memory is asked for
};

inline constexpr std::int64_t sweep_rows = 2;

/// Two rows of states made one: the cells of b come after those of a, and their numbers are b_id higher. b may be null.
/// Or three: c, whose numbers are c_id higher than those of b, is first joined to b, in place.
struct Join {
  const void* a;
  void* b;
  std::int64_t a_plane, b_plane, b_id;
  void* dst;
  std::int64_t dst_plane, len;
  Params params;
  bool calm = false;  // none of the cells is NaN
  const void* c = nullptr;
  std::int64_t c_plane = 0, c_id = 0;
};

/// Turns states into values.
struct Finish {
  const void* src;         // states, parts in planes
  std::int64_t src_plane;  //
  std::int64_t len;        //
  const void* counts;      // one lane per state, or null for
  double count;            // the same for all
  void* dst;               // elements of the storage type
  void* second;            // states only: where the second part goes
  bool stream;             // past the caches
  Params params;
};

/// Rows of winners, of which the cells of each come after those of the one before.
struct NumberedRows {
  const void* cells;            // elements of the storage type,
  const std::uint8_t* numbers;  // and their numbers within the windows of that row
  std::int64_t step, count;     // from row to row
  std::int64_t first, id;       // what the numbers of the first row begin with, and those of the next one more
  std::int64_t len;             // at most most_numbered
  void* dst;
  std::uint8_t* dst_numbers;
  bool stream, stream_numbers;  // past the caches
};
inline constexpr std::int64_t most_numbered = 2048;

inline constexpr std::int64_t most_folded = 8;  // rows that a kernel folds as it reads them

/// How one kernel makes whole planes: row by row, with windows across them; all rows of a plane as one line, of windows
/// that tile them; with windows of any size at every place, swept both ways; or each plane as one line of cells, with
/// short windows; or with the rows of short windows joined first.
enum class PlaneWay { none, rows, joined, swept, flat, rows_first };

/// Whole planes: every row is pooled along its line, and a few of those rows across, without leaving L1.
struct Planes {
  Pass line;                 // one row; src is the first plane's row 0; dst_plane holds for ring and out.src
  void* ring;                // memory for rows
  const Axis* across;        // regular, not dilated, of at most most_folded rows
  bool folded;               // those are folded as they are read, by line.fold
  PlaneWay way;              // not `none`
  std::int64_t joined;       // outputs of a row where all rows of a plane are one line, 0 elsewhere
  std::int64_t begin, end;   // its outputs
  std::int64_t count, step;  // planes, and how far apart they lie in src
  std::int64_t depth = 1, depth_step = 0;  // planes that each of those is made of, and how far apart they lie
  std::int64_t piece;               // outputs of a line that are made at a time; of swept planes, lanes between rows
  Finish out;                       // dst is the first plane's output `begin`, src memory for plane_stage(piece) states
  std::int64_t out_size;            // bytes of an output
  std::int64_t out_row, out_plane;  // between rows and between planes of outputs
  void (*finish)(const Finish&);    // null: the states of one plane are what is wanted, at out.dst
  // Of one plane: the states of those before it, which its own are joined to, and where these go as they are, if that
  // is wanted.
  int joins = 0;
  const void* before[most_folded - 1];
  void* keep = nullptr;
  bool direct = false;  // values are of the type that is read, and what states are after a division
  double divisor = 0;   // by this, unless it is 0
  // Swept and flat planes only: memory for a batch of rows of cells, or for masks, and for the ends of a block.
  void *cells = nullptr, *ends = nullptr;
  std::int64_t batch = 0;     // rows whose lines are made at a time
  std::int64_t out_step = 0;  // between outputs of a line
  // Winners only: writes as many numbers as indices, of so many bytes.
  void (*number)(const void* numbers, std::int64_t count, void* indices) = nullptr;
  void* indices = nullptr;
  std::int64_t index_size = 0;
};
inline constexpr std::int64_t plane_piece = 1024;  // pieces are multiples of this
inline constexpr std::int64_t least_apart = 256;   // bytes of lines that are better read one after the other
inline constexpr std::int64_t strip_bytes = 128;   // of each row that a sweep joins at a time, at most
/// Lanes of the rows of a flat plane, with those above and below it, and planes that are made together.
constexpr std::int64_t flat_pitch(const Axis& across, const Axis& line) {
  return (across.n + 2 * across.size) * line.out + 64;
}
constexpr std::int64_t flat_together(const Axis& across, const Axis& line) {
  constexpr std::int64_t lanes = 1024;
  return across.n * line.out < lanes ? lanes / (across.n * line.out) : 1;
}
inline constexpr std::int64_t joined_cells = 2048;      // lanes of rows side by side that are joined at a time
inline constexpr std::int64_t least_rows_apart = 1024;  // the same of rows that are joined lane by lane
/// Where rows are joined first: whether what they leave of lines lies without gaps, the lanes of a line, lines that are
/// made together, and the lanes of their cells with what may be read before and behind them.
constexpr bool lies_unbroken(const Axis& line) { return (line.size - 1) * line.dilation < line.stride; }
constexpr std::int64_t rows_first_width(const Axis& line) {
  if (lies_unbroken(line)) return line.out * line.stride;
  // Rows of f32 begin with whole packs.
  return ((line.out - 1) * line.stride + (line.size - 1) * line.dilation + 16) / 16 * 16;
}
inline std::int64_t rows_first_lines(const Axis& across, const Axis& line) {
  // What is left of blocks takes room in L1, too.
  const std::int64_t lanes = blocks_across(across) > 0 || blocks_along(line) > 0 ? 256 : 2048;
  return rows_first_width(line) < lanes ? lanes / rows_first_width(line) : 1;
}
inline std::int64_t rows_first_cells(const Axis& across, const Axis& line) {
  const std::int64_t beyond = line.stride <= most_apart_cells ? 64 * line.stride : 2 * line.stride + 64;
  return rows_first_lines(across, line) * rows_first_width(line) + beyond + line.size * line.dilation + 256;
}
/// The same: lanes between the blocks of two lines, lanes of all of them, and lanes of those of rows, or of the sums of
/// 1, 2, 4, … groups of them.
inline std::int64_t rows_first_pitch(const Axis& line) { return (line.out + blocks_along(line) + 15) / 16 * 16; }
inline std::int64_t rows_first_blocks(const Axis& across, const Axis& line) {
  return blocks_along(line) == 0 ? 0 : 2 * (rows_first_lines(across, line) * rows_first_pitch(line) + 128);
}
inline std::int64_t rows_first_rows(const Axis& across, const Axis& line) {
  constexpr std::int64_t levels = 7;
  if (across.size <= most_rows_first) return 0;
  const std::int64_t blocks = blocks_across(across);
  return (blocks == 0 ? levels : 2 * (rows_first_lines(across, line) + blocks)) * (rows_first_width(line) + 64) + 320;
}
/// All memory for them.
inline std::int64_t rows_first_lanes(const Axis& across, const Axis& line) {
  return rows_first_cells(across, line) + rows_first_lines(across, line) * line.out + rows_first_blocks(across, line) +
         rows_first_rows(across, line) + 512;
}
constexpr std::int64_t plane_stage(std::int64_t piece) { return plane_piece + 2 * piece + 64; }

/// What one reducer can do for one storage type.
struct Kernels {
  void (*lines)(const Pass&) = nullptr;  // raw elements, step 1, len 1: lanes run along outputs
  void (*rows)(const Pass&) = nullptr;   // raw elements: lanes run along len
  void (*merge)(const Pass&) = nullptr;  // states, so only for lane types: lanes run along len
  void (*finish)(const Finish&) = nullptr;
  void (*sweep)(const Pass&) = nullptr;     // raw elements: long windows along lines, or along rows side by side
  void (*join)(const Join&) = nullptr;      // states, so only for lane types
  void (*planes)(const Planes&) = nullptr;  // raw elements: lines and rows at once, for states of one part
  int parts = 0;
  // Only where sums can be tame: widens [low, high] to the elements of a line; high becomes NaN if one is not finite.
  void (*range)(const void* line, std::int64_t n, double& low, double& high) = nullptr;
  // The same: makes of cells, whose numbers lie in planes, the lanes that are summed then, in whole packs. Those
  // `ahead` of them are wanted soon.
  void (*powers)(const void* cells, std::int64_t plane, void* powers, std::int64_t n, std::int64_t ahead,
                 const Params& params) = nullptr;
  bool swept = false;                                    // whether `planes` sweeps them
  void (*join_numbered)(const NumberedRows&) = nullptr;  // winners only
  // The same: as `planes` and `finish`, of windows that share at most one row, as if all cells were tame. Says by
  // line.nan that some were not: then what it made is worth nothing.
  void (*tame_planes)(const Planes&) = nullptr;
  void (*tame_finish)(const Finish&) = nullptr;
};

/// The kernels that read `storage`, for the SIMD target in use; all null where the reducer has no such type or role.
Kernels kernels(Type storage, Reducer reducer, Role role) noexcept;

inline constexpr int reducer_count = static_cast<int>(std::size(all_reducers));

/// Everything for one storage type and one SIMD target.
struct Table {
  Kernels of[role_count][reducer_count];
  Kernels& at(Role role, Reducer reducer) { return of[static_cast<int>(role)][static_cast<int>(reducer)]; }
  const Kernels& at(Role role, Reducer reducer) const { return of[static_cast<int>(role)][static_cast<int>(reducer)]; }
};
// clang-format off
const Table& kernels_f16();
const Table& kernels_bf16();
const Table& kernels_f32();
const Table& kernels_f64();
const Table& kernels_i8();
const Table& kernels_i16();
const Table& kernels_i32();
const Table& kernels_i64();
const Table& kernels_u8();
const Table& kernels_u16();
const Table& kernels_u32();
const Table& kernels_u64();
const Table& derivatives_f32();
const Table& derivatives_f64();
// clang-format on

}  // namespace cenote::cpu
