// Relations as objects: arrays made when first asked for, save and load, the sentence that explains them.
#include "sparse/relation.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "core/reject.h"
#include "sparse/edge_order.h"
#include "sparse/support.h"

namespace cenote {
namespace sparse {
namespace {

// The kernel id that the low bits of a Morton key stand for.
template <class K>
class MortonIds {
 public:
  MortonIds(const MortonCodec& codec, int levels) : bits_(codec.level_bits(levels)) {
    const auto places = codec.places();
    for (std::size_t at = 0; at < static_cast<std::size_t>(bits_); ++at)
      target_[at] = (codec.columns - 1 - places[at].column) * levels + places[at].bit;
  }
  std::int32_t operator()(K key) const noexcept {
    std::uint32_t id = 0;
    for (std::size_t at = 0; at < static_cast<std::size_t>(bits_); ++at)
      id |= (static_cast<std::uint32_t>(key >> at) & 1u) << target_[at];
    return static_cast<std::int32_t>(id);
  }

 private:
  int bits_;
  std::array<int, 128> target_{};
};

// The edges of inputs that feed at most one output each; ids(first, n, out) gives the kernel ids of n inputs.
template <class Ids>
Found edges_of_group(const Relation::Impl& relation, const Ids& ids) {
  const EdgeKeys keys(relation.outputs, relation.shape.volume);
  const std::int32_t* const group = relation.group().values<std::int32_t>().data();
  return with_key(keys.bits, [&](auto zero) {
    using K = decltype(zero);
    Buffer<Item<K>> items(relation.inputs);
    for_chunks(Chunks::of(relation.inputs), [&](std::int64_t, std::int64_t first, std::int64_t last) {
      u64 id[block_rows];
      for (std::int64_t at = first; at < last; at += block_rows) {
        const std::int64_t n = std::min(block_rows, last - at);
        ids(at, n, id);
        for (std::int64_t i = 0; i < n; ++i)
          items[at + i] = {keys.key<K>(group[at + i], id[i]), static_cast<std::int32_t>(at + i)};
      }
    });
    return ordered_edges(keys, std::move(items), relation.edge_count);
  });
}

Edges edges_of_runs(const Relation::Impl& relation, const Coordinates& input) {
  const MortonKeys& morton = *input.impl().morton;
  const int levels = relation.shape.power_of_two();
  return std::visit(
      [&]<class K>(const Buffer<K>& keys) {
        const MortonIds<K> id(morton.codec, levels);
        // Within a cell of two points a side Morton order is the order of kernel ids.
        if (levels > 1)
          return edges_of_group(relation,
                                [&](std::int64_t first, std::int64_t n, u64* out) {
                                  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<u64>(id(keys[first + i]));
                                })
              .edges;
        Edges edges{Array(Type::i32, {relation.inputs}), Array(Type::i32, {relation.inputs})};
        std::int32_t* in_row = edges.in_row.values<std::int32_t>().data();
        std::int32_t* kernel_id = edges.kernel_id.values<std::int32_t>().data();
        for_chunks(Chunks::of(keys.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
          std::iota(in_row + first, in_row + last, static_cast<std::int32_t>(first));
          for (std::int64_t i = first; i < last; ++i) kernel_id[i] = id(keys[i]);
        });
        return edges;
      },
      morton.keys);
}

Array rows_of_offsets(const Array& row_offsets, std::int64_t outputs, std::int64_t edges) {
  Array out_row(Type::i32, {edges});
  const std::int64_t* offsets = row_offsets.values<std::int64_t>().data();
  std::int32_t* out = out_row.values<std::int32_t>().data();
  for_chunks(Chunks::of(outputs), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o)
      std::fill(out + offsets[o], out + offsets[o + 1], static_cast<std::int32_t>(o));
  });
  return out_row;
}

}  // namespace
}  // namespace sparse

using namespace sparse;

// A grouping's offsets and edges come together, so the edges are the one that is made lazily and the offsets follow.
const Array& Relation::Impl::row_offsets(const Coordinates& input) const {
  if (source == Source::group) edges(input);
  return row_offsets_.get([] { return Array(); });
}

const Edges& Relation::Impl::edges(const Coordinates& input) const {
  return edges_.get([&] {
    if (source == Source::runs) return edges_of_runs(*this, input);
    const Rows rows = input.impl().view();
    Found found = edges_of_group(
        *this, [&](std::int64_t first, std::int64_t n, u64* out) { cell_ids(shape, rows, first, n, out); });
    row_offsets_.get([&] { return std::move(found.row_offsets); });
    return std::move(found.edges);
  });
}

const Array& Relation::Impl::out_row(const Coordinates& input) const {
  return out_row_.get([&] { return rows_of_offsets(row_offsets(input), outputs, edge_count); });
}

