// Random poolings: requests, types, shapes and memory layouts, generated so that failures shrink to small ones.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <rapidcheck.h>

#include <cenote/plan.h>

#include "random_data.h"
#include "strided.h"

namespace cenote::test {

/// A request with everything that decides its outcome; the elements follow from `data` and `seed`.
struct Case {
  Pooling pooling;
  Type type = Type::f32;
  Extents shape;
  Layout x, y, indices;
  Data data = Data::few;
  std::uint64_t seed = 0;
};

/// Which region of the space of problems to draw from: many small ones of any kind, long axes and windows, rows of many
/// channels, or enough elements for several blocks per thread.
enum class Region { small, deep, wide, large };

/// True if the reducer is defined for the type at all.
inline bool accepts(Reducer reducer, Type type) {
  try {
    plan({.reducer = reducer, .region = Window{.size = {1}}}, type, {1});
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

namespace detail {

/// Evenly from low to high, whatever size RapidCheck is at; shrinks towards low.
inline std::int64_t between(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}
inline bool chance(int percent) { return between(0, 99) >= 100 - percent; }
template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(values.size()) - 1))];
}

/// One number for all axes where that is the same and the dice say so.
inline PerAxis per_axis(const Extents& values) {
  const bool equal = std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == values[0]; });
  return equal && chance(50) ? PerAxis(values[0]) : PerAxis(values);
}

inline Layout layout(int rank, bool may_repeat) {
  Layout result = Layout::plain(rank);
  result.shift = between(0, 17);
  if (chance(50)) return result;
  for (int a = rank - 1; a > 0; --a) {
    std::swap(result.order[static_cast<std::size_t>(a)], result.order[static_cast<std::size_t>(between(0, a))]);
  }
  for (auto& step : result.step) step = one_of<std::int64_t>({1, 1, 1, -1, 2, -3, may_repeat ? 0 : 1});
  return result;
}

/// Which axes are pooled, and the words that say so in a request.
struct Axes {
  int rank = 1;
  std::vector<int> pooled;
  bool channels_last = false;
  std::optional<Extents> named;
};

inline Axes axes(int pooled, int kept) {
  Axes a;
  a.rank = pooled + kept;
  const int style = static_cast<int>(between(0, kept > 0 ? 2 : 1));
  a.channels_last = style == 2;
  a.pooled = reference::last_axes(a.rank, pooled, a.channels_last);
  if (style != 1) return a;
  std::vector<bool> is_kept(static_cast<std::size_t>(a.rank), false);
  for (int i = 0; i < kept; ++i) {
    int at = static_cast<int>(between(0, a.rank - 1));
    while (is_kept[static_cast<std::size_t>(at)]) at = (at + 1) % a.rank;
    is_kept[static_cast<std::size_t>(at)] = true;
  }
  a.pooled.clear();
  a.named.emplace();
  const bool from_end = chance(30);
  for (int i = 0; i < a.rank; ++i) {
    if (is_kept[static_cast<std::size_t>(i)]) continue;
    a.pooled.push_back(i);
    a.named->push_back(from_end ? i - a.rank : i);
  }
  return a;
}

struct Sizes {
  Extents shape;
  /// The largest window extent, the most cells a window may have, and the most cells in all windows together: the
  /// oracle visits every one.
  std::int64_t longest = 4, cells = 200;
  double visits = 300000;
};

/// The least and the most extent of one axis.
inline std::pair<std::int64_t, std::int64_t> range_of(const Axes& a, Region region, int axis) {
  const bool pooled = std::count(a.pooled.begin(), a.pooled.end(), axis) > 0, one = a.pooled.size() == 1;
  switch (region) {
    case Region::small: return {chance(3) ? 0 : 1, a.rank > 3 ? 7 : 40};
    case Region::deep: return {1, !pooled ? 3 : one ? 4000 : 300};
    case Region::wide: return {1, pooled ? (one ? 40 : 12) : axis == a.rank - 1 ? 700 : 3};
    default: return {40, pooled ? (one ? 10000 : 200) : 80};
  }
}

inline Sizes sizes(const Axes& a, Region region) {
  Sizes s{.shape = Extents::filled(a.rank, 1)};
  const bool small = region == Region::small, from_last = chance(50);
  std::int64_t room = small ? 1500 : 100000;
  for (int i = 0; i < a.rank; ++i) {
    const int axis = from_last ? a.rank - 1 - i : i;
    const auto [least, most] = range_of(a, region, axis);
    s.shape[axis] = least == 0 ? 0 : between(std::min(least, room), std::min(most, room));
    room /= std::max<std::int64_t>(s.shape[axis], 1);
    room = std::max<std::int64_t>(room, 1);
  }
  if (small) return s;
  s.visits = 1500000;
  s.longest = region == Region::deep ? 2000 : 30;
  s.cells = region == Region::deep ? 4000 : 30;
  return s;
}

/// Widens strides until the windows have few enough cells in all.
inline void thin_out(Extents& stride, const Extents& size, const Axes& a, const Sizes& s) {
  for (;;) {
    double visits = 1;
    for (const std::int64_t n : s.shape) visits *= static_cast<double>(std::max<std::int64_t>(n, 1));
    int densest = 0;
    const auto density = [&](int p) { return static_cast<double>(size[p]) / static_cast<double>(stride[p]); };
    for (int p = 0; p < size.size(); ++p) {
      visits *= density(p);
      if (density(p) > density(densest)) densest = p;
    }
    if (visits <= s.visits || stride[densest] > s.shape[a.pooled[static_cast<std::size_t>(densest)]]) return;
    stride[densest] = stride[densest] * 2 + 1;
  }
}

