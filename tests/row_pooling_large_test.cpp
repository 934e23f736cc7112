// Row poolings that are cut into parts: long segments and many rows, against the oracle and for any number of threads.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/clouds.h"
#include "support/machine.h"
#include "support/row_oracle.h"

namespace cenote::test {
namespace {

/// Rows of one batch, all of them in one window: more than any part of a sum is long.
struct Pile {
  std::shared_ptr<const Coordinates> rows;
  Kernel kernel;
  bool global = false;
  reference::SparseRelation relation;

  RowPooling pooling(const Reduction& reduction) const {
    return global ? RowPooling::global(rows, reduction) : RowPooling(relate(rows, kernel), reduction);
  }
};

Pile crowded_cell(bool sorted) {
  std::vector<std::int64_t> cells(32 * 32 * 32);
  std::iota(cells.begin(), cells.end(), 0);
  std::shuffle(cells.begin(), cells.end(), std::mt19937_64(3));
  cells.resize(20000);
  std::vector<Row> rows;
  for (const std::int64_t c : cells) rows.push_back({0, c / 1024, c / 32 % 32, c % 32});
  Pile pile{coordinates(rows, 3), {32, 32, 0, 1}, false, {}};
  if (sorted) pile.rows = pile.rows->sorted();
  pile.relation.outputs = {{0, 0, 0, 0}};
  std::vector<std::pair<std::int64_t, std::int64_t>> by_id;
  const auto order = rows_of(pile.rows->array());
  for (std::size_t i = 0; i < order.size(); ++i)
    by_id.emplace_back((order[i][1] * 32 + order[i][2]) * 32 + order[i][3], std::int64_t(i));
  std::sort(by_id.begin(), by_id.end());
  for (const auto& [id, row] : by_id) pile.relation.edges.push_back({row, 0, id});
  return pile;
}

Pile long_batch(std::int64_t n) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < n; ++i) rows.push_back({0, i % 317, i / 317});
  return {coordinates(rows, 2), {}, true, reference::sparse_global(rows, 1)};
}

/// Values, tangents and cotangents of a pile, byte by byte.
std::vector<std::vector<std::byte>> all_of(const RowPooling& pooling, const Array& x, const Array& dx,
                                           const Array& gy) {
  const Linearized forward = jvp(pooling, x, dx);
  const DifferentiatedRows back = vjp(pooling, x);
  return {bytes_of(pooling(x)), bytes_of(forward.y), bytes_of(forward.dy), bytes_of(back.y),
          bytes_of(back.pullback(gy))};
}

/// Values, winners and derivatives against the oracle, and the same bits with any number of threads.
void check_large(const RowPooling& pooling, const reference::SparseRelation& relation, std::int64_t volume,
                 const Array& x) {
  const Reduction& reduction = pooling.reduction();
  const Array dx = drawn(x.shape(), x.type(), Data::unit, 2);
  const Array gy = drawn({pooling.outputs(), x.shape()[1]}, x.type(), Data::unit, 3);
  const RowOracle oracle(reduction, relation, volume, x);
  const std::string what = std::string(name(reduction.reducer)) + " of " + to_string(x.shape());
  EXPECT_EQ(mismatch(oracle.values(), pooling(x)), "") << what;
  EXPECT_EQ(mismatch(oracle.jvp(numbers(dx), false), jvp(pooling, x, dx).dy), "") << what;
  EXPECT_EQ(mismatch(oracle.vjp(numbers(gy), false), vjp(pooling, x).pullback(gy)), "") << what;
  if (reduction.reducer == Reducer::max) {
    EXPECT_EQ(mismatch(oracle.rows(), pooling.with_rows(x).rows), "") << what;
  }
  set_threads(1);
  const auto alone = all_of(pooling, x, dx, gy);
  for (const int count : {2, 5}) {
    set_threads(count);
    EXPECT_EQ(all_of(pooling, x, dx, gy), alone) << what << " with " << count << " threads";
  }
  set_threads(0);
}

void check_pile(const Pile& pile, std::int64_t channels, Type type) {
  const Array x = drawn({pile.rows->rows(), channels}, type, Data::offset, 1);
  for (const Reducer reducer : all_reducers)
    check_large(pile.pooling({.reducer = reducer}), pile.relation, 32 * 32 * 32, x);
}

