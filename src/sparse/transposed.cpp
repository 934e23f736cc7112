// relate_transposed(): windows of inputs among points, without a search where they do not overlap.
#include <numeric>
#include <vector>

#include "core/reject.h"
#include "sparse/edge_order.h"
#include "sparse/neighbours.h"
#include "sparse/numbering.h"
#include "sparse/support.h"
#include "sparse/window_keys.h"

namespace cenote {
namespace sparse {
namespace {

constexpr std::string_view who = "relate_transposed";

/// The points that inputs reach: their range, and whether every point that a window asks for exists.
struct Reach {
  Range range;
  bool whole = true, empty = false;
};

Reach reach_of(const Coordinates::Impl& in, const Shape& shape) {
  const std::int64_t least = in.type == Type::i64 ? INT64_MIN : INT32_MIN;
  const std::int64_t most = in.type == Type::i64 ? INT64_MAX : INT32_MAX;
  Reach reach{in.range, true, in.rows == 0};
  for (std::size_t a = 1; a < Range::at(shape.columns); ++a) {
    const Tap& tap = shape.axis[a];
    const i128 low = i128{in.range.low[a]} * tap.stride - tap.padding;
    const i128 high = i128{in.range.high[a]} * tap.stride - tap.padding + tap.reach();
    reach.whole = reach.whole && low >= least && high <= most;
    reach.empty = reach.empty || low > most || high < least;
    reach.range.low[a] = static_cast<std::int64_t>(std::clamp<i128>(low, least, most));
    reach.range.high[a] = static_cast<std::int64_t>(std::clamp<i128>(high, least, most));
  }
  if (reach.empty) {
    reach.range = Range{};
    reach.range.columns = shape.columns;
  }
  return reach;
}

/// The points of every input, by input and kernel id, as a source of keys.
struct TapKeys {
  const Shape& shape;
  Rows rows;
  KeyCodec codec;
  Range range;  // of points that exist
  bool whole, narrow;
  std::int64_t units, width;

  template <class K>
  void for_blocks(std::int64_t first, std::int64_t last, const auto& body) const {
    if (narrow)
      for_windows<K>(WindowKeys<K, std::int64_t>(shape, codec, range), first, last, body);
    else
      for_windows<K>(WindowKeys<K, i128>(shape, codec, range), first, last, body);
  }

