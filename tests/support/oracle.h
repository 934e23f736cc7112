// From a cenote request to what the oracle expects of it: exact elements, or intervals as wide as the stated bound.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <cenote/plan.h>

#include "../../reference/reference.h"
#include "reduce/reducers.h"
#include "strided.h"

namespace cenote::test {

inline std::vector<int> pooled_axes(int rank, int count, bool channels_last, const std::optional<Extents>& axes) {
  if (!axes) return reference::last_axes(rank, count, channels_last);
  std::vector<int> result;
  for (const std::int64_t axis : *axes) result.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  return result;
}

inline reference::Windows windows_of(const Window& w, const Extents& shape) {
  const int count = w.axes ? w.axes->size() : w.size.values().size();
  const auto at = [](const PerAxis& p, int a) { return p.values()[p.is_scalar() ? 0 : a]; };
  std::vector<reference::Rule> rules;
  for (int a = 0; a < count; ++a) {
    reference::Rule rule{.size = at(w.size, a), .stride = at(w.stride, a), .dilation = at(w.dilation, a)};
    rule.ceil = w.ceil;
    rule.exact = w.exact;
    rule.allow_empty = w.allow_empty;
    if (w.padding.rule() == Padding::Rule::same) rule.pad = reference::Pad::same;
    if (w.padding.rule() == Padding::Rule::same_lower) rule.pad = reference::Pad::same_lower;
    if (w.padding.rule() == Padding::Rule::explicit_sides) {
      const Padding::Sides sides = w.padding.sides()[w.padding.is_scalar() ? 0 : static_cast<std::size_t>(a)];
      rule.low = sides.low;
      rule.high = sides.high;
    }
    rules.push_back(rule);
  }
  return reference::sliding_windows(to_shape(shape), pooled_axes(shape.size(), count, w.channels_last, w.axes), rules);
}

inline reference::Windows windows_of(const Adaptive& a, const Extents& shape) {
  const auto axes = pooled_axes(shape.size(), static_cast<int>(a.output.size()), a.channels_last, a.axes);
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < axes.size(); ++i) out.push_back(a.output[i].value_or(shape[axes[i]]));
  return reference::adaptive_windows(to_shape(shape), axes, out);
}

inline reference::Windows windows_of(const Global& g, const Extents& shape) {
  const auto axes = g.axes || g.rank ? pooled_axes(shape.size(), g.rank.value_or(0), g.channels_last, g.axes)
                                     : reference::spatial_axes(shape.size(), g.channels_last);
  return reference::whole_windows(to_shape(shape), axes, g.keepdims);
}

inline reference::Windows windows_of(const Pooling& pooling, const Extents& shape) {
  return std::visit([&](const auto& region) { return windows_of(region, shape); }, pooling.region);
}

/// What one element of a result may be.
struct Element {
  enum class Kind { same_bits, integer, range, nan, anything };
  Kind kind = Kind::anything;
  double low = 0, high = 0;
  std::int64_t integer = 0;

  /// Any NaN where the number is one.
  static Element exactly(double value) {
    if (value != value) return {Kind::nan};
    return {Kind::same_bits, value, value};
  }
  static Element exactly(std::int64_t value) { return {Kind::integer, 0, 0, value}; }
  static Element exactly(std::uint64_t value) { return {Kind::integer, 0, 0, static_cast<std::int64_t>(value)}; }

  bool holds(double value) const {
    switch (kind) {
      case Kind::same_bits: return value == low && std::signbit(value) == std::signbit(low);
      case Kind::range: return low <= value && value <= high;
      case Kind::nan: return value != value;
      case Kind::anything: return true;
      case Kind::integer: return false;
    }
    return false;
  }
  bool holds(std::int64_t value) const { return kind == Kind::integer && value == integer; }
  bool holds(std::uint64_t value) const { return holds(static_cast<std::int64_t>(value)); }
};

inline std::ostream& operator<<(std::ostream& out, const Element& e) {
  switch (e.kind) {
    case Element::Kind::same_bits: return out << "exactly " << e.low;
    case Element::Kind::integer: return out << "exactly " << e.integer;
    case Element::Kind::range: return out << "one of [" << e.low << ", " << e.high << "]";
    case Element::Kind::nan: return out << "NaN";
    default: return out << "anything";
  }
}

/// Rounds to a float type as cenote does, by way of f32 for halves.
inline double rounded(Type type, long double value) {
  switch (type) {
    case Type::f16: return static_cast<float>(f16(static_cast<float>(value)));
    case Type::bf16: return static_cast<float>(bf16(static_cast<float>(value)));
    case Type::f32: return static_cast<float>(value);
    default: return static_cast<double>(value);
  }
}

