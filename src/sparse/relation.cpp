// Relations as objects: arrays made when first asked for, save and load, the sentence that explains them.
#include "sparse/relation.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "core/reject.h"

namespace cenote {
namespace sparse {
namespace {

// The kernel id of every input of a grouping: the digits of its place in the cell.
Buffer<std::int32_t> cell_ids(const Shape& shape, const Rows& rows) {
  Buffer<std::int32_t> ids(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    std::int64_t column[block_rows];
    for (std::int64_t at = first; at < last; at += block_rows) {
      const std::int64_t n = std::min(block_rows, last - at);
      std::fill_n(ids.data() + at, n, 0);
      for (int a = 1; a < shape.columns; ++a) {
        const FloorDivide divide(shape[a].stride);
        const std::int64_t size = shape[a].size, dilation = shape[a].dilation;
        rows.column(a, at, n, column);
        for (std::int64_t i = 0; i < n; ++i) {
          // An input without a tap has no meaningful id, and no edge that would use it.
          const std::int64_t tap = divide.remainder(column[i]) / dilation % size;
          ids[at + i] = static_cast<std::int32_t>(ids[at + i] * size + tap);
        }
      }
    }
  });
  return ids;
}

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

// Puts the edges of each output in the order of their kernel ids; rows are short.
void sort_rows(const std::int64_t* offsets, std::int64_t outputs, std::int32_t* in_row, std::int32_t* kernel_id) {
  for_chunks(Chunks::of(outputs), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    std::vector<std::pair<std::int32_t, std::int32_t>> row;
    for (std::int64_t o = first; o < last; ++o) {
      const std::int64_t begin = offsets[o], end = offsets[o + 1];
      if (std::is_sorted(kernel_id + begin, kernel_id + end)) continue;
      row.clear();
      for (std::int64_t e = begin; e < end; ++e) row.emplace_back(kernel_id[e], in_row[e]);
      std::sort(row.begin(), row.end());
      for (std::int64_t e = begin; e < end; ++e) {
        std::tie(kernel_id[e], in_row[e]) = row[static_cast<std::size_t>(e - begin)];
      }
    }
  });
}

Edges edges_of_runs(const Relation::Impl& relation, const Coordinates& input, const Array& row_offsets) {
  Edges edges{Array(Type::i32, {relation.inputs}), Array(Type::i32, {relation.inputs})};
  std::int32_t* in_row = edges.in_row.values<std::int32_t>().data();
  std::int32_t* kernel_id = edges.kernel_id.values<std::int32_t>().data();
  std::iota(in_row, in_row + relation.inputs, 0);
  const MortonKeys& morton = *input.impl().morton;
  const int levels = relation.shape.power_of_two();
  std::visit(
      [&]<class K>(const Buffer<K>& keys) {
        const MortonIds<K> id(morton.codec, levels);
        for_chunks(Chunks::of(keys.size()), [&](std::int64_t, std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) kernel_id[i] = id(keys[i]);
        });
      },
      morton.keys);
  if (levels > 1) sort_rows(row_offsets.values<std::int64_t>().data(), relation.outputs, in_row, kernel_id);
  return edges;
}

// Offsets and edges at once: counting the inputs of each output gives both.
std::pair<Array, Edges> edges_of_group(const Relation::Impl& relation, const Coordinates& input) {
  Array offsets(Type::i64, {relation.outputs + 1});
  Edges edges{Array(Type::i32, {relation.edge_count}), Array(Type::i32, {relation.edge_count})};
  std::int64_t* start = offsets.values<std::int64_t>().data();
  std::int32_t* in_row = edges.in_row.values<std::int32_t>().data();
  std::int32_t* kernel_id = edges.kernel_id.values<std::int32_t>().data();
  group_positions(relation.group().values<std::int32_t>().data(), relation.inputs, relation.outputs, start, in_row);
  const Buffer<std::int32_t> ids = cell_ids(relation.shape, input.impl().view());
  for_chunks(Chunks::of(relation.edge_count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t e = first; e < last; ++e) kernel_id[e] = ids[in_row[e]];
  });
  sort_rows(start, relation.outputs, in_row, kernel_id);
  return {std::move(offsets), std::move(edges)};
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
    if (source == Source::runs) return edges_of_runs(*this, input, row_offsets(input));
    auto [offsets, made] = edges_of_group(*this, input);
    row_offsets_.get([&] { return std::move(offsets); });
    return std::move(made);
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
    group_positions(edges(input).in_row.values<std::int32_t>().data(), edge_count, inputs,
                    made.offsets.values<std::int64_t>().data(), made.edges.values<std::int64_t>().data());
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
  if (facts[2] < 0 || facts[2] > static_cast<std::int64_t>(Policy::minkowski) || facts[3] < 0 || facts[3] > 1)
    reject(load_name, "facts = (", facts[2], ", ", facts[3], "): must name a policy, 0 to 2, and 0 or 1");
  auto impl = std::make_shared<Impl>();
  impl->shape = load_kernel(arrays.kernel, input->dimension());
  impl->policy = static_cast<Policy>(facts[2]);
  impl->transposed = facts[3] == 1;
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
  Array offsets = Array::zeros(Type::i64, {impl->outputs + 1});
  const auto start = offsets.values<std::int64_t>();
  for (const std::int32_t row : arrays.out_row.values<std::int32_t>()) ++start[static_cast<std::size_t>(row) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  impl->row_offsets_.set(std::move(offsets));
  impl->edges_.set({arrays.in_row, arrays.kernel_id});
  impl->route = "loaded";
  impl->reason = "the edges were given as arrays and are in range";
  return Relation(std::move(input), std::move(impl));
}

}  // namespace cenote
