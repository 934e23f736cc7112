// Where the taps of one output lie in a key space: the taps that are in range, and the key of the first of them.
#pragma once

#include <limits>

#include "sparse/kernel.h"
#include "sparse/keys.h"

namespace cenote::sparse {

/// Whether |o| * stride and everything added to it stays below 2^62 for outputs in `outputs`.
inline bool fits_64(const Shape& shape, const Range& inputs, const Range& outputs) {
  constexpr i128 most = i128{1} << 60;
  const auto size = [](i128 x) { return x < 0 ? -x : x; };
  for (std::size_t a = 1; a < Range::at(shape.columns); ++a) {
    const Tap& tap = shape.axis[a];
    const i128 o = std::max(size(outputs.low[a]), size(outputs.high[a])) * tap.stride;
    if (o > most || tap.reach() > most || tap.padding > most || size(i128{tap.first} * tap.dilation) > most ||
        std::max(size(inputs.low[a]), size(inputs.high[a])) > most)
      return false;
  }
  return true;
}

/// The windows of outputs among keys K of inputs. Positions are computed in Wide: i128 is always enough.
template <class K, class Wide>
class WindowKeys {
 public:
  /// Taps [first, first + count) of an axis. `skip` is how far the first of them lies behind the first cell of the
  /// window that is in range: less than the dilation.
  struct Taps {
    std::int64_t first = 0, count = 1, skip = 0;
  };

  WindowKeys(const Shape& shape, const KeyCodec& codec, const Range& inputs) : shape_(shape), codec_(codec) {
    batch_extent_ = inputs.extent(0);
    for (int a = 1; a < shape.columns; ++a) {
      const Tap& tap = shape[a];
      Axis& axis = axis_[Range::at(a)];
      axis.stride = tap.stride;
      axis.reach = tap.reach();
      axis.extent = static_cast<Wide>(static_cast<i128>(inputs.extent(a)));
      axis.start = static_cast<Wide>(i128{tap.first} * tap.dilation - tap.padding - i128{inputs.low[Range::at(a)]});
      // Steps of axes with a single tap are never taken, and might not fit the key.
      step_[Range::at(a)] = tap.size > 1 ? codec.field<K>(a, static_cast<u64>(tap.dilation)) : K{0};
    }
  }

  int columns() const noexcept { return shape_.columns; }
  const Taps& operator[](int a) const noexcept { return taps_[Range::at(a)]; }
  K step(int a) const noexcept { return step_[Range::at(a)]; }
  /// The key of the first tap that is in range.
  K key() const noexcept { return key_; }
  /// Whether all taps are in range.
  bool whole() const noexcept { return whole_; }

  /// Moves to output o (batch first); false if no tap of its window is in range.
  bool move(const std::int64_t* o) noexcept {
    const u64 batch = static_cast<u64>(o[0]) - static_cast<u64>(codec_.low[0]);
    if (batch > batch_extent_) return false;
    key_ = codec_.field<K>(0, batch);
    whole_ = true;
    for (int a = 1; a < shape_.columns; ++a)
      if (!move_axis(a, o[a])) return false;
    return true;
  }

 private:
  struct Axis {
    Wide stride, reach, extent, start;
  };

  bool move_axis(int a, std::int64_t o) noexcept {
    if (!shape_.inside(a, o)) return false;
    const Axis& axis = axis_[Range::at(a)];
    const Tap& tap = shape_[a];
    Taps& taps = taps_[Range::at(a)];
    Wide at = static_cast<Wide>(o) * axis.stride + axis.start;
    taps = {0, tap.size, 0};
    if (at < 0 || at + axis.reach > axis.extent) {
      if (at > axis.extent || at + axis.reach < 0) return false;
      const Wide d = tap.dilation;
      const Wide first = at < 0 ? (d - 1 - at) / d : 0, last = std::min<Wide>((axis.extent - at) / d, tap.size - 1);
      if (first > last) return false;
      taps = {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first) + 1, 0};
      if (at < 0) taps.skip = static_cast<std::int64_t>(at += first * d);
      whole_ = false;
    }
    key_ = static_cast<K>(key_ | codec_.field<K>(a, static_cast<u64>(at)));
    return true;
  }

  const Shape& shape_;
  const KeyCodec& codec_;
  u64 batch_extent_ = 0;
  std::array<Axis, max_columns> axis_{};
  std::array<K, max_columns> step_{};
  std::array<Taps, max_columns> taps_{};
  K key_ = 0;
  bool whole_ = true;
};

/// Calls visit(key, id) for every combination of taps of the axes from 1 to `last`, first axis slowest; id is the
/// row-major position of the combination among all taps of those axes.
template <class K, class Wide, class Visit>
void for_taps(const WindowKeys<K, Wide>& window, const Shape& shape, int last, const Visit& visit) {
  std::array<std::int64_t, max_columns> tap{};
  K key = window.key();
  while (true) {
    std::int64_t id = 0;
    for (int a = 1; a <= last; ++a) id = id * shape[a].size + window[a].first + tap[Range::at(a)];
    visit(key, id);
    int a = last;
    for (; a >= 1; --a) {
      std::int64_t& t = tap[Range::at(a)];
      if (++t < window[a].count) {
        key = static_cast<K>(key + window.step(a));
        break;
      }
      key = static_cast<K>(key - static_cast<K>(window.step(a) * static_cast<K>(t - 1)));
      t = 0;
    }
    if (a < 1) return;
  }
}

}  // namespace cenote::sparse
