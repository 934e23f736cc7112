// Segments of relations and of batches.
#include "sparse/segments.h"

#include <algorithm>

#include "core/reject.h"
#include "sparse/relation.h"
#include "sparse/sort.h"

namespace cenote::sparse {
namespace {

const std::int32_t* numbers(const Array& array) { return array.values<std::int32_t>().data(); }
const std::int64_t* offsets_of(const Array& array) { return array.values<std::int64_t>().data(); }

void measure_segments(Segments& segments) {
  if (!segments.offsets) {
    segments.longest = 1;
    return;
  }
  const Chunks chunks = Chunks::of(segments.targets, 1 << 16);
  std::vector<std::int64_t> longest(static_cast<std::size_t>(chunks.count), 0), shortest(longest.size(), INT64_MAX);
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t most = 0, fewest = INT64_MAX;
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t edges = segments.offsets[t + 1] - segments.offsets[t];
      most = std::max(most, edges);
      fewest = std::min(fewest, edges);
    }
    longest[static_cast<std::size_t>(c)] = most;
    shortest[static_cast<std::size_t>(c)] = fewest;
  });
  if (longest.empty()) return;
  segments.longest = *std::max_element(longest.begin(), longest.end());
  segments.shortest = *std::min_element(shortest.begin(), shortest.end());
}

/// values[order[i]], for every i.
Array taken(const std::int32_t* values, const Array& order) {
  Array result(Type::i32, {order.size()});
  std::int32_t* out = result.values<std::int32_t>().data();
  const std::int64_t* at = offsets_of(order);
  for_chunks(Chunks::of(order.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) out[i] = values[at[i]];
  });
  return result;
}

}  // namespace

Incidence::Incidence(Relation relation, bool weighed)
    : relation_(std::move(relation)), weighed_(weighed), inputs_(relation_->inputs()), outputs_(relation_->outputs()) {}

Incidence::Incidence(std::shared_ptr<const Coordinates> coords)
    : coords_(std::move(coords)), inputs_(coords_->rows()), outputs_(coords_->batch_size()) {
  if (outputs_ > most_rows) reject("global_pool", outputs_, " batches: there may be at most ", most_rows);
}

const Segments& Incidence::forward() const {
  return forward_
      .get([&] {
        Made made = relation_ ? related_forward() : batch_forward();
        measure_segments(made.segments);
        return made;
      })
      .segments;
}

const Segments& Incidence::backward() const {
  return backward_
      .get([&] {
        Made made = relation_ ? related_backward() : batch_backward();
        measure_segments(made.segments);
        return made;
      })
      .segments;
}

Incidence::Made Incidence::related_forward() const {
  Made made;
  made.segments = {outputs_, inputs_, relation_->edges(), offsets_of(relation_->row_offsets())};
  if (!relation_->contiguous()) made.segments.source = numbers(relation_->in_row());
  if (weighed_) made.segments.id = numbers(relation_->kernel_id());
  return made;
}

Incidence::Made Incidence::related_backward() const {
  Made made;
  const Array* group = weighed_ ? nullptr : relation_->group();
  if (group) {
    made.segments = {inputs_, outputs_, inputs_, nullptr, numbers(*group)};
    return made;
  }
  made.source = taken(numbers(relation_->out_row()), relation_->input_edges());
  made.segments = {inputs_, outputs_, relation_->edges(), offsets_of(relation_->input_offsets()), numbers(made.source)};
  if (weighed_) {
    made.id = taken(numbers(relation_->kernel_id()), relation_->input_edges());
    made.segments.id = numbers(made.id);
  }
  return made;
}

Incidence::Made Incidence::batch_forward() const {
  Made made;
  const std::vector<std::int64_t>& counts = coords_->batch_counts();
  made.offsets = Array(Type::i64, {outputs_ + 1});
  std::int64_t* offsets = made.offsets.values<std::int64_t>().data();
  offsets[0] = 0;
  for (std::int64_t b = 0; b < outputs_; ++b) offsets[b + 1] = offsets[b] + counts[static_cast<std::size_t>(b)];
  made.segments = {outputs_, inputs_, inputs_, offsets};
  const std::int32_t* batch = backward().source;
  if (std::is_sorted(batch, batch + inputs_)) return made;
  made.source = Array(Type::i32, {inputs_});
  group_positions(batch, inputs_, outputs_, offsets, made.source.values<std::int32_t>().data());
  made.segments.source = numbers(made.source);
  return made;
}

Incidence::Made Incidence::batch_backward() const {
  Made made;
  made.source = Array(Type::i32, {inputs_});
  std::int32_t* batch = made.source.values<std::int32_t>().data();
  const Rows rows = coords_->impl().view();
  for (std::int64_t i = 0; i < inputs_; ++i) batch[i] = static_cast<std::int32_t>(rows.at(i, 0));
  made.segments = {inputs_, outputs_, inputs_, nullptr, batch};
  return made;
}

std::optional<std::int64_t> Incidence::first_empty() const {
  const std::int64_t* offsets = forward().offsets;
  for (std::int64_t o = 0; o < outputs_; ++o)
    if (offsets[o] == offsets[o + 1]) return o;
  return std::nullopt;
}

}  // namespace cenote::sparse