inline Padding padding(const Extents& extent) {
  switch (between(0, 4)) {
    case 0: return valid;
    case 1: return same;
    case 2: return same_lower;
    case 3: return Padding(between(0, extent[0]));
    default: break;
  }
  std::vector<Padding::Sides> sides;
  for (const std::int64_t e : extent) {
    const std::int64_t most = std::min<std::int64_t>(e + 1, 300);
    sides.push_back(Padding::Sides(between(0, most), between(0, most)));
  }
  return Padding(sides);
}

inline Window window(const Axes& a, const Sizes& s) {
  Extents size, stride, dilation, extent;
  std::int64_t cells = s.cells;
  for (const int axis : a.pooled) {
    const std::int64_t n = s.shape[axis];
    size.push_back(between(1, std::max<std::int64_t>(1, std::min({s.longest, cells, n + (chance(10) ? 3 : 0)}))));
    cells /= size[size.size() - 1];
    const std::int64_t k = size[size.size() - 1];
    stride.push_back(one_of<std::int64_t>({1, 1, 2, 3, k, k + 1}));
    dilation.push_back(one_of<std::int64_t>({1, 1, 1, 1, 2, 3}));
    extent.push_back((k - 1) * dilation[dilation.size() - 1] + 1);
  }
  thin_out(stride, size, a, s);
  Window w{
      .size = a.named ? per_axis(size) : PerAxis(size), .stride = per_axis(stride), .dilation = per_axis(dilation)};
  w.padding = padding(extent);
  w.ceil = chance(25);
  w.exact = !w.ceil && chance(4);
  w.allow_empty = chance(80);
  w.channels_last = a.channels_last;
  w.axes = a.named;
  return w;
}

inline Adaptive adaptive(const Axes& a, const Sizes& s) {
  Adaptive result{.channels_last = a.channels_last, .axes = a.named};
  for (const int axis : a.pooled) {
    const std::int64_t n = s.shape[axis];
    result.output.push_back(chance(15) ? std::nullopt : std::optional(between(1, std::min<std::int64_t>(n + 3, 3000))));
  }
  return result;
}

inline Global global(const Axes& a) {
  Global g{.channels_last = a.channels_last, .axes = a.named, .keepdims = chance(50)};
  const bool spatial = a.rank > 2 && a.pooled == reference::spatial_axes(a.rank, a.channels_last);
  if (!a.named && !(spatial && chance(50))) g.rank = static_cast<int>(a.pooled.size());
  return g;
}

inline void options(Pooling& p, Type type) {
  using Rule = Divisor::Rule;
  if (p.reducer == Reducer::avg) {
    p.divisor = one_of<Divisor>({Rule::window, Rule::valid, Rule::clipped, Divisor(1.0), Divisor(2.5), Divisor(0.1)});
  }
  p.beta = one_of<double>({1, 0.5, -1, 10, -0.25, 100, 1e-3, -1e4, -1e20, 1e20});
  p.pad = one_of<SmoothPadding>({SmoothPadding::zero, SmoothPadding::ignore});
  p.p = one_of<double>({2, 1, 3, 1.5, 2.3, 10, std::numeric_limits<double>::infinity()});
  if (p.reducer == Reducer::sum && chance(30)) {
    std::vector<Type> wider{type};
    for (int t = static_cast<int>(type) + 1; t < type_count; ++t) {
      const Type other = static_cast<Type>(t);
      const bool kin = is_float(type) ? is_float(other) : is_integer(other) && (type < Type::u8) == (other < Type::u8);
      if (kin && size_of(other) > size_of(type)) wider.push_back(other);
    }
    p.dtype = one_of(wider);
  }
  if ((p.reducer == Reducer::max || p.reducer == Reducer::min) && chance(60)) {
    p.indices = one_of<IndexKind>({IndexKind::offset, IndexKind::plane, IndexKind::tensor, IndexKind::tensor_column});
  }
}

}  // namespace detail

/// A case of the given reducer. Some cannot be planned, as a caller's requests sometimes cannot.
inline rc::Gen<Case> cases(Reducer reducer, Region region) {
  std::vector<Type> types;
  for (int t = 0; t < type_count; ++t) {
    if (accepts(reducer, static_cast<Type>(t))) types.push_back(static_cast<Type>(t));
  }
  return rc::gen::exec([=] {
    using namespace detail;
    Case c;
    c.type = one_of(types);
    c.data = static_cast<Data>(between(0, 6));
    c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
    const bool small = region == Region::small;
    const auto pooled = static_cast<int>(small ? one_of<std::int64_t>({1, 2, 2, 3, 4, 5}) : between(1, 2));
    const Axes a = axes(pooled, static_cast<int>(between(region == Region::wide ? 1 : 0, 2)));
    const Sizes s = sizes(a, region);
    c.shape = s.shape;
    c.pooling.reducer = reducer;
    const std::int64_t kind = between(0, 9);
    if (kind < 7)
      c.pooling.region = window(a, s);
    else if (kind < 9)
      c.pooling.region = adaptive(a, s);
    else
      c.pooling.region = global(a);
    options(c.pooling, c.type);
    const bool dropped = kind == 9 && !std::get<Global>(c.pooling.region).keepdims;
    const int out = dropped ? a.rank - static_cast<int>(a.pooled.size()) : a.rank;
    c.x = layout(a.rank, true);
    c.y = layout(out, false);
    c.indices = layout(out, false);
    return c;
  });
}

}  // namespace cenote::test
