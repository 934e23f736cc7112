// The oracle, called on every window of a plan.
#include "check.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "../measure.h"
#include "parallel.h"
#include "reference/reference.h"

namespace cenote::demo {
namespace {

using reference::Cells;
using reference::Shape;

constexpr double unit = 0x1p-24;

reference::Windows windows_of(const Plan& plan) {
  reference::Windows w;
  w.shape.assign(plan.input_shape().begin(), plan.input_shape().end());
  for (const std::int64_t axis : plan.pooled()) w.pooled.push_back(static_cast<int>(axis));
  for (const Axis& a : plan.axes()) {
    w.axes.push_back(a.adaptive ? reference::adaptive(a.n, a.out)
                                : reference::sliding({.n = a.n,
                                                      .size = a.size,
                                                      .stride = a.stride,
                                                      .dilation = a.dilation,
                                                      .low = a.low,
                                                      .high = a.high}));
  }
  return w;
}

reference::Tensor<float> tensor_of(const View& x) {
  const Array rows(x);
  return {Shape(x.shape.begin(), x.shape.end()), {rows.values<float>().begin(), rows.values<float>().end()}};
}

// Calls visit(part, cells, position of the output) for every window of a plan, many at once: each part of the windows
// has a Part of its own, and join(part) gets them one at a time.
template <class Part, class Visit, class Join>
void each_window(const Plan& plan, const View& x, const Visit& visit, const Join& join) {
  const reference::Tensor<float> tensor = tensor_of(x);
  const reference::Windows w = windows_of(plan);
  const Shape shape = w.output_shape();
  const std::int64_t total = reference::count(shape), part = 1024;
  std::mutex mutex;
  in_parallel((total + part - 1) / part, [&](std::int64_t number) {
    Part mine;
    for (std::int64_t i = number * part; i < std::min(total, (number + 1) * part); ++i) {
      Shape output(shape.size(), 0);
      for (std::size_t a = shape.size(), rest = static_cast<std::size_t>(i); a-- > 0;) {
        output[a] = static_cast<std::int64_t>(rest) % shape[a];
        rest /= static_cast<std::size_t>(shape[a]);
      }
      visit(mine, reference::cells(tensor, w, output), static_cast<std::size_t>(i));
    }
    const std::lock_guard lock(mutex);
    join(mine);
  });
}

struct Judgement {
  double error = 0, allowed = 0;
  bool known = true;
};

void add(Verdict& verdict, const Judgement& found) {
  verdict.ok = verdict.ok && found.error <= found.allowed;  // false for NaN
  verdict.error = std::max(verdict.error, found.error);
  verdict.known = verdict.known && found.known;
}

// Holds the windows of a plan: judge(cells, position of the output) gives error and allowed error.
template <class Judge>
Verdict judge_all(const Plan& plan, const View& x, const Judge& judge) {
  Verdict verdict{.ok = reference::count(windows_of(plan).output_shape()) == element_count(plan.output_shape())};
  if (!verdict.ok) return verdict;
  each_window<Verdict>(
      plan, x, [&](Verdict& mine, const Cells<float>& cells, std::size_t i) { add(mine, judge(cells, i)); },
      [&](const Verdict& mine) {
        verdict.ok = verdict.ok && mine.ok;
        verdict.error = std::max(verdict.error, mine.error);
        verdict.known = verdict.known && mine.known;
      });
  return verdict;
}

// Rounding units by which a sum over these windows may be off, relative to the sum of magnitudes.
double growth(const Plan& plan) {
  double units = 0;
  for (const Axis& axis : plan.axes()) {
    const auto k = static_cast<double>(std::min(axis.size, axis.n));
    units += k <= 512 ? 8 + k / 16 : 40 + std::log2(k);
  }
  return units;
}

Judgement near(long double expected, float y, double allowed) {
  const double rounding = unit * std::fabs(static_cast<double>(expected));
  return {std::fabs(static_cast<double>(expected - static_cast<long double>(y))), allowed + rounding};
}

Judgement exactly(const std::optional<reference::Cell<float>>& winner, float y) {
  return {winner && winner->value == y ? 0.0 : 1.0, 0};
}

Judgement judge(const Pooling& pooling, double units, const Cells<float>& window, float y) {
  switch (pooling.reducer) {
    case Reducer::max: return exactly(reference::winner(window, reference::Greater{}), y);
    case Reducer::min: return exactly(reference::winner(window, reference::Less{}), y);
    case Reducer::sum:
    case Reducer::avg: {
      const auto total = reference::sum(window);
      const auto rule = static_cast<reference::Divide>(pooling.divisor.rule());
      const long double by =
          pooling.reducer == Reducer::avg ? static_cast<long double>(reference::divisor(window, rule)) : 1;
      return near(total.value / by, y, units * unit * static_cast<double>(total.magnitude / by));
    }
    case Reducer::smooth_max: {
      const long double beta = static_cast<float>(pooling.beta);
      const auto smooth = reference::smooth_max(window, beta, pooling.pad == SmoothPadding::zero);
      const long double logs = std::log(static_cast<long double>(smooth.cells)) / std::fabs(beta);
      return near(smooth.value, y, (8 + units) * unit * static_cast<double>(std::fabs(smooth.pivot) + logs));
    }
    case Reducer::lp: {
      const long double norm = reference::lp(window, static_cast<float>(pooling.p));
      return near(norm, y, (8 + units) * unit * static_cast<double>(norm));
    }
    default: return {.known = false};
  }
}

std::int64_t index_at(const View& indices, std::size_t i) {
  return visit(indices.type, [&](auto element) -> std::int64_t {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(static_cast<const T*>(indices.data)[i]);
    return -2;
  });
}

// The derivative of a window's value in each of its cells, by the definition of the reducer; nothing for an unknown
// one.
std::vector<long double> weights(const Pooling& pooling, const Cells<float>& window) {
  std::vector<long double> result;
  const auto of_each = [&](const auto& weight) {
    for (const auto& cell : window.real) result.push_back(weight(cell));
    return result;
  };
  const auto of_winners = [&](const auto& better) {
    const auto best = reference::winner(window, better);
    long double share = 0;
    const auto wins = [&](const auto& cell) {
      return pooling.ties == Ties::split ? cell.value == best->value : cell.offset == best->offset;
    };
    for (const auto& cell : window.real) share += wins(cell) ? 1 : 0;
    return of_each([&](const auto& cell) { return wins(cell) ? 1 / share : 0.0L; });
  };
  switch (pooling.reducer) {
    case Reducer::max: return of_winners(reference::Greater{});
    case Reducer::min: return of_winners(reference::Less{});
    case Reducer::sum: return of_each([](const auto&) { return 1.0L; });
    case Reducer::avg: {
      const auto by = reference::divisor(window, static_cast<reference::Divide>(pooling.divisor.rule()));
      return of_each([&](const auto&) { return 1 / static_cast<long double>(by); });
    }
    case Reducer::smooth_max: {
      const long double beta = static_cast<float>(pooling.beta);
      const auto smooth = reference::smooth_max(window, beta, pooling.pad == SmoothPadding::zero);
      return of_each([&](const auto& cell) { return std::exp(beta * (cell.value - smooth.value)); });
    }
    case Reducer::lp: {
      const long double p = static_cast<float>(pooling.p), norm = reference::lp(window, p);
      return of_each([&](const auto& cell) {
        const long double share = norm > 0 ? std::pow(std::fabs(cell.value) / norm, p - 1) : 0;
        return cell.value < 0 ? -share : cell.value > 0 ? share : 0.0L;
      });
    }
    default: return {};
  }
}

// Whether <jvp(dx), gy> is <dx, gx> for some dx, but for rounding.
bool is_adjoint(const Plan& plan, const View& x, const Array& gy, const Array& gx) {
  const Array dx = cli::noise(x.type, x.shape);
  Array dy(gy.type(), gy.shape());
  plan.jvp(x, dx, dy);
  double size = 0;
  const auto product = [&](const Array& a, const Array& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
      const double term = static_cast<double>(a.values<float>()[i]) * static_cast<double>(b.values<float>()[i]);
      sum += term;
      size += std::fabs(term);
    }
    return sum;
  };
  const double forward = product(dy, gy), back = product(dx, gx);
  return std::fabs(forward - back) <= 1e-6 * size;
}

}  // namespace

