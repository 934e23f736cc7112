// Neighbour search: one walk through the outputs that collects edges, with two ways to look inputs up.
#include "sparse/neighbours.h"

#include <memory>
#include <vector>

#include "sparse/table.h"
#include "sparse/window_keys.h"

namespace cenote::sparse {
namespace {

/// An input row and the kernel id by which an output has found it.
struct Tie {
  std::int32_t row, id;
};

/// Where ties go, one after the other.
struct Writer {
  Tie* next = nullptr;

  void put(std::int32_t row, std::int64_t id) noexcept { put_if(true, row, id); }
  /// Writes in any case, without a branch, and keeps what was written if the condition holds.
  void put_if(bool keep, std::int32_t row, std::int64_t id) noexcept {
    *next = {row, static_cast<std::int32_t>(id)};
    next += keep;
  }
};

/// Up to block_rows outputs: their coordinates column by column, and their rows.
struct OutputBlock {
  std::int64_t coords[max_columns][block_rows];
  std::int32_t row[block_rows];
  std::int64_t size = 0;

  template <class Search>
  void search(Search& search, std::int64_t i, Writer& writer) const {
    std::int64_t o[max_columns];
    for (int a = 0; a < max_columns; ++a) o[a] = coords[a][i];
    search(o, writer);
  }
};

/// Outputs in the order of their rows.
struct InRowOrder {
  Rows rows;
  void load(std::int64_t first, std::int64_t n, OutputBlock& block) const {
    for (int a = 0; a < rows.columns; ++a) rows.column(a, first, n, block.coords[a]);
    for (std::int64_t i = 0; i < n; ++i) block.row[i] = static_cast<std::int32_t>(first + i);
  }
};

/// Outputs in the order of their keys, so that what they look for moves forward too.
struct InKeyOrder {
  const Index& index;
  void load(std::int64_t first, std::int64_t n, OutputBlock& block) const {
    std::visit(
        [&](const auto& items) {
          for (int a = 0; a < index.codec.columns; ++a)
            for (std::int64_t i = 0; i < n; ++i) block.coords[a][i] = index.codec.number(a, items[first + i].key);
          for (std::int64_t i = 0; i < n; ++i) block.row[i] = items[first + i].row;
        },
        index.items);
  }
};

/// Looks inputs up among sorted keys. A window is a product of rows along the last axis, each of them a range of keys;
/// for every row of the kernel a cursor remembers where the last output found it, and only moves forward.
template <class K, class Wide>
class SortedSearch {
 public:
  SortedSearch(const Shape& shape, const Range& range, const KeyCodec& codec, const Buffer<Item<K>>& items)
      : shape_(shape),
        codec_(codec),
        window_(shape, codec, range),
        items_(items),
        last_(shape.columns - 1),
        size_(shape[last_].size),
        dilation_(shape[last_].dilation),
        lines_(shape.volume / size_),
        // With more rows in the kernel than inputs it is cheaper to look at every input between its ends.
        scan_(lines_ > items.size()) {
    if (scan_) return;
    cursor_ = Buffer<std::int64_t>(lines_);
    std::fill(cursor_.begin(), cursor_.end(), 0);
    line_key_ = Buffer<K>(lines_);
    for (std::int64_t line = 0; line < lines_; ++line) {
      K key = 0;
      std::int64_t rest = line;
      for (int a = last_ - 1; a >= 1; --a) {
        key = static_cast<K>(key + static_cast<K>(window_.step(a) * static_cast<K>(rest % shape[a].size)));
        rest /= shape[a].size;
      }
      line_key_[line] = key;
    }
  }

  void operator()(const std::int64_t* o, Writer& writer) {
    if (!window_.move(o)) return;
    if (scan_)
      scan(writer);
    else if (window_.whole() && dilation_ == 1 && size_ <= 4)
      walk_whole(writer);
    else
      for_taps(window_, shape_, last_ - 1, [&](K key, std::int64_t line) { walk(key, line, writer); });
  }

 private:
  /// The first item from `at` on with a key not below `key`: near by most of the time, so it gallops.
  std::int64_t advance(std::int64_t at, K key) const noexcept {
    const std::int64_t n = items_.size();
    for (int i = 0; i < 6; ++i, ++at)
      if (at >= n || items_[at].key >= key) return at;
    std::int64_t jump = 8;
    while (at + jump < n && items_[at + jump].key < key) {
      at += jump;
      jump *= 2;
    }
    const Item<K>* found = std::lower_bound(items_.data() + at, items_.data() + std::min(at + jump, n), key,
                                            [](const Item<K>& item, K k) { return item.key < k; });
    return found - items_.data();
  }

  /// Of rows that were only assumed to differ the first is taken, as from a table.
  bool repeats(std::int64_t at) const noexcept { return at > 0 && items_[at].key == items_[at - 1].key; }

