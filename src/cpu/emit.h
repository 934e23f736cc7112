// The way out: states become values, divided and rounded, and winners' numbers become indices.
#pragma once

#include <array>
#include <cstdint>

#include "cpu/execute.h"
#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "cpu/numbering.h"

namespace cenote::cpu {

/// Where a block lies: distances from the start of x, y and the array beside y, and what its winners' numbers begin
/// with.
struct Origin {
  std::int64_t x = 0, y = 0, beside = 0, place = 0;
  void add(const Loop& loop, std::int64_t i) noexcept {
    x += i * loop.x;
    y += i * loop.y;
    beside += i * loop.beside;
    place += i * loop.place;
  }
};

/// Writes finished outputs of one run. Shared by all blocks; each block has its own Emitter::Block.
class Emitter {
 public:
  class Block;

  Emitter(const Plan::Impl& plan, const Layout& layout, const Operands& operands, Reducer reducer, bool stream,
          const Numbering* numbering);

  Block block(const Origin& origin, std::int64_t len, std::int64_t tile_begin, std::int64_t tile_end,
              std::int64_t row) const;
  /// What one step along level l adds to a winner's number.
  std::int64_t id_scale(int l) const noexcept { return scales_[static_cast<std::size_t>(l)]; }
  /// Whether `straight` applies: outputs are what `finish` makes of states, side by side along lines.
  bool is_straight() const noexcept;
  /// The call that turns states into the outputs from y on; how many is up to the caller.
  Finish straight(std::byte* states, std::int64_t y) const noexcept;
  void (*finisher() const noexcept)(const Finish&) { return kernels_.finish; }
  void (*tame_finisher() const noexcept)(const Finish&) { return kernels_.tame_finish; }
  /// The same for winners: where indices from y on go, and what turns numbers within windows into those, or into the
  /// offsets that `numbering` wants, if there is one.
  void* straight_indices(std::int64_t y) const noexcept;
  using Numberer = void (*)(const void* numbers, std::int64_t count, void* indices);
  Numberer numberer() const noexcept;
  Numberer numberer(Type to) const noexcept;
  /// From now on, numbers of the two innermost levels are those within windows, as bytes; says whether they can be.
  bool number_inside_by_window() noexcept;
  const Numbering* numbering() const noexcept { return numbering_; }
  std::int64_t index_size() const noexcept { return static_cast<std::int64_t>(size_of(index_type_)); }
  bool streams() const noexcept { return stream_; }
  /// What lies beside the outputs of a cotangent.
  const std::byte* cells() const noexcept { return cells_; }
  /// Makes streamed stores visible to other threads.
  static void flush() noexcept;

 private:
  /// How the winners of one window are numbered: base + the number itself (plain) or its digits times weights.
  struct Numbers {
    std::int64_t base;
    bool empty, plain;
    std::array<std::int64_t, max_rank> weight;
  };
  Numbers numbers(const std::array<Axis::Span, max_rank>& spans, std::int64_t place) const;
  void find_numbers(std::int64_t count);
  void find_uniform(bool plain) noexcept;
  std::int64_t spread(std::int64_t id, const std::array<std::int64_t, max_rank>& weight) const;

  const Plan::Impl& plan_;
  const Layout& layout_;
  std::byte* y_;
  std::byte* second_;
  std::byte* indices_;
  const std::byte* cells_;
  const Numbering* numbering_;
  Type index_type_;
  Kernels kernels_;   // of the type that finish() writes
  Type finish_type_;  // that type: the output's, or the lane type where they differ
  bool stream_;
  std::array<std::int64_t, max_rank> scales_{};
  bool offsets_ = false;
  int by_window_ = max_rank;  // levels from this on number their cells by window, the others their real cells
  bool uniform_ = false;      // a winner's number is its offset in every window, and indices lie as y does
  // spread() of every number, where it is the same for all windows and they have few cells
  static constexpr std::int64_t largest_table = 1024;
  std::array<std::int64_t, largest_table> table_;
  bool tabled_ = false;
  bool packed_ = false;     // `numbering` takes them, many at a time,
  bool sliced_ = false;     // or all that an output of the outermost level has: their windows are numbered alike,
  std::int64_t slice_ = 0;  // and so many
};

/// The outputs of one block.
class Emitter::Block {
 public:
  Block() = default;

  /// Rows [begin, end) of level 0, lanes [from, to) of each, whose states lie side by side at `states`.
  void operator()(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to, const std::byte* states,
                  std::int64_t plane);
  /// What states that come from now on were made with.
  void use(const Params& params) { params_ = params; }

 private:
  friend class Emitter;
  /// Outputs [begin, end) of the innermost level, for one output of each level outside it.
  struct Line {
    std::array<std::int64_t, max_rank> o{};
    std::int64_t begin = 0, end = 0;
    std::int64_t offset = 0;  // lanes before it in the stage
  };
  template <class Visit>
  void each_line(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to, const Visit& visit) const;
  void finish(const std::byte* states, std::int64_t plane, std::int64_t first, std::int64_t n, std::int64_t y,
              std::int64_t y_step);
  void count_cells(const Line& line, const Line& before);
  void read_cells(const Line& line);
  void find_counts(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to);
  void write_indices(const Line& line, const std::byte* ids) const;
  bool number_slices(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
                     const std::byte* ids) const;
  void write_run(std::int64_t to, const std::byte* ids, std::int64_t n) const;
  template <class Index, class Id>
  void number_line(const Line& line, const Id* ids) const;
  double cells(int level, std::int64_t o, bool real) const;
  std::int64_t tile_y() const;

  const Emitter* emitter_ = nullptr;
  Params params_;
  Origin origin_;
  std::int64_t len_ = 1, tile_begin_ = 0, tile_end_ = 0, row_ = 0;
  double* counts_ = nullptr;                       // of the outputs under way, in double and
  std::byte* lane_counts_ = nullptr;               // in the lane type
  bool whole_rows_ = false, joined_rows_ = false;  // a row, or all rows, lie side by side in y
};

}  // namespace cenote::cpu