const Array& Relation::Impl::group() const {
  // Only runs are made late: their outputs are consecutive inputs.
  return group_.get([&] { return rows_of_offsets(row_offsets_.get([] { return Array(); }), outputs, edge_count); });
}

const ByInput& Relation::Impl::by_input(const Coordinates& input) const {
  return by_input_.get([&] {
    ByInput made{Array(Type::i64, {inputs + 1}), Array(Type::i64, {edge_count})};
    const std::int32_t* in_row = edges(input).in_row.values<std::int32_t>().data();
    std::int64_t* start = made.offsets.values<std::int64_t>().data();
    std::int64_t* edge = made.edges.values<std::int64_t>().data();
    if (source == Source::edges) {
      group_positions(in_row, edge_count, inputs, start, edge);
      return made;
    }
    // At most one edge each: whether there is one is all there is to count.
    const std::int32_t* out = group().values<std::int32_t>().data();
    start[0] = 0;
    for (std::int64_t i = 0; i < inputs; ++i) start[i + 1] = start[i] + (out[i] >= 0);
    for_chunks(Chunks::of(edge_count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
      for (std::int64_t e = first; e < last; ++e) edge[start[in_row[e]]] = e;
    });
    return made;
  });
}

std::int64_t Relation::inputs() const noexcept { return impl_->inputs; }
std::int64_t Relation::outputs() const noexcept { return impl_->outputs; }
std::int64_t Relation::edges() const noexcept { return impl_->edge_count; }
std::shared_ptr<const Coordinates> Relation::output() const noexcept { return impl_->output ? impl_->output : input_; }
Kernel Relation::kernel() const { return kernel_of(impl_->shape); }
std::int64_t Relation::volume() const noexcept { return impl_->shape.volume; }
bool Relation::transposed() const noexcept { return impl_->transposed; }

const Array& Relation::in_row() const { return impl_->edges(*input_).in_row; }
const Array& Relation::kernel_id() const { return impl_->edges(*input_).kernel_id; }
const Array& Relation::out_row() const { return impl_->out_row(*input_); }
const Array& Relation::row_offsets() const { return impl_->row_offsets(*input_); }
const Array& Relation::input_offsets() const { return impl_->by_input(*input_).offsets; }
const Array& Relation::input_edges() const { return impl_->by_input(*input_).edges; }

const Array* Relation::group() const { return impl_->source == Impl::Source::edges ? nullptr : &impl_->group(); }

bool Relation::contiguous() const noexcept {
  return impl_->source == Impl::Source::runs && impl_->shape.power_of_two() == 1;
}

std::string Relation::explain() const {
  std::ostringstream text;
  text << impl_->route << ": " << impl_->reason << "; " << inputs() << " inputs, " << outputs() << " outputs, "
       << edges() << " edges";
  return text.str();
}

RelationArrays Relation::save() const {
  const Kernel k = kernel();
  Array kernel(Type::i64, {4, impl_->shape.columns - 1});
  auto next = kernel.values<std::int64_t>().begin();
  for (const PerAxis* field : {&k.size, &k.stride, &k.padding, &k.dilation})
    next = std::copy(field->values().begin(), field->values().end(), next);
  Array facts({4}, {inputs(), output()->batch_size(), static_cast<std::int64_t>(impl_->policy),
                    std::int64_t{impl_->transposed}});
  return {in_row(), out_row(), kernel_id(), output()->array(), std::move(kernel), std::move(facts)};
}

