// The facts of sparse pooling one by one: values, winners, gradients, global pools, and the way back up.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/clouds.h"
#include "support/sparse_line.h"

namespace cenote::test {
namespace {

using Places = std::vector<std::int64_t>;

const Kernel along_x{.size = {3, 1, 1}, .stride = 1};

SparsePooling of(Reducer reducer, const Kernel& kernel) {
  return {.reduction = {.reducer = reducer}, .kernel = kernel};
}

Array pooled(const SparseTensor& x, Reducer reducer, const Kernel& kernel) {
  return pool(x, of(reducer, kernel)).feats();
}

Array slope(const SparseTensor& x, const SparsePooling& pooling) {
  return gradient(row_pooling(x, pooling), x.feats());
}

TEST(SparsePool, ReducesEachPointWithItsNeighbours) {
  const SparseTensor x = line3({0, 1, 2}, {1, 2, 3});
  EXPECT_TRUE(holds(pooled(x, Reducer::sum, along_x), {3, 1}, {3, 6, 5}));
  EXPECT_TRUE(holds(pooled(x, Reducer::max, along_x), {3, 1}, {2, 3, 3}));
  EXPECT_TRUE(holds(pooled(x, Reducer::min, along_x), {3, 1}, {1, 1, 2}));
  EXPECT_TRUE(holds(pooled(x, Reducer::avg, along_x), {3, 1}, {1.5, 2, 2.5}));
  EXPECT_EQ(rows_of(pool(x, of(Reducer::sum, along_x)).coords()), rows_of(x.coords()));
}

TEST(SparsePool, SendsGradientsBackAlongTheEdges) {
  const SparseTensor x = line3({0, 1, 2}, {1, 2, 3});
  EXPECT_TRUE(holds(slope(x, of(Reducer::sum, along_x)), {3, 1}, {2, 3, 2}));
  EXPECT_TRUE(holds(slope(x, of(Reducer::avg, along_x)), {3, 1}, {5.0 / 6, 4.0 / 3, 5.0 / 6}, 1e-7));
  EXPECT_TRUE(holds(slope(x, of(Reducer::max, along_x)), {3, 1}, {0, 1, 2}));
}

TEST(SparsePool, PaddingShiftsTheWindow) {
  const SparseTensor x = line3({0, 1, 2}, {1, 2, 3});
  const Kernel shifted{.size = {3, 1, 1}, .stride = 1, .padding = {1, 0, 0}};
  EXPECT_TRUE(holds(pooled(x, Reducer::sum, shifted), {3, 1}, {1, 3, 6}));
}

TEST(SparsePool, TiesGoToTheFirstOrAreSplit) {
  const SparseTensor x = line3({0, 1, 2}, {2, 2, 1});
  const Array dx = array({3, 1}, {10, 20, 30});
  SparsePooling pooling = of(Reducer::max, along_x);
  EXPECT_TRUE(holds(slope(x, pooling), {3, 1}, {2, 1, 0}));
  EXPECT_TRUE(holds(jvp(row_pooling(x, pooling), x.feats(), dx).dy, {3, 1}, {10, 10, 20}));
  pooling.reduction.ties = Ties::split;
  EXPECT_TRUE(holds(slope(x, pooling), {3, 1}, {1, 2, 0}));
  EXPECT_TRUE(holds(jvp(row_pooling(x, pooling), x.feats(), dx).dy, {3, 1}, {15, 15, 20}));
}

TEST(SparsePool, DividesCoordinatesByTheStride) {
  const SparseTensor y = pool(line3({0, 1, 2, 3}, {1, 2, 3, 4}), of(Reducer::sum, {.size = 1, .stride = 2}));
  EXPECT_EQ(rows_of(y.coords()), (std::vector<Row>{{0, 0, 0, 0}, {0, 1, 0, 0}}));
  EXPECT_TRUE(holds(y.feats(), {2, 1}, {1, 3}));
  EXPECT_EQ(y.stride(), (Extents{2, 2, 2}));
  EXPECT_EQ(pool(y, of(Reducer::sum, {.size = 1, .stride = {3, 1, 2}})).stride(), (Extents{6, 2, 4}));
}

TEST(SparsePool, PairsOfPoints) {
  const SparseTensor x = line3({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(holds(pooled(x, Reducer::sum, {2, 2}), {4, 1}, {3, 7, 11, 15}));
  EXPECT_TRUE(holds(pooled(x, Reducer::max, {2, 2}), {4, 1}, {2, 4, 6, 8}));
  EXPECT_TRUE(holds(slope(x, of(Reducer::avg, {2, 2})), {8, 1}, std::vector<double>(8, .5)));
}

TEST(SparsePool, RoundsNegativeCoordinatesDown) {
  const SparseTensor x = line3({-3, -2, -1, 0}, {1, 2, 3, 4});
  const Kernel pairs{.size = {2, 1, 1}, .stride = {2, 1, 1}};
  EXPECT_EQ(places(pool(x, of(Reducer::sum, pairs))), (Places{-2, -1, 0}));
  EXPECT_TRUE(holds(pooled(x, Reducer::sum, pairs), {3, 1}, {1, 5, 4}));
  EXPECT_TRUE(holds(pooled(x, Reducer::max, pairs), {3, 1}, {1, 3, 4}));
}

TEST(SparsePool, KeepsBatchesApart) {
  const SparseTensor x(row_array({{1, 0}, {0, 0}, {1, 1}, {0, 3}}, 1), array({4, 1}, {1, 2, 3, 4}), {.batch_size = 5});
  const SparseTensor y = pool(x, of(Reducer::sum, {2, 2}));
  EXPECT_EQ(rows_of(y.coords()), (std::vector<Row>{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_TRUE(holds(y.feats(), {3, 1}, {4, 2, 4}));
  EXPECT_EQ(y.batch_size(), 5);
  EXPECT_EQ(y.batch_counts(), (Places{2, 1, 0, 0, 0}));
  EXPECT_TRUE(holds(global_sum_pool(y), {5, 1}, {6, 4, 0, 0, 0}));
}

TEST(SparsePool, KnowsDilationAndOverlap) {
  const SparseTensor five = line1({0, 1, 2, 3, 4}, {1, 2, 3, 4, 5});
  EXPECT_TRUE(holds(pooled(five, Reducer::sum, {.size = 3, .stride = 1, .dilation = 2}), {5, 1}, {4, 6, 9, 6, 8}));
  const SparseTensor eight = line1({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(holds(pooled(eight, Reducer::sum, {3, 2}), {4, 1}, {3, 9, 15, 21}));
  EXPECT_EQ(integers(relate(eight.coordinates(), {3, 2}).row_offsets()), (Places{0, 2, 5, 8, 11}));
  EXPECT_TRUE(holds(pooled(eight, Reducer::avg, {3, 2}), {4, 1}, {1.5, 3, 5, 7}));
}

TEST(SparsePool, AnEmptyRowIsZeroToSumsAndAnErrorToExtrema) {
  const SparseTensor x = line1({2}, {5});
  const Kernel beside{3, 3};
  for (const Reducer reducer : {Reducer::sum, Reducer::avg, Reducer::lp}) {
    EXPECT_TRUE(holds(pooled(x, reducer, beside), {1, 1}, {0}));
    EXPECT_TRUE(holds(slope(x, of(reducer, beside)), {1, 1}, {0}));
  }
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::smooth_max}) {
    EXPECT_TRUE(rejects([&] { pooled(x, reducer, beside); }, {std::string(name(reducer)), "row 0"}));
    SparsePooling allowed = of(reducer, beside);
    allowed.reduction.empty = Empty::identity;
    EXPECT_TRUE(holds(pool(x, allowed).feats(), {1, 1}, {reducer == Reducer::min ? inf : -inf}));
    EXPECT_TRUE(holds(slope(x, allowed), {1, 1}, {0}));
    EXPECT_TRUE(holds(jvp(row_pooling(x, allowed), x.feats(), x.feats()).dy, {1, 1}, {0}));
  }
  EXPECT_TRUE(
      holds(pool_with_rows(x, {{.reducer = Reducer::max, .empty = Empty::identity}, beside}).rows, {1, 1}, {-1}));
}

TEST(SparsePool, OntoTargetsKeepsTheirOrder) {
  const SparseTensor x = line1({0, 1, 2, 3}, {1, 2, 3, 4});
  const SparseTensor y = pool(x, {.reduction = {}, .kernel = {2, 2}, .options = {.targets = line({1, 7, 0})}});
  EXPECT_EQ(places(y), (Places{1, 7, 0}));
  EXPECT_TRUE(holds(y.feats(), {3, 1}, {7, 0, 3}));
}

TEST(SparsePool, HalvesAreSummedInSinglePrecision) {
  const SparseTensor x = line3<f16>({0, 1, 2}, {4096, 1, -4096});
  EXPECT_TRUE(holds(pooled(x, Reducer::sum, along_x), {3, 1}, {4096, 1, -4096}));
  EXPECT_EQ(pooled(x, Reducer::sum, along_x).type(), Type::f16);
  const SparseTensor b = line3<bf16>({0, 1, 2}, {4096, 1, -4096});
  EXPECT_EQ(numbers(pooled(b, Reducer::sum, along_x))[1], 1);
  // One point in 300 windows: in bf16 a sum of ones would not get past 256.
  std::vector<std::int64_t> xs;
  for (std::int64_t i = 0; i < 300; ++i) xs.push_back(i);
  const RowPooling wide(relate(line({0}), {300, 1, 299, 1}, {.policy = Policy::dense}), {});
  EXPECT_EQ(wide.outputs(), 300);
  EXPECT_TRUE(holds(gradient<bf16>(wide, full<bf16>({1, 1}, 1)), {1, 1}, {300}));
}

TEST(SparsePool, AveragesDivideByEdgesCellsOrANumber) {
  const SparseTensor x = line1({0, 1, 2}, {1, 2, 6});
  SparsePooling pooling = of(Reducer::avg, {2, 2});
  EXPECT_TRUE(holds(pool(x, pooling).feats(), {2, 1}, {1.5, 6}));
  pooling.reduction.divisor = EdgeDivisor::Rule::volume;
  EXPECT_TRUE(holds(pool(x, pooling).feats(), {2, 1}, {1.5, 3}));
  EXPECT_TRUE(holds(slope(x, pooling), {3, 1}, {.5, .5, .5}));
  pooling.reduction.divisor = 4.0;
  EXPECT_TRUE(holds(pool(x, pooling).feats(), {2, 1}, {.75, 1.5}));
  EXPECT_TRUE(holds(slope(x, pooling), {3, 1}, {.25, .25, .25}));
}

TEST(SparsePool, SmoothMaxAndLpAreThoseOfDenseWindows) {
  const Array x = array<double>({3, 1}, {1, 2, 3});
  const auto smooth = [](double beta) { return Reduction{.reducer = Reducer::smooth_max, .beta = beta}; };
  EXPECT_TRUE(holds(one_window(3, smooth(1))(x), {1, 1}, {3.4076059644}, 1e-10));
  EXPECT_TRUE(holds(one_window(3, smooth(10))(x), {1, 1}, {3.0000045401}, 1e-10));
  EXPECT_TRUE(holds(one_window(3, smooth(-1))(x), {1, 1}, {.5923940356}, 1e-10));
  EXPECT_TRUE(
      holds(gradient<double>(one_window(3, smooth(1)), x), {3, 1}, {.0900305732, .2447284711, .6652409558}, 1e-10));
  EXPECT_TRUE(holds(hvp(one_window(3, smooth(1)), x, full<double>({1, 1}, 1), array<double>({3, 1}, {1, 0, 0})), {3, 1},
                    {.0819250691, -.0220330446, -.0598920245}, 1e-10));
  const Array huge = array({2, 1}, {1e20, -1e20});
  EXPECT_TRUE(holds(one_window(2, smooth(1e20))(huge), {1, 1}, {double{1e20f}}));
  EXPECT_TRUE(holds(gradient(one_window(2, smooth(-1e20)), huge), {2, 1}, {0, 1}));
  const auto lp = [](double p) { return Reduction{.reducer = Reducer::lp, .p = p}; };
  EXPECT_TRUE(holds(one_window(2, lp(2))(array<double>({2, 1}, {3, 4})), {1, 1}, {5}, 1e-15));
  EXPECT_TRUE(holds(gradient<double>(one_window(2, lp(2)), array<double>({2, 1}, {3, 4})), {2, 1}, {.6, .8}, 1e-15));
  const Array three = array<double>({3, 1}, {1, -2, 2});
  EXPECT_TRUE(holds(one_window(3, lp(3))(three), {1, 1}, {2.5712815907}, 1e-10));
  EXPECT_TRUE(
      holds(gradient<double>(one_window(3, lp(3)), three), {3, 1}, {.1512518583, -.6050074331, .6050074331}, 1e-10));
  EXPECT_TRUE(holds(one_window(3, lp(1))(three), {1, 1}, {5}, 1e-15));
  EXPECT_TRUE(holds(gradient<double>(one_window(3, lp(1)), three), {3, 1}, {1, -1, 1}));
  EXPECT_TRUE(holds(one_window(3, lp(inf))(three), {1, 1}, {2}));
  EXPECT_TRUE(holds(gradient<double>(one_window(3, lp(inf)), three), {3, 1}, {0, -1, 0}));
}

TEST(SparsePool, NaNWinsAndTheFirstOfEqualsDoesToo) {
  const Reduction most{.reducer = Reducer::max}, least{.reducer = Reducer::min};
  const Array x = array({4, 1}, {1, nan, 5, nan});
  for (const Reduction& reduction : {most, least}) {
    const PooledRows found = one_window(4, reduction).with_rows(x);
    EXPECT_TRUE(holds(found.values, {1, 1}, {nan}));
    EXPECT_TRUE(holds(found.rows, {1, 1}, {1}));
    EXPECT_EQ(found.rows.type(), Type::i32);
    EXPECT_TRUE(holds(gradient(one_window(4, reduction), x), {4, 1}, {0, 1, 0, 0}));
  }
  EXPECT_TRUE(holds(one_window(3, most)(array({3, 1}, {-1, 0, -0.0})), {1, 1}, {0}));
  EXPECT_TRUE(holds(one_window(3, most)(array({3, 1}, {-1, -0.0, 0})), {1, 1}, {-0.0}));
  EXPECT_TRUE(holds(one_window(2, most).with_rows(array({2, 1}, {-inf, -inf})).rows, {1, 1}, {0}));
  const Reduction split{.reducer = Reducer::max, .ties = Ties::split};
  EXPECT_TRUE(holds(gradient(one_window(3, split), array({3, 1}, {nan, 1, nan})), {3, 1}, {.5, 0, .5}));
  EXPECT_TRUE(holds(gradient(one_window(3, split), array({3, 1}, {0, -1, -0.0})), {3, 1}, {.5, 0, .5}));
}

TEST(SparsePool, WinnersAreNamedByTheirRows) {
  const SparseTensor x(row_array({{0, 3}, {0, 0}, {0, 2}, {0, 1}}, 1), array({4, 2}, {1, 9, 2, 9, 1, 0, 3, 1}));
  const SparsePooledRows y = pool_with_rows(x, of(Reducer::max, {2, 2}));
  EXPECT_EQ(places(y.values), (Places{1, 0}));
  EXPECT_TRUE(holds(y.values.feats(), {2, 2}, {1, 9, 3, 9}));
  // Rows 2 and 0 are both 1 in the first channel; row 2 has the lower kernel id.
  EXPECT_TRUE(holds(y.rows, {2, 2}, {2, 0, 3, 1}));
}

TEST(GlobalSparsePool, ReducesEveryBatch) {
  const SparseTensor x(row_array({{0, 0}, {1, 0}, {0, 5}, {1, 7}}, 1), array({4, 1}, {1, 3, 2, 5}));
  EXPECT_TRUE(holds(global_sum_pool(x), {2, 1}, {3, 8}));
  EXPECT_TRUE(holds(global_avg_pool(x), {2, 1}, {1.5, 4}));
  EXPECT_TRUE(holds(global_max_pool(x), {2, 1}, {2, 5}));
  EXPECT_TRUE(holds(global_min_pool(x), {2, 1}, {1, 3}));
  EXPECT_TRUE(holds(global_pool(x, {.reducer = Reducer::lp}), {2, 1}, {std::sqrt(5), std::sqrt(34)}, 1e-6));
  EXPECT_TRUE(holds(GlobalSumPool{}(x), {2, 1}, {3, 8}));
  EXPECT_TRUE(holds(GlobalAvgPool{}(x), {2, 1}, {1.5, 4}));
  EXPECT_TRUE(holds(GlobalMaxPool{}(x), {2, 1}, {2, 5}));
}

TEST(GlobalSparsePool, OfAnEmptyBatchIsZeroOrAnError) {
  const SparseTensor x(row_array({{0, 0}, {2, 0}}, 1), array({2, 1}, {1, 3}), {.batch_size = 4});
  EXPECT_TRUE(holds(global_sum_pool(x), {4, 1}, {1, 0, 3, 0}));
  EXPECT_TRUE(holds(global_avg_pool(x), {4, 1}, {1, 0, 3, 0}));
  EXPECT_TRUE(rejects([&] { global_max_pool(x); }, {"max", "1"}));
  EXPECT_TRUE(rejects([&] { global_min_pool(x); }, {"min", "1"}));
  EXPECT_TRUE(holds(global_pool(x, {.reducer = Reducer::max, .empty = Empty::identity}), {4, 1}, {1, -inf, 3, -inf}));
}

TEST(SparseTranspose, AveragesWhatReachesAPoint) {
  const SparseTensor coarse = line1({0, 1}, {2, 6}, 2);
  const SparseTensor onto = pool_transpose(coarse, {3, 2, 1}, line({0, 1, 2}));
  EXPECT_TRUE(holds(onto.feats(), {3, 1}, {2, 4, 6}));
  EXPECT_EQ(onto.stride(), Extents{1});
  const SparseTensor all = pool_transpose(coarse, {3, 2, 1});
  EXPECT_EQ(places(all), (Places{-1, 0, 1, 2, 3}));
  EXPECT_TRUE(holds(all.feats(), {5, 1}, {2, 2, 4, 6, 6}));
  EXPECT_TRUE(holds(pool_transpose(coarse, {2, 2}, line({9, 0})).feats(), {2, 1}, {0, 2}));
}

TEST(SparseTranspose, MultilinearWeightsFallLinearly) {
  const SparseTensor coarse = line1({0, 1}, {2, 6}, 2);
  const SparseTensor onto = upsample(coarse, 2, line({0, 1, 2, 3}));
  EXPECT_TRUE(holds(onto.feats(), {4, 1}, {2, 4, 6, 6}));
  EXPECT_EQ(onto.stride(), Extents{1});
  EXPECT_EQ(places(upsample(coarse, 2)), (Places{-1, 0, 1, 2, 3}));
  EXPECT_TRUE(holds(upsample(coarse, 2, line({9})).feats(), {1, 1}, {0}));
  EXPECT_TRUE(holds(upsample(coarse, 1).feats(), {2, 1}, {2, 6}));
}

TEST(SparseModules, AreTheirFunctions) {
  const SparseTensor x = line3({0, 1, 2, 3}, {1, 2, 3, 4});
  EXPECT_TRUE(holds(sum_pool3d(x).feats(), {2, 1}, {3, 7}));
  EXPECT_TRUE(holds(avg_pool3d(x).feats(), {2, 1}, {1.5, 3.5}));
  EXPECT_TRUE(holds(max_pool3d(x).feats(), {2, 1}, {2, 4}));
  EXPECT_TRUE(holds(pool3d(x).feats(), {2, 1}, {3, 7}));
  EXPECT_TRUE(holds(pool3d(x, {.mode = Reducer::min}).feats(), {2, 1}, {1, 3}));
  EXPECT_TRUE(holds(SumPool3d{.kernel_size = 3, .stride = 1}(x).feats(), {4, 1}, {3, 6, 9, 7}));
  EXPECT_TRUE(holds(MaxPool3d{}(x).feats(), {2, 1}, {2, 4}));
  EXPECT_TRUE(holds(AvgPool3d{}(x).feats(), {2, 1}, {1.5, 3.5}));
  EXPECT_TRUE(holds(Pool3d{.mode = Reducer::max, .kernel_size = 1}(x).feats(), {2, 1}, {1, 3}));
}

TEST(SparsePool, RelationsAreKeptAndServeAnyFeatures) {
  const SparseTensor x = line3({0, 1, 2, 3}, {1, 2, 3, 4});
  max_pool3d(x);
  max_pool3d(x.with_feats(full<double>({4, 7}, 3)));
  sum_pool3d(x);
  EXPECT_EQ(x.coordinates()->kept_relations().size(), 1u);
  const Relation relation = x.coordinates()->relation({2, 2});
  const SparseTensor equal = line3<double>({0, 1, 2, 3}, {4, 3, 2, 1});
  EXPECT_TRUE(holds(pool(equal, relation, {}).feats(), {2, 1}, {7, 3}));
  const RowPooling pooling(relation, {.reducer = Reducer::max});
  EXPECT_EQ(pooling.inputs(), 4);
  EXPECT_EQ(pooling.outputs(), 2);
  EXPECT_EQ(pooling.reduction().reducer, Reducer::max);
  EXPECT_TRUE(holds(pooling(equal.feats()), {2, 1}, {4, 2}));
  EXPECT_TRUE(holds(pooling(array<f16>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})), {2, 2}, {3, 4, 7, 8}));
}

TEST(SparsePool, NothingIsPooledToNothing) {
  const SparseTensor none(row_array({}, 3), Array(Type::f32, {0, 5}), {.batch_size = 2});
  EXPECT_EQ(max_pool3d(none).feats().shape(), (Extents{0, 5}));
  EXPECT_EQ(max_pool3d(none).batch_size(), 2);
  EXPECT_TRUE(holds(global_sum_pool(none), {2, 5}, std::vector<double>(10, 0)));
  EXPECT_EQ(upsample(none.with_feats(Array(Type::f32, {0, 1})), 1).rows(), 0);
  const SparseTensor thin = line3({0, 1}, {1, 2}).with_feats(Array(Type::f64, {2, 0}));
  EXPECT_EQ(max_pool3d(thin).feats().shape(), (Extents{1, 0}));
  const RowPooling pooling = row_pooling(thin, of(Reducer::max, {2, 2}));
  EXPECT_EQ(gradient<double>(pooling, thin.feats()).shape(), (Extents{2, 0}));
  EXPECT_EQ(jvp(pooling, thin.feats(), thin.feats()).dy.shape(), (Extents{1, 0}));
  EXPECT_EQ(pooling.with_rows(thin.feats()).rows.shape(), (Extents{1, 0}));
}

}  // namespace
}  // namespace cenote::test
