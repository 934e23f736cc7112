// Shapes as types, and the sizes that windows and broadcasting make of them; see static_graph.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cenote/array.h>
#include <cenote/window.h>

namespace cenote::graph::fixed {

/// The extents of an array.
template <std::int64_t... N>
struct Shape {
  static_assert(sizeof...(N) <= max_rank, "cenote: the rank of a shape is too high");
  static_assert(((N >= 0) && ...), "cenote: every extent of a shape must be at least 0");
  static constexpr int rank = sizeof...(N);
  static constexpr std::array<std::int64_t, sizeof...(N)> values{N...};
  static constexpr auto count = static_cast<std::size_t>((std::int64_t{1} * ... * N));
  static Extents extents() { return {N...}; }
};

/// One number per pooled axis: windows, strides, dilations, paddings of both sides.
template <std::int64_t... N>
struct Sizes {
  static constexpr int rank = sizeof...(N);
  static constexpr std::array<std::int64_t, sizeof...(N)> values{N...};
};

/// Paddings that differ: Sizes for the low side and Sizes for the high side.
template <class Low, class High>
struct Sides {};

namespace detail {

template <class S>
struct Fill;
template <std::int64_t... N>
struct Fill<Sizes<N...>> {
  using ones = Sizes<(N * 0 + 1)...>;
  using zeros = Sizes<(N * 0)...>;
};
template <class S>
using Ones = typename Fill<S>::ones;
template <class S>
using Zeros = typename Fill<S>::zeros;

template <class P>
struct SidesOf {
  using low = P;
  using high = P;
};
template <class Low, class High>
struct SidesOf<Sides<Low, High>> {
  using low = Low;
  using high = High;
};

template <const auto& Values, class Index>
struct FromArray;
template <const auto& Values, std::size_t... I>
struct FromArray<Values, std::index_sequence<I...>> {
  using type = Shape<Values[I]...>;
};

template <class S>
constexpr bool all_at_least(std::int64_t least) {
  return std::all_of(S::values.begin(), S::values.end(), [=](std::int64_t n) { return n >= least; });
}

/// The shape after pooling the last axes of S: floor((n + low + high - ((k-1)*d+1)) / s) + 1.
template <class S, class Size, class Stride, class Padding, class Dilation>
struct Windows {
  using Low = typename SidesOf<Padding>::low;
  using High = typename SidesOf<Padding>::high;
  static constexpr int rank = S::rank, pooled = Size::rank, kept = rank - pooled;
  static_assert(pooled >= 1, "cenote: a window needs at least one axis");
  static_assert(pooled <= rank, "cenote: the window has more axes than the array");
  static_assert(Stride::rank == pooled, "cenote: stride must have one entry per axis of the window");
  static_assert(Low::rank == pooled && High::rank == pooled,
                "cenote: padding must have one entry per axis of the window");
  static_assert(Dilation::rank == pooled, "cenote: dilation must have one entry per axis of the window");
  static_assert(all_at_least<Size>(1), "cenote: every window extent must be at least 1");
  static_assert(all_at_least<Stride>(1), "cenote: every stride must be at least 1");
  static_assert(all_at_least<Dilation>(1), "cenote: every dilation must be at least 1");
  static_assert(all_at_least<Low>(0) && all_at_least<High>(0), "cenote: padding must be at least 0");

  // What is left of each pooled axis after its first window; negative where that does not fit.
  static constexpr bool sound = pooled >= 1 && pooled <= rank && Stride::rank == pooled && Low::rank == pooled &&
                                High::rank == pooled && Dilation::rank == pooled && all_at_least<Stride>(1);
  static constexpr std::int64_t room(std::size_t axis) {
    const std::int64_t reach = (Size::values[axis] - 1) * Dilation::values[axis] + 1;
    return S::values[axis + kept] + Low::values[axis] + High::values[axis] - reach;
  }
  static constexpr bool fits = [] {
    if constexpr (sound) {
      for (std::size_t a = 0; a < pooled; ++a)
        if (room(a) < 0) return false;
    }
    return true;
  }();
  static_assert(fits, "cenote: the window does not fit the padded array");

  static constexpr auto values = [] {
    auto result = S::values;
    if constexpr (sound && fits) {
      for (std::size_t a = 0; a < pooled; ++a) result[a + kept] = room(a) / Stride::values[a] + 1;
    }
    return result;
  }();
  using type = typename FromArray<values, std::make_index_sequence<static_cast<std::size_t>(rank)>>::type;

  static Window window() {
    std::vector<cenote::Padding::Sides> sides;
    for (std::size_t a = 0; a < pooled; ++a) sides.emplace_back(Low::values[a], High::values[a]);
    return {.size = list<Size>(),
            .stride = list<Stride>(),
            .dilation = list<Dilation>(),
            .padding = cenote::Padding(sides)};
  }

 private:
  template <class L>
  static Extents list() {
    return Extents(std::span<const std::int64_t>(L::values));
  }
};

/// The shape that A and B broadcast to, as in NumPy.
template <class A, class B>
struct Broadcast {
  static constexpr std::size_t rank = static_cast<std::size_t>(std::max(A::rank, B::rank));
  template <class S>
  static constexpr std::int64_t from_end(std::size_t i) {
    return i < S::values.size() ? S::values[S::values.size() - 1 - i] : 1;
  }
  static constexpr bool fits = [] {
    for (std::size_t i = 0; i < rank; ++i)
      if (from_end<A>(i) != from_end<B>(i) && from_end<A>(i) != 1 && from_end<B>(i) != 1) return false;
    return true;
  }();
  static_assert(fits, "cenote: the shapes do not broadcast to each other");
  static constexpr auto values = [] {
    std::array<std::int64_t, rank> result{};
    for (std::size_t i = 0; i < rank; ++i) result[rank - 1 - i] = from_end<A>(i) == 1 ? from_end<B>(i) : from_end<A>(i);
    return result;
  }();
  using type = typename FromArray<values, std::make_index_sequence<rank>>::type;
};

inline void require(const View& array, Type type, const Extents& shape) {
  if (array.type == type && array.shape == shape) return;
  throw std::invalid_argument("[static_graph] an array of " + std::string(name(array.type)) + " " +
                              to_string(array.shape) + ": must be " + std::string(name(type)) + " " + to_string(shape));
}

template <class... T>
std::vector<View> views(const std::tuple<const T&...>& tensors) {
  return std::apply([](const auto&... t) { return std::vector<View>{View(t.array())...}; }, tensors);
}

/// A tensor's array, and nothing for std::monostate.
template <class T>
std::optional<View> seed(const T& derivative) {
  if constexpr (requires { derivative.array(); })
    return View(derivative.array());
  else
    return std::nullopt;
}

template <class... T>
std::vector<std::optional<View>> seeds(const std::tuple<const T&...>& derivatives) {
  return std::apply([](const auto&... d) { return std::vector<std::optional<View>>{seed(d)...}; }, derivatives);
}

}  // namespace detail
}  // namespace cenote::graph::fixed