TEST(LargeRowPooling, ACellOfManyPointsIsTheSameForAnyNumberOfThreads) {
  check_pile(crowded_cell(false), 1, Type::f32);
  check_pile(crowded_cell(false), 3, Type::f16);
  check_pile(crowded_cell(true), 5, Type::f32);
}

TEST(LargeRowPooling, ALongBatchIsTheSameForAnyNumberOfThreads) {
  check_pile(long_batch(100000), 1, Type::f32);
  check_pile(long_batch(30000), 4, Type::bf16);
  check_pile(long_batch(20000), 3, Type::f64);
}

TEST(LargeRowPooling, MoreOnesThanAHalfCanCountAreCounted) {
  std::vector<std::int64_t> xs(std::size_t{1} << 17);
  std::iota(xs.begin(), xs.end(), 0);
  const auto rows = line(xs);
  const auto n = static_cast<std::int64_t>(xs.size());
  EXPECT_TRUE(holds(RowPooling::global(rows, {})(full<bf16>({n, 1}, 1)), {1, 1}, {131072}));
  EXPECT_TRUE(holds(RowPooling::global(rows, {.reducer = Reducer::avg})(full<f16>({n, 3}, 1)), {1, 3}, {1, 1, 1}));
}

TEST(LargeRowPooling, LengthsAroundPowersOfTwoAreTheSameToo) {
  for (const std::int64_t n : {1023, 1024, 1025, 4095, 4096, 4097, 8193, 12289})
    check_pile(long_batch(n), n % 2 == 0 ? 1 : 2, Type::f32);
}

/// A crumpled surface with points in random order, and duplicates left out.
std::shared_ptr<const Coordinates> surface(std::int64_t n) {
  std::mt19937_64 random(11);
  std::vector<Row> rows;
  std::set<Row> seen;
  while (static_cast<std::int64_t>(rows.size()) < n) {
    const auto x = static_cast<std::int64_t>(random() % 90) - 40, y = static_cast<std::int64_t>(random() % 90);
    Row row{static_cast<std::int64_t>(random() % 2), x, y, (x * y / 50) % 9 + static_cast<std::int64_t>(random() % 2)};
    if (seen.insert(row).second) rows.push_back(row);
  }
  return coordinates(rows, 3);
}

reference::SparseRelation edges_of(const Relation& relation) {
  reference::SparseRelation result{rows_of(relation.output()->array()), {}};
  const auto in = integers(relation.in_row()), out = integers(relation.out_row()), id = integers(relation.kernel_id());
  for (std::size_t e = 0; e < in.size(); ++e) result.edges.push_back({in[e], out[e], id[e]});
  return result;
}

TEST(LargeRowPooling, ManyRowsAreTheSameForAnyNumberOfThreads) {
  const auto points = surface(20000);
  for (const auto& rows : {points, points->sorted()}) {
    for (const Kernel& kernel : {Kernel{2, 2}, Kernel{3, 1}}) {
      const Relation relation = relate(rows, kernel);
      const auto edges = edges_of(relation);
      const Array x = drawn({rows->rows(), 3}, kernel.size.values()[0] == 2 ? Type::f32 : Type::f16, Data::few, 1);
      for (const Reducer reducer : all_reducers)
        check_large(RowPooling(relation, {.reducer = reducer}), edges, relation.volume(), x);
    }
  }
}

/// The first columns of an array of rows.
Array first_columns(const Array& rows, std::int64_t width) {
  View part = rows;
  part.shape[1] = width;
  return Array(part);
}

void check_widths(const RowPooling& pooling, const Array& x) {
  const Array y = pooling(x);
  const bool picks = pooling.reduction().reducer == Reducer::max || pooling.reduction().reducer == Reducer::min;
  const Array winners = picks ? pooling.with_rows(x).rows : Array();
  for (const std::int64_t width : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65}) {
    const Array part = first_columns(x, width);
    const std::string what = std::string(name(pooling.reduction().reducer)) + " of " + std::string(name(x.type())) +
                             " " + to_string(part.shape()) + " on " + simd_target();
    // Which of two NaNs a sum keeps is up to the compiler; everything else is exact.
    EXPECT_TRUE(holds(pooling(part), {y.shape()[0], width}, numbers(first_columns(y, width)))) << what;
    if (!picks) continue;
    const PooledRows found = pooling.with_rows(part);
    EXPECT_TRUE(same_bits(found.values, first_columns(y, width))) << what;
    EXPECT_TRUE(same_bits(found.rows, first_columns(winners, width))) << what;
  }
}

