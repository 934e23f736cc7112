// Winners' numbers within their windows become indices of planes or tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/layout.h"

namespace cenote::cpu {

/// Whether every window along a regular axis holds a real cell. Of dilated ones it is known only of those inside.
bool is_filled(const Axis& axis) noexcept;

/// What makes an index of a number: base + start + number * scale + (number / size) * fix + (number / area) * far. The
/// start of output i is starts[i], or where there are none i * step.
struct NumberCall {
  const void* numbers;  // as many as fill a pack may be read behind them
  int bytes;            // of each: 1, 2, 4 or 8
  std::int64_t count;
  std::int64_t* indices;
  std::int64_t base;
  const std::int32_t* starts;  // may be read behind their end as well
  std::int32_t step;
  std::int32_t scale, fix, far;
  std::uint32_t size, area;  // 2^16 / the divisor, rounded up
  bool stream;               // past the caches
};

/// Offsets within windows, which count padded cells too, lie at the same distances from where their window begins,
/// wherever that is: so all outputs are numbered alike. Refers to the layout.
class Numbering {
 public:
  Numbering(const Plan::Impl& plan, const Layout& layout);

  /// Whether indices are numbers of planes or tensors that offsets give: windows are regular and small, none is empty.
  bool applies() const noexcept { return applies_; }
  /// The type of the offsets.
  Type type() const noexcept { return call_.bytes == 2 ? Type::u16 : Type::u8; }

  /// Outputs [begin, end) of the level that is numbered from, [tile_begin, tile_end) of the innermost one, `len` lanes
  /// of each.
  struct Piece {
    std::int64_t begin, end, tile_begin, tile_end, len;
  };
  /// All from that level on.
  Piece whole(int top) const noexcept;
  /// Turns offsets into indices; both lie as y does, and are given where those of the piece begin. `place` is what
  /// numbers of this plane begin with. Levels outside `top` are left to the caller, and outputs lie side by side along
  /// lines or lanes.
  void operator()(const Piece& piece, const void* offsets, std::int64_t* indices, std::int64_t place, bool stream,
                  int top = 0) const noexcept;

  /// Turns the numbers of a few outputs along a line or its lanes, the first of whose windows begins at `base`.
  template <class Number>
  void run(const Number* numbers, std::int64_t count, std::int64_t* indices, std::int64_t base,
           bool stream) const noexcept {
    run(call_of(numbers, count, indices, base, stream));
  }
  /// The same from output `from` on of all that one of the outermost level has, which lie side by side. It says whether
  /// it can.
  template <class Number>
  bool slice(const Number* numbers, std::int64_t from, std::int64_t count, std::int64_t* indices, std::int64_t base,
             bool stream) const noexcept {
    if (top_ > 1) return false;
    NumberCall call = call_of(numbers, count, indices, base, stream);
    call.starts = starts_.data() + from;
    // Those of the first output of the outermost level serve all.
    if (top_ == 0) call.base += layout_.axes[0].low * layout_.levels[0].place;
    run(call);
    return true;
  }

  /// The same of lines of a kept axis that have one output each.
  template <class Number>
  bool column(const Number* numbers, std::int64_t begin, std::int64_t end, std::int64_t* indices, std::int64_t place,
              bool stream) const noexcept {
    NumberCall call = call_of(numbers, end - begin, indices, place, stream);
    return make_column(begin, call);
  }

 private:
  bool make_column(std::int64_t begin, NumberCall& call) const noexcept;
  template <class Number>
  NumberCall call_of(const Number* numbers, std::int64_t count, std::int64_t* indices, std::int64_t base,
                     bool stream) const noexcept {
    NumberCall call = call_;
    call.numbers = numbers;
    call.bytes = sizeof(Number);
    call.count = count;
    call.indices = indices;
    call.base = base;
    call.stream = stream;
    return call;
  }
  static void run(const NumberCall& call) noexcept;
  void find_starts(int l, std::int64_t start) noexcept;
  void write(int top, int l, const Piece& piece, const NumberCall& outside) const noexcept;

  const Layout& layout_;
  bool applies_ = false;
  NumberCall call_{};
  // Where windows begin, of all outputs of level `top_` and of those inside it: of a plane if it is small.
  static constexpr std::int64_t most_starts = 4096;
  int top_ = max_rank;
  std::int64_t start_count_ = 0;
  std::array<std::int32_t, most_starts + 64> starts_;
};

/// Makes lanes of 4 or 8 bytes of bytes.
void widen(const std::uint8_t* from, std::int64_t count, void* to, std::int64_t bytes) noexcept;

}  // namespace cenote::cpu
