// The work of sweeps over rows, counted in joins: it does not grow with the window.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/row_sweep.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t len = 3;
std::int64_t joins = 0;

// Sums of lanes.
void join(const Join& call) {
  const auto *a = static_cast<const double*>(call.a), *c = static_cast<const double*>(call.c);
  auto *b = static_cast<double*>(call.b), *dst = static_cast<double*>(call.dst);
  for (std::int64_t i = 0; i < call.len; ++i) {
    if (c) b[i] += c[i];
    dst[i] = a[i] + (b ? b[i] : 0);
  }
  joins += c ? 2 : 1;
}

/// Sweeps one axis; rows are all there. Gives the joins that it took for each row that windows hold and each output.
double work_of(const Axis& axis, bool grouped) {
  Kernels kernels;
  kernels.join = join;
  kernels.parts = 1;
  const bool nan = false;
  std::vector<double> cells(static_cast<std::size_t>(axis.n * len));
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<double>(i * 37 % 101);
  std::vector<double> sums(cells);
  const RowsOfStates rows{reinterpret_cast<std::byte*>(sums.data()), axis.n, len, 0, 0};
  std::vector<std::vector<double>> memory;
  std::vector<RowSweep> sweeps;
  for (std::int64_t phase = 0; phase < axis.dilation; ++phase) {
    memory.emplace_back(static_cast<std::size_t>(RowSweep::lanes(len, 1)));
    sweeps.emplace_back(kernels, Params{}, axis, len, std::int64_t{sizeof(double)}, 1, grouped, nan, phase,
                        reinterpret_cast<std::byte*>(memory.back().data()));
  }
  // Of whole numbers, so that differences of these are exact.
  std::vector<double> before(cells);
  for (std::size_t i = static_cast<std::size_t>(axis.dilation * len); i < cells.size(); ++i)
    before[i] += before[i - static_cast<std::size_t>(axis.dilation * len)];
  joins = 0;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const std::int64_t rest = (o * axis.stride - axis.low) % axis.dilation;
    RowSweep& sweep = sweeps[static_cast<std::size_t>(rest < 0 ? rest + axis.dilation : rest)];
    std::vector<double> y(len, 0);
    sweep.advance(rows, o);
    sweep.write(0, len, reinterpret_cast<std::byte*>(y.data()), 0);
    const Axis::Span span = axis.span(o);
    for (std::int64_t c = 0; c < len && span.count > 0; ++c) {
      const auto at = [&](std::int64_t p) { return p < 0 ? 0 : before[static_cast<std::size_t>(p * len + c)]; };
      const double expected = at(span.first + (span.count - 1) * axis.dilation) - at(span.first - axis.dilation);
      EXPECT_EQ(y[static_cast<std::size_t>(c)], expected) << "output " << o << " of windows of " << axis.size;
    }
  }
  return static_cast<double>(joins) / static_cast<double>(axis.n + axis.out);
}

TEST(RowSweep, TakesAsManyJoinsForAnyWindow) {
  constexpr std::int64_t n = 3000;
  for (const bool grouped : {false, true})
    for (const std::int64_t dilation : {1, 3})
      for (const std::int64_t stride : {1, 2})
        for (const std::int64_t size : {std::int64_t{9}, std::int64_t{40}, std::int64_t{333}, std::int64_t{2999},
                                        std::int64_t{20000}, std::int64_t{1} << 40}) {
          Axis axis{n, size, stride, dilation, 0, 0, 0};
          axis.low = (size - 1) * dilation / 2;
          axis.out = n / stride;
          EXPECT_LE(work_of(axis, grouped), 4) << size << ", " << stride << ", " << dilation << ", " << grouped;
        }
}

}  // namespace
}  // namespace cenote::cpu
