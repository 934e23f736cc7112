// Which rows make up which: lists of source rows per target row, for both directions of a row pooling.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <cenote/coordinates.h>
#include <cenote/relation.h>

#include "sparse/buffer.h"

namespace cenote::sparse {

/// For each target the source rows that it is made of, in a fixed order. Borrowed memory.
struct Segments {
  std::int64_t targets = 0, sources = 0, edges = 0;
  /// The edges of target t are [offsets[t], offsets[t + 1]); null: target t has edge t alone.
  const std::int64_t* offsets = nullptr;
  /// The source row of each edge; null: edge e is row e. Without offsets, -1 means that there is no edge.
  const std::int32_t* source = nullptr;
  /// The kernel id of each edge, where edges are weighed by it.
  const std::int32_t* id = nullptr;
  /// The most and the fewest edges of any target.
  std::int64_t longest = 0, shortest = 0;
};

/// Both directions between the inputs and the outputs of a row pooling, each found when it is first asked for.
class Incidence {
 public:
  /// The edges of a relation; with their kernel ids where they are weighed.
  Incidence(Relation relation, bool weighed);
  /// The rows of each batch.
  explicit Incidence(std::shared_ptr<const Coordinates> coords);

  std::int64_t inputs() const noexcept { return inputs_; }
  std::int64_t outputs() const noexcept { return outputs_; }
  /// Outputs are targets.
  const Segments& forward() const;
  /// Inputs are targets.
  const Segments& backward() const;
  /// The first output without an edge, if there is one.
  std::optional<std::int64_t> first_empty() const;
  const std::optional<Relation>& relation() const noexcept { return relation_; }

 private:
  /// Segments and the arrays that were made for them alone.
  struct Made {
    Segments segments{};
    Array offsets{}, source{}, id{};
  };
  Made related_forward() const;
  Made related_backward() const;
  Made batch_forward() const;
  Made batch_backward() const;

  std::optional<Relation> relation_;
  std::shared_ptr<const Coordinates> coords_;
  bool weighed_ = false;
  std::int64_t inputs_ = 0, outputs_ = 0;
  Lazy<Made> forward_, backward_;
};

}  // namespace cenote::sparse