/// The rounding unit of the type that sums of `type` are made in, and the largest finite number there.
inline double unit(Type type) { return type == Type::f64 ? 0x1p-53 : 0x1p-24; }
inline double largest(Type type) {
  return type == Type::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

/// The values of result type `type` that are at most `error` from the value before the last rounding.
inline Element near(Type type, long double value, long double error) {
  if (value != value) return {Element::Kind::nan};
  if (std::isinf(value)) return {Element::Kind::range, rounded(type, value), rounded(type, value)};
  return {Element::Kind::range, rounded(type, value - error), rounded(type, value + error)};
}

/// How many rounding units of the sum of magnitudes a sum of k numbers may be off.
inline double growth(double k) { return k <= 512 ? 8 + k / 16 : 40 + std::log2(k); }
inline double growth(const reference::Windows& w) {
  double units = 0;
  for (const reference::Axis& axis : w.axes) {
    std::size_t cells = 1;
    for (const reference::Bin& bin : axis.bins) cells = std::max(cells, bin.real.size());
    units += growth(static_cast<double>(cells));
  }
  return units;
}

/// Calls f with the scalar struct behind a reducer's name.
template <class F>
decltype(auto) visit_reducer(Reducer reducer, const Params& params, F&& f) {
  switch (reducer) {
#define CENOTE_ITEM(name, struct_name) \
  case Reducer::name: return f(scalar::struct_name(params));
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
  }
  return f(scalar::Max(params));
}

/// The struct's own left fold over the cells, in number type N.
template <class N, class R, class C>
N struct_fold(const R& reducer, const reference::Cells<C>& window, N n, bool magnitudes = false) {
  auto state = reducer.template identity<N>();
  for (const auto& cell : window.real) {
    auto value = static_cast<N>(cell.value);
    if constexpr (std::is_floating_point_v<N>) value = magnitudes ? std::fabs(value) : value;
    state = reducer.combine(state, reducer.template lift<N>(value));
  }
  return reducer.template lower<N>(state, n);
}

/// What one window must come to; its cells are read as T.
template <class T>
class WindowExpectation {
 public:
  using C = Carrier<T>;
  using Cells = reference::Cells<C>;
  /// `units`: how many rounding units of the sum of magnitudes a sum may be off.
  WindowExpectation(const Pooling& pooling, Type result, double units)
      : pooling_(pooling), result_(result), units_(units) {}

  Element element(const Cells& window) const {
    switch (pooling_.reducer) {
      case Reducer::max: return extremum(window, reference::Greater{}, scalar_lowest());
      case Reducer::min: return extremum(window, reference::Less{}, scalar_highest());
      case Reducer::sum: return sum(window);
      case Reducer::avg: return avg(window);
      case Reducer::smooth_max: return smooth_max(window);
      case Reducer::lp: return lp(window);
      default: return unnamed(window);
    }
  }

 private:
  static C scalar_lowest() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::lowest();
    else
      return -std::numeric_limits<double>::infinity();
  }
  static C scalar_highest() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::max();
    else
      return std::numeric_limits<double>::infinity();
  }

  template <class Better>
  Element extremum(const Cells& window, Better better, C empty) const {
    const auto best = reference::winner(window, better);
    return Element::exactly(best ? best->value : empty);
  }

  /// Sums that may overflow on the way are not bounded by their own value.
  bool overflows(const Cells& window) const {
    long double finite = 0;
    for (const auto& cell : window.real) {
      const auto value = static_cast<long double>(cell.value);
      if (std::isfinite(value)) finite += std::fabs(value);
    }
    return finite > static_cast<long double>(largest(result_)) / 2;
  }

  Element sum(const Cells& window) const {
    const auto total = reference::sum(window);
    if constexpr (std::is_integral_v<C>) {
      return visit(result_, [&](auto element) {
        using R = decltype(element);
        if constexpr (std::is_integral_v<R>)
          return Element::exactly(Carrier<R>{static_cast<R>(total.value)});
        else
          return Element{Element::Kind::nan};
      });
    } else {
      if (overflows(window)) return {};
      return near(result_, total.value, units_ * unit(result_) * total.magnitude);
    }
  }

  Element avg(const Cells& window) const {
    const auto total = reference::sum(window);
    const bool given = pooling_.divisor.rule() == Divisor::Rule::number;
    const auto rule = static_cast<reference::Divide>(pooling_.divisor.rule());
    const double by = given ? pooling_.divisor.number() : static_cast<double>(reference::divisor(window, rule));
    if (window.real.empty()) return near(result_, 0, 0);
    if constexpr (std::is_integral_v<C>) {
      const double whole = static_cast<double>(static_cast<C>(total.value));
      return Element::exactly(double{static_cast<float>(whole / by)});
    } else {
      if (overflows(window)) return {};
      return near(result_, total.value / by, (units_ + 2) * unit(result_) * total.magnitude / by);
    }
  }

  /// A number of the request as the compute type has it.
  long double computed(double value) const {
    return unit(result_) == unit(Type::f64) ? value : static_cast<double>(static_cast<float>(value));
  }

  Element smooth_max(const Cells& window) const {
    const long double beta = computed(pooling_.beta);
    const auto y = reference::smooth_max(window, beta, pooling_.pad == SmoothPadding::zero);
    const long double logs = y.cells > 1 ? std::log(static_cast<long double>(y.cells)) / std::fabs(beta) : 0;
    return near(result_, y.value, (8 + units_) * unit(result_) * (std::fabs(y.pivot) + logs) + tiny());
  }

  Element lp(const Cells& window) const {
    const long double y = reference::lp(window, computed(pooling_.p));
    return near(result_, y, (8 + units_) * unit(result_) * std::fabs(y) + tiny());
  }

  /// A reducer that has no words of its own in the reference is held against its own left fold in long double.
  Element unnamed(const Cells& window) const {
    return visit_reducer(pooling_.reducer, Params{pooling_.beta, pooling_.p}, [&](const auto& reducer) {
      using R = std::decay_t<decltype(reducer)>;
      std::int64_t n = 0;
      if (R::counts == scalar::Counts::padded) n = pooling_.pad == SmoothPadding::zero ? window.padded() : 0;
      if (R::counts == scalar::Counts::divisor) {
        n = reference::divisor(window, static_cast<reference::Divide>(pooling_.divisor.rule()));
      }
      if constexpr (!std::is_integral_v<C>) {
        const auto cells = static_cast<long double>(n);
        const long double count = R::counts == scalar::Counts::padded ? std::log(cells) : cells;
        const long double y = struct_fold<long double>(reducer, window, count);
        if (R::picks) return Element::exactly(static_cast<double>(y));
        const long double scale = std::fabs(struct_fold<long double>(reducer, window, count, true));
        return near(result_, y, (8 + units_) * unit(result_) * std::max(std::fabs(y), scale) + tiny());
      } else if constexpr (R::integers && !std::is_same_v<T, bool>) {
        return Element::exactly(C{struct_fold<T>(reducer, window, static_cast<T>(n))});
      } else {
        return Element{};
      }
    });
  }

  /// A few of the smallest numbers there are, for roundings near zero.
  long double tiny() const { return result_ == Type::f64 ? 0x1p-1070L : 0x1p-146L; }

  const Pooling& pooling_;
  Type result_;
  double units_;
};

