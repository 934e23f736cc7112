// Where the oracle's windows lie: every tap of every window of an axis, found by enumeration instead of formulas.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace reference {

using Shape = std::vector<std::int64_t>;

/// How an axis is padded: by given amounts, or so that there are ceil(n / stride) outputs.
enum class Pad { sides, same, same_lower };

/// What is asked of one pooled axis.
struct Rule {
  std::int64_t n = 0, size = 1, stride = 1, dilation = 1, low = 0, high = 0;
  Pad pad = Pad::sides;
  bool ceil = false, exact = false, allow_empty = false;
};

/// The window of one output along one axis. Real taps lie in the array; clipped ones in the padded array.
struct Bin {
  struct Tap {
    std::int64_t number, position;
  };
  std::int64_t taps = 0, clipped = 0;
  std::vector<Tap> real;
};

/// One pooled axis: its input extent, its padding, the most taps that a window may have, and each output's window.
struct Axis {
  std::int64_t n = 0, low = 0, high = 0, taps = 0;
  std::vector<Bin> bins;
  std::int64_t out() const { return static_cast<std::int64_t>(bins.size()); }
};

inline std::int64_t multiples_below(std::int64_t step, std::int64_t limit) {
  std::int64_t count = 0;
  for (std::int64_t start = 0; start < limit; start += step) ++count;
  return count;
}

/// The padding that a rule comes to.
inline std::pair<std::int64_t, std::int64_t> sides(const Rule& r) {
  if (r.pad == Pad::sides) return {r.low, r.high};
  const std::int64_t out = multiples_below(r.stride, r.n);
  std::int64_t missing = out == 0 ? 0 : (out - 1) * r.stride + (r.size - 1) * r.dilation + 1 - r.n;
  if (missing < 0) missing = 0;
  const std::int64_t less = missing / 2, more = missing - less;
  return r.pad == Pad::same ? std::pair(less, more) : std::pair(more, less);
}

/// The number of windows; std::domain_error where the rule has none.
inline std::int64_t count_windows(const Rule& r) {
  if (r.exact && (r.ceil || r.pad != Pad::sides)) throw std::domain_error("exact with same or ceil");
  if (r.pad != Pad::sides) return multiples_below(r.stride, r.n);
  const std::int64_t extent = (r.size - 1) * r.dilation + 1, padded = r.low + r.n + r.high;
  if (extent > padded) {
    if (!r.allow_empty) throw std::domain_error("a window that does not fit");
    return 0;
  }
  std::int64_t count = 0, start = 0, end = 0;
  for (; start + extent <= padded; start += r.stride) {
    ++count;
    end = start + extent;
  }
  const bool remainder = end < padded;
  if (remainder && r.exact) throw std::domain_error("a remainder");
  if (remainder && r.ceil && start < r.n + r.low) ++count;
  return count;
}

inline Axis sliding(const Rule& r) {
  Axis axis;
  axis.n = r.n;
  axis.taps = r.size;
  std::tie(axis.low, axis.high) = sides(r);
  const std::int64_t count = count_windows(r);
  for (std::int64_t o = 0; o < count; ++o) {
    Bin bin;
    bin.taps = r.size;
    for (std::int64_t tap = 0; tap < r.size; ++tap) {
      const std::int64_t position = o * r.stride + tap * r.dilation - axis.low;
      if (position >= 0 && position < r.n) bin.real.push_back({tap, position});
      if (position >= -axis.low && position < r.n + axis.high) ++bin.clipped;
    }
    axis.bins.push_back(std::move(bin));
  }
  return axis;
}

/// Bins of nearly equal size: bin i covers [floor(i*n/out), ceil((i+1)*n/out)).
inline Axis adaptive(std::int64_t n, std::int64_t out) {
  Axis axis;
  axis.n = n;
  for (std::int64_t o = 0; o < out; ++o) {
    const std::int64_t begin = o * n / out, end = ((o + 1) * n + out - 1) / out;
    Bin bin;
    bin.taps = bin.clipped = end - begin;
    if (bin.taps > axis.taps) axis.taps = bin.taps;
    for (std::int64_t i = begin; i < end; ++i) bin.real.push_back({i - begin, i});
    axis.bins.push_back(std::move(bin));
  }
  return axis;
}

/// One window over the whole axis, even if that is empty.
inline Axis whole(std::int64_t n) { return adaptive(n, 1); }

/// All windows of an array: its shape, which axes are pooled (increasing) and how.
struct Windows {
  Shape shape;
  std::vector<int> pooled;
  std::vector<Axis> axes;
  /// False drops the pooled axes, which must then have one output each.
  bool keepdims = true;

  Shape output_shape() const {
    Shape out = shape;
    for (std::size_t a = 0; a < pooled.size(); ++a) out[static_cast<std::size_t>(pooled[a])] = axes[a].out();
    if (keepdims) return out;
    for (std::size_t a = pooled.size(); a-- > 0;) out.erase(out.begin() + pooled[a]);
    return out;
  }
};

inline std::vector<int> last_axes(int rank, int count, bool channels_last = false) {
  std::vector<int> axes;
  for (int a = 0; a < count; ++a) axes.push_back(rank - count - (channels_last ? 1 : 0) + a);
  return axes;
}

/// The axes of images and volumes: all after the first two, or all between the first and the last.
inline std::vector<int> spatial_axes(int rank, bool channels_last = false) {
  return last_axes(rank, rank - 2, channels_last);
}

inline Windows sliding_windows(Shape shape, std::vector<int> pooled, const std::vector<Rule>& rules) {
  Windows w{std::move(shape), std::move(pooled), {}};
  for (std::size_t a = 0; a < rules.size(); ++a) {
    Rule rule = rules[a];
    rule.n = w.shape[static_cast<std::size_t>(w.pooled[a])];
    w.axes.push_back(sliding(rule));
  }
  return w;
}

inline Windows adaptive_windows(Shape shape, std::vector<int> pooled, const std::vector<std::int64_t>& out) {
  Windows w{std::move(shape), std::move(pooled), {}};
  for (std::size_t a = 0; a < out.size(); ++a) {
    w.axes.push_back(adaptive(w.shape[static_cast<std::size_t>(w.pooled[a])], out[a]));
  }
  return w;
}

inline Windows whole_windows(Shape shape, std::vector<int> pooled, bool keepdims = true) {
  Windows w{std::move(shape), std::move(pooled), {}, keepdims};
  for (const int axis : w.pooled) w.axes.push_back(whole(w.shape[static_cast<std::size_t>(axis)]));
  return w;
}

}  // namespace reference
