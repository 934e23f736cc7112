// Long windows over rows of states: a window is the end of one block of rows and the beginning of the next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"

namespace cenote::cpu {

/// Where rows of states lie: position p in slot (p - origin) mod capacity.
struct RowsOfStates {
  std::byte* base = nullptr;
  std::int64_t capacity = 0, stride = 0, plane = 0, origin = 0;
  std::int64_t slot(std::int64_t p) const {
    const std::int64_t far = p - origin;
    return far < capacity ? far : far < 2 * capacity ? far - capacity : far % capacity;
  }
  /// Moves the origin so that positions from p on are near it: division is slow.
  void approach(std::int64_t p) {
    if (p - origin >= 2 * capacity) origin += (p - origin) / capacity * capacity;
    if (p - origin >= capacity) origin += capacity;
  }
};

/// Blocks are as long as a window and lie at multiples of that, whatever is asked for, so that sums do not depend on
/// where work is cut. The rows of a block become the folds from each of them to its end, in place; those of the next
/// are added up as windows reach them. Unless a reducer picks, that is done in groups of rows, which keeps the error of
/// sums small. The rows of a dilated axis that windows of one phase hold, those from `phase` on, are a dense axis of
/// their own: it has a sweep of its own, and positions count those rows alone.
class RowSweep {
 public:
  /// Memory for sums, in lanes: of `len` states in each of `parts` planes.
  static std::int64_t lanes(std::int64_t len, int parts) { return 4 * parts * (len + slack); }

  RowSweep() = default;
  RowSweep(const Kernels& kernels, const Params& params, const Axis& axis, std::int64_t len, std::int64_t lane_bytes,
           std::int64_t id_scale, bool grouped, const bool& nan, std::int64_t phase, std::byte* memory)
      : join_(kernels.join),
        nan_(&nan),
        params_(params),
        axis_(axis),
        phase_(phase),
        n_(axis.n > phase ? (axis.n - phase - 1) / axis.dilation + 1 : 0),
        len_(len),
        plane_(len + slack),
        bytes_(lane_bytes),
        id_scale_(id_scale),
        group_(grouped ? 16 : INT64_MAX) {
    std::byte* next = memory;
    for (std::byte** row : {&front_, &whole_, &rest_, &total_}) {
      *row = next;
      next += kernels.parts * plane_ * bytes_;
    }
  }
  /// Forgets all rows.
  void clear() {
    block_ = INT64_MIN;
    parts_ = 0;
  }

  /// Gets ready for the window of output o; rows that it needs are there, and outputs come in ascending order.
  void advance(const RowsOfStates& rows, std::int64_t o) {
    const std::int64_t start = start_of(o), k = axis_.size;
    const std::int64_t first = std::max<std::int64_t>(start, 0), last = std::min(start + k, n_);
    parts_ = 0;
    if (first >= last) return;
    const std::int64_t block = start >= 0 ? start / k : -1, edge = (block + 1) * k;
    if (block != block_) {
      block_ = block;
      reached_ = edge;
      has_rest_ = has_total_ = false;
      if (block >= 0) make_ends(rows, first, std::min(edge, n_));
    }
    more_ = nullptr;
    for (; reached_ < last; ++reached_) {
      // The last row is added as the output is written.
      if (reached_ + 1 == last && start >= 0 && has_rest_ && group_ == INT64_MAX) {
        more_ = at(rows, reached_);
        more_plane_ = rows.plane;
        more_behind_ = reached_ - edge;
      } else {
        add(rows, reached_, edge);
      }
    }
    if (start >= 0) use(at(rows, first), rows.plane, 0);
    if (has_total_) use(total_, plane_, edge - first);
    if (has_rest_) use(rest_, plane_, edge - first);
  }
  /// Lanes [from, to) of the output that was made ready. False where its window holds no rows.
  bool write(std::int64_t from, std::int64_t to, std::byte* dst, std::int64_t dst_plane) const {
    for (int i = 0; i < std::max(parts_ - 1, 1) && parts_ > 0; ++i) {
      const Part &a = part_[0], &b = part_[static_cast<std::size_t>(std::min(i + 1, parts_ - 1))];
      const bool joined = i > 0;
      join_({joined ? dst : a.row + from * bytes_, parts_ > 1 ? b.row + from * bytes_ : nullptr,
             joined ? dst_plane : a.plane, b.plane, b.behind * id_scale_, dst, dst_plane, to - from, params_, !*nan_,
             more_ ? more_ + from * bytes_ : nullptr, more_plane_, more_behind_ * id_scale_});
    }
    return parts_ > 0;
  }

