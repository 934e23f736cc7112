// The loops of a generic pool: its axes, how work is shared out, and the innermost steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include <cenote/array.h>
#include <cenote/types.h>
#include <cenote/window.h>

namespace cenote::detail {

/// Where the windows of a region lie on an array.
struct Geometry {
  Extents output_shape;
  Extents pooled;
  std::vector<Axis> axes;
};
Geometry fold_geometry(const char* who, const std::variant<Window, Adaptive, Global>& region, const Extents& shape);

/// Calls body(context, begin, end) for parts of [0, n), each of about `grain`, possibly at once.
void parallel_for(std::int64_t n, std::int64_t grain, void (*body)(void*, std::int64_t begin, std::int64_t end),
                  void* context);

template <class Body>
void parallel_parts(std::int64_t n, std::int64_t grain, Body body) {
  parallel_for(
      n, grain, [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      &body);
}

/// One axis of a fold; a kept axis has no use for the window.
struct FoldAxis {
  std::int64_t n = 1, x_stride = 0, y_stride = 0;
  Axis window{};
};

/// The axes of a fold, slowest first, with kept neighbours merged where memory allows.
struct FoldSpace {
  Extents output_shape;
  std::vector<FoldAxis> kept;
  std::vector<FoldAxis> pooled;
  /// The kept axis that the innermost loops run along, of size 1 if there is none, and how much of it at once.
  FoldAxis lanes;
  std::int64_t block = 1;
};

/// Checks x, the compute type and the region, and lays out the loops of a direct fold; `who` stands in the errors.
FoldSpace fold_space(const char* who, const View& x, Type compute,
                     const std::variant<Window, Adaptive, Global>& region);

/// Chooses the lanes anew, for loops that have no other way to fill vectors: the kept axis with enough of them, and of
/// those the closest in memory.
void choose_gathered_lanes(FoldSpace& space);

/// A position in a nest of loops, the last running fastest.
class Counter {
 public:
  void add(std::int64_t extent) noexcept { extents_[static_cast<std::size_t>(rank_++)] = extent; }
  std::int64_t total() const noexcept;
  void seek(std::int64_t position) noexcept;
  std::int64_t operator[](std::size_t loop) const noexcept { return at_[loop]; }
  /// Steps on; false, and back at the beginning, after the last position.
  bool next() noexcept {
    for (int i = rank_ - 1; i >= 0; --i) {
      const auto loop = static_cast<std::size_t>(i);
      if (++at_[loop] < extents_[loop]) return true;
      at_[loop] = 0;
    }
    return false;
  }

 private:
  std::array<std::int64_t, max_rank + 2> extents_{}, at_{};
  int rank_ = 0;
};

/// How lines of elements that are stored in another form than they are computed in are read and written: halves as
/// floats, a bool from any byte.
struct Conversion {
  std::int64_t bytes;
  void (*read)(void* numbers, const void* elements, std::int64_t step, std::int64_t count) noexcept;
  void (*write)(void* elements, std::int64_t step, const void* numbers, std::int64_t count) noexcept;
};
/// Null where an element is a number already.
const Conversion* conversion(Type type) noexcept;

/// The arrays of a fold and its function, with the innermost steps. Places in the arrays are counted in elements.
template <class C, class F>
struct Folding {
  const void* x;
  void* y;
  const Conversion* converted;
  C init;
  const F& fn;

  C combine(C a, C b) const { return static_cast<C>(fn(a, b)); }

  /// to[i] = fn(to[i], row[i * step]).
  void append(C* __restrict to, const C* __restrict row, std::int64_t step, std::int64_t count) const {
    if (step == 1)
      for (std::int64_t i = 0; i < count; ++i) to[i] = combine(to[i], row[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = combine(to[i], row[i * step]);
  }

  /// Copies elements of x.
  void read(C* to, std::int64_t at, std::int64_t step, std::int64_t count) const {
    if (converted) return converted->read(to, static_cast<const std::byte*>(x) + at * converted->bytes, step, count);
    const C* from = static_cast<const C*>(x) + at;
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
  }

  /// Appends elements of x, lane by lane.
  void append_cells(C* to, std::int64_t at, std::int64_t step, std::int64_t count) const {
    if (!converted) return append(to, static_cast<const C*>(x) + at, step, count);
    in_chunks(at, step, count,
              [&](std::int64_t first, const C* row, std::int64_t n) { append(to + first, row, 1, n); });
  }

  /// Appends elements of x to one number, one after the other.
  C append_all(C value, std::int64_t at, std::int64_t step, std::int64_t count) const {
    const auto go = [&](const C* row, std::int64_t row_step, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) value = combine(value, row[i * row_step]);
    };
    if (converted)
      in_chunks(at, step, count, [&](std::int64_t, const C* row, std::int64_t n) { go(row, 1, n); });
    else
      go(static_cast<const C*>(x) + at, step, count);
    return value;
  }

  void write(std::int64_t at, std::int64_t step, const C* numbers, std::int64_t count) const {
    if (converted) return converted->write(static_cast<std::byte*>(y) + at * converted->bytes, step, numbers, count);
    C* to = static_cast<C*>(y) + at;
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = numbers[i];
  }

 private:
  template <class Use>
  void in_chunks(std::int64_t at, std::int64_t step, std::int64_t count, const Use& use) const {
    std::array<C, 256> numbers;
    for (std::int64_t first = 0; first < count; first += 256) {
      const std::int64_t n = count - first < 256 ? count - first : 256;
      read(numbers.data(), at + first * step, step, n);
      use(first, numbers.data(), n);
    }
  }
};

}  // namespace cenote::detail