namespace {

constexpr std::string_view load_name = "Relation::load";

void check_shape(std::string_view what, const Array& array, Type type, const Extents& shape) {
  if (array.type() != type || !(array.shape() == shape))
    reject(load_name, what, " is ", name(array.type()), " of shape ", array.shape(), ": must be ", name(type),
           " of shape ", shape);
}

void check_edges(const Relation::Impl& relation, const RelationArrays& arrays) {
  const auto in = arrays.in_row.values<std::int32_t>(), out = arrays.out_row.values<std::int32_t>();
  const auto id = arrays.kernel_id.values<std::int32_t>();
  const auto check = [](std::string_view what, std::size_t e, std::int64_t value, std::int64_t end) {
    if (value < 0 || value >= end)
      reject(load_name, what, "[", e, "] = ", value, ": must be at least 0 and below ", end);
  };
  for (std::size_t e = 0; e < in.size(); ++e) {
    check("in_row", e, in[e], relation.inputs);
    check("out_row", e, out[e], relation.outputs);
    check("kernel_id", e, id[e], relation.shape.volume);
    if (e > 0 && std::pair(out[e - 1], id[e - 1]) >= std::pair(out[e], id[e]))
      reject(load_name, "edges ", e - 1, " and ", e, " have (out_row, kernel_id) = (", out[e - 1], ", ", id[e - 1],
             ") and (", out[e], ", ", id[e], "): edges must be sorted by them, each pair once");
  }
}

/// That every edge leads where its kernel id says: from output o to the input at o * stride + offset - padding, or, at
/// a transposed relation, from the input to the output.
void check_places(const Relation::Impl& relation, const Rows& inputs, const Rows& outputs,
                  const RelationArrays& arrays) {
  const Shape& shape = relation.shape;
  const auto in = arrays.in_row.values<std::int32_t>(), out = arrays.out_row.values<std::int32_t>();
  const auto id = arrays.kernel_id.values<std::int32_t>();
  for_chunks(Chunks::of(arrays.in_row.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (auto e = static_cast<std::size_t>(first); e < static_cast<std::size_t>(last); ++e) {
      const Rows &near = relation.transposed ? inputs : outputs, &far = relation.transposed ? outputs : inputs;
      const std::int64_t from = relation.transposed ? in[e] : out[e], to = relation.transposed ? out[e] : in[e];
      bool leads = near.at(from, 0) == far.at(to, 0);
      std::int64_t rest = id[e];
      for (int a = shape.columns - 1; a >= 1; rest /= shape[a--].size) {
        const i128 offset = i128{shape[a].first + rest % shape[a].size} * shape[a].dilation - shape[a].padding;
        leads = leads && i128{near.at(from, a)} * shape[a].stride + offset == far.at(to, a);
      }
      if (!leads)
        reject(load_name, "edge ", e, " is between input row ", in[e], " at ", row_text(inputs, in[e]),
               " and output row ", out[e], " at ", row_text(outputs, out[e]), ": not where kernel id ", id[e],
               " leads");
    }
  });
}

Shape load_kernel(const Array& kernel, int dimension) {
  check_shape("kernel", kernel, Type::i64, {4, dimension});
  const auto row = [&](std::int64_t i) {
    const auto values = kernel.values<std::int64_t>();
    const auto n = static_cast<std::size_t>(dimension);
    return Extents(values.subspan(static_cast<std::size_t>(i) * n, n));
  };
  return check_kernel(load_name, {row(0), row(1), row(2), row(3)}, dimension);
}

}  // namespace

Relation Relation::load(std::shared_ptr<const Coordinates> input, const RelationArrays& arrays) {
  if (!input) reject(load_name, "input is null: the coordinates of the inputs are needed");
  check_shape("facts", arrays.facts, Type::i64, {4});
  const auto facts = arrays.facts.values<std::int64_t>();
  if (facts[0] != input->rows())
    reject(load_name, "facts[0] = ", facts[0], " inputs: the coordinates have ", input->rows(), " rows");
  if (facts[1] < 0 || facts[1] > most_rows)
    reject(load_name, "facts[1] = ", facts[1], " batches: must be from 0 to ", most_rows);
  if (facts[2] < 0 || facts[2] > static_cast<std::int64_t>(Policy::minkowski) || facts[3] < 0 || facts[3] > 1)
    reject(load_name, "facts = (", facts[2], ", ", facts[3], "): must name a policy, 0 to 2, and 0 or 1");
  auto impl = std::make_shared<Impl>();
  impl->shape = load_kernel(arrays.kernel, input->dimension());
  impl->policy = static_cast<Policy>(facts[2]);
  impl->transposed = facts[3] == 1;
  RelateOptions policy;
  policy.policy = impl->policy;
  apply_policy(load_name, impl->shape, policy);
  if (impl->transposed)
    for (Tap& tap : impl->shape.axis) tap.first = 0;
  CoordinateOptions options;
  options.batch_size = facts[1];
  impl->output = Coordinates::make(arrays.coords, options);
  if (impl->output->dimension() != input->dimension())
    reject(load_name, "coords of dimension ", impl->output->dimension(), ": the inputs have ", input->dimension());
  impl->inputs = input->rows();
  impl->outputs = impl->output->rows();
  impl->edge_count = arrays.in_row.size();
  for (const auto& [what, array] : {std::pair("in_row", &arrays.in_row), std::pair("out_row", &arrays.out_row),
                                    std::pair("kernel_id", &arrays.kernel_id)})
    check_shape(what, *array, Type::i32, {impl->edge_count});
  check_edges(*impl, arrays);
  check_places(*impl, input->impl().view(), impl->output->impl().view(), arrays);
  Array offsets = Array::zeros(Type::i64, {impl->outputs + 1});
  const auto start = offsets.values<std::int64_t>();
  for (const std::int32_t row : arrays.out_row.values<std::int32_t>()) ++start[static_cast<std::size_t>(row) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  impl->row_offsets_.set(std::move(offsets));
  impl->edges_.set({arrays.in_row, arrays.kernel_id});
  impl->route = "loaded";
  impl->reason = "the edges were given as arrays, and each is where its kernel id leads";
  return Relation(std::move(input), std::move(impl));
}

}  // namespace cenote
