// Random graphs beside what their nodes give one at a time, and the inner products of the adjoint law.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include <cenote/graph.h>

#include "arrays.h"
#include "autodiff/eager.h"
#include "autodiff/language.h"
#include "random_problem.h"

namespace cenote::test {

/// Small integers over 8, so that sums and products of a few are exact in any float type and ties are common.
inline Array eighths(Type type, const Extents& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Array result(type, shape);
  visit(type, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      for (auto& value : result.values<T>()) value = random() % 2 == 0;
    } else {
      for (auto& value : result.values<T>()) {
        const auto small = static_cast<int>(random() % 17) - 8;
        if constexpr (std::is_floating_point_v<T>)
          value = static_cast<T>(small) / 8;
        else if constexpr (std::is_integral_v<T>)
          value = static_cast<T>(random() % 17);
        else
          value = T(static_cast<float>(small) / 8);
      }
    }
  });
  return result;
}

/// Runs one operation by itself.
inline Array run_op(const autodiff::OpPtr& op, const std::vector<View>& inputs) {
  return std::move(autodiff::run(*op, inputs).front());
}

inline double dot(const Array& a, const Array& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
inline double magnitude(const Array& a, const Array& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::fabs(x[i] * y[i]);
  return sum;
}

/// A random graph that grows node by node, with the array that each Var stands for.
class RandomGraph {
 public:
  graph::Builder builder;
  std::vector<Array> inputs;
  std::vector<std::pair<graph::Var, Array>> values;

  /// `smooth`: only operations that are differentiable wherever they are used here.
  RandomGraph(Type type, int nodes, bool smooth) : smooth_(smooth) {
    using namespace detail;
    const Extents shape{between(1, 3), between(3, 9), between(3, 9)};
    for (std::int64_t i = between(1, 3); i > 0; --i) {
      inputs.push_back(eighths(type, shape, static_cast<std::uint64_t>(between(0, 1 << 20))));
      values.emplace_back(builder.input(type, shape), inputs.back());
    }
    if (chance(50)) {
      const Array array = eighths(type, {shape[2]}, 7);
      values.emplace_back(builder.constant(array), array);
    }
    while (static_cast<int>(values.size()) < nodes) grow();
  }

  std::vector<View> views() const { return {inputs.begin(), inputs.end()}; }

 private:
  using Entry = std::pair<graph::Var, Array>;

  const Entry& any() {
    return values[static_cast<std::size_t>(detail::between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

  void grow() {
    const Entry x = any();
    detail::chance(50) ? pool(x) : detail::chance(40) ? combine(x) : map(x);
  }

  void pool(const Entry& x) {
    using namespace detail;
    Pooling p;
    p.reducer = smooth_ ? one_of<Reducer>({Reducer::sum, Reducer::avg, Reducer::smooth_max})
                        : one_of<Reducer>({std::begin(all_reducers), std::end(all_reducers)});
    const int rank = x.second.rank();
    if (rank == 0) return;
    Extents size;
    const int pooled = static_cast<int>(between(1, std::min(rank, 2)));
    for (int a = rank - pooled; a < rank; ++a)
      size.push_back(between(1, std::min<std::int64_t>(3, x.second.shape()[a])));
    p.region = Window{.size = size, .stride = between(1, 2), .padding = one_of<Padding>({valid, same, Padding(1)})};
    p.beta = one_of<double>({0.5, 1, -1});
    if (p.reducer <= Reducer::min) p.ties = one_of<Ties>({Ties::first, Ties::split});
    values.emplace_back(graph::pool(x.first, p), cenote::pool(x.second, p));
  }

  void combine(const Entry& x) {
    using namespace detail;
    std::vector<Entry> fitting;
    for (const Entry& other : values)
      if (other.second.shape() == x.second.shape() || other.second.rank() <= 1) fitting.push_back(other);
    if (fitting.empty()) return;
    const Entry y = one_of(fitting);
    if (y.second.rank() == 1 && (x.second.rank() == 0 || y.second.shape()[0] != x.second.shape()[x.second.rank() - 1]))
      return;
    switch (between(0, 2)) {
      case 0: return keep(graph::add(x.first, y.first), autodiff::add_op(), {x.second, y.second});
      case 1: return keep(graph::sub(x.first, y.first), autodiff::sub_op(), {x.second, y.second});
      default: return keep(graph::mul(x.first, y.first), autodiff::mul_op(), {x.second, y.second});
    }
  }

  void map(const Entry& x) {
    using namespace detail;
    const Extents flat{-1};
    switch (between(0, smooth_ ? 4 : 6)) {
      case 0: return keep(graph::neg(x.first), autodiff::neg_op(), {x.second});
      case 1: return keep(graph::scale(x.first, 0.5), autodiff::scale_op(0.5), {x.second});
      case 2: return keep(graph::reshape(x.first, flat), autodiff::reshape_op(flat), {x.second});
      case 3: return keep(graph::mean(x.first), autodiff::mean_op(), {x.second});
      case 4: {
        const Array small = run_op(autodiff::scale_op(0.01), {x.second});
        return keep(graph::exp(graph::scale(x.first, 0.01)), autodiff::exp_op(), {small});
      }
      case 5: return values.emplace_back(graph::detach(x.first), x.second), void();
      default: return keep(graph::relu(x.first), autodiff::relu_op(), {x.second});
    }
  }

  void keep(const graph::Var& var, const autodiff::OpPtr& op, const std::vector<View>& inputs_of) {
    values.emplace_back(var, run_op(op, inputs_of));
  }

  bool smooth_;
};

}  // namespace cenote::test
