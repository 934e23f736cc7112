// Segments of more edges than 32 bits can count.
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "core/memory.h"
#include "cpu/segments.h"
#include "support/clouds.h"
#include "support/property.h"

namespace cenote::test {
namespace {

constexpr std::int64_t many = std::int64_t{1} << 31;

/// Zeros that take address space and hardly any memory, as long as nobody writes to them.
std::shared_ptr<const std::int32_t> zeros(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::int32_t);
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<const std::int32_t*>(memory), [=](const std::int32_t*) { munmap(memory, bytes); }};
}

TEST(Segments, more_edges_than_32_bits_count_are_reduced) {
  if (test_scale() < 1) GTEST_SKIP() << "two billion rows take long in this build";
  // All edges lead to one row.
  const std::vector<std::int64_t> offsets{0, 3, many + 10, many + 10, many + 1000};
  const auto source = zeros(offsets.back());
  if (!source) GTEST_SKIP() << "there is no address space for so many edges";
  const double x = 1;
  std::vector<double> y(4);
  cpu::RowPass pass;
  pass.segments = {4, 1, offsets.back(), offsets.data(), source.get(), nullptr, many + 7};
  pass.width = 1;
  pass.x = &x;
  pass.x_step = 1;
  pass.y = y.data();
  pass.y_step = 1;
  cpu::reduce_rows(cpu::row_table(Type::f64).at(Role::value, Reducer::sum), pass, Type::f64);
  EXPECT_EQ(y, (std::vector<double>{3, static_cast<double>(many + 7), 0, 990}));
}

TEST(Segments, a_relation_may_have_more_edges_than_32_bits_count) {
  if (std::getenv("CENOTE_TEST_HUGE") == nullptr || machine_memory() >> 30 < 90)
    GTEST_SKIP() << "set CENOTE_TEST_HUGE on a machine with 90 GiB of memory";
  constexpr std::int64_t n = 80000, reach = 20000;
  std::vector<std::int64_t> xs(n);
  std::iota(xs.begin(), xs.end(), 0);
  const Relation relation = relate(line(xs), {2 * reach + 1, 1});
  const std::int64_t edges = n * (2 * reach + 1) - reach * (reach + 1);
  ASSERT_GT(edges, many);
  ASSERT_EQ(relation.edges(), edges);
  EXPECT_EQ(relation.in_row().size(), edges);
  EXPECT_EQ(relation.row_offsets().values<std::int64_t>().back(), edges);
  EXPECT_EQ(relation.in_row().values<std::int32_t>().back(), n - 1);
  EXPECT_EQ(relation.kernel_id().values<std::int32_t>().back(), reach);
  Array x(Type::f64, {n, 1});
  std::iota(x.values<double>().begin(), x.values<double>().end(), 0.0);
  const Array sums = RowPooling(relation, {})(x);
  const PooledRows most = RowPooling(relation, {.reducer = Reducer::max}).with_rows(x);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = std::max<std::int64_t>(i - reach, 0), last = std::min(i + reach, n - 1);
    ASSERT_EQ(sums.at<double>({i, 0}), static_cast<double>((first + last) * (last - first + 1) / 2)) << i;
    ASSERT_EQ(most.rows.at<std::int32_t>({i, 0}), last) << i;
  }
}

}  // namespace
}  // namespace cenote::test
