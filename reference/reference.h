// The oracle: what every pooling means, as slowly and plainly as it can be said. Needs the standard library alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "tensor.h"
#include "windows.h"

namespace reference {

template <class T>
bool is_nan(const T& value) {
  return value != value;
}

/// The winning cell, if there is a real one: the first NaN, else the first cell that no other is better than.
template <class T, class Better>
std::optional<Cell<T>> winner(const Cells<T>& window, Better better) {
  std::optional<Cell<T>> best;
  for (const Cell<T>& cell : window.real) {
    const bool wins = !best || (!is_nan(best->value) && (is_nan(cell.value) || better(cell.value, best->value)));
    if (wins) best = cell;
  }
  return best;
}

struct Greater {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return b < a;
  }
};

struct Less {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};

/// The extremum of each window; `empty` where it has no real cell.
template <class T, class Better>
Tensor<T> extremum_pool(const Tensor<T>& x, const Windows& w, const T& empty, Better better) {
  return pool(x, w, [&](const Cells<T>& window) {
    const auto best = winner(window, better);
    return best ? best->value : empty;
  });
}

template <class T>
Tensor<T> max_pool(const Tensor<T>& x, const Windows& w, const T& empty) {
  return extremum_pool(x, w, empty, Greater{});
}

template <class T>
Tensor<T> min_pool(const Tensor<T>& x, const Windows& w, const T& empty) {
  return extremum_pool(x, w, empty, Less{});
}

/// The winner of each window by its index; -1 where there is no real cell, except that an offset is then 0.
template <class T, class Better>
Tensor<std::int64_t> winners(const Tensor<T>& x, const Windows& w, Index kind, Better better) {
  return pool(x, w, [&](const Cells<T>& window) {
    const auto best = winner(window, better);
    return best ? best->index(kind) : std::int64_t{kind == Index::offset ? 0 : -1};
  });
}

/// What sums are made in: floats in long double, integers modulo 2^64, other numbers in themselves.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, long double,
                                std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>>;

/// A sum and, for error bounds, the sum of the absolute values (0 for integers, whose sums are exact).
template <class T>
struct Sum {
  Wide<T> value{0}, magnitude{0};
};

template <class T>
Sum<T> sum(const Cells<T>& window) {
  Sum<T> total;
  for (const Cell<T>& cell : window.real) {
    const auto value = static_cast<Wide<T>>(cell.value);
    total.value = total.value + value;
    if constexpr (!std::is_integral_v<T>) total.magnitude = total.magnitude + (value < Wide<T>(0) ? -value : value);
  }
  return total;
}

template <class T>
Tensor<Sum<T>> sum_pool(const Tensor<T>& x, const Windows& w) {
  return pool(x, w, [](const Cells<T>& window) { return sum(window); });
}

/// What an average divides by: all taps, the real cells, the taps inside the padded array, or a given number.
enum class Divide { window, valid, clipped, number };

template <class T>
std::int64_t divisor(const Cells<T>& window, Divide rule) {
  if (rule == Divide::valid) return static_cast<std::int64_t>(window.real.size());
  return rule == Divide::clipped ? window.clipped : window.taps;
}

/// Averages, with the average magnitude; 0 where a window has no real cell. For exact numbers and floats.
template <class T>
Tensor<Sum<T>> avg_pool(const Tensor<T>& x, const Windows& w, Divide rule, Wide<T> number = Wide<T>(1)) {
  static_assert(!std::is_integral_v<T>, "the average of integers is that of their converted sums");
  return pool(x, w, [&](const Cells<T>& window) {
    if (window.real.empty()) return Sum<T>{};
    const Sum<T> total = sum(window);
    const Wide<T> by = rule == Divide::number ? number : static_cast<Wide<T>>(divisor(window, rule));
    return Sum<T>{total.value / by, total.magnitude / by};
  });
}

/// log(sum(exp(beta*x))) / beta about the dominant value; padded cells are zeros that count, or nothing.
struct SmoothMax {
  long double value = 0;
  /// The dominant value and the number of cells, for error bounds.
  long double pivot = 0;
  std::int64_t cells = 0;
};

