// A kernel that has been checked: one number per axis, and where its window begins.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <cenote/relation.h>

#include "sparse/keys.h"

namespace cenote::sparse {

/// One axis of a window: the taps of output o lie at o * stride + (first + j) * dilation - padding, j in [0, size).
struct Tap {
  std::int64_t size = 1, stride = 1, padding = 0, dilation = 1, first = 0;

  /// From the first tap to the last; fits 64 bits.
  std::int64_t reach() const noexcept { return (size - 1) * dilation; }
};

/// A kernel for coordinates of a given dimension. Axes are numbered like the columns of coordinates: from 1.
struct Shape {
  int columns = 0;
  std::array<Tap, max_columns> axis{};
  std::int64_t volume = 1;
  /// Outputs exist only in [0, limit) per axis; 0: everywhere.
  std::array<std::int64_t, max_columns> limit{};
  bool limited = false;

  const Tap& operator[](int a) const noexcept { return axis[Range::at(a)]; }
  /// floor(c / stride) per axis.
  Divisors divisors() const noexcept;
  /// floor((c + padding) / stride) per axis: the one window that may hold c, where windows do not overlap.
  Divisors cells() const noexcept;
  /// Whether windows of different outputs have no cell in common, for any padding.
  bool apart() const noexcept;
  /// Whether stride is 1 on every axis.
  bool unit_stride() const noexcept;
  /// Whether every input feeds at most one output, which is floor(c / stride).
  bool groups() const noexcept;
  /// Whether a grouping kernel has a tap for every input.
  bool covers() const noexcept;
  /// n where size = stride = 2^n on every axis, otherwise 0.
  int power_of_two() const noexcept;
  bool inside(int a, std::int64_t o) const noexcept { return !limited || (o >= 0 && o < limit[Range::at(a)]); }
};

/// Checks a kernel; `who` stands in the errors.
Shape check_kernel(std::string_view who, const Kernel& kernel, int dimension);
/// Puts the windows where the policy has them; checks what the policy asks for.
void apply_policy(std::string_view who, Shape& shape, const RelateOptions& options);

/// The kernel with one number per axis.
Kernel kernel_of(const Shape& shape);
/// "lattice k(2, 2) s(2, 2) p(0, 0) d(1, 1) first_seen": what a relation depends on beside coordinates and targets.
std::string relation_key(const Shape& shape, const RelateOptions& options, Order order);
std::string_view name(Policy policy) noexcept;

}  // namespace cenote::sparse
