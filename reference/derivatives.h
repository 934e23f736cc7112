// The derivatives of the oracle: the weight of every cell in every window, written down one by one, and sums of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference.h"

namespace reference {

/// What one cell does to one output: its row-major place in the array, and the derivative of the output in it. For
/// error bounds, `distance` says how far a cell is from the one that its window is scaled by, as a logarithm.
struct Weight {
  std::int64_t cell = 0;
  long double weight = 0, distance = 0;
};
using Weights = std::vector<Weight>;

/// Max and min: all of it goes to the winner.
template <class T, class Better>
Weights winner_weight(const Cells<T>& window, Better better) {
  const auto best = winner(window, better);
  if (!best) return {};
  return {{best->tensor, 1}};
}

/// Max and min: the cells equal to the winner share it.
template <class T, class Better>
Weights shared_weights(const Cells<T>& window, Better better) {
  const auto best = winner(window, better);
  Weights result;
  for (const Cell<T>& cell : window.real) {
    if (cell.value == best->value || (is_nan(cell.value) && is_nan(best->value))) result.push_back({cell.tensor, 1});
  }
  for (Weight& w : result) w.weight /= static_cast<long double>(result.size());
  return result;
}

/// Sums and averages: one over a divisor, for each cell.
template <class T>
Weights even_weights(const Cells<T>& window, long double divisor = 1) {
  Weights result;
  for (const Cell<T>& cell : window.real) result.push_back({cell.tensor, 1 / divisor});
  return result;
}

/// Smooth max: exp(beta x) over the sum of these, as seen from the dominant cell. Padded zeros have their share in it.
template <class T>
Weights smooth_max_weights(const Cells<T>& window, long double beta, bool padding_is_zero) {
  const SmoothMax whole = smooth_max(window, beta, padding_is_zero);
  const auto seen = [&](long double x) { return x == whole.pivot ? 0 : beta * (x - whole.pivot); };
  long double total = 0;
  if (padding_is_zero && window.padded() > 0) total = static_cast<long double>(window.padded()) * std::exp(seen(0));
  for (const Cell<T>& cell : window.real) total += std::exp(seen(cell.value));
  Weights result;
  for (const Cell<T>& cell : window.real) {
    const long double log = seen(cell.value);
    result.push_back({cell.tensor, is_nan(whole.value) ? whole.value : std::exp(log) / total, std::fabs(log)});
  }
  return result;
}

/// lp: sign(x) (abs(x)/y)^(p-1). A largest cell of 0 has no derivative, taken as 0.
template <class T>
Weights lp_weights(const Cells<T>& window, long double p) {
  const auto size = [](const Cell<T>& cell) { return std::fabs(static_cast<long double>(cell.value)); };
  const auto sign = [](const Cell<T>& cell) -> long double {
    return is_nan(cell.value) ? cell.value : cell.value > 0 ? 1 : cell.value < 0 ? -1 : 0;
  };
  Cells<long double> sizes;
  for (const Cell<T>& cell : window.real) sizes.real.push_back({size(cell), cell.offset});
  const auto largest = winner(sizes, Greater{});
  Weights result;
  if (!largest) return result;
  const auto ratio = [&](const Cell<T>& cell) {
    return size(cell) == largest->value ? 1 : size(cell) / largest->value;
  };
  long double total = 0;
  for (const Cell<T>& cell : window.real) total += std::pow(ratio(cell), p);
  for (const Cell<T>& cell : window.real) {
    const long double weight = sign(cell) * std::pow(ratio(cell), p - 1) / std::pow(total, (p - 1) / p);
    if (p == 1) result.push_back({cell.tensor, sign(cell)});
    if (p > 1 && std::isfinite(p)) result.push_back({cell.tensor, weight, std::fabs(std::log(ratio(cell)))});
    if (std::isinf(p) && cell.offset == largest->offset) result.push_back({cell.tensor, sign(cell)});
  }
  return result;
}

/// The weights of every window, in row-major order of the outputs: `weigh` maps Cells to Weights.
template <class T, class F>
std::vector<Weights> jacobian(const Tensor<T>& x, const Windows& w, F weigh) {
  return pool(x, w, weigh).values;
}

/// One element of a derivative: its value, and how much it may be off, as told by whoever asked.
struct Slope {
  long double value = 0, error = 0;
};

/// Sums of weight * dx over each window. error(w, dx) is what one product may be off.
template <class F>
std::vector<Slope> jvp(const std::vector<Weights>& jacobian, const std::vector<double>& dx, F error) {
  std::vector<Slope> dy(jacobian.size());
  for (std::size_t o = 0; o < jacobian.size(); ++o) {
    for (const Weight& w : jacobian[o]) {
      const long double by = dx[static_cast<std::size_t>(w.cell)];
      dy[o].value += w.weight * by;
      dy[o].error += error(w, by);
    }
  }
  return dy;
}

/// Sums of weight * gy over the windows that hold each of `cells` cells.
template <class F>
std::vector<Slope> vjp(const std::vector<Weights>& jacobian, const std::vector<double>& gy, std::size_t cells,
                       F error) {
  std::vector<Slope> gx(cells);
  for (std::size_t o = 0; o < jacobian.size(); ++o) {
    for (const Weight& w : jacobian[o]) {
      Slope& at = gx[static_cast<std::size_t>(w.cell)];
      at.value += w.weight * static_cast<long double>(gy[o]);
      at.error += error(w, gy[o]);
    }
  }
  return gx;
}

/// The second derivative of sum(gy * y) in smooth max, times v. The error is the sum of the products' magnitudes.
inline std::vector<Slope> smooth_max_hvp(const std::vector<Weights>& jacobian, long double beta,
                                         const std::vector<double>& gy, const std::vector<double>& v) {
  std::vector<Slope> h(v.size());
  for (std::size_t o = 0; o < jacobian.size(); ++o) {
    long double mean = 0, size = 0;
    for (const Weight& w : jacobian[o]) {
      mean += w.weight * v[static_cast<std::size_t>(w.cell)];
      size += w.weight * std::fabs(v[static_cast<std::size_t>(w.cell)]);
    }
    for (const Weight& w : jacobian[o]) {
      const auto i = static_cast<std::size_t>(w.cell);
      h[i].value += beta * gy[o] * w.weight * (v[i] - mean);
      h[i].error += std::fabs(beta * gy[o] * w.weight) * (std::fabs(v[i]) + size);
    }
  }
  return h;
}

/// The same in lp, whose x and y it needs. abs(x)^(p-2) is 0 at x = 0.
inline std::vector<Slope> lp_hvp(const std::vector<Weights>& jacobian, long double p, const std::vector<double>& x,
                                 const std::vector<long double>& y, const std::vector<double>& gy,
                                 const std::vector<double>& v) {
  std::vector<Slope> h(v.size());
  for (std::size_t o = 0; o < jacobian.size(); ++o) {
    if (y[o] == 0) continue;
    long double along = 0, size = 0;
    for (const Weight& w : jacobian[o]) {
      along += w.weight * v[static_cast<std::size_t>(w.cell)];
      size += std::fabs(w.weight * v[static_cast<std::size_t>(w.cell)]);
    }
    for (const Weight& w : jacobian[o]) {
      const auto i = static_cast<std::size_t>(w.cell);
      const long double own = x[i] == 0 ? 0 : v[i] * w.weight / x[i];
      h[i].value += (p - 1) * gy[o] * (own - w.weight * along / y[o]);
      h[i].error += (p - 1) * std::fabs(gy[o]) * (std::fabs(own) + std::fabs(w.weight) * size / y[o]);
    }
  }
  return h;
}

}  // namespace reference
