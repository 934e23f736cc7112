// The oracle, called on every window of a plan.
#include "check.h"

#include <cmath>
#include <mutex>

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

// Holds the windows of a plan, many at once: judge(cells, position of the output) gives error and allowed error.
struct Judgement {
  double error = 0, allowed = 0;
  bool known = true;
};
template <class Judge>
Verdict judge_all(const Plan& plan, const View& x, const Judge& judge) {
  const reference::Tensor<float> tensor = tensor_of(x);
  const reference::Windows w = windows_of(plan);
  const Shape shape = w.output_shape();
  const std::int64_t total = reference::count(shape), part = 1024;
  Verdict verdict{.ok = total == element_count(plan.output_shape())};
  if (!verdict.ok) return verdict;
  std::mutex mutex;
  in_parallel((total + part - 1) / part, [&](std::int64_t number) {
    Verdict mine;
    for (std::int64_t i = number * part; i < std::min(total, (number + 1) * part); ++i) {
      Shape output(shape.size(), 0);
      for (std::size_t a = shape.size(), rest = static_cast<std::size_t>(i); a-- > 0;) {
        output[a] = static_cast<std::int64_t>(rest) % shape[a];
        rest /= static_cast<std::size_t>(shape[a]);
      }
      const Judgement found = judge(reference::cells(tensor, w, output), static_cast<std::size_t>(i));
      mine.ok = mine.ok && found.error <= found.allowed;  // false for NaN
      mine.error = std::max(mine.error, found.error);
      mine.known = mine.known && found.known;
    }
    const std::lock_guard lock(mutex);
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

Judgement judge(const Plan& plan, double units, const Cells<float>& window, float y) {
  const Pooling& pooling = plan.pooling();
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

}  // namespace

Verdict check(const Plan& plan, const View& x, const View& y) {
  const auto* values = static_cast<const float*>(y.data);
  const double units = growth(plan);
  return judge_all(plan, x,
                   [&](const Cells<float>& window, std::size_t i) { return judge(plan, units, window, values[i]); });
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

Verdict check_fold(const Plan& windows, const View& x, const View& y, float init,
                   const std::function<float(float, float)>& fn) {
  const auto* values = static_cast<const float*>(y.data);
  return judge_all(windows, x, [&](const Cells<float>& window, std::size_t i) {
    float state = init;
    for (const auto& cell : window.real) state = fn(state, cell.value);
    return Judgement{std::fabs(static_cast<double>(state) - static_cast<double>(values[i])), 0};
  });
}

}  // namespace cenote::demo