template <class T>
SmoothMax smooth_max(const Cells<T>& window, long double beta, bool padding_is_zero) {
  constexpr long double inf = std::numeric_limits<long double>::infinity();
  const std::int64_t zeros = padding_is_zero ? window.padded() : 0;
  SmoothMax result;
  result.cells = zeros + static_cast<std::int64_t>(window.real.size());
  bool nan = false;
  long double pivot = beta > 0 ? -inf : inf;
  const auto dominate = [&](long double value) {
    if (beta > 0 ? value > pivot : value < pivot) pivot = value;
  };
  for (const Cell<T>& cell : window.real) {
    nan = nan || is_nan(cell.value);
    dominate(cell.value);
  }
  if (zeros > 0) dominate(0);
  result.pivot = pivot;
  if (nan) return {std::numeric_limits<long double>::quiet_NaN(), pivot, result.cells};
  if (result.cells == 0) return {pivot, pivot, 0};
  const auto weight = [&](long double value) { return value == pivot ? 1.0L : std::exp(beta * (value - pivot)); };
  long double total = zeros > 0 ? static_cast<long double>(zeros) * weight(0) : 0;
  for (const Cell<T>& cell : window.real) total += weight(cell.value);
  result.value = pivot + std::log(total) / beta;
  return result;
}

template <class T>
Tensor<SmoothMax> smooth_max_pool(const Tensor<T>& x, const Windows& w, long double beta, bool padding_is_zero = true) {
  return pool(x, w, [&](const Cells<T>& window) { return smooth_max(window, beta, padding_is_zero); });
}

/// sum(abs(x)^p)^(1/p) about the largest; p = infinity is the largest itself.
template <class T>
long double lp(const Cells<T>& window, long double p) {
  long double largest = 0;
  for (const Cell<T>& cell : window.real) {
    if (is_nan(cell.value)) return std::numeric_limits<long double>::quiet_NaN();
    largest = std::max(largest, std::abs(static_cast<long double>(cell.value)));
  }
  if (largest == 0 || std::isinf(largest) || std::isinf(p)) return largest;
  long double total = 0;
  for (const Cell<T>& cell : window.real) {
    total += std::pow(std::abs(static_cast<long double>(cell.value)) / largest, p);
  }
  return largest * std::pow(total, 1 / p);
}

template <class T>
Tensor<long double> lp_pool(const Tensor<T>& x, const Windows& w, long double p) {
  return pool(x, w, [&](const Cells<T>& window) { return lp(window, p); });
}

/// Any reduction: f(... f(f(init, x0), x1) ..., xn) over the real cells.
template <class T, class R, class F>
Tensor<R> fold_pool(const Tensor<T>& x, const Windows& w, const R& init, F f) {
  return pool(x, w, [&](const Cells<T>& window) {
    R state = init;
    for (const Cell<T>& cell : window.real) state = f(state, cell.value);
    return state;
  });
}

/// Writes y at plane indices into zeros of `shape`; the last write stays. std::domain_error for an index outside.
template <class T>
Tensor<T> max_unpool(const Tensor<T>& y, const Tensor<std::int64_t>& indices, const Shape& shape,
                     const std::vector<int>& pooled) {
  Tensor<T> x{shape, std::vector<T>(static_cast<std::size_t>(count(shape)), T{})};
  Shape plane;
  for (const int axis : pooled) plane.push_back(shape[static_cast<std::size_t>(axis)]);
  if (y.values.empty()) return x;
  Shape output(y.shape.size(), 0);
  do {
    const auto from = static_cast<std::size_t>(position(output, y.shape));
    std::int64_t rest = indices.values[from];
    if (rest < 0 || rest >= count(plane)) throw std::domain_error("an index outside the plane");
    Shape target = output;
    for (std::size_t a = pooled.size(); a-- > 0; rest /= plane[a]) {
      target[static_cast<std::size_t>(pooled[a])] = rest % plane[a];
    }
    x.values[static_cast<std::size_t>(position(target, shape))] = y.values[from];
  } while (next(output, y.shape));
  return x;
}

}  // namespace reference
