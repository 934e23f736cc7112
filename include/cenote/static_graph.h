// Graphs whose shapes are types: what does not fit does not compile. The nodes and programs are those of graph.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <cenote/detail/static_shape.h>
#include <cenote/graph.h>

namespace cenote::graph::fixed {

/// An array that owns its memory, with its shape and element type in its own type.
template <class S, class T = float>
class Tensor {
 public:
  using shape = S;
  using element = T;
  /// Zeros.
  Tensor() : array_(Array::zeros(type_of<T>, S::extents())) {}
  /// Copies an array; throws std::invalid_argument if its type or shape is another.
  explicit Tensor(const View& array) : array_(checked(array)) {}
  /// The elements in row-major order.
  explicit Tensor(const std::array<T, S::count>& values) : array_(S::extents(), std::span<const T>(values)) {}

  const Array& array() const noexcept { return array_; }
  Array& array() noexcept { return array_; }
  std::span<const T, S::count> values() const { return std::span<const T, S::count>(array_.template values<T>()); }
  std::span<T, S::count> values() { return std::span<T, S::count>(array_.template values<T>()); }

 private:
  static const View& checked(const View& array) { return detail::require(array, type_of<T>, S::extents()), array; }
  Array array_;
};

/// The type of a tensor's derivative: its own, or std::monostate for integers and bool.
template <class T>
using DerivativeOf = std::conditional_t<is_float(type_of<typename T::element>), T, std::monostate>;

/// A handle on a node's value, as graph::Var, with its shape and element type in its own type.
template <class S, class T = float>
class Var {
 public:
  using shape = S;
  using element = T;
  /// Throws std::invalid_argument if the type or the shape of the value is another.
  explicit Var(graph::Var untyped) : untyped_(std::move(untyped)) {
    detail::require(View(nullptr, untyped_.type(), untyped_.shape()), type_of<T>, S::extents());
  }
  const graph::Var& untyped() const noexcept { return untyped_; }

 private:
  graph::Var untyped_;
};

// Poolings, over the last axes. Padding is Sizes<…> for both sides or Sides<Sizes<…>, Sizes<…>> for low and high.

/// The largest element of each window.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto max_pool(const Var<S, T>& x) {
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  return Var<typename W::type, T>(graph::max_pool(x.untyped(), W::window()));
}
/// The smallest element of each window.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto min_pool(const Var<S, T>& x) {
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  return Var<typename W::type, T>(graph::min_pool(x.untyped(), W::window()));
}
/// The sum of each window.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto sum_pool(const Var<S, T>& x) {
  static_assert(!std::is_same_v<T, bool>, "cenote: sum_pool needs numbers");
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  return Var<typename W::type, T>(graph::sum_pool(x.untyped(), W::window()));
}
/// The sum of each window divided by its size, padded cells counted, or by another divisor; integers give float.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto avg_pool(const Var<S, T>& x, Divisor divisor = Divisor::Rule::window) {
  static_assert(!std::is_same_v<T, bool>, "cenote: avg_pool needs numbers");
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  using Result = std::conditional_t<is_float(type_of<T>), T, float>;
  return Var<typename W::type, Result>(graph::avg_pool(x.untyped(), W::window(), divisor));
}
/// log(sum(exp(beta*x))) / beta of each window.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto smooth_max_pool(const Var<S, T>& x, double beta, SmoothPadding pad = SmoothPadding::zero) {
  static_assert(is_float(type_of<T>), "cenote: smooth_max_pool needs floating-point elements");
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  return Var<typename W::type, T>(graph::smooth_max_pool(x.untyped(), W::window(), beta, pad));
}
/// sum(abs(x)^p)^(1/p) of each window.
template <class Size, class Stride = detail::Ones<Size>, class Padding = detail::Zeros<Size>,
          class Dilation = detail::Ones<Size>, class S, class T>
auto lp_pool(const Var<S, T>& x, double p) {
  static_assert(is_float(type_of<T>), "cenote: lp_pool needs floating-point elements");
  using W = detail::Windows<S, Size, Stride, Padding, Dilation>;
  return Var<typename W::type, T>(graph::lp_pool(x.untyped(), W::window(), p));
}

/// TorchLean's 2-D forms: the last two axes, one stride, one padding.
template <std::int64_t Height, std::int64_t Width, std::int64_t Stride, class S, class T>
auto max_pool2d(const Var<S, T>& x) {
  return max_pool<Sizes<Height, Width>, Sizes<Stride, Stride>>(x);
}
template <std::int64_t Height, std::int64_t Width, std::int64_t Stride, std::int64_t Padding, class S, class T>
auto max_pool2d_pad(const Var<S, T>& x) {
  return max_pool<Sizes<Height, Width>, Sizes<Stride, Stride>, Sizes<Padding, Padding>>(x);
}
template <std::int64_t Height, std::int64_t Width, std::int64_t Stride, class S, class T>
auto avg_pool2d(const Var<S, T>& x) {
  return avg_pool<Sizes<Height, Width>, Sizes<Stride, Stride>>(x);
}
template <std::int64_t Height, std::int64_t Width, std::int64_t Stride, std::int64_t Padding, class S, class T>
auto avg_pool2d_pad(const Var<S, T>& x) {
  return avg_pool<Sizes<Height, Width>, Sizes<Stride, Stride>, Sizes<Padding, Padding>>(x);
}
template <std::int64_t Height, std::int64_t Width, std::int64_t Stride, class S, class T>
auto smooth_max_pool2d(const Var<S, T>& x, double beta) {
  return smooth_max_pool<Sizes<Height, Width>, Sizes<Stride, Stride>>(x, beta);
}

