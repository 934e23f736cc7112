// Coordinate sets: checks of what a caller says about them, the sorted index, Morton order.
#include <cenote/coordinates.h>

#include <cstring>
#include <numeric>
#include <sstream>

#include <cenote/error.h>

#include "core/memory.h"
#include "core/reject.h"
#include "core/views.h"
#include "sparse/store.h"

namespace cenote {
namespace sparse {
namespace {

constexpr std::string_view who = "Coordinates";

void check_rows(const View& coords) {
  if (coords.type != Type::i32 && coords.type != Type::i64)
    reject(who, "coords of ", name(coords.type), ": coordinates must be i32 or i64");
  if (coords.rank() != 2 || coords.shape[0] < 0 || coords.shape[1] < 2 || coords.shape[1] > max_columns)
    reject(who, "coords of shape ", coords.shape, ": must be (rows, 1 + D), batch first, D from 1 to ",
           max_lattice_dimension);
  if (coords.shape[0] > most_rows)
    reject(who, "coords of shape ", coords.shape, ": there may be at most ", most_rows, " rows");
  if (coords.shape[0] > 0) check_memory(who, "coords", coords);
}

std::int64_t active_rows(const View& coords, const CoordinateOptions& options) {
  const std::int64_t active = options.active_rows.value_or(coords.shape[0]);
  if (active < 0 || active > coords.shape[0])
    reject(who, "active_rows = ", active, ": must be from 0 to the number of rows, ", coords.shape[0]);
  return active;
}

std::vector<std::int64_t> count_batches(const Rows& rows, std::int64_t batches) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(batches), 0);
  for (std::int64_t i = 0; i < rows.count; ++i) ++counts[static_cast<std::size_t>(rows.at(i, 0))];
  return counts;
}

// The number of batches, once the batch column agrees with what the caller says of it.
std::int64_t check_batches(const Rows& rows, const Range& range, const CoordinateOptions& options) {
  if (range.low[0] < 0) {
    std::int64_t row = 0;
    while (rows.at(row, 0) >= 0) ++row;
    reject(who, "coords row ", row, " is ", row_text(rows, row), ": batch ids must be at least 0");
  }
  if (range.high[0] >= most_rows) reject(who, "batch id ", range.high[0], ": must be below ", most_rows);
  const std::int64_t present = rows.count > 0 ? range.high[0] + 1 : 0;
  std::int64_t batches = options.batch_size.value_or(present);
  if (batches < present)
    reject(who, "batch_size = ", batches, ": must be at least ", present, ", the highest batch id + 1");
  if (batches > most_rows) reject(who, "batch_size = ", batches, ": must be at most ", most_rows);
  if (!options.batch_counts) return batches;
  const std::vector<std::int64_t>& counts = *options.batch_counts;
  const auto given = static_cast<std::int64_t>(counts.size());
  if (given < present) reject(who, "batch_counts has ", given, " entries: must have one per batch, at least ", present);
  if (options.batch_size && given != batches)
    reject(who, "batch_counts has ", given, " entries: batch_size = ", batches, " needs one per batch");
  for (std::size_t b = 0; b < counts.size(); ++b)
    if (counts[b] < 0) reject(who, "batch_counts[", b, "] = ", counts[b], ": must be at least 0");
  const std::vector<std::int64_t> actual = count_batches(rows, given);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    if (counts[b] != actual[b])
      reject(who, "batch_counts[", b, "] = ", counts[b], ": must be ", actual[b], ", the rows of that batch");
  }
  return given;
}

template <class K>
Buffer<Item<K>> sorted_items(const KeyCodec& codec, const Rows& rows) {
  Buffer<Item<K>> items(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for_packed_blocks<K>(codec, rows, Divisors{}, first, last, [&](std::int64_t at, std::int64_t n, const K* keys) {
      for (std::int64_t i = 0; i < n; ++i) items[at + i] = {keys[i], static_cast<std::int32_t>(at + i)};
    });
  });
  radix_sort(items, codec.bits);
  return items;
}

}  // namespace

void check_output_rows(std::string_view caller, std::int64_t rows) {
  if (rows > most_rows) reject(caller, rows, " output rows: there may be at most ", most_rows);
  check_fits(caller, rows, 24);  // a point, where its edges begin, and an edge
}

void check_fits(std::string_view caller, std::int64_t rows, std::size_t bytes) {
  const std::size_t needed = static_cast<std::size_t>(rows) * bytes;
  if (needed <= machine_memory()) return;
  std::ostringstream text;
  text << '[' << caller << "] " << rows << " output rows: they need at least " << (needed >> 30)
       << " GiB of memory, and this machine has " << (machine_memory() >> 30);
  throw Unsupported(text.str());
}

std::shared_ptr<const Coordinates> made_coordinates(Array rows, const Range& range, std::int64_t batch_size) {
  auto impl = std::make_unique<Coordinates::Impl>();
  impl->dimension = range.columns - 1;
  impl->rows = rows.shape()[0];
  impl->type = rows.type();
  impl->batch_size = batch_size;
  impl->range = range;
  impl->unique = true;
  impl->array_.set(std::move(rows));
  return std::make_shared<const Coordinates>(std::move(impl));
}

std::shared_ptr<const Coordinates> made_coordinates(MortonKeys keys, Type type, const Range& range,
                                                    std::int64_t batch_size) {
  auto impl = std::make_unique<Coordinates::Impl>();
  impl->dimension = range.columns - 1;
  impl->rows = std::visit([](const auto& buffer) { return buffer.size(); }, keys.keys);
  impl->type = type;
  impl->batch_size = batch_size;
  impl->range = range;
  impl->unique = true;
  impl->morton = std::move(keys);
  return std::make_shared<const Coordinates>(std::move(impl));
}

