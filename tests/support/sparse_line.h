// Sparse tensors along a line, and the gradient of the sum of what they are pooled to.
#pragma once

#include <vector>

#include <cenote/sparse.h>

#include "arrays.h"
#include "clouds.h"

namespace cenote::test {

/// One channel of features at (0, x, 0, 0).
template <class T = float>
SparseTensor line3(const std::vector<std::int64_t>& xs, const std::vector<double>& feats, const PerAxis& stride = 1) {
  std::vector<Row> rows;
  for (const std::int64_t x : xs) rows.push_back({0, x, 0, 0});
  return SparseTensor(coordinates(rows, 3), array<T>({static_cast<std::int64_t>(xs.size()), 1}, feats), stride);
}

/// One channel of features at (0, x).
template <class T = float>
SparseTensor line1(const std::vector<std::int64_t>& xs, const std::vector<double>& feats, const PerAxis& stride = 1) {
  return SparseTensor(line(xs), array<T>({static_cast<std::int64_t>(xs.size()), 1}, feats), stride);
}

/// gx of a cotangent of ones.
template <class T = float>
Array gradient(const RowPooling& pooling, const Array& x) {
  const auto [y, pullback] = vjp(pooling, x);
  return pullback(full<T>(y.shape(), 1));
}

/// Where the points of a tensor of one dimension, or those along x, are.
inline std::vector<std::int64_t> places(const SparseTensor& x) {
  std::vector<std::int64_t> result;
  for (const Row& row : rows_of(x.coords())) result.push_back(row[1]);
  return result;
}

/// All rows of a tensor in one window: n rows of features, side by side, and a kernel that holds them.
inline RowPooling one_window(std::int64_t n, const Reduction& reduction) {
  std::vector<std::int64_t> xs;
  for (std::int64_t x = 0; x < n; ++x) xs.push_back(x);
  return RowPooling(relate(line(xs), {n, n, 0, 1}, {.policy = Policy::dense}), reduction);
}

}  // namespace cenote::test