 private:
  static constexpr std::int64_t slack = 64;
  struct Part {
    std::byte* row;
    std::int64_t plane, behind;
  };

  /// Where the window of output o begins.
  std::int64_t start_of(std::int64_t o) const {
    const std::int64_t start = o * axis_.stride - axis_.low;
    return axis_.dilation == 1 ? start : (start - phase_) / axis_.dilation;
  }
  std::byte* at(const RowsOfStates& rows, std::int64_t p) const {
    return rows.base + rows.slot(p * axis_.dilation + phase_) * rows.stride * bytes_;
  }
  void use(std::byte* row, std::int64_t plane, std::int64_t behind) { part_[parts_++] = {row, plane, behind}; }
  void join(const std::byte* a, std::int64_t a_plane, std::byte* b, std::int64_t b_plane, std::int64_t behind,
            std::byte* dst, std::int64_t dst_plane) const {
    join_({a, b, a_plane, b_plane, behind * id_scale_, dst, dst_plane, len_, params_, !*nan_});
  }

  /// Turns rows [first, end) of a block into the folds from each to the end.
  void make_ends(const RowsOfStates& rows, std::int64_t first, std::int64_t end) {
    const std::int64_t begin = block_ * axis_.size;
    bool has_whole = false;
    for (std::int64_t p = end - 1; p >= first; --p) {
      std::byte* row = at(rows, p);
      if (group_ == INT64_MAX) {
        if (p + 1 < end) join(row, rows.plane, at(rows, p + 1), rows.plane, 1, row, rows.plane);
        continue;
      }
      const bool opens = p + 1 == end || (p + 1 - begin) % group_ == 0;
      if (opens && p + 1 < end) {
        join(front_, plane_, has_whole ? whole_ : nullptr, plane_, 0, whole_, plane_);
        has_whole = true;
      }
      join(row, rows.plane, opens ? nullptr : front_, plane_, 0, front_, plane_);
      join(front_, plane_, has_whole ? whole_ : nullptr, plane_, 0, row, rows.plane);
    }
  }
  /// One more row of the block that begins at `edge`.
  void add(const RowsOfStates& rows, std::int64_t p, std::int64_t edge) {
    if (has_rest_)
      join(rest_, plane_, at(rows, p), rows.plane, p - edge, rest_, plane_);
    else
      join(at(rows, p), rows.plane, nullptr, 0, 0, rest_, plane_);
    has_rest_ = true;
    if (group_ == INT64_MAX || (p + 1 - edge) % group_ != 0) return;
    join(has_total_ ? total_ : rest_, plane_, has_total_ ? rest_ : nullptr, plane_, 0, total_, plane_);
    has_total_ = true;
    has_rest_ = false;
  }

  void (*join_)(const Join&) = nullptr;
  const bool* nan_ = nullptr;  // whether any row may hold NaN
  Params params_{};
  Axis axis_{};
  std::int64_t phase_ = 0, n_ = 0;
  std::int64_t len_ = 0, plane_ = 0, bytes_ = 0, id_scale_ = 0, group_ = 0;
  std::byte *front_ = nullptr, *whole_ = nullptr;  // the group under way from behind, and the groups after it
  std::byte *rest_ = nullptr, *total_ = nullptr;   // the group under way, and the groups before it
  std::int64_t block_ = INT64_MIN, reached_ = 0;
  bool has_rest_ = false, has_total_ = false;
  const std::byte* more_ = nullptr;  // the last row of the output that was made ready, if it is still to be added
  std::int64_t more_plane_ = 0, more_behind_ = 0;
  std::array<Part, 3> part_{};
  int parts_ = 0;
};

}  // namespace cenote::cpu