 private:
  template <class K, class Window>
  void for_windows(Window window, std::int64_t first, std::int64_t last, const auto& body) const {
    const std::int64_t inputs = std::max<std::int64_t>(1, block_rows / width);
    Buffer<K> keys(inputs * width), step(width);
    Buffer<std::uint8_t> counts(inputs * width);
    bool steps = false;  // what each tap adds to the key of the first, once a whole window has shown it
    for (std::int64_t at = first; at < last; at += inputs) {
      const std::int64_t n = std::min(inputs, last - at);
      for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t o[max_columns];
        for (int a = 0; a < rows.columns; ++a) o[a] = rows.at(at + i, a);
        K* const key = keys.data() + i * width;
        std::uint8_t* const count = counts.data() + i * width;
        const bool any = window.move(o), all = any && window.whole();
        std::fill_n(count, width, static_cast<std::uint8_t>(all));
        if (all && steps) {
          for (std::int64_t t = 0; t < width; ++t) key[t] = static_cast<K>(window.key() + step[t]);
          continue;
        }
        if (!all) std::fill_n(key, width, K{0});
        if (any)
          for_taps(window, shape, shape.columns - 1,
                   [&](K tap_key, std::int64_t id) { key[id] = tap_key, count[id] = 1; });
        if (!all) continue;
        for (std::int64_t t = 0; t < width; ++t) step[t] = static_cast<K>(key[t] - window.key());
        steps = true;
      }
      body(at * width, n * width, keys.data(), whole ? nullptr : counts.data());
    }
  }
};

using Impl = Relation::Impl;

void take(Impl& relation, std::shared_ptr<const Coordinates> points, Found found) {
  relation.outputs = points->rows();
  relation.output = std::move(points);
  relation.edge_count = found.edges.in_row.size();
  relation.row_offsets_.set(std::move(found.row_offsets));
  relation.edges_.set(std::move(found.edges));
}

/// Points of windows that do not overlap and exist as a whole: all differ, and each has one edge.
template <class T>
void spread_windows(Impl& relation, const Coordinates::Impl& in, const Range& range) {
  const std::int64_t width = relation.shape.volume, count = in.rows * width;
  const int columns = relation.shape.columns;
  // What each tap adds to the first point of a window. Sums wrap around, and are in range again at the end.
  Buffer<u64> step(width * columns);
  for (std::int64_t t = 0; t < width; ++t) {
    std::int64_t rest = t;
    for (int a = columns - 1; a >= 1; rest /= relation.shape[a--].size)
      step[t * columns + a] = static_cast<u64>(rest % relation.shape[a].size * relation.shape[a].dilation);
    step[t * columns] = 0;
  }
  Array points(in.type, {count, columns});
  Found found{Array(Type::i64, {count + 1}), {Array(Type::i32, {count}), Array(Type::i32, {count})}};
  T* const point = points.values<T>().data();
  std::int64_t* const offset = found.row_offsets.values<std::int64_t>().data();
  std::int32_t* const in_row = found.edges.in_row.values<std::int32_t>().data();
  std::int32_t* const kernel_id = found.edges.kernel_id.values<std::int32_t>().data();
  const Rows rows = in.view();
  for_chunks(Chunks::of(in.rows, 1 << 12), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      u64 start[max_columns];
      for (int a = 0; a < columns; ++a)
        start[a] = static_cast<u64>(rows.at(i, a)) * static_cast<u64>(relation.shape[a].stride) -
                   static_cast<u64>(relation.shape[a].padding);
      T* const to = point + i * width * columns;
      for (std::int64_t t = 0; t < width; ++t)
        for (int a = 0; a < columns; ++a) to[t * columns + a] = static_cast<T>(start[a] + step[t * columns + a]);
      std::fill_n(in_row + i * width, width, static_cast<std::int32_t>(i));
      std::iota(kernel_id + i * width, kernel_id + (i + 1) * width, 0);
      std::iota(offset + i * width, offset + (i + 1) * width, i * width);
    }
  });
  offset[count] = count;
  take(relation, made_coordinates(std::move(points), range, in.batch_size), std::move(found));
}

/// Windows that do not overlap, onto targets: each of those lies in one window, which is looked up.
void cells_onto(Impl& relation, const Coordinates::Impl& in, const std::shared_ptr<const Coordinates>& targets,
                Engine engine) {
  const Array input = quotient_onto(who, targets->impl(), relation.shape, in, engine);
  const auto row = input.values<std::int32_t>();
  const auto none = std::count(row.begin(), row.end(), -1);
  const std::int64_t count = input.size() - none;
  Found found{Array(Type::i64, {input.size() + 1}), {Array(Type::i32, {count}), Array(Type::i32, {count})}};
  const auto offset = found.row_offsets.values<std::int64_t>();
  const auto in_row = found.edges.in_row.values<std::int32_t>();
  const auto kernel_id = found.edges.kernel_id.values<std::int32_t>();
  const Rows points = targets->impl().view();
  std::size_t edge = 0;
  offset[0] = 0;
  for (std::int64_t at = 0; at < points.count; at += block_rows) {
    u64 id[block_rows];
    const std::int64_t n = std::min(block_rows, points.count - at);
    cell_ids(relation.shape, points, at, n, id);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto target = static_cast<std::size_t>(at + i);
      if (row[target] >= 0) {
        in_row[edge] = row[target];
        kernel_id[edge++] = static_cast<std::int32_t>(id[i]);
      }
      offset[target + 1] = static_cast<std::int64_t>(edge);
    }
  }
  take(relation, targets, std::move(found));
}

