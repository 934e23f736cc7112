// Loops of elementwise operations: nests over strided arrays whose innermost lines are rows of plain numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <cenote/array.h>
#include <cenote/detail/fold_space.h>

#include "core/copy.h"

namespace cenote::autodiff {

/// Elements that one thread should have before a second one is worth waking.
inline constexpr std::int64_t parallel_grain = 16384;
/// Numbers that are brought together at once, few enough to stay in the first cache.
inline constexpr std::int64_t chunk = 256;

/// The type that elements of a floating-point type are computed in.
constexpr Type compute_type(Type type) noexcept { return is_half(type) ? Type::f32 : type; }

/// Calls f with a zero of the C++ type that a floating-point type is computed in.
template <class F>
decltype(auto) visit_compute(Type type, F&& f) {
  return type == Type::f64 ? f(double{}) : f(float{});
}

/// Loops over several arrays of one shape, slowest first, with neighbours merged where all arrays allow it.
template <std::size_t N>
class Nest {
 public:
  Nest(const Extents& shape, const std::array<Extents, N>& strides) {
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      std::array<std::int64_t, N> steps;
      for (std::size_t k = 0; k < N; ++k) steps[k] = strides[k][i];
      if (rank_ > 0 && merges(shape[i], steps)) {
        extents_[rank_ - 1] *= shape[i];
        strides_[rank_ - 1] = steps;
      } else {
        extents_[rank_] = shape[i];
        strides_[rank_++] = steps;
      }
    }
  }

  /// Calls line(offsets, strides, n) for pieces of the innermost loop, possibly at once.
  template <class Line>
  void each_line(const Line& line) const {
    const std::int64_t n = rank_ > 0 ? extents_[rank_ - 1] : 1;
    const std::array<std::int64_t, N> steps = rank_ > 0 ? strides_[rank_ - 1] : std::array<std::int64_t, N>{};
    if (n == 0) return;
    const std::int64_t piece = std::min(n, parallel_grain);
    detail::Counter pieces;
    for (std::size_t i = 0; i + 1 < rank_; ++i) pieces.add(extents_[i]);
    pieces.add((n + piece - 1) / piece);
    if (pieces.total() == 0) return;
    const std::size_t last = rank_ > 0 ? rank_ - 1 : 0;
    detail::parallel_parts(pieces.total(), parallel_grain / piece, [&](std::int64_t begin, std::int64_t end) {
      detail::Counter at = pieces;
      at.seek(begin);
      for (; begin < end; ++begin, at.next()) {
        const std::int64_t first = at[last] * piece;
        std::array<std::int64_t, N> offsets;
        for (std::size_t k = 0; k < N; ++k) {
          offsets[k] = first * steps[k];
          for (std::size_t i = 0; i < last; ++i) offsets[k] += at[i] * strides_[i][k];
        }
        line(offsets, steps, std::min(piece, n - first));
      }
    });
  }

 private:
  bool merges(std::int64_t n, const std::array<std::int64_t, N>& steps) const {
    for (std::size_t k = 0; k < N; ++k) {
      std::int64_t whole = 0;
      if (__builtin_mul_overflow(n, steps[k], &whole) || strides_[rank_ - 1][k] != whole) return false;
    }
    return true;
  }

  std::array<std::int64_t, max_rank> extents_{};
  std::array<std::array<std::int64_t, N>, max_rank> strides_{};
  std::size_t rank_ = 0;
};

/// The strides of a view seen under a shape that it broadcasts to.
inline Extents broadcast_strides(const View& x, const Extents& shape) {
  Extents strides = Extents::filled(shape.size(), 0);
  const int extra = shape.size() - x.rank();
  for (int i = 0; i < x.rank(); ++i) strides[extra + i] = x.shape[i] == 1 ? 0 : x.strides[i];
  return strides;
}

template <class Byte>
Byte* byte_at(Byte* data, Type type, std::int64_t offset) noexcept {
  return data + offset * static_cast<std::int64_t>(size_of(type));
}
inline const std::byte* bytes_of(const View& x) noexcept { return static_cast<const std::byte*>(x.data); }
inline std::byte* bytes_of(const MutableView& x) noexcept { return static_cast<std::byte*>(x.data); }

