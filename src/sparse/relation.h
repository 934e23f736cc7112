// What a relation keeps: its edges, or that from which they are made when somebody asks for them.
#pragma once

#include <memory>
#include <string>

#include <cenote/relation.h>

#include "sparse/buffer.h"
#include "sparse/kernel.h"
#include "sparse/store.h"

namespace cenote {

namespace sparse {

/// Edges in the order of (out_row, kernel_id).
struct Edges {
  Array in_row, kernel_id;
};

/// Edges and where those of each output begin.
struct Found {
  Array row_offsets;
  Edges edges;
};

/// The edges of each input, as positions among all edges.
struct ByInput {
  Array offsets, edges;
};

}  // namespace sparse

struct Relation::Impl {
  /// What the edges are made from: nothing, they are there; one output row per input; runs of Morton keys.
  enum class Source { edges, group, runs };

  sparse::Shape shape;
  Policy policy = Policy::lattice;
  bool transposed = false;
  std::int64_t inputs = 0, outputs = 0, edge_count = 0;
  std::shared_ptr<const Coordinates> output{};  // null: the input's own, which would otherwise point to themselves
  Source source = Source::edges;
  std::string route{}, reason{};

  sparse::Lazy<Array> row_offsets_{};
  sparse::Lazy<sparse::Edges> edges_{};
  sparse::Lazy<Array> out_row_{};
  sparse::Lazy<Array> group_{};
  sparse::Lazy<sparse::ByInput> by_input_{};

  const Array& row_offsets(const Coordinates& input) const;
  const sparse::Edges& edges(const Coordinates& input) const;
  const Array& out_row(const Coordinates& input) const;
  const Array& group() const;
  const sparse::ByInput& by_input(const Coordinates& input) const;
};

}  // namespace cenote
