// Poolings that weigh their cells, and cells that are not tame, for tests.
#pragma once

#include <ostream>
#include <vector>

#include <cenote/plan.h>

#include "arrays.h"
#include "random_derivative.h"

namespace cenote::test {

struct Problem {
  Extents shape;
  Window window;
};

inline std::ostream& operator<<(std::ostream& out, const Problem& problem) {
  return out << to_string(problem.shape) << (problem.window.channels_last ? " last" : "");
}

struct Kind {
  Reducer reducer;
  double p = 2, beta = 1.5;
  SmoothPadding pad = SmoothPadding::ignore;

  Pooling pooling(const Window& window) const {
    Pooling result{.reducer = reducer, .region = window, .beta = beta, .p = p};
    result.pad = pad;
    return result;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << name(kind.reducer) << " p " << kind.p << " beta " << kind.beta
             << (kind.pad == SmoothPadding::zero ? " zeros" : "");
}

inline constexpr Kind kinds[] = {{Reducer::lp, 1},
                                 {Reducer::lp, 2},
                                 {Reducer::lp, 3},
                                 {Reducer::lp, 4},
                                 {Reducer::smooth_max},
                                 {Reducer::smooth_max, 2, -3},
                                 {Reducer::smooth_max, 2, 1.5, SmoothPadding::zero}};

inline constexpr Type types[] = {Type::f32, Type::f64, Type::f16, Type::bf16};

inline void put(Array& a, std::int64_t at, double value) {
  visit(a.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, double>)
      a.values<T>()[static_cast<std::size_t>(at)] = value;
    else if constexpr (std::is_same_v<Carrier<T>, double>)
      a.values<T>()[static_cast<std::size_t>(at)] = static_cast<T>(static_cast<float>(value));
  });
}

/// What is not tame, in all ways for one type.
inline std::vector<double> wilds(Type type) {
  if (type == Type::f32) return {inf, -inf, nan, 1e30, -1e-30, 3e4};
  return {nan, 1e30};
}

}  // namespace cenote::test