Verdict check(const Plan& plan, const View& x, const View& y) {
  const auto* values = static_cast<const float*>(y.data);
  const double units = growth(plan);
  return judge_all(plan, x, [&](const Cells<float>& window, std::size_t i) {
    return judge(plan.pooling(), units, window, values[i]);
  });
}

Verdict check(const Plan& plan, const View& x, const View& y, const View& indices) {
  const auto* values = static_cast<const float*>(y.data);
  const auto kind = static_cast<reference::Index>(plan.pooling().indices.value());
  const bool largest = plan.pooling().reducer == Reducer::max;
  return judge_all(plan, x, [&](const Cells<float>& window, std::size_t i) {
    const auto best =
        largest ? reference::winner(window, reference::Greater{}) : reference::winner(window, reference::Less{});
    const bool same_place = best && best->index(kind) == index_at(indices, i);
    return same_place ? exactly(best, values[i]) : Judgement{1, 0};
  });
}

Verdict check_rows(const Reduction& reduction, const View& x, const View& y,
                   const std::vector<std::vector<std::int64_t>>& inputs) {
  const Array from(x), found(y);
  const auto channels = static_cast<std::size_t>(x.shape[1]);
  // To the oracle these are windows whose other cells are left out.
  const Pooling pooling{.reducer = reduction.reducer,
                        .divisor = Divisor::Rule::valid,
                        .beta = reduction.beta,
                        .pad = SmoothPadding::ignore,
                        .p = reduction.p};
  Verdict verdict{.ok = y.shape == Extents{static_cast<std::int64_t>(inputs.size()), x.shape[1]}};
  for (std::size_t i = 0; verdict.ok && i < found.values<float>().size(); ++i) {
    Cells<float> cells;
    for (const std::int64_t row : inputs[i / channels])
      cells.real.push_back({from.values<float>()[static_cast<std::size_t>(row) * channels + i % channels]});
    const double units = 8 + static_cast<double>(cells.real.size());
    add(verdict, judge(pooling, units, cells, found.values<float>()[i]));
  }
  return verdict;
}

