// Small planes, several at a time: turned, so that lanes run across them, and their outputs turned back.
#pragma once

#include <cstdint>

#include "cpu/block.h"
#include "cpu/execute.h"
#include "cpu/layout.h"
#include "cpu/numbering.h"

namespace cenote::cpu {

/// The planes of a layout, in groups. What is referred to must outlive it.
class Woven {
 public:
  Woven(const Plan::Impl& plan, const Layout& layout, const Operands& operands, const Numbering& numbering,
        bool stream);

  /// Whether planes are better turned, and memory suits.
  bool applies() const noexcept { return groups_.count > 0; }
  std::int64_t groups() const noexcept { return outers_ * groups_.count; }
  /// Calls use(layout, operands) with what group i is when it is turned, in memory of this thread.
  template <class Use>
  void operator()(std::int64_t i, const Use& use) const {
    const Group group = begin(i);
    use(group.layout, group.operands);
    end(group);
  }

 private:
  struct Group {
    Origin origin;
    std::int64_t planes;
    Layout layout;
    Operands operands;
  };
  /// The loop over planes, or over lines where those are all, and how many loops are outside it.
  const Loop& beside() const {
    return lines_ ? layout_.levels[0] : layout_.outer[static_cast<std::size_t>(layout_.outer_count - 1)];
  }
  int outer_count() const { return layout_.outer_count - !lines_; }
  Group begin(std::int64_t i) const;
  void end(const Group& group) const;

  const Plan::Impl& plan_;
  const Layout& layout_;
  const Operands& operands_;
  const Numbering& numbering_;
  bool stream_;
  std::int64_t cells_ = 1, outputs_ = 1, outers_ = 1;  // of a plane; how often there are such groups
  Pieces groups_;
  bool lines_ = false;
};

}  // namespace cenote::cpu
