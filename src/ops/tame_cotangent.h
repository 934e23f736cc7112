// Gradients of smooth max and lp where cells are tame: made of sums, a few planes at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <cenote/array.h>

#include "cpu/shares.h"
#include "ops/derivative.h"

namespace cenote {

/// gx = weight(x) * (the sum, over the windows that hold x, of gy / (what the powers of a window's cells make)). All
/// but x, gy and gx stays in the cache, unless a single plane does not. Cells whose windows hold a cell, or were given
/// a gy, that is not tame get what the weights of their windows make. Which those are hangs on nothing else.
class TameCotangent {
 public:
  /// Null where no sums can be tame.
  static std::shared_ptr<const TameCotangent> make(const Plan::Impl& forward);
  /// Bytes that run needs, aligned to 64.
  std::int64_t scratch() const noexcept { return large_ ? pieces_[0]->bytes : 0; }
  /// False, and nothing is done, if elements do not lie side by side. Precondition: arrays are checked.
  bool run(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const;

 private:
  /// Some planes that are made together.
  struct Piece {
    Extents shape, kept_shape;
    std::int64_t cells, outputs, bytes;
    ImplPtr planned, sums;
    Cotangent back, weighed;  // of the sums, and of cells that are not tame
  };

  TameCotangent(const Plan::Impl& forward, const cpu::TameRule& rule);
  std::unique_ptr<const Piece> piece(std::int64_t planes) const;
  template <class A>
  void make(const Piece& piece, const std::byte* x, const std::byte* gy, std::byte* gx, std::byte* memory) const;

  Plan::Impl forward_;
  cpu::TameRule rule_;
  int axis_ = -1;            // of which pieces hold several; all outside it are loops, -1: there is one piece
  std::int64_t planes_ = 1;  // along it in a whole piece
  bool large_ = false;       // pieces are larger than caches: each is made by all threads
  bool stream_ = false;      // gx is written past the caches
  std::array<std::unique_ptr<const Piece>, 2> pieces_;  // whole ones, and what is left
};

}  // namespace cenote
