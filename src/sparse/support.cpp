// Outputs of windows that overlap: the inputs spread along one axis after the other, made unique in between.
#include "sparse/support.h"

#include <limits>
#include <vector>

#include "core/reject.h"

namespace cenote::sparse {
namespace {

template <class Wide>
Wide floor_divide(Wide c, Wide by) {
  const Wide q = c / by;
  return q - (c % by < 0 ? 1 : 0);
}

/// What a coordinate becomes along one axis: the outputs whose windows hold it.
struct Spread {
  Tap tap;
  std::int64_t low = 0, high = -1;  // results outside are absent

  // 128 bits: products and sums of 64-bit numbers stay within them. Called once per distinct coordinate and tap.
  template <class Emit>
  void operator()(std::int64_t c, const Emit& emit) const {
    const auto give = [&](i128 o) {
      if (o >= low && o <= high) emit(static_cast<std::int64_t>(o));
    };
    if (tap.dilation == 1) {
      const auto [first, last] = between(c);
      for (i128 o = first; o <= last; ++o) emit(static_cast<std::int64_t>(o));
      return;
    }
    const i128 top = i128{c} + tap.padding;
    for (std::int64_t j = tap.size - 1; j >= 0; --j) {
      const i128 at = top - i128{j} * tap.dilation;
      if (at % tap.stride == 0) give(at / tap.stride);
    }
  }

  /// The first and the last result, where there is no dilation: all between them are results too.
  std::pair<i128, i128> between(std::int64_t c) const {
    const i128 top = i128{c} + tap.padding;
    const i128 first = -floor_divide<i128>(tap.reach() - top, tap.stride), last = floor_divide<i128>(top, tap.stride);
    return {std::max<i128>(first, low), std::min<i128>(last, high)};
  }

  /// Narrows [low, high] to what inputs from `from` to `to` can give.
  void clip(std::int64_t from, std::int64_t to) {
    const i128 first = -floor_divide<i128>(i128{tap.reach()} - from - tap.padding, tap.stride);
    const i128 last = floor_divide<i128>(i128{to} + tap.padding, tap.stride);
    if (first > high || last < low) {
      low = 0, high = -1;
      return;
    }
    low = static_cast<std::int64_t>(std::max<i128>(first, low));
    high = static_cast<std::int64_t>(std::min<i128>(last, high));
  }
};

using Spreads = std::array<Spread, max_columns>;

/// Calls spread(key, emit) for every key and gives what they emit, chunk by chunk in order. The results are counted
/// first, and must be no more than `most`.
template <class K, class Spreading>
Buffer<Bare<K>> spread_keys(std::string_view who, std::int64_t n, i128 most, const Spreading& spreading) {
  const Chunks chunks = Chunks::of(n);
  std::vector<std::int64_t> start(static_cast<std::size_t>(chunks.count) + 1, 0);
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t& count = start[static_cast<std::size_t>(c) + 1];
    for (std::int64_t i = first; i < last; ++i) spreading(i, [&](K) { ++count; });
  });
  for (std::size_t c = 1; c < start.size(); ++c) start[c] += start[c - 1];
  if (start.back() > most) check_output_rows(who, start.back());
  // The results, and as much to sort them or to take them over.
  check_fits(who, start.back(), 2 * sizeof(Bare<K>));
  Buffer<Bare<K>> results(start.back());
  for_chunks(chunks, [&](std::int64_t c, std::int64_t first, std::int64_t last) {
    std::int64_t next = start[static_cast<std::size_t>(c)];
    for (std::int64_t i = first; i < last; ++i) spreading(i, [&](K key) { results[next++] = {key}; });
  });
  return results;
}

