// Reductions of rows over segments on the CPU: lanes run along channels.
#pragma once

#include <cstdint>

#include <cenote/reducers.h>
#include <cenote/types.h>

#include "cpu/kernels.h"
#include "reduce/params.h"
#include "sparse/segments.h"

namespace cenote::cpu {

/// One reduction of rows. Distances count elements; channels of a row lie side by side.
struct RowPass {
  sparse::Segments segments;
  std::int64_t begin = 0, end = 0;  // targets, where a kernel works on a part of them
  std::int64_t width = 0;           // channels
  const void* x = nullptr;          // row 0 of the sources
  std::int64_t x_step = 0;          // between rows
  std::int64_t x_plane = 0;         // from the first number of a cell, or part of a state, to its second
  void* y = nullptr;                // row 0 of the targets
  std::int64_t y_step = 0;          //
  std::int64_t y_plane = 0;         // between the parts of states that pieces leave
  void* second = nullptr;           // states: the second number of each, rows as in y
  std::int32_t* winners = nullptr;  // winner: the source row of each value, (targets, width)
  const void* cells = nullptr;      // cotangent: the cell that each value belongs to, rows as in y
  // What values are divided by: the edges of their target, a number for each target, or one for all.
  bool divides_by_edges = false;
  const double* divisors = nullptr;
  double divisor = 0;
  // Scaled: what each edge is multiplied by, by kernel id, and each source row is divided by; either may be null.
  const double* weights = nullptr;
  const double* source_divisors = nullptr;
  // Routed: the input row that each feature of an output came from, (outputs, width).
  const std::int32_t* routes = nullptr;
  const std::int64_t* owners = nullptr;  // pieces: the target that each is a part of
  bool stream = false;                   // past the caches
  Params params{};
};

/// One way to reduce rows. Long segments are cut into pieces, whose states are merged.
struct RowKernels {
  void (*reduce)(const RowPass&) = nullptr;   // rows to values
  void (*partial)(const RowPass&) = nullptr;  // rows to states, parts one after the other, at y
  void (*merge)(const RowPass&) = nullptr;    // such states, one row each, to values
  int parts = 0;
};

/// Everything for one storage type and one SIMD target.
struct RowTable {
  RowKernels of[role_count][reducer_count];
  RowKernels scaled[reducer_count];  // sums of rows times weights
  RowKernels forth, back;            // sums of rows that routes name: targets are outputs, or inputs
  RowKernels& at(Role role, Reducer reducer) { return of[static_cast<int>(role)][static_cast<int>(reducer)]; }
  const RowKernels& at(Role role, Reducer reducer) const {
    return of[static_cast<int>(role)][static_cast<int>(reducer)];
  }
};
const RowTable& rows_f16();
const RowTable& rows_bf16();
const RowTable& rows_f32();
const RowTable& rows_f64();

/// The table of a floating-point type, for the SIMD target in use. Half types have no derivatives of weights.
const RowTable& row_table(Type storage) noexcept;

/// Runs a reduction over all targets of pass.segments. `storage` is the type of the table.
void reduce_rows(const RowKernels& kernels, const RowPass& pass, Type storage);

}  // namespace cenote::cpu