  /// All lines of a window that is in range as a whole and has short lines: the common case, without branches in it.
  void walk_whole(Writer& writer) noexcept {
    Writer local = writer;  // a copy that no store through a pointer can change
    const Item<K>* const items = items_.data();
    const K* const line_key = line_key_.data();
    std::int64_t* const cursor = cursor_.data();
    constexpr std::int64_t steps = 3;
    const std::int64_t size = size_, lines = lines_, last_start = items_.size() - size - steps;
    const K first = window_.key();
    for (std::int64_t line = 0; line < lines; ++line) {
      const K start = static_cast<K>(first + line_key[line]), end = static_cast<K>(start + static_cast<K>(size - 1));
      std::int64_t at = cursor[line];
      if (at <= last_start) at += items[at].key < start, at += items[at].key < start;
      if (at <= last_start && items[at].key < start) [[unlikely]]
        ++at;
      if (at > last_start || items[at].key < start) [[unlikely]] {
        walk(start, line, local);
        continue;
      }
      cursor[line] = at;
      // Every candidate is written, and only those in the line are kept.
      for (std::int64_t t = 0; t < size; ++t) {
        const Item<K> item = items[at + t];
        local.put_if(item.key <= end, item.row, line * size + static_cast<std::int64_t>(item.key - start));
      }
    }
    writer = local;
  }

  void walk(K start, std::int64_t line, Writer& writer) noexcept {
    const auto& taps = window_[last_];
    const K span = static_cast<K>(static_cast<K>(dilation_) * static_cast<K>(taps.count - 1));
    const K end = static_cast<K>(start + span);
    // The first tap in range may lie further ahead than that of the next output; the first cell in range does not.
    std::int64_t at = cursor_[line] = advance(cursor_[line], static_cast<K>(start - static_cast<K>(taps.skip)));
    const std::int64_t id = line * size_ + taps.first;
    if (taps.skip > 0) at = advance(at, start);
    for (; at < items_.size() && items_[at].key <= end; ++at) {
      const auto distance = static_cast<u64>(items_[at].key - start), d = static_cast<u64>(dilation_);
      if ((d != 1 && distance % d != 0) || repeats(at)) continue;
      writer.put(items_[at].row, id + static_cast<std::int64_t>(distance / d));
    }
  }

  void scan(Writer& writer) noexcept {
    K end = window_.key();
    for (int a = 1; a <= last_; ++a)
      end = static_cast<K>(end + static_cast<K>(window_.step(a) * static_cast<K>(window_[a].count - 1)));
    for (std::int64_t at = advance(0, window_.key()); at < items_.size() && items_[at].key <= end; ++at) {
      std::int64_t id = 0;
      bool tap = true;
      for (int a = 1; a <= last_; ++a) {
        // Below the first tap the difference wraps around to a number that is too large.
        const u64 distance = codec_.relative(a, items_[at].key) - codec_.relative(a, window_.key());
        const auto d = static_cast<u64>(shape_[a].dilation);
        tap = tap && distance % d == 0 && distance / d < static_cast<u64>(window_[a].count);
        id = id * shape_[a].size + window_[a].first + static_cast<std::int64_t>(tap ? distance / d : 0);
      }
      if (tap && !repeats(at)) writer.put(items_[at].row, id);
    }
  }

  const Shape& shape_;
  const KeyCodec& codec_;
  WindowKeys<K, Wide> window_;
  const Buffer<Item<K>>& items_;
  int last_;
  std::int64_t size_, dilation_, lines_;
  bool scan_;
  Buffer<std::int64_t> cursor_;
  Buffer<K> line_key_;  // what each line of a whole window adds to the key of the first
};

/// Looks inputs up in a table, a few at a time so that memory can answer them together.
template <class K, class Wide>
class HashedSearch {
 public:
  HashedSearch(const Shape& shape, const Range& range, const KeyCodec& codec, const Table<K>& table)
      : shape_(shape), window_(shape, codec, range), table_(table) {}

  void operator()(const std::int64_t* o, Writer& writer) {
    if (!window_.move(o)) return;
    waiting_ = 0;
    for_taps(window_, shape_, shape_.columns - 1, [&](K key, std::int64_t id) {
      table_.prefetch(key);
      keys_[waiting_] = key;
      ids_[waiting_] = static_cast<std::int32_t>(id);
      if (++waiting_ == batch) look_up(writer);
    });
    look_up(writer);
  }

 private:
  static constexpr int batch = 64;

  void look_up(Writer& writer) {
    for (int i = 0; i < waiting_; ++i)
      if (const std::int32_t row = table_.find(keys_[i]); row >= 0) writer.put(row, ids_[i]);
    waiting_ = 0;
  }

  const Shape& shape_;
  WindowKeys<K, Wide> window_;
  const Table<K>& table_;
  int waiting_ = 0;
  K keys_[batch];
  std::int32_t ids_[batch];
};

/// Memory for ties that grows by slabs, so that what was written stays where it is.
class Slabs {
 public:
  /// Room for n more ties and for one more that is not kept.
  Tie* room(std::int64_t n) {
    if (n >= left_) {
      left_ = std::max(grown_, n + 1);
      grown_ = std::min(2 * grown_, largest);
      next_ = slabs_.emplace_back(left_ + spare).data();
    }
    return next_;
  }
  void keep(const Tie* end) noexcept {
    left_ -= end - next_;
    next_ += end - next_;
  }
  /// Ties behind the last one of a slab that may be read.
  static constexpr std::int64_t spare = 8;

