// Sparse rows for tests: short ways to write them, random clouds of every kind that can go wrong, and comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/sparse.h>

#include "../../reference/sparse.h"

namespace cenote::test {

using reference::Row;

/// Rows as an array of i32, or of i64 where they are wide.
inline Array row_array(const std::vector<Row>& rows, int dimension, bool wide = false) {
  Array array(wide ? Type::i64 : Type::i32, {static_cast<std::int64_t>(rows.size()), 1 + dimension});
  std::size_t at = 0;
  for (const Row& row : rows) {
    for (const std::int64_t c : row) {
      if (wide)
        array.values<std::int64_t>()[at++] = c;
      else
        array.values<std::int32_t>()[at++] = static_cast<std::int32_t>(c);
    }
  }
  return array;
}

inline std::shared_ptr<const Coordinates> coordinates(const std::vector<Row>& rows, int dimension, bool wide = false) {
  return Coordinates::make(row_array(rows, dimension, wide));
}

/// Rows (0, x) of one dimension.
inline std::shared_ptr<const Coordinates> line(const std::vector<std::int64_t>& xs) {
  std::vector<Row> rows;
  for (const std::int64_t x : xs) rows.push_back({0, x});
  return coordinates(rows, 1);
}

inline std::vector<Row> rows_of(const Array& array) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < array.shape()[0]; ++i) {
    rows.emplace_back();
    for (std::int64_t a = 0; a < array.shape()[1]; ++a)
      rows.back().push_back(array.type() == Type::i64 ? array.at<std::int64_t>({i, a})
                                                      : array.at<std::int32_t>({i, a}));
  }
  return rows;
}

inline std::vector<std::int64_t> integers(const Array& array) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < array.size(); ++i)
    result.push_back(array.type() == Type::i64 ? array.at<std::int64_t>({i}) : array.at<std::int32_t>({i}));
  return result;
}

/// Holds a relation against the oracle's: rows, edges, both ways of looking them up, the group where there is one.
inline testing::AssertionResult matches(const Relation& relation, const reference::SparseRelation& expected) {
  const auto fail = [&](const std::string& what) {
    return testing::AssertionFailure() << what << " (" << relation.explain() << ")";
  };
  if (rows_of(relation.output()->array()) != expected.outputs) return fail("the output rows differ");
  std::vector<std::int64_t> in, out, id, offsets(expected.outputs.size() + 1, 0);
  for (const auto& edge : expected.edges) {
    in.push_back(edge.in_row);
    out.push_back(edge.out_row);
    id.push_back(edge.kernel_id);
    ++offsets[static_cast<std::size_t>(edge.out_row) + 1];
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  if (relation.edges() != static_cast<std::int64_t>(in.size())) return fail("the number of edges differs");
  if (integers(relation.row_offsets()) != offsets) return fail("the row offsets differ");
  if (integers(relation.out_row()) != out) return fail("out_row differs");
  if (integers(relation.kernel_id()) != id) return fail("kernel_id differs");
  if (integers(relation.in_row()) != in) return fail("in_row differs");
  std::vector<std::vector<std::int64_t>> by_input(static_cast<std::size_t>(relation.inputs()));
  for (std::size_t e = 0; e < in.size(); ++e) by_input[static_cast<std::size_t>(in[e])].push_back(std::int64_t(e));
  const auto starts = integers(relation.input_offsets()), edges = integers(relation.input_edges());
  for (std::size_t i = 0; i < by_input.size(); ++i) {
    if (std::vector(edges.begin() + starts[i], edges.begin() + starts[i + 1]) != by_input[i])
      return fail("the edges of input " + std::to_string(i) + " differ");
    if (relation.group() == nullptr) continue;
    const std::int64_t group = by_input[i].empty() ? -1 : out[static_cast<std::size_t>(by_input[i][0])];
    if (relation.group()->at<std::int32_t>({std::int64_t(i)}) != group) return fail("the group differs");
  }
  return testing::AssertionSuccess();
}

/// What a random cloud is like.
enum class CloudKind { small, spread, huge, cell, line, full, extremes };
inline constexpr int cloud_kinds = 7;

/// Up to n distinct rows of a kind, in random order.
inline std::vector<Row> cloud(CloudKind kind, int dimension, int n, bool wide, std::mt19937_64& random) {
  const std::int64_t low = wide ? INT64_MIN : INT32_MIN, high = wide ? INT64_MAX : INT32_MAX;
  const auto between = [&](std::int64_t a, std::int64_t b) {
    return std::uniform_int_distribution<std::int64_t>(a, b)(random);
  };
  const auto coordinate = [&](int axis) -> std::int64_t {
    switch (kind) {
      case CloudKind::small: return between(-4, 4);
      case CloudKind::spread: return between(-40, 60);
      case CloudKind::huge: return axis < 3 ? between(-1000000000, 1000000000) : between(-3, 3);
      case CloudKind::cell: return between(8, 11);
      case CloudKind::line: return axis == 0 ? between(-30, 30) : 7;
      case CloudKind::full: return between(0, 2);
      case CloudKind::extremes: break;
    }
    // Both ends of the type, on as few axes as fit a key.
    const bool ends = axis < (wide ? 1 : 3);
    return ends ? (random() % 2 == 0 ? low + between(0, 2) : high - between(0, 2)) : between(-1, 1);
  };
  std::set<Row> seen;
  std::vector<Row> rows;
  for (int i = 0; i < n; ++i) {
    Row row{between(0, 2)};
    for (int a = 0; a < dimension; ++a) row.push_back(coordinate(a));
    if (seen.insert(row).second) rows.push_back(row);
  }
  return rows;
}

}  // namespace cenote::test
