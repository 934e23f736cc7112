// 64-bit arithmetic that notices overflow.
#pragma once

#include <cstdint>
#include <optional>

namespace cenote {

/// A 64-bit integer, or nothing once any step of its computation has left 64 bits.
class Checked {
 public:
  Checked(std::int64_t value) : value_(value) {}
  bool ok() const noexcept { return ok_; }
  /// Precondition: ok().
  std::int64_t value() const noexcept { return value_; }

  friend Checked operator+(Checked a, Checked b) noexcept {
    a.ok_ = !__builtin_add_overflow(a.value_, b.value_, &a.value_) && a.ok_ && b.ok_;
    return a;
  }
  friend Checked operator-(Checked a, Checked b) noexcept {
    a.ok_ = !__builtin_sub_overflow(a.value_, b.value_, &a.value_) && a.ok_ && b.ok_;
    return a;
  }
  friend Checked operator*(Checked a, Checked b) noexcept {
    a.ok_ = !__builtin_mul_overflow(a.value_, b.value_, &a.value_) && a.ok_ && b.ok_;
    return a;
  }

 private:
  std::int64_t value_;
  bool ok_ = true;
};

}  // namespace cenote
