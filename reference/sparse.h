// The oracle of sparse relations: rows in a map, every tap of every output looked up, nothing clever.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace reference {

__extension__ using Big = __int128;

/// (batch, coordinates), or the same as numbers that may be out of any range.
using Row = std::vector<std::int64_t>;
using WideRow = std::vector<Big>;

enum class SparsePolicy { lattice, dense, minkowski };
enum class SparseOrder { first_seen, sorted };

struct SparseKernel {
  std::vector<std::int64_t> size, stride, padding, dilation;
};

struct SparseEdge {
  std::int64_t in_row, out_row, kernel_id;
  friend bool operator==(const SparseEdge&, const SparseEdge&) = default;
};

struct SparseRelation {
  std::vector<Row> outputs;
  std::vector<SparseEdge> edges;
};

struct SparseProblem {
  std::vector<Row> inputs;
  SparseKernel kernel;
  SparsePolicy policy = SparsePolicy::lattice;
  SparseOrder order = SparseOrder::first_seen;
  std::optional<std::vector<std::int64_t>> extent{};
  std::optional<std::vector<Row>> targets{};
  /// What a coordinate can be: outputs outside do not exist.
  std::int64_t lowest = INT32_MIN, highest = INT32_MAX;
};

inline Big floor_of(Big c, Big s) { return c / s - (c % s < 0 ? 1 : 0); }

/// Every combination of one number per axis from [0, size), first axis slowest.
inline std::vector<std::vector<std::int64_t>> combinations(const std::vector<std::int64_t>& size) {
  std::vector<std::vector<std::int64_t>> all{{}};
  for (const std::int64_t n : size) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& start : all) {
      for (std::int64_t j = 0; j < n; ++j) {
        longer.push_back(start);
        longer.back().push_back(j);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// The offset of tap 0 of each axis, in taps.
inline std::vector<std::int64_t> first_offsets(const SparseProblem& p) {
  std::vector<std::int64_t> first;
  for (const std::int64_t k : p.kernel.size) first.push_back(k % 2 == 1 ? -(k / 2) : 0);
  const bool tiles = p.policy == SparsePolicy::minkowski && p.kernel.size == p.kernel.stride;
  if (p.policy == SparsePolicy::dense || tiles) std::fill(first.begin(), first.end(), 0);
  return first;
}

inline bool exists(const SparseProblem& p, const WideRow& row) {
  for (std::size_t a = 1; a < row.size(); ++a) {
    if (row[a] < p.lowest || row[a] > p.highest) return false;
    if (!p.extent) continue;
    const Big room = Big{(*p.extent)[a - 1]} + 2 * p.kernel.padding[a - 1] -
                     Big{p.kernel.size[a - 1] - 1} * p.kernel.dilation[a - 1] - 1;
    if (row[a] < 0 || row[a] > room / p.kernel.stride[a - 1]) return false;
  }
  return true;
}

inline Row narrow(const WideRow& row) {
  Row result;
  for (const Big c : row) result.push_back(static_cast<std::int64_t>(c));
  return result;
}

/// Outputs of one input: floor(c / s), or all whose windows hold it, in lexicographic order.
inline std::set<Row> outputs_of(const SparseProblem& p, const Row& c) {
  std::set<Row> found;
  if (p.policy != SparsePolicy::dense) {
    WideRow o{c[0]};
    for (std::size_t a = 1; a < c.size(); ++a) o.push_back(floor_of(c[a], p.kernel.stride[a - 1]));
    found.insert(narrow(o));
    return found;
  }
  for (const auto& tap : combinations(p.kernel.size)) {
    WideRow o{c[0]};
    bool whole = true;
    for (std::size_t a = 1; a < c.size(); ++a) {
      const Big at = Big{c[a]} + p.kernel.padding[a - 1] - Big{tap[a - 1]} * p.kernel.dilation[a - 1];
      whole = whole && at % p.kernel.stride[a - 1] == 0;
      o.push_back(floor_of(at, p.kernel.stride[a - 1]));
    }
    if (whole && exists(p, o)) found.insert(narrow(o));
  }
  return found;
}

inline std::vector<Row> sparse_outputs(const SparseProblem& p) {
  if (p.targets) return *p.targets;
  std::vector<Row> rows;
  std::set<Row> seen;
  for (const Row& c : p.inputs)
    for (const Row& o : outputs_of(p, c))
      if (seen.insert(o).second) rows.push_back(o);
  if (p.order == SparseOrder::sorted) std::sort(rows.begin(), rows.end());
  return rows;
}

/// The relation of a pooling: every tap of every output, looked up.
inline SparseRelation sparse_relation(const SparseProblem& p) {
  std::map<WideRow, std::int64_t> row_of;
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    row_of.emplace(WideRow(p.inputs[i].begin(), p.inputs[i].end()), static_cast<std::int64_t>(i));
  const auto first = first_offsets(p);
  const auto taps = combinations(p.kernel.size);
  SparseRelation relation{sparse_outputs(p), {}};
  for (std::size_t o = 0; o < relation.outputs.size(); ++o) {
    const Row& out = relation.outputs[o];
    if (p.extent && !exists(p, WideRow(out.begin(), out.end()))) continue;
    for (std::size_t id = 0; id < taps.size(); ++id) {
      WideRow c{out[0]};
      for (std::size_t a = 1; a < out.size(); ++a) {
        c.push_back(Big{out[a]} * p.kernel.stride[a - 1] +
                    Big{first[a - 1] + taps[id][a - 1]} * p.kernel.dilation[a - 1] - p.kernel.padding[a - 1]);
      }
      if (const auto found = row_of.find(c); found != row_of.end())
        relation.edges.push_back({found->second, static_cast<std::int64_t>(o), static_cast<std::int64_t>(id)});
    }
  }
  return relation;
}

/// The relation of a transposed pooling: every point that every input reaches.
inline SparseRelation sparse_transposed(const SparseProblem& p) {
  std::map<Row, std::int64_t> row_of;
  SparseRelation relation;
  if (p.targets) {
    relation.outputs = *p.targets;
    for (std::size_t i = 0; i < p.targets->size(); ++i) row_of.emplace((*p.targets)[i], static_cast<std::int64_t>(i));
  }
  const auto taps = combinations(p.kernel.size);
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    for (std::size_t id = 0; id < taps.size(); ++id) {
      const Row& c = p.inputs[i];
      WideRow t{c[0]};
      bool inside = true;
      for (std::size_t a = 1; a < c.size(); ++a) {
        t.push_back(Big{c[a]} * p.kernel.stride[a - 1] + Big{taps[id][a - 1]} * p.kernel.dilation[a - 1] -
                    p.kernel.padding[a - 1]);
        inside = inside && t[a] >= p.lowest && t[a] <= p.highest;
      }
      if (!inside) continue;
      const Row point = narrow(t);
      if (!p.targets && row_of.emplace(point, static_cast<std::int64_t>(relation.outputs.size())).second)
        relation.outputs.push_back(point);
      if (const auto found = row_of.find(point); found != row_of.end())
        relation.edges.push_back({static_cast<std::int64_t>(i), found->second, static_cast<std::int64_t>(id)});
    }
  }
  std::sort(relation.edges.begin(), relation.edges.end(), [](const SparseEdge& a, const SparseEdge& b) {
    return std::pair(a.out_row, a.kernel_id) < std::pair(b.out_row, b.kernel_id);
  });
  return relation;
}

}  // namespace reference