/// Windows that overlap: the points of all inputs are numbered, and edges sorted by them.
void number_taps(Impl& relation, const Coordinates::Impl& in, const Reach& reach, Engine engine) {
  const std::int64_t width = relation.shape.volume;
  const TapKeys source{relation.shape, in.view(),   KeyCodec(who, reach.range),
                       reach.range,    reach.whole, fits_64(relation.shape, reach.range, in.range),
                       in.rows,        width};
  Array numbers(Type::i32, {in.rows, width});
  const RowOf out = numbers.values<std::int32_t>();
  if (!source.whole) std::fill(out.begin(), out.end(), -1);
  Array rows = number_rows(who, source, in.type, Order::first_seen, engine, out);
  const Range exact = source.whole ? reach.range : range_of(Rows(rows));
  auto points = made_coordinates(std::move(rows), exact, in.batch_size);
  const std::int64_t count = numbers.size() - std::count(out.begin(), out.end(), -1);
  const EdgeKeys keys(points->rows(), width);
  Found found = with_key(keys.bits, [&](auto zero) {
    using K = decltype(zero);
    Buffer<Item<K>> items(numbers.size());
    for_chunks(unit_chunks(source), [&](std::int64_t, std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first, at = first * width; i < last; ++i)
        for (std::int64_t id = 0; id < width; ++id, ++at)
          items[at] = {keys.key<K>(out[static_cast<std::size_t>(at)], static_cast<u64>(id)),
                       static_cast<std::int32_t>(i)};
    });
    return ordered_edges(keys, std::move(items), count);
  });
  take(relation, std::move(points), std::move(found));
}

/// Windows that overlap, onto targets: inputs search those in their windows, and the ends of edges are exchanged.
void search_targets(Impl& relation, const Coordinates::Impl& in, const std::shared_ptr<const Coordinates>& targets,
                    Engine engine) {
  const Found by_input = find_neighbours(who, targets->impl(), in, relation.shape, engine);
  const std::int32_t* const target = by_input.edges.in_row.values<std::int32_t>().data();
  const std::int32_t* const id = by_input.edges.kernel_id.values<std::int32_t>().data();
  const std::int64_t* const start = by_input.row_offsets.values<std::int64_t>().data();
  const EdgeKeys keys(targets->rows(), relation.shape.volume);
  take(relation, targets, with_key(keys.bits, [&](auto zero) {
         using K = decltype(zero);
         Buffer<Item<K>> items(by_input.edges.in_row.size());
         for_chunks(Chunks::of(in.rows), [&](std::int64_t, std::int64_t first, std::int64_t last) {
           for (std::int64_t i = first; i < last; ++i)
             for (std::int64_t e = start[i]; e < start[i + 1]; ++e)
               items[e] = {keys.key<K>(target[e], static_cast<u64>(id[e])), static_cast<std::int32_t>(i)};
         });
         const std::int64_t count = items.size();
         return ordered_edges(keys, std::move(items), count);
       }));
}

/// How many points exist among those that inputs ask for, each counted as often as it is asked for.
i128 count_edges(const Coordinates::Impl& in, const Shape& shape, const Reach& reach) {
  if (reach.empty) return 0;
  if (reach.whole) return i128{in.rows} * shape.volume;
  const Rows rows = in.view();
  i128 sum = 0;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    i128 product = 1;
    for (int a = 1; a < shape.columns; ++a) {
      const Tap& tap = shape[a];
      const i128 start = i128{rows.at(i, a)} * tap.stride - tap.padding, d = tap.dilation;
      const i128 low = reach.range.low[Range::at(a)], high = reach.range.high[Range::at(a)];
      const i128 first = start < low ? (low - start + d - 1) / d : 0;
      const i128 last = start > high ? -1 : std::min<i128>((high - start) / d, tap.size - 1);
      product *= std::max<i128>(last - first + 1, 0);
    }
    sum += product;
  }
  return sum;
}

