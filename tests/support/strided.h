// Arrays in memory with any strides, made so that a write outside the elements is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <cenote/array.h>

#include "../../reference/tensor.h"

namespace cenote::test {

/// How an array lies in memory. `order` lists the axes from the slowest to the fastest; `step` multiplies the stride
/// that an axis would have without gaps: -1 reverses it, 2 leaves gaps, 0 repeats one element along the axis. `shift`
/// moves everything by some elements, so that vectors are not aligned.
struct Layout {
  std::vector<int> order;
  std::vector<std::int64_t> step;
  std::int64_t shift = 0;

  static Layout plain(int rank) {
    Layout layout{std::vector<int>(static_cast<std::size_t>(rank)), std::vector<std::int64_t>(rank, 1)};
    std::iota(layout.order.begin(), layout.order.end(), 0);
    return layout;
  }
};

inline reference::Shape to_shape(const Extents& extents) { return {extents.begin(), extents.end()}; }
inline Extents to_extents(const reference::Shape& shape) { return Extents(std::span<const std::int64_t>(shape)); }

/// An array that owns memory laid out in some way, between two guard zones, all of it filled with a sentinel at first.
class Strided {
 public:
  static constexpr std::byte sentinel{0xA5};
  static constexpr std::int64_t guard = 64;

  Strided(Type type, const Extents& shape, const Layout& layout)
      : type_(type), shape_(shape), strides_(Extents::filled(shape.size(), 1)) {
    std::int64_t span = 1, before = 0;
    for (int i = shape.size() - 1; i >= 0; --i) {
      const int axis = layout.order[static_cast<std::size_t>(i)];
      const std::int64_t step = layout.step[static_cast<std::size_t>(axis)];
      // The stride of an axis of size 1 reaches nothing, so it may be anything.
      strides_[axis] = shape[axis] == 1 && step != 1 ? step * 7919 : step * span;
      if (shape[axis] > 1 && step < 0) before += (shape[axis] - 1) * -strides_[axis];
      if (step != 0) span *= std::max<std::int64_t>(shape[axis], 1) * std::abs(step);
    }
    const auto size = static_cast<std::int64_t>(size_of(type));
    // vector<double> for the alignment.
    memory_.resize(static_cast<std::size_t>(((span + 2 * guard + layout.shift) * size + 7) / 8));
    std::memset(memory_.data(), std::to_integer<int>(sentinel), bytes());
    first_ = (guard + layout.shift + before) * size;
  }

  View view() const { return View(begin() + first_, type_, shape_, strides_); }
  MutableView view() { return MutableView(begin() + first_, type_, shape_, strides_); }
  Type type() const { return type_; }
  const Extents& shape() const { return shape_; }

  void* element(const reference::Shape& index) { return begin() + offset(index); }

  /// True if every byte outside the elements still holds the sentinel.
  bool gaps_untouched() const {
    std::vector<bool> ours(bytes(), false);
    for_each([&](std::int64_t at) {
      for (std::size_t b = 0; b < size_of(type_); ++b) ours[static_cast<std::size_t>(at) + b] = true;
    });
    for (std::size_t b = 0; b < bytes(); ++b) {
      if (!ours[b] && begin()[b] != sentinel) return false;
    }
    return true;
  }
  /// True if nothing was written at all.
  bool untouched() const {
    return std::all_of(begin(), begin() + bytes(), [](std::byte b) { return b == sentinel; });
  }
  /// The elements' bytes in row-major order; all NaN are alike, since their signs and payloads are not promised.
  std::vector<std::byte> packed() const {
    std::vector<std::byte> result;
    result.reserve(bytes());
    for_each([&](std::int64_t at) {
      if (is_nan(begin() + at))
        result.insert(result.end(), size_of(type_), std::byte{0xff});
      else
        result.insert(result.end(), begin() + at, begin() + at + size_of(type_));
    });
    return result;
  }

 private:
  bool is_nan(const std::byte* element) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, size_of(type_));
    switch (type_) {
      case Type::f16: return (bits & 0x7fff) > 0x7c00;
      case Type::bf16: return (bits & 0x7fff) > 0x7f80;
      case Type::f32: return (bits & 0x7fffffff) > 0x7f800000;
      case Type::f64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
      default: return false;
    }
  }
  std::size_t bytes() const { return memory_.size() * sizeof(double); }
  const std::byte* begin() const { return reinterpret_cast<const std::byte*>(memory_.data()); }
  std::byte* begin() { return reinterpret_cast<std::byte*>(memory_.data()); }
  std::int64_t offset(const reference::Shape& index) const {
    std::int64_t at = 0;
    for (int a = 0; a < shape_.size(); ++a) at += index[static_cast<std::size_t>(a)] * strides_[a];
    return first_ + at * static_cast<std::int64_t>(size_of(type_));
  }
  template <class F>
  void for_each(F f) const {
    const reference::Shape shape = to_shape(shape_);
    if (reference::count(shape) == 0) return;
    reference::Shape index(shape.size(), 0);
    do f(offset(index));
    while (reference::next(index, shape));
  }

  Type type_;
  Extents shape_, strides_;
  std::vector<double> memory_;
  std::int64_t first_ = 0;
};

/// The number that stands for an element in the oracle: double, int64 or uint64. All are exact.
template <class T>
using Carrier =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_signed_v<T> || std::is_same_v<T, bool>, std::int64_t, std::uint64_t>,
                       double>;

/// One element read from memory. A bool is any byte but 0.
template <class T>
Carrier<T> load(const void* from) {
  if constexpr (std::is_same_v<T, bool>) {
    return *static_cast<const unsigned char*>(from) != 0;
  } else {
    T value;
    std::memcpy(static_cast<void*>(&value), from, sizeof(T));
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
      return value;
    else
      return static_cast<float>(value);
  }
}

/// The elements of a view in row-major order, whatever its strides.
template <class T>
reference::Tensor<Carrier<T>> read(const View& view) {
  reference::Tensor<Carrier<T>> result{to_shape(view.shape), {}};
  if (reference::count(result.shape) == 0) return result;
  reference::Shape index(result.shape.size(), 0);
  do {
    std::int64_t at = 0;
    for (int a = 0; a < view.rank(); ++a) at += index[static_cast<std::size_t>(a)] * view.strides[a];
    result.values.push_back(load<T>(static_cast<const std::byte*>(view.data) + at * std::int64_t{sizeof(T)}));
  } while (reference::next(index, result.shape));
  return result;
}

}  // namespace cenote::test