TEST(LargeRowPooling, AChannelHasTheSameBitsHoweverManyStandBesideIt) {
  const auto points = surface(1500);
  for (const std::string& target : targets_under_test()) {
    for (const auto& rows : {points, points->sorted()}) {
      const Relation relation = relate(rows, {2, 2});
      ASSERT_EQ(relation.contiguous(), rows != points);
      for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64})
        for (const Data data : {Data::special, Data::any_exponent})
          for (const Reducer reducer : all_reducers) {
            const Machine machine(target, type == Type::f32 ? 3 : 1);
            check_widths(RowPooling(relation, {.reducer = reducer}), drawn({rows->rows(), 130}, type, data, 1));
          }
    }
  }
}

TEST(LargeRowPooling, NaNsOfShortRowsHaveTheSameBitsForAnyNumberOfThreads) {
  const auto rows = surface(20000)->sorted();
  const Relation relation = relate(rows, {2, 2});
  for (const std::string& target : targets_under_test()) {
    for (const std::int64_t channels : {1, 2, 3, 17}) {
      const Array x = drawn({rows->rows(), channels}, Type::f32, Data::special, 1);
      for (const Reducer reducer : all_reducers) {
        const RowPooling pooling(relation, {.reducer = reducer});
        const auto on = [&](int threads) {
          const Machine machine(target, threads);
          return bytes_of(pooling(x));
        };
        const auto alone = on(1);
        EXPECT_EQ(on(2), alone) << name(reducer) << " of " << channels << " channels on " << target;
        EXPECT_EQ(on(7), alone) << name(reducer) << " of " << channels << " channels on " << target;
      }
    }
  }
}

TEST(LargeRowPooling, SomeOfManyShortBatchesMayBeEmpty) {
  std::mt19937_64 random(5);
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < 900; ++b)
    for (auto i = static_cast<std::int64_t>(b < 600 ? random() % 8 + 1 : random() % 9); i > 0; --i)
      rows.push_back({b, i});
  const auto coords = coordinates(rows, 1);
  const auto relation = reference::sparse_global(rows, coords->batch_size());
  for (const std::string& target : targets_under_test()) {
    for (const std::int64_t channels : {1, 2, 3, 20}) {
      const Machine machine(target, 2);
      const Array x = drawn({coords->rows(), channels}, Type::f32, Data::few, 1);
      for (const Reducer reducer : all_reducers) {
        const Reduction reduction{.reducer = reducer, .empty = Empty::identity};
        const RowOracle oracle(reduction, relation, 1, x);
        EXPECT_EQ(mismatch(oracle.values(), RowPooling::global(coords, reduction)(x)), "") << name(reducer);
      }
    }
  }
}

TEST(LargeRowPooling, OnePoolingMayBeUsedByManyThreadsAtOnce) {
  const auto points = surface(3000);
  const Array x = drawn({points->rows(), 5}, Type::f32, Data::unit, 1);
  for (const Reducer reducer : all_reducers) {
    const Reduction reduction{.reducer = reducer};
    // What is made when it is first asked for is made by all at once.
    const RowPooling alone(relate(points, {3, 1}), reduction), shared(relate(points, {3, 1}), reduction);
    const Array gy = drawn(x.shape(), Type::f32, Data::unit, 2);
    const auto expected = all_of(alone, x, x, gy);
    std::vector<std::vector<std::vector<std::byte>>> found(4);
    std::vector<std::thread> threads;
    for (auto& result : found) threads.emplace_back([&] { result = all_of(shared, x, x, gy); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& result : found) EXPECT_EQ(result, expected) << name(reducer);
  }
}

}  // namespace
}  // namespace cenote::test
