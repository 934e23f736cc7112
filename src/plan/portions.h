// Arrays cut into portions that stay in a core's cache, each with plans of its own.
#pragma once

#include <memory>
#include <vector>

#include "plan/impl.h"

namespace cenote {

/// Some planes of an array without gaps, or some outputs of the outermost pooled axis and the cells that they reach.
struct Portion {
  Axis top;                                         // of the cells there are
  std::int64_t planes;                              // 1 where those are not all
  std::int64_t cells, outputs;                      // without gaps
  std::shared_ptr<const Plan::Impl> sums, weighed;  // of lanes, and the same pooling as the whole
};

/// A pooling that weighs its cells, in portions whose powers may be summed. Never depends on the number of threads.
class Portions {
 public:
  /// Null where planes are too large and cannot be cut well. `states` are those that the whole was chosen by.
  static std::shared_ptr<const Portions> of(const Plan::Impl& whole, const States& states);

  /// The portion, and its first cell and output.
  struct Place {
    const Portion* portion;
    std::int64_t cell, output;
  };
  std::int64_t count() const noexcept { return outers_ * pieces_; }
  Place at(std::int64_t i) const noexcept;
  std::int64_t most_cells() const noexcept { return most_cells_; }
  std::int64_t most_outputs() const noexcept { return most_outputs_; }

 private:
  Portions(const Plan::Impl& whole, std::int64_t cell_bytes);
  bool add_kinds(const Plan::Impl& whole, const States& states);
  const Portion* find(const Axis& top, std::int64_t planes) const noexcept;

  Axis top_;                              // of the whole
  bool cuts_planes_ = false;              // portions lie along that axis, and not outside it
  int axis_ = -1;                         // along which they lie, -1: there is one
  std::int64_t outers_ = 1;               // indices of the axes outside it
  std::int64_t along_ = 1;                // planes along it, or outputs,
  std::int64_t length_ = 1;               // and those of a portion
  std::int64_t pieces_ = 1;               // portions along it
  std::int64_t cells_ = 1, outputs_ = 1;  // of one of those planes, or of one step along the axis that is cut
  std::int64_t most_cells_ = 0, most_outputs_ = 0;
  std::vector<Portion> kinds_;
};

/// Outputs [begin, end) of a regular axis, over the cells that they reach, the first of which is `from`.
Axis part_of(const Axis& axis, std::int64_t begin, std::int64_t end, std::int64_t& from) noexcept;

/// Prepares a plan that was chosen by `states` for sums of powers, if its reducer has such.
void prepare_portions(Plan::Impl& plan, const States& states);

}  // namespace cenote