/// n elements as numbers without gaps: where they lie, or brought to `buffer`.
template <class C>
const C* read_row(Type type, const std::byte* from, std::int64_t stride, std::int64_t n, C* buffer) noexcept {
  if (type == type_of<C> && (stride == 1 || n == 1)) return reinterpret_cast<const C*>(from);
  convert_line(type_of<C>, buffer, type, from, stride, n);
  return buffer;
}

/// Writes up to `chunk` numbers as elements, rounded once.
template <class C>
void write_row(Type type, std::byte* to, std::int64_t stride, const C* numbers, std::int64_t n) noexcept {
  if (stride == 1 || n == 1) return narrow_line(type, to, type_of<C>, numbers, n);
  alignas(64) std::array<std::byte, chunk * sizeof(double)> narrowed;
  if (type != type_of<C>) narrow_line(type, narrowed.data(), type_of<C>, numbers, n);
  scatter_line(type, to, stride, type == type_of<C> ? static_cast<const void*>(numbers) : narrowed.data(), n);
}

/// The loop that the compiler vectorises.
template <class C, class F, class... Rows>
void compute_row(const F& f, std::int64_t n, C* __restrict to, const Rows* __restrict... rows) noexcept {
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(rows[i]...);
}

/// y = f(inputs…) element by element, computed in C; the inputs broadcast to y. None may overlap y.
template <class C, class F, std::size_t... I>
void compute(const F& f, const std::array<View, sizeof...(I)>& inputs, const MutableView& y,
             std::index_sequence<I...> /*inputs*/) {
  constexpr std::size_t N = sizeof...(I);
  const Nest<N + 1> nest(y.shape, {broadcast_strides(inputs[I], y.shape)..., y.strides});
  nest.each_line([&](const auto& offsets, const auto& strides, std::int64_t n) {
    alignas(64) std::array<std::array<C, chunk>, N + 1> buffers;
    const bool in_place = y.type == type_of<C> && (strides[N] == 1 || n == 1);
    std::array<const C*, N> rows{};
    for (std::int64_t first = 0; first < n; first += chunk) {
      const std::int64_t count = std::min(chunk, n - first);
      for (std::size_t k = 0; k < N; ++k) {
        if (first > 0 && strides[k] == 0) continue;  // the buffer is full of the one element already
        const std::byte* from = byte_at(bytes_of(inputs[k]), inputs[k].type, offsets[k] + first * strides[k]);
        rows[k] = read_row(inputs[k].type, from, strides[k], count, buffers[k].data());
      }
      std::byte* to = byte_at(bytes_of(y), y.type, offsets[N] + first * strides[N]);
      C* results = in_place ? reinterpret_cast<C*>(to) : buffers[N].data();
      compute_row<C>(f, count, results, rows[I]...);
      if (!in_place) write_row(y.type, to, strides[N], results, count);
    }
  });
}

/// Copies x, which broadcasts to y, of the same type.
inline void copy_broadcast(const View& x, const MutableView& y) {
  assert(x.type == y.type);
  const Nest<2> nest(y.shape, {broadcast_strides(x, y.shape), y.strides});
  nest.each_line([&](const auto& offsets, const auto& strides, std::int64_t n) {
    const std::byte* from = byte_at(bytes_of(x), x.type, offsets[0]);
    std::byte* to = byte_at(bytes_of(y), y.type, offsets[1]);
    if (strides[1] == 1 || n == 1) return convert_line(y.type, to, x.type, from, strides[0], n);
    alignas(64) std::array<std::byte, chunk * sizeof(double)> row;
    for (std::int64_t first = 0; first < n; first += chunk) {
      const std::int64_t count = std::min(chunk, n - first);
      convert_line(y.type, row.data(), x.type, byte_at(from, x.type, first * strides[0]), strides[0], count);
      scatter_line(y.type, byte_at(to, y.type, first * strides[1]), strides[1], row.data(), count);
    }
  });
}

}  // namespace cenote::autodiff