 private:
  static constexpr std::int64_t largest = 1 << 22;
  std::vector<Buffer<Tie>> slabs_;
  Tie* next_ = nullptr;
  std::int64_t left_ = 0, grown_ = 1 << 12;
};

/// What one output has found.
struct Ties {
  const Tie* first;
  std::int64_t count;
};

/// Searches for all outputs, in the order that suits the search, and writes down for each row what it has found; `most`
/// is the most that any of them can find.
template <class Outputs, class MakeSearch>
std::vector<Slabs> find_ties(const Outputs& outputs, Buffer<Ties>& ties, std::int64_t most,
                             const MakeSearch& make_search) {
  const Chunks chunks = Chunks::of(ties.size(), 1 << 12);
  std::vector<Slabs> slabs(static_cast<std::size_t>(chunks.count));
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    Slabs& mine = slabs[static_cast<std::size_t>(c)];
    auto search = make_search();
    const auto block = std::make_unique<OutputBlock>();
    for (std::int64_t at = first; at < last; at += block_rows) {
      block->size = std::min(block_rows, last - at);
      outputs.load(at, block->size, *block);
      constexpr std::int64_t ahead = 16;
      for (std::int64_t i = 0; i < block->size; ++i) {
        if (i + ahead < block->size) __builtin_prefetch(&ties[block->row[i + ahead]], 1);
        Tie* const start = mine.room(most);
        Writer writer{start};
        block->search(search, i, writer);
        ties[block->row[i]] = {start, writer.next - start};
        mine.keep(writer.next);
      }
    }
  });
  return slabs;
}

/// Takes ties apart, a few at a time whether there are so many or not as long as others follow.
void take_apart(const Tie* ties, std::int64_t n, std::int64_t room, std::int32_t* in_row, std::int32_t* kernel_id) {
  constexpr std::int64_t few = Slabs::spare;
  std::int64_t e = 0;
  for (; e < n && e + few <= room; e += few)
    for (std::int64_t i = e; i < e + few; ++i) in_row[i] = ties[i].row, kernel_id[i] = ties[i].id;
  for (; e < n; ++e) in_row[e] = ties[e].row, kernel_id[e] = ties[e].id;
}

/// All edges in the order of their outputs' rows. Searching writes ties as it finds them, and they are brought into
/// order afterwards: reading here and there is cheaper than writing here and there, or than to search twice.
template <class Outputs, class MakeSearch>
Found collect(const Outputs& outputs, std::int64_t count, std::int64_t most, const MakeSearch& make_search) {
  Buffer<Ties> ties(count);
  const std::vector<Slabs> slabs = find_ties(outputs, ties, most, make_search);
  Found found{Array(Type::i64, {count + 1}), {}};
  std::int64_t* const offsets = found.row_offsets.template values<std::int64_t>().data();
  offsets[0] = 0;
  for (std::int64_t i = 0; i < count; ++i) offsets[i + 1] = offsets[i] + ties[i].count;
  found.edges = {Array(Type::i32, {offsets[count]}), Array(Type::i32, {offsets[count]})};
  std::int32_t* const in_row = found.edges.in_row.template values<std::int32_t>().data();
  std::int32_t* const kernel_id = found.edges.kernel_id.template values<std::int32_t>().data();
  for_chunks(Chunks::of(count, 1 << 12), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t ahead = 24;
    for (std::int64_t i = first; i < last; ++i) {
      if (i + ahead < last) {
        __builtin_prefetch(ties[i + ahead].first);
        __builtin_prefetch(ties[i + ahead].first + 8);
      }
      take_apart(ties[i].first, ties[i].count, offsets[last] - offsets[i], in_row + offsets[i], kernel_id + offsets[i]);
    }
  });
  return found;
}

template <class K, class Wide>
Found search(std::string_view who, const Coordinates::Impl& in, const Coordinates::Impl& out, const Shape& shape,
             Engine engine, const KeyCodec& codec, const Buffer<Item<K>>& items) {
  const std::int64_t most = std::min(shape.volume, items.size());
  if (engine == Engine::hashed) {
    Table<K> table(items.size());
    for (const Item<K>& item : items) table.insert(item.key, item.row);
    return collect(InRowOrder{out.view()}, out.rows, most,
                   [&] { return HashedSearch<K, Wide>(shape, in.range, codec, table); });
  }
  return collect(InKeyOrder{out.index(who)}, out.rows, most,
                 [&] { return SortedSearch<K, Wide>(shape, in.range, codec, items); });
}

}  // namespace

Found find_neighbours(std::string_view who, const Coordinates::Impl& in, const Coordinates::Impl& out,
                      const Shape& shape, Engine engine) {
  const Index& index = in.index(who);
  const bool narrow = fits_64(shape, in.range, out.range);
  return std::visit(
      [&](const auto& items) {
        return narrow ? search<decltype(items[0].key), std::int64_t>(who, in, out, shape, engine, index.codec, items)
                      : search<decltype(items[0].key), i128>(who, in, out, shape, engine, index.codec, items);
      },
      index.items);
}

}  // namespace cenote::sparse