// Element by element; shapes that do not broadcast, and different element types, do not compile.

#define CENOTE_BINARY(name)                                                         \
  template <class A, class B, class T, class U>                                     \
  auto name(const Var<A, T>& a, const Var<B, U>& b) {                               \
    static_assert(std::is_same_v<T, U>, "cenote: the element types must be equal"); \
    using S = typename detail::Broadcast<A, B>::type;                               \
    return Var<S, T>(graph::name(a.untyped(), b.untyped()));                        \
  }
#define CENOTE_UNARY(name)                      \
  template <class S, class T>                   \
  Var<S, T> name(const Var<S, T>& x) {          \
    return Var<S, T>(graph::name(x.untyped())); \
  }
CENOTE_BINARY(add)
CENOTE_BINARY(sub)
CENOTE_BINARY(mul)
CENOTE_BINARY(div)
CENOTE_UNARY(neg)
CENOTE_UNARY(exp)
CENOTE_UNARY(log)
CENOTE_UNARY(relu)
CENOTE_UNARY(detach)
#undef CENOTE_BINARY
#undef CENOTE_UNARY

/// x times a fixed number.
template <class S, class T>
Var<S, T> scale(const Var<S, T>& x, double factor) {
  return Var<S, T>(graph::scale(x.untyped(), factor));
}
/// The same elements in row-major order under another shape.
template <class To, class S, class T>
Var<To, T> reshape(const Var<S, T>& x) {
  static_assert(To::count == S::count, "cenote: reshape must keep the number of elements");
  return Var<To, T>(graph::reshape(x.untyped(), To::extents()));
}
/// Of all elements.
template <class S, class T>
Var<Shape<>, T> sum(const Var<S, T>& x) {
  return Var<Shape<>, T>(graph::sum(x.untyped()));
}
template <class S, class T>
Var<Shape<>, T> mean(const Var<S, T>& x) {
  return Var<Shape<>, T>(graph::mean(x.untyped()));
}

template <class Inputs, class Outputs>
class Program;

/// A compiled graph from tensors `In…` to tensors `Out…`.
template <class... In, class... Out>
class Program<std::tuple<In...>, std::tuple<Out...>> {
 public:
  struct Tangents {
    std::tuple<Out...> outputs;
    std::tuple<DerivativeOf<Out>...> tangents;
  };
  struct Cotangents {
    std::tuple<Out...> outputs;
    std::tuple<DerivativeOf<In>...> cotangents;
  };
  explicit Program(graph::Program untyped) : untyped_(std::move(untyped)) {}

  std::tuple<Out...> forward(const In&... inputs) const {
    return tensors<Out...>(untyped_.forward({inputs.array()...}));
  }
  /// The outputs and their tangents along tangents of the inputs.
  Tangents jvp(const std::tuple<const In&...>& inputs, const std::tuple<const DerivativeOf<In>&...>& tangents) const {
    auto made = untyped_.jvp(detail::views(inputs), detail::seeds(tangents));
    return {tensors<Out...>(std::move(made.outputs)), derivatives<Out...>(std::move(made.tangents))};
  }
  /// The outputs and the inputs' cotangents for cotangents of the outputs.
  Cotangents vjp(const std::tuple<const In&...>& inputs,
                 const std::tuple<const DerivativeOf<Out>&...>& cotangents) const {
    auto made = untyped_.vjp(detail::views(inputs), detail::seeds(cotangents));
    return {tensors<Out...>(std::move(made.outputs)), derivatives<In...>(std::move(made.cotangents))};
  }
  /// The program without static shapes, for runs in memory of the caller's.
  const graph::Program& untyped() const noexcept { return untyped_; }

 private:
  template <class... T>
  static std::tuple<T...> tensors(const std::vector<Array>& arrays) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tuple<T...>(T(View(arrays[I]))...); }
    (std::index_sequence_for<T...>());
  }
  template <class T>
  static DerivativeOf<T> derivative(const std::optional<Array>& array) {
    if constexpr (is_float(type_of<typename T::element>))
      return T(View(*array));
    else
      return {};
  }
  template <class... T>
  static std::tuple<DerivativeOf<T>...> derivatives(const std::vector<std::optional<Array>>& arrays) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<DerivativeOf<T>...>(derivative<T>(arrays[I])...);
    }
    (std::index_sequence_for<T...>());
  }

  graph::Program untyped_;
};

/// Builds graphs with the inputs `In…`, each a Tensor.
template <class... In>
class Builder {
 public:
  Builder() { (inputs_.push_back(untyped_.input(type_of<typename In::element>, In::shape::extents())), ...); }

  /// Input number I.
  template <std::size_t I>
  auto input() const {
    static_assert(I < sizeof...(In), "cenote: the builder has fewer inputs");
    using Chosen = std::tuple_element_t<I, std::tuple<In...>>;
    return Var<typename Chosen::shape, typename Chosen::element>(inputs_[I]);
  }
  /// A fixed tensor, copied.
  template <class S, class T>
  Var<S, T> constant(const Tensor<S, T>& tensor) {
    return Var<S, T>(untyped_.constant(tensor.array()));
  }
  /// A program for these outputs.
  template <class... S, class... T>
  auto compile(const Var<S, T>&... outputs) const {
    return Program<std::tuple<In...>, std::tuple<Tensor<S, T>...>>(untyped_.compile({outputs.untyped()...}));
  }
  /// The builder without static shapes, for nodes of the caller's own.
  graph::Builder& untyped() noexcept { return untyped_; }

 private:
  graph::Builder untyped_;
  std::vector<graph::Var> inputs_;
};

}  // namespace cenote::graph::fixed
