// relate(): checks, the choice of a route, and the relation it gives.
#include <algorithm>
#include <sstream>

#include "core/reject.h"
#include "sparse/neighbours.h"
#include "sparse/relation.h"
#include "sparse/support.h"

namespace cenote {
namespace sparse {
namespace {

constexpr std::string_view who = "relate";

using Impl = Relation::Impl;

/// A request that has been checked.
struct Request {
  const Coordinates::Impl& in;
  Shape shape;
  const RelateOptions& options;
  Order order;
};

// In a pooling of a dense array every row must be one of its cells.
void check_extent(const Coordinates::Impl& in, const Extents& extent) {
  for (int a = 1; a <= in.dimension; ++a) {
    const std::int64_t n = extent[a - 1];
    if (in.rows == 0 || (in.range.low[Range::at(a)] >= 0 && in.range.high[Range::at(a)] < n)) continue;
    const Rows rows = in.view();
    std::int64_t row = 0;
    while (rows.at(row, a) >= 0 && rows.at(row, a) < n) ++row;
    reject(who, "coords row ", row, " is ", row_text(rows, row), ": coordinate ", a - 1, " must be in [0, ", n,
           "), the extent");
  }
}

Request check(const Coordinates::Impl& in, const Kernel& kernel, const RelateOptions& options) {
  Request request{in, check_kernel(who, kernel, in.dimension), options, Order::first_seen};
  apply_policy(who, request.shape, options);
  if (options.extent) check_extent(in, *options.extent);
  request.order = options.order.value_or(options.policy == Policy::dense ? Order::sorted : Order::first_seen);
  return request;
}

std::shared_ptr<Impl> begin(const Request& request, std::shared_ptr<const Coordinates> output) {
  auto impl = std::make_shared<Impl>();
  impl->shape = request.shape;
  impl->policy = request.options.policy;
  impl->inputs = request.in.rows;
  impl->outputs = output ? output->rows() : request.in.rows;
  impl->output = std::move(output);
  return impl;
}

/// A key whose low bits are set; all of them may be.
template <class K>
K low_bits(int bits) noexcept {
  return bits >= static_cast<int>(sizeof(K) * 8) ? static_cast<K>(~K{0}) : static_cast<K>((K{1} << bits) - 1);
}

/// Keys that ascend, of which those with one parent agree above the low bits.
template <class K>
struct Family {
  const K* key;
  int bits;
  K high = static_cast<K>(~K{0} ^ low_bits<K>(bits));

  /// Whether a key has another parent than the one before it; the first key has none before it.
  bool begins(std::int64_t i) const noexcept { return ((key[i] ^ key[i - 1]) & high) != 0; }

