// Axis lists: shapes, strides, windows. One type instead of kH, kW.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace cenote {

/// The highest rank of an array.
inline constexpr int max_rank = 12;

/// A short list of 64-bit integers, one per axis, stored in place.
class Extents {
 public:
  Extents() = default;
  Extents(std::initializer_list<std::int64_t> values) : Extents(std::span(values.begin(), values.size())) {}
  /// Throws std::invalid_argument beyond max_rank values.
  explicit Extents(std::span<const std::int64_t> values);
  /// `rank` copies of `value`.
  static Extents filled(int rank, std::int64_t value);

  int size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  const std::int64_t* begin() const noexcept { return values_.data(); }
  const std::int64_t* end() const noexcept { return values_.data() + size_; }
  void push_back(std::int64_t value);

  friend bool operator==(const Extents& a, const Extents& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, max_rank> values_{};
  int size_ = 0;
};

/// "(2, 3, 4)".
std::string to_string(const Extents& extents);

/// One integer that stands for every pooled axis, or a list with one entry per pooled axis.
class PerAxis {
 public:
  PerAxis(std::int64_t every) : values_{every}, every_(true) {}
  PerAxis(std::initializer_list<std::int64_t> values) : values_(values) {}
  PerAxis(const Extents& values) : values_(values) {}

  /// True when one integer was given for all axes.
  bool is_scalar() const noexcept { return every_; }
  const Extents& values() const noexcept { return values_; }
  friend bool operator==(const PerAxis&, const PerAxis&) = default;

 private:
  Extents values_;
  bool every_ = false;
};

}  // namespace cenote