Verdict check_fold(const Plan& windows, const View& x, const View& y, float init,
                   const std::function<float(float, float)>& fn) {
  const auto* values = static_cast<const float*>(y.data);
  return judge_all(windows, x, [&](const Cells<float>& window, std::size_t i) {
    float state = init;
    for (const auto& cell : window.real) state = fn(state, cell.value);
    return Judgement{std::fabs(static_cast<double>(state) - static_cast<double>(values[i])), 0};
  });
}

Verdict check_gradient(const Plan& plan, const View& x, const View& gy, const View& gx) {
  const Array cotangents(gy), found(gx);
  struct Sum {
    long double value = 0, magnitude = 0;
  };
  std::vector<Sum> sums(found.values<float>().size());
  struct Terms {
    std::vector<std::pair<std::int64_t, long double>> list;
    bool known = true;
  };
  bool known = true;
  each_window<Terms>(
      plan, x,
      [&](Terms& terms, const Cells<float>& window, std::size_t i) {
        const auto weight = weights(plan.pooling(), window);
        terms.known = terms.known && weight.size() == window.real.size();
        for (std::size_t c = 0; c < weight.size(); ++c)
          terms.list.emplace_back(window.real[c].tensor, weight[c] * cotangents.values<float>()[i]);
      },
      [&](const Terms& terms) {
        known = known && terms.known;
        for (const auto& [cell, term] : terms.list) {
          sums[static_cast<std::size_t>(cell)].value += term;
          sums[static_cast<std::size_t>(cell)].magnitude += std::fabs(term);
        }
      });
  double range = 0;  // of exponents, whose rounding a weight multiplies
  if (plan.pooling().reducer == Reducer::smooth_max) {
    const Array cells(x);
    const auto [low, high] = std::minmax_element(cells.values<float>().begin(), cells.values<float>().end());
    range = std::fabs(plan.pooling().beta) * static_cast<double>(*high - *low);
  }
  Verdict verdict{.ok = is_adjoint(plan, x, cotangents, found), .known = known};
  if (!known) return verdict;
  const double units = 16 + growth(plan) + 4 * range;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Sum& sum = sums[i];
    add(verdict, near(sum.value, found.values<float>()[i], units * unit * static_cast<double>(sum.magnitude)));
  }
  return verdict;
}

}  // namespace cenote::demo