/// The fewest points that so many edges can have: along an axis windows that begin `stride` apart share a point only if
/// as many of them fit into one window.
std::int64_t least_points(const Shape& shape, i128 edges) {
  i128 shared = 1;
  for (int a = 1; a < shape.columns; ++a) shared *= std::min(shape[a].size, shape[a].reach() / shape[a].stride + 1);
  return static_cast<std::int64_t>((edges + shared - 1) / shared);
}

/// Onto the points that inputs reach.
void relate_points(Impl& relation, const Coordinates::Impl& in, Engine engine) {
  const Shape& shape = relation.shape;
  const Reach reach = reach_of(in, shape);
  check_output_rows(who, least_points(shape, count_edges(in, shape, reach)));
  if (shape.apart() && reach.whole) {
    relation.route = "windows";
    relation.reason = "windows of different inputs do not overlap, so every point has one input and none is searched";
    if (in.type == Type::i64)
      spread_windows<std::int64_t>(relation, in, reach.range);
    else
      spread_windows<std::int32_t>(relation, in, reach.range);
    return;
  }
  EngineChoice choice = choose_engine(engine, Engine::hashed, "one lookup per point is cheaper than a sort of them");
  if (choice.engine == Engine::sorted && i128{in.rows} * shape.volume > most_rows)
    choice = {Engine::hashed, false, "there are more points than a sort can number in 32 bits"};
  relation.route = choice.name();
  relation.reason = std::string(shape.apart() ? "windows reach beyond the type of the coordinates"
                                              : "windows of different inputs overlap") +
                    ", so the points of all of them are numbered; " + choice.why();
  number_taps(relation, in, reach, choice.engine);
}

void relate_targets(Impl& relation, const Coordinates::Impl& in, const std::shared_ptr<const Coordinates>& targets,
                    Engine engine) {
  const Shape& shape = relation.shape;
  bool cells = shape.apart();
  for (std::size_t a = 1; a < Range::at(shape.columns); ++a)
    cells = cells && i128{targets->impl().range.high[a]} + shape.axis[a].padding <= INT64_MAX;
  const EngineChoice choice =
      cells ? choose_engine(engine, Engine::hashed, "one lookup per target is cheaper than a sort of them")
            : choose_engine(engine, Engine::sorted, "a line of a window is a range of sorted keys");
  relation.route = (cells ? "grouping, " : "") + choice.name();
  relation.reason = std::string(cells ? "windows of different inputs do not overlap, so a target lies in at most one"
                                      : "inputs search the targets in their windows") +
                    "; " + choice.why();
  if (cells)
    cells_onto(relation, in, targets, choice.engine);
  else
    search_targets(relation, in, targets, choice.engine);
}

}  // namespace
}  // namespace sparse

using namespace sparse;

Relation relate_transposed(const std::shared_ptr<const Coordinates>& coords, const Kernel& kernel,
                           const std::shared_ptr<const Coordinates>& targets, Engine engine) {
  if (!coords) reject(who, "coords is null: coordinates are needed");
  if (targets && targets->dimension() != coords->dimension())
    reject(who, "targets of dimension ", targets->dimension(), ": must be that of the coordinates, ",
           coords->dimension());
  const Coordinates::Impl& in = coords->impl();
  auto impl = std::make_shared<Relation::Impl>();
  impl->shape = check_kernel(who, kernel, coords->dimension());
  for (Tap& tap : impl->shape.axis) tap.first = 0;
  impl->transposed = true;
  impl->inputs = coords->rows();
  if (!targets)
    relate_points(*impl, in, engine);
  else
    relate_targets(*impl, in, targets, engine);
  return Relation(coords, std::move(impl));
}

}  // namespace cenote