/// The expectations of one request on one array, whose elements are read as T.
template <class T>
class Expectation {
 public:
  using C = Carrier<T>;
  Expectation(const Pooling& pooling, const Extents& shape, const reference::Tensor<C>& x, Type result)
      : pooling_(pooling), w_(windows_of(pooling, shape)), x_(x), each_(pooling, result, growth(w_)) {}

  std::vector<Element> values() const {
    return reference::pool(x_, w_, [&](const reference::Cells<C>& window) { return each_.element(window); }).values;
  }
  std::vector<std::int64_t> indices(IndexKind kind) const {
    const auto named = static_cast<reference::Index>(kind);
    return pooling_.reducer == Reducer::max ? reference::winners(x_, w_, named, reference::Greater{}).values
                                            : reference::winners(x_, w_, named, reference::Less{}).values;
  }

 private:
  const Pooling& pooling_;
  reference::Windows w_;
  const reference::Tensor<C>& x_;
  WindowExpectation<T> each_;
};

/// The type that indices must have.
inline Type index_type_of(IndexKind kind, const reference::Windows& w) {
  if (kind != IndexKind::offset) return Type::i64;
  std::int64_t volume = 1;
  for (const reference::Axis& axis : w.axes) volume *= std::max<std::int64_t>(axis.taps, 1);
  if (volume <= 256) return Type::u8;
  if (volume <= 65536) return Type::u16;
  return volume <= std::int64_t{1} << 31 ? Type::i32 : Type::i64;
}

/// The type that a result must have.
inline Type result_type_of(const Pooling& pooling, Type type) {
  if (pooling.reducer == Reducer::sum) return pooling.dtype.value_or(type);
  return pooling.reducer == Reducer::avg && is_integer(type) ? Type::f32 : type;
}

/// What is wrong with a result, in words; empty if nothing is.
inline std::string mismatch(const std::vector<Element>& expected, const View& y) {
  return visit(y.type, [&](auto element) -> std::string {
    // A bool that is written must be 0 or 1, so its byte is looked at.
    using T = std::conditional_t<std::is_same_v<decltype(element), bool>, std::uint8_t, decltype(element)>;
    const auto values = read<T>(y).values;
    std::ostringstream text;
    text.precision(17);
    if (values.size() != expected.size()) text << values.size() << " elements, expected " << expected.size();
    for (std::size_t i = 0; i < std::min(values.size(), expected.size()) && text.str().empty(); ++i) {
      if (!expected[i].holds(values[i])) text << "element " << i << " is " << values[i] << ", expected " << expected[i];
    }
    return text.str();
  });
}

inline std::string mismatch(const std::vector<std::int64_t>& expected, const View& indices) {
  std::vector<Element> elements;
  for (const std::int64_t index : expected) elements.push_back(Element::exactly(index));
  const std::string wrong = mismatch(elements, indices);
  return wrong.empty() ? wrong : "index " + wrong;
}

}  // namespace cenote::test