Array take_rows(const Array& array, const std::int32_t* order, std::int64_t n) {
  Array result(array.type(), {n, array.shape()[1]});
  const std::size_t bytes = static_cast<std::size_t>(array.shape()[1]) * size_of(array.type());
  if (bytes == 0) return result;
  const auto* from = static_cast<const std::byte*>(array.data());
  auto* to = static_cast<std::byte*>(result.data());
  for_chunks(Chunks::of(n), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      std::memcpy(to + static_cast<std::size_t>(i) * bytes, from + static_cast<std::size_t>(order[i]) * bytes, bytes);
  });
  return result;
}

}  // namespace sparse

using namespace sparse;

const Array& Coordinates::Impl::array() const {
  return array_.get([&] { return morton_rows(*morton, type); });
}

const Index& Coordinates::Impl::index(std::string_view caller) const {
  return index_.get([&] {
    Index made{KeyCodec(caller, range), {}};
    with_key(made.codec.bits, [&](auto zero) { made.items = sorted_items<decltype(zero)>(made.codec, view()); });
    return made;
  });
}

namespace {

// Of all pairs of equal rows, the one whose later row comes first.
void check_unique(const Coordinates::Impl& impl) {
  std::int32_t earlier = -1, later = -1;
  std::visit(
      [&](const auto& items) {
        for (std::int64_t i = 1; i < items.size(); ++i) {
          if (items[i].key != items[i - 1].key || (later >= 0 && items[i].row > later)) continue;
          earlier = items[i - 1].row;
          later = items[i].row;
        }
      },
      impl.index(who).items);
  if (later >= 0)
    reject(who, "coords rows ", earlier, " and ", later, " are both ", row_text(impl.view(), earlier),
           ": rows must differ; coalesce merges duplicates");
}

template <class K>
Buffer<Item<K>> morton_items(const MortonCodec& codec, const Rows& rows) {
  const Buffer<K> keys = morton_keys<K>(codec, rows);
  Buffer<Item<K>> items(rows.count);
  for (std::int64_t i = 0; i < rows.count; ++i) items[i] = {keys[i], static_cast<std::int32_t>(i)};
  radix_sort(items, codec.bits);
  return items;
}

}  // namespace

Coordinates::Coordinates(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinates::~Coordinates() = default;

std::shared_ptr<const Coordinates> Coordinates::make(const View& coords, const CoordinateOptions& options) {
  check_rows(coords);
  View active = coords;
  active.shape[0] = active_rows(coords, options);
  Array array(active);
  const Rows rows(array);
  auto impl = std::make_unique<Impl>();
  impl->dimension = rows.columns - 1;
  impl->rows = rows.count;
  impl->type = array.type();
  impl->range = range_of(rows);
  impl->batch_size = check_batches(rows, impl->range, options);
  impl->unique = !options.assume_unique;
  impl->array_.set(std::move(array));
  if (!options.assume_unique) check_unique(*impl);
  return std::make_shared<const Coordinates>(std::move(impl));
}

int Coordinates::dimension() const noexcept { return impl_->dimension; }
std::int64_t Coordinates::rows() const noexcept { return impl_->rows; }
std::int64_t Coordinates::batch_size() const noexcept { return impl_->batch_size; }
Type Coordinates::type() const noexcept { return impl_->type; }
const Array& Coordinates::array() const { return impl_->array(); }
bool Coordinates::known_unique() const noexcept { return impl_->unique; }
bool Coordinates::morton_ordered() const noexcept { return impl_->morton.has_value(); }

const std::vector<std::int64_t>& Coordinates::batch_counts() const {
  return impl_->counts_.get([&] { return count_batches(impl_->view(), impl_->batch_size); });
}

Extents Coordinates::low() const {
  return Extents(std::span(impl_->range.low.data(), static_cast<std::size_t>(1 + dimension())));
}
Extents Coordinates::high() const {
  return Extents(std::span(impl_->range.high.data(), static_cast<std::size_t>(1 + dimension())));
}

Array Coordinates::morton_order() const {
  Array order(Type::i32, {rows()});
  const auto out = order.values<std::int32_t>();
  if (morton_ordered()) {
    std::iota(out.begin(), out.end(), 0);
    return order;
  }
  const MortonCodec codec(who, impl_->range);
  with_key(codec.bits, [&](auto zero) {
    const auto items = morton_items<decltype(zero)>(codec, impl_->view());
    std::transform(items.begin(), items.end(), out.begin(), [](const auto& item) { return item.row; });
  });
  return order;
}

std::shared_ptr<const Coordinates> Coordinates::sorted() const {
  if (morton_ordered()) return shared_from_this();
  const Array order = morton_order();
  Array rows = take_rows(array(), order.values<std::int32_t>().data(), impl_->rows);
  auto impl = std::make_unique<Impl>();
  impl->dimension = impl_->dimension;
  impl->rows = impl_->rows;
  impl->type = impl_->type;
  impl->batch_size = impl_->batch_size;
  impl->range = impl_->range;
  impl->unique = impl_->unique;
  impl->morton.emplace(MortonKeys{MortonCodec(who, impl_->range), {}});
  with_key(impl->morton->codec.bits,
           [&](auto zero) { impl->morton->keys = morton_keys<decltype(zero)>(impl->morton->codec, Rows(rows)); });
  impl->array_.set(std::move(rows));
  return std::make_shared<const Coordinates>(std::move(impl));
}

}  // namespace cenote