/// Replaces the field of axis a in every key by each of its results, sorts, and drops duplicates.
template <class K>
Buffer<Bare<K>> spread_axis(std::string_view who, const KeyCodec& from, const KeyCodec& to, const Buffer<Bare<K>>& keys,
                            int a, const Spread& spread) {
  const K rest = static_cast<K>(~from.field<K>(a, from.mask[Range::at(a)]));
  const auto with = [&](K key, i128 o) {
    const u64 relative = static_cast<u64>(static_cast<std::int64_t>(o)) - static_cast<u64>(to.low[Range::at(a)]);
    return static_cast<K>((key & rest) | to.field<K>(a, relative));
  };
  if (a == from.columns - 1 && a > 1 && spread.tap.dilation == 1) {
    // Sorted keys that agree in all other fields have results that ascend with them: only what the key before has not
    // given is new, and there is nothing to sort.
    return spread_keys<K>(who, keys.size(), most_rows, [&](std::int64_t i, const auto& emit) {
      const K key = keys[i].key;
      auto [first, last] = spread.between(from.number(a, key));
      if (i > 0 && ((keys[i - 1].key ^ key) & rest) == 0)
        first = std::max(first, spread.between(from.number(a, keys[i - 1].key)).second + 1);
      for (i128 o = first; o <= last; ++o) emit(with(key, o));
    });
  }
  // A result comes from no more keys than the window has taps.
  const i128 most = i128{most_rows} * spread.tap.size;
  Buffer<Bare<K>> wide = spread_keys<K>(who, keys.size(), most, [&](std::int64_t i, const auto& emit) {
    spread(from.number(a, keys[i].key), [&](std::int64_t o) { emit(with(keys[i].key, o)); });
  });
  radix_sort(wide, from.bits);
  wide.truncate(std::unique(wide.begin(), wide.end(), [](Bare<K> x, Bare<K> y) { return x.key == y.key; }) -
                wide.begin());
  return wide;
}

template <class K>
Array spread_rows(std::string_view who, const KeyCodec& from, const KeyCodec& to, const Coordinates::Impl& in,
                  const Spreads& spreads) {
  const Rows rows = in.view();
  Buffer<Bare<K>> keys(rows.count);
  for_chunks(Chunks::of(rows.count), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for_packed_blocks<K>(from, rows, Divisors{}, first, last, [&](std::int64_t at, std::int64_t n, const K* block) {
      for (std::int64_t i = 0; i < n; ++i) keys[at + i] = {block[i]};
    });
  });
  for (int a = 1; a < from.columns; ++a) keys = spread_axis(who, from, to, keys, a, spreads[Range::at(a)]);
  check_output_rows(who, keys.size());
  static_assert(sizeof(Bare<K>) == sizeof(K));
  Buffer<K> plain(keys.size());
  for (std::int64_t i = 0; i < keys.size(); ++i) plain[i] = keys[i].key;
  return unpack_rows(to, in.type, plain.data(), plain.size());
}

}  // namespace

std::shared_ptr<const Coordinates> window_support(std::string_view who, const Coordinates::Impl& in,
                                                  const Shape& shape) {
  const bool wide = in.type == Type::i64;
  Spreads spreads;
  Range range = in.range;
  bool empty = in.rows == 0;
  for (int a = 1; a < shape.columns; ++a) {
    Spread& s = spreads[Range::at(a)];
    s.tap = shape[a];
    s.low = shape.limited ? 0 : wide ? INT64_MIN : INT32_MIN;
    s.high = wide ? INT64_MAX : INT32_MAX;
    if (shape.limited) s.high = std::min(s.high, shape.limit[Range::at(a)] - 1);
    s.clip(in.range.low[Range::at(a)], in.range.high[Range::at(a)]);
    empty = empty || s.low > s.high;
    range.low[Range::at(a)] = s.low;
    range.high[Range::at(a)] = s.high;
  }
  if (empty) {
    Range none;
    none.columns = shape.columns;
    return made_coordinates(Array(in.type, {0, shape.columns}), none, in.batch_size);
  }
  const KeyCodec from(who, in.range, range), to(who, range, in.range);
  Array rows = with_key(from.bits, [&](auto zero) { return spread_rows<decltype(zero)>(who, from, to, in, spreads); });
  check_output_rows(who, rows.shape()[0]);
  const Range exact = range_of(Rows(rows));
  return made_coordinates(std::move(rows), exact, in.batch_size);
}

}  // namespace cenote::sparse
