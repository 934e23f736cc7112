// Random requests for relations: clouds, kernels, policies, orders and targets, in the words of the oracle.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include <rapidcheck.h>

#include <cenote/relation.h>

#include "../../reference/sparse.h"
#include "clouds.h"

namespace cenote::test {

/// A request in the oracle's words, and what else the library is told.
struct Request {
  reference::SparseProblem problem;
  int dimension = 1;
  bool wide = false;
};

/// The whole range from the first case on.
inline int draw(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

inline std::vector<std::int64_t> draw_axes(int dimension, int low, int high) {
  std::vector<std::int64_t> values;
  const bool same = draw(0, 1) == 1;
  for (int a = 0; a < dimension; ++a) values.push_back(same && a > 0 ? values[0] : draw(low, high));
  return values;
}

/// Rows near the outputs that inputs have, so that many of them are met.
inline std::vector<Row> draw_targets(const Request& request, std::mt19937_64& random) {
  std::vector<Row> rows = reference::sparse_outputs(request.problem);
  const auto strangers = cloud(CloudKind::small, request.dimension, draw(0, 10), request.wide, random);
  for (const Row& row : strangers)
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  std::shuffle(rows.begin(), rows.end(), random);
  rows.resize(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(draw(0, 60))));
  return rows;
}

/// Any request of a dimension; rows are in random order.
inline Request draw_request(int dimension) {
  Request request;
  reference::SparseProblem& p = request.problem;
  request.dimension = dimension;
  request.wide = draw(0, 1) == 1;
  std::mt19937_64 random(static_cast<std::uint64_t>(draw(0, 1 << 30)));
  const auto kind = static_cast<CloudKind>(draw(0, cloud_kinds - 1));
  p.inputs = cloud(kind, request.dimension, draw(0, dimension > 4 ? 25 : 70), request.wide, random);
  if (request.wide) p.lowest = INT64_MIN, p.highest = INT64_MAX;
  p.policy = static_cast<reference::SparsePolicy>(draw(0, 2));
  p.order = static_cast<reference::SparseOrder>(draw(0, 1));
  const int largest = dimension <= 2 ? 12 : dimension == 3 ? 4 : dimension == 4 ? 3 : 2;
  p.kernel = {draw_axes(request.dimension, 1, largest), draw_axes(request.dimension, 1, 5),
              draw_axes(request.dimension, 0, 2), draw_axes(request.dimension, 1, 3)};
  if (draw(0, 2) == 0) p.kernel.stride = p.kernel.size;
  if (draw(0, 1) == 0) p.kernel.dilation.assign(p.kernel.size.size(), 1);
  if (draw(0, 1) == 0 || p.policy == reference::SparsePolicy::minkowski)
    p.kernel.padding.assign(p.kernel.size.size(), 0);
  if (p.policy == reference::SparsePolicy::dense && kind == CloudKind::full && draw(0, 1) == 0) {
    p.extent.emplace();
    for (std::size_t a = 0; a < p.kernel.size.size(); ++a)
      p.extent->push_back(std::max<std::int64_t>(3, (p.kernel.size[a] - 1) * p.kernel.dilation[a] + 1) + draw(0, 2));
  }
  if (draw(0, 3) == 0) p.targets = draw_targets(request, random);
  return request;
}

inline Kernel kernel_of(const reference::SparseKernel& k) {
  const auto axes = [](const std::vector<std::int64_t>& v) { return Extents(std::span<const std::int64_t>(v)); };
  return {axes(k.size), axes(k.stride), axes(k.padding), axes(k.dilation)};
}

inline RelateOptions options_of(const Request& request, Engine engine) {
  const reference::SparseProblem& p = request.problem;
  RelateOptions options;
  options.policy = static_cast<Policy>(p.policy);
  options.engine = engine;
  if (p.extent) options.extent = Extents(std::span<const std::int64_t>(*p.extent));
  if (p.targets)
    options.targets = coordinates(*p.targets, request.dimension, request.wide);
  else
    options.order = static_cast<Order>(p.order);
  return options;
}

}  // namespace cenote::test
