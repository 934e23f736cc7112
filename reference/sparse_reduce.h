// The oracle of sparse reductions: the rows that feed every output, one by one, as cells for the reducers of windows.
#pragma once

#include <cstdint>
#include <vector>

#include "derivatives.h"
#include "sparse.h"

namespace reference {

/// The relation of a global pooling: every row feeds its batch, in row order. The row serves as kernel id.
inline SparseRelation sparse_global(const std::vector<Row>& inputs, std::int64_t batches) {
  SparseRelation relation;
  for (std::int64_t b = 0; b < batches; ++b) {
    relation.outputs.push_back({b});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const auto row = static_cast<std::int64_t>(i); inputs[i][0] == b) relation.edges.push_back({row, b, row});
  }
  return relation;
}

/// The cells of every output and channel, (outputs, channels), of features x (inputs, channels), in the order of the
/// edges. A cell's offset is its kernel id, its plane the row that it came from, and `tensor` its place in x.
/// All of `volume` taps count as taps, and nothing is padded.
inline std::vector<Cells<double>> row_cells(const SparseRelation& relation, std::int64_t volume,
                                            const std::vector<double>& x, std::int64_t channels) {
  const auto width = static_cast<std::size_t>(channels);
  std::vector<Cells<double>> cells(relation.outputs.size() * width);
  for (Cells<double>& each : cells) each.taps = volume;
  for (const SparseEdge& edge : relation.edges) {
    for (std::size_t c = 0; c < width; ++c) {
      const auto place = static_cast<std::size_t>(edge.in_row) * width + c;
      Cell<double> cell{x[place], edge.kernel_id, edge.in_row, static_cast<std::int64_t>(place), 0};
      cells[static_cast<std::size_t>(edge.out_row) * width + c].real.push_back(cell);
    }
  }
  for (Cells<double>& each : cells) each.clipped = static_cast<std::int64_t>(each.real.size());
  return cells;
}

/// How much input c adds to point t by a scale: the product over axes of 1 - |t - c * scale| / scale where that is
/// above 0, before it is divided by what reaches the point in all.
inline long double multilinear_share(const Row& c, const Row& t, const std::vector<std::int64_t>& scale) {
  if (c[0] != t[0]) return 0;
  long double share = 1;
  for (std::size_t a = 0; a < scale.size(); ++a) {
    const Big away = Big{t[a + 1]} - Big{c[a + 1]} * scale[a];
    if (away <= -scale[a] || away >= scale[a]) return 0;
    share *= 1 - static_cast<long double>(away < 0 ? -away : away) / static_cast<long double>(scale[a]);
  }
  return share;
}

/// The derivative of multilinear upsampling onto points, for every point and channel: its value is the jvp at x.
inline std::vector<Weights> multilinear_jacobian(const std::vector<Row>& inputs, const std::vector<Row>& points,
                                                 const std::vector<std::int64_t>& scale, std::int64_t channels) {
  std::vector<Weights> jacobian;
  for (const Row& t : points) {
    long double total = 0;
    for (const Row& c : inputs) total += multilinear_share(c, t, scale);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      Weights weights;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const long double share = multilinear_share(inputs[i], t, scale); share > 0)
          weights.push_back({static_cast<std::int64_t>(i) * channels + channel, share / total, 0});
      jacobian.push_back(std::move(weights));
    }
  }
  return jacobian;
}

/// The kernel whose transposed relation reaches what multilinear upsampling reaches: scale - 1 to either side.
inline SparseKernel multilinear_kernel(const std::vector<std::int64_t>& scale) {
  SparseKernel kernel{{}, scale, {}, std::vector<std::int64_t>(scale.size(), 1)};
  for (const std::int64_t s : scale) {
    kernel.size.push_back(2 * s - 1);
    kernel.padding.push_back(s - 1);
  }
  return kernel;
}

}  // namespace reference