  /// How many runs of siblings begin in [first, last).
  std::int64_t count(std::int64_t first, std::int64_t last) const noexcept {
    std::int64_t sum = first == 0;
    for (std::int64_t at = std::max<std::int64_t>(first, 1), end; at < last; at = end) {
      end = std::min<std::int64_t>(last, at + (1 << 20));
      K part = 0;  // as wide as a key, so that lanes stay what they are
      for (std::int64_t i = at; i < end; ++i) part = static_cast<K>(part + begins(i));
      sum += static_cast<std::int64_t>(part);
    }
    return sum;
  }
  /// Where the runs from `run` to `end` begin, of which the first begins at key i or later; returns the key after the
  /// last start. Without branches: every key is written to the next run, and stays there if it begins one.
  std::int64_t starts(std::int64_t i, std::int64_t run, std::int64_t end, std::int64_t* out) const noexcept {
    if (i == 0 && run < end) out[run++] = i++;
    for (; run + 4 <= end; i += 4) {
      out[run] = i, run += begins(i);
      out[run] = i + 1, run += begins(i + 1);
      out[run] = i + 2, run += begins(i + 2);
      out[run] = i + 3, run += begins(i + 3);
    }
    for (; run < end; ++i) out[run] = i, run += begins(i);
    return i;
  }
  void parents(const std::int64_t* starts, std::int64_t n, K* out) const noexcept {
    // A shift by all bits is not defined, and leaves nothing.
    if (high == 0) return void(std::fill_n(out, n, K{0}));
    for (std::int64_t run = 0; run < n; ++run) out[run] = static_cast<K>(key[starts[run]] >> bits);
  }
};

/// Runs of equal parents: where each begins, and the parents' keys.
template <class K>
std::pair<Array, Buffer<K>> parent_runs(const Buffer<K>& keys, int bits) {
  const Chunks chunks = Chunks::of(keys.size(), 1 << 16);
  std::vector<std::int64_t> start(static_cast<std::size_t>(chunks.count) + 1, 0);
  const Family<K> family{keys.data(), bits};
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    start[static_cast<std::size_t>(c) + 1] = family.count(first, last);
  });
  for (std::size_t c = 1; c < start.size(); ++c) start[c] += start[c - 1];
  Array offsets(Type::i64, {start.back() + 1});
  Buffer<K> parents(start.back());
  std::int64_t* const out = offsets.values<std::int64_t>().data();
  for_chunks(chunks, [&, family](std::int64_t c, std::int64_t first, std::int64_t) {
    const std::int64_t end = start[static_cast<std::size_t>(c) + 1];
    std::int64_t i = first;
    for (std::int64_t run = start[static_cast<std::size_t>(c)], n; run < end; run += n) {
      n = std::min(block_rows, end - run);
      i = family.starts(i, run, run + n, out);
      family.parents(out + run, n, parents.data() + run);
    }
  });
  out[start.back()] = keys.size();
  return {std::move(offsets), std::move(parents)};
}

bool takes_morton(const Request& request) {
  const int levels = request.shape.power_of_two();
  return request.in.morton && levels > 0 && request.shape.groups() && request.shape.covers() &&
         !request.options.targets && request.order == Order::first_seen &&
         request.options.engine == Engine::automatic && request.in.morton->codec.divisible(levels);
}

std::shared_ptr<Impl> by_morton(const Request& request) {
  const Coordinates::Impl& in = request.in;
  const int levels = request.shape.power_of_two();
  const MortonCodec& codec = in.morton->codec;
  Range range = in.range;
  for (std::size_t a = 1; a < Range::at(range.columns); ++a) range.low[a] >>= levels, range.high[a] >>= levels;
  MortonKeys parents{codec.parent(levels), {}};
  Array offsets;
  std::visit(
      [&]<class K>(const Buffer<K>& keys) {
        auto [starts, made] = parent_runs(keys, codec.level_bits(levels));
        offsets = std::move(starts);
        parents.keys = std::move(made);
      },
      in.morton->keys);
  auto impl = begin(request, made_coordinates(std::move(parents), in.type, range, in.batch_size));
  impl->source = Impl::Source::runs;
  impl->edge_count = in.rows;
  impl->row_offsets_.set(std::move(offsets));
  impl->route = "Morton";
  impl->reason = "rows are in Morton order and size = stride = 2^" + std::to_string(levels) +
                 ", so an output is a run of inputs whose keys agree above the lowest bits";
  return impl;
}

std::shared_ptr<Impl> by_grouping(const Request& request) {
  const Coordinates::Impl& in = request.in;
  const bool in_order = request.order == Order::sorted && !request.options.targets;
  const EngineChoice choice =
      in_order ? choose_engine(request.options.engine, Engine::sorted, "output rows are to be in sorted order")
               : choose_engine(request.options.engine, Engine::hashed,
                               "one lookup per input is cheaper than a sort, and the order of outputs is given");
  const Engine engine = choice.engine;
  Array group;
  std::shared_ptr<const Coordinates> output = request.options.targets;
  if (output) {
    group = quotient_onto(who, in, request.shape, output->impl(), engine);
  } else {
    const bool dense = request.options.policy == Policy::dense;
    Quotient found = quotient(who, in, request.shape, request.order, engine, dense);
    output = std::move(found.coords);
    group = std::move(found.row_of);
    if (!dense && !request.shape.covers()) {
      const Buffer<std::uint8_t> mask = tap_mask(in, request.shape);
      const auto row_of = group.values<std::int32_t>();
      for (std::size_t i = 0; i < row_of.size(); ++i)
        if (mask[static_cast<std::int64_t>(i)] == 0) row_of[i] = -1;
    }
  }
  auto impl = begin(request, std::move(output));
  impl->source = Impl::Source::group;
  const auto row_of = group.values<std::int32_t>();
  impl->edge_count = in.rows - std::count(row_of.begin(), row_of.end(), -1);
  impl->group_.set(std::move(group));
  impl->route = "grouping, " + choice.name();
  impl->reason =
      "offsets run 0..k-1, padding is 0 and (k-1)*dilation+1 <= stride on every axis, so an output is a "
      "function of the input and no neighbours are searched; " +
      choice.why();
  return impl;
}

std::string search_reason(const Shape& shape) {
  for (int a = 1; a < shape.columns; ++a) {
    const Tap& tap = shape[a];
    std::ostringstream text;
    text << "windows are searched for neighbours, since on axis " << a - 1 << " ";
    if (tap.first != 0) return text << "offsets run " << tap.first << ".." << -tap.first, text.str();
    if (tap.padding != 0) return text << "padding is " << tap.padding, text.str();
    if (tap.reach() >= tap.stride)
      return text << "(k-1)*dilation+1 = " << tap.reach() + 1 << " > stride " << tap.stride, text.str();
  }
  return "windows are searched for neighbours";
}

/// Outputs in the order in which the inputs reach them, given the relation onto the same outputs in sorted order.
std::shared_ptr<const Coordinates> first_seen_outputs(const Request& request, const Coordinates& sorted,
                                                      const Found& found) {
  Buffer<std::int32_t> first(sorted.rows());
  const auto offsets = found.row_offsets.values<std::int64_t>();
  const std::int32_t* in_row = found.edges.in_row.values<std::int32_t>().data();
  for (std::int64_t o = 0; o < sorted.rows(); ++o) {
    const auto at = static_cast<std::size_t>(o);
    first[o] = *std::min_element(in_row + offsets[at], in_row + offsets[at + 1]);
  }
  Buffer<std::int64_t> starts(request.in.rows + 1);
  Buffer<std::int32_t> order(sorted.rows());
  group_positions(first.data(), sorted.rows(), request.in.rows, starts.data(), order.data());
  return made_coordinates(take_rows(sorted.array(), order.data(), order.size()), sorted.impl().range,
                          sorted.batch_size());
}

std::shared_ptr<Impl> by_search(const Request& request) {
  const Coordinates::Impl& in = request.in;
  const EngineChoice choice =
      choose_engine(request.options.engine, Engine::sorted,
                    "a line of a window is a range of sorted keys, found by moving forward, where a table is asked for "
                    "every cell");
  const Engine engine = choice.engine;
  // Either may refuse the range, so before any work.
  KeyCodec(who, in.range);
  if (request.options.targets) KeyCodec(who, request.options.targets->impl().range);
  const bool dense = request.options.policy == Policy::dense;
  std::shared_ptr<const Coordinates> output = request.options.targets;
  if (!output)
    output = dense ? window_support(who, in, request.shape)
                   : quotient(who, in, request.shape, request.order, engine, false).coords;
  const auto search = [&] { return find_neighbours(who, in, output ? output->impl() : in, request.shape, engine); };
  Found found = search();
  if (dense && !request.options.targets && request.order == Order::first_seen) {
    output = first_seen_outputs(request, *output, found);
    found = search();
  }
  auto impl = begin(request, std::move(output));
  impl->edge_count = found.edges.in_row.size();
  impl->row_offsets_.set(std::move(found.row_offsets));
  impl->edges_.set(std::move(found.edges));
  impl->route = choice.name();
  impl->reason = search_reason(request.shape) + "; " + choice.why();
  return impl;
}

std::shared_ptr<const Impl> build(const Request& request) {
  if (takes_morton(request)) return by_morton(request);
  return request.shape.groups() ? by_grouping(request) : by_search(request);
}

}  // namespace
}  // namespace sparse

using namespace sparse;

Relation relate(const std::shared_ptr<const Coordinates>& coords, const Kernel& kernel, const RelateOptions& options) {
  if (!coords) reject(who, "coords is null: coordinates are needed");
  return Relation(coords, build(check(coords->impl(), kernel, options)));
}

Relation Coordinates::relation(const Kernel& kernel, const RelateOptions& options) const {
  const Request request = check(*impl_, kernel, options);
  const auto self = shared_from_this();
  if (options.targets) return Relation(self, build(request));
  const std::string key = relation_key(request.shape, options, request.order);
  {
    const std::scoped_lock lock(impl_->mutex);
    if (const auto found = impl_->kept.find(key); found != impl_->kept.end()) return Relation(self, found->second);
  }
  // Built without the lock: another thread may do the same, and the first to finish is kept.
  auto made = build(request);
  const std::scoped_lock lock(impl_->mutex);
  return Relation(self, impl_->kept.emplace(key, std::move(made)).first->second);
}

Relation Coordinates::relation(const Kernel& kernel) const { return relation(kernel, {}); }

std::vector<std::string> Coordinates::kept_relations() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<std::string> keys;
  for (const auto& [key, relation] : impl_->kept) keys.push_back(key);
  return keys;
}

}  // namespace cenote
