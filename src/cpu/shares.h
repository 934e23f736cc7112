// What is done cell by cell, and window by window, where smooth max, lp and their derivatives are made of plain sums.
#pragma once

#include <cstdint>

#include <cenote/types.h>

#include "reduce/params.h"

namespace cenote::cpu {

/// What a sum's share in a window is multiplied by for each cell: its power, or of lp with p = 1 to 4 its magnitude to
/// the power of p - 1, with its sign. A window's gy is divided by the sum of the powers of its cells, or by the p-th
/// root of that sum to the power of p - 1.
enum class Weight { power, sign, cell, square, cube };

/// Smooth max or lp as plain sums of powers. Cells, and tangents or cotangents, outside these bounds, but for 0, are
/// wild: NaN stands for them, and so for all they have a part in.
struct TameRule {
  Type type;
  Weight weight;
  Params params;
  Bounds cells, given;
};

/// Makes the powers of cells, in lanes; whole packs are written. True if one is wild.
bool tame_cells(const TameRule& rule, const void* x, void* powers, std::int64_t n) noexcept;

/// The same beside tangents, of which the products with the slopes of their cells are made.
void tame_tangents(const TameRule& rule, const void* x, const void* dx, void* powers, void* products,
                   std::int64_t n) noexcept;
/// Sums of powers become the values of windows, or with sums of products their derivatives. Whole packs are read of
/// lanes. True if one is wild: it is NaN.
bool value_sums(const TameRule& rule, const void* sums, void* y, std::int64_t n, bool past_caches) noexcept;
bool divide_sums(const TameRule& rule, const void* sums, const void* products, void* dy, std::int64_t n,
                 bool past_caches) noexcept;
/// Adds lanes to others.
void add_sums(Type lane, const void* more, void* sums, std::int64_t n) noexcept;
/// Replaces elements that are NaN.
void mend(Type type, const void* by, void* y, std::int64_t n) noexcept;

/// Whether some shares are numbers, and whether some are not.
struct Shares {
  bool tame = false, wild = false;
};
/// Sums of powers, in lanes, become what is left of gy; 0 of no cells. Whole packs are written.
Shares share_sums(const TameRule& rule, const void* gy, void* sums, std::int64_t n) noexcept;

/// How results are written: past the caches, or only those that are numbers.
enum class Put { store, stream, mend };
/// Multiplies sums of shares by the weights of their cells; never a negative zero. Whole packs are read of lanes.
void weigh_cells(const TameRule& rule, const void* x, const void* powers, const void* sums, void* gx, std::int64_t n,
                 Put put) noexcept;

}  // namespace cenote::cpu
