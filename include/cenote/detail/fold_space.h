// The loops of a generic pool: its axes, how work is shared out, and the innermost steps.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
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

/// Checks x, the compute type and the region, and lays out the loops of a direct fold.
FoldSpace fold_space(const View& x, Type compute, const std::variant<Window, Adaptive, Global>& region);

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

/// An element as a number of the compute type. A bool is stored as a byte, and any but 0 is true.
template <class C, class E>
inline C load(E element) noexcept {
  if constexpr (std::is_same_v<E, f16>) {
    // As f16_to_float, in a form that vectorises: subnormals become normal by a difference that is exact.
    const std::uint32_t magnitude = (element.bits & 0x7fffu) << 13, sign = (element.bits & 0x8000u) << 16;
    const std::uint32_t normal = magnitude + (magnitude >= 0x0f800000u ? 224u << 23 : 112u << 23);
    const float small = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
    return std::bit_cast<float>((magnitude < 0x00800000u ? std::bit_cast<std::uint32_t>(small) : normal) | sign);
  } else if constexpr (std::is_same_v<C, bool>) {
    return element != 0;
  } else {
    return static_cast<C>(element);
  }
}

template <class C, class E>
inline void fold_copy(C* to, const E* x, std::int64_t step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = load<C>(x[i * step]);
}

/// to[i] = fn(to[i], x[i * step]).
template <class C, class E, class F>
inline void fold_append(const F& fn, C* __restrict to, const E* __restrict x, std::int64_t step, std::int64_t count) {
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(fn(to[i], load<C>(x[i])));
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(fn(to[i], load<C>(x[i * step])));
}

}  // namespace cenote::detail
