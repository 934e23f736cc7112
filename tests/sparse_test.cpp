// Sparse tensors and their coordinates: checks, duplicates, Morton order, slices, to dense arrays and back.
#include <random>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/clouds.h"
#include "support/property.h"

namespace cenote::test {
namespace {

using Numbers = std::vector<std::int64_t>;

const std::vector<Row> four{{0, 1, 2}, {1, 0, 0}, {0, -3, 5}, {1, 7, 7}};

SparseTensor tensor(const std::vector<Row>& rows, const std::vector<double>& feats,
                    const CoordinateOptions& options = {}) {
  const auto n = static_cast<std::int64_t>(rows.size());
  const std::int64_t channels = n > 0 ? static_cast<std::int64_t>(feats.size()) / n : 1;
  return SparseTensor(row_array(rows, rows.empty() ? 2 : static_cast<int>(rows[0].size()) - 1),
                      array<float>({n, channels}, feats), options);
}

std::string coordinate_error(const std::vector<Row>& rows, const CoordinateOptions& options) {
  return error_of([&] { Coordinates::make(row_array(rows, 2), options); });
}

TEST(SparseTensor, knows_its_rows) {
  const SparseTensor x = tensor(four, {1, 2, 3, 4});
  EXPECT_EQ(x.dimension(), 2);
  EXPECT_EQ(x.rows(), 4);
  EXPECT_EQ(x.active_rows(), 4);
  EXPECT_EQ(x.channels(), 1);
  EXPECT_EQ(x.batch_size(), 2);
  EXPECT_EQ(x.batch_counts(), (Numbers{2, 2}));
  EXPECT_EQ(x.stride(), (Extents{1, 1}));
  EXPECT_EQ(x.coordinates()->low(), (Extents{0, -3, 0}));
  EXPECT_EQ(x.coordinates()->high(), (Extents{1, 7, 7}));
  EXPECT_TRUE(x.coordinates()->known_unique());
  EXPECT_FALSE(x.coordinates()->morton_ordered());
  EXPECT_EQ(rows_of(x.coords()), four);
}

TEST(SparseTensor, copies_share_rows_and_features) {
  const SparseTensor x = tensor(four, {1, 2, 3, 4});
  const SparseTensor y = x, z = x.with_feats(full({4, 3}, 7));
  EXPECT_EQ(&y.feats(), &x.feats());
  EXPECT_EQ(z.coordinates(), x.coordinates());
  EXPECT_EQ(z.channels(), 3);
}

TEST(SparseTensor, takes_every_float_both_integers_and_views) {
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64})
    for (const bool wide : {false, true})
      EXPECT_EQ(SparseTensor(row_array(four, 2, wide), Array::zeros(type, {4, 2})).type(), type);
  // Columns (y, x, batch) of a larger array, read backwards.
  const Array columns({2, 4}, {9, 5, 6, 0, 9, 7, 8, 1});
  const View view(columns.values<std::int32_t>().data() + 3, Type::i32, {2, 3}, {4, -1});
  EXPECT_EQ(rows_of(Coordinates::make(view)->array()), (std::vector<Row>{{0, 6, 5}, {1, 8, 7}}));
}

TEST(SparseTensor, has_up_to_six_dimensions) {
  for (int dimension = 1; dimension <= 6; ++dimension) {
    Row row(static_cast<std::size_t>(dimension) + 1, 5);
    Row other = row;
    other.back() = -5;
    const auto points = coordinates({row, other}, dimension);
    EXPECT_EQ(points->dimension(), dimension);
    EXPECT_EQ(relate(points, {3, 1}).edges(), 2);
    EXPECT_EQ(relate(points, {2, 2}).edges(), 2);
    EXPECT_EQ(relate(points->sorted(), {2, 2}).edges(), 2);
  }
  EXPECT_NE(error_of([] { coordinates({Row(8, 0)}, 7); }).find("D from 1 to 6"), std::string::npos);
  EXPECT_NE(error_of([] { coordinates({Row(1, 0)}, 0); }).find("D from 1 to 6"), std::string::npos);
}

TEST(SparseTensor, capacity_is_left_out) {
  const SparseTensor x = tensor({{0, 1, 2}, {0, 3, 4}, {-1, -1, -1}, {-1, -1, -1}}, {1, 2, 9, 9}, {.active_rows = 2});
  EXPECT_EQ(x.rows(), 2);
  EXPECT_TRUE(holds(x.feats(), {2, 1}, {1, 2}));
  EXPECT_EQ(tensor(four, {1, 2, 3, 4}, {.active_rows = 0}).batch_size(), 0);
}

TEST(SparseTensor, may_be_empty) {
  const SparseTensor x = tensor({}, {});
  EXPECT_EQ(x.rows(), 0);
  EXPECT_EQ(x.batch_size(), 0);
  EXPECT_EQ(x.sorted().rows(), 0);
  EXPECT_EQ(x.coalesce(Merge::sum).rows(), 0);
  EXPECT_EQ(x.to_dense({2, 3}).shape(), (Extents{0, 1, 2, 3}));
  EXPECT_EQ(SparseTensor(row_array({}, 2), Array(Type::f32, {0, 4}), {.batch_size = 3}).batch_counts(),
            (Numbers{0, 0, 0}));
  EXPECT_EQ(SparseTensor(row_array({}, 2), Array(Type::f32, {0, 4}), {.batch_counts = Numbers{0, 0}}).batch_size(), 2);
}

TEST(SparseTensor, batches_are_checked_against_the_rows) {
  EXPECT_EQ(Coordinates::make(row_array(four, 2), {.batch_counts = Numbers{2, 2, 0}})->batch_size(), 3);
  EXPECT_EQ(Coordinates::make(row_array(four, 2), {.batch_size = 5})->batch_counts(), (Numbers{2, 2, 0, 0, 0}));
  EXPECT_EQ(coordinate_error(four, {.batch_counts = Numbers{1, 3}}),
            "[Coordinates] batch_counts[0] = 1: must be 2, the rows of that batch");
  EXPECT_EQ(coordinate_error(four, {.batch_counts = Numbers{2, 3}}),
            "[Coordinates] batch_counts[1] = 3: must be 2, the rows of that batch");
  EXPECT_EQ(coordinate_error(four, {.batch_counts = Numbers{2, 2, -1}}),
            "[Coordinates] batch_counts[2] = -1: must be at least 0");
  EXPECT_EQ(coordinate_error(four, {.batch_counts = Numbers{2}}),
            "[Coordinates] batch_counts has 1 entries: must have one per batch, at least 2");
  EXPECT_NE(coordinate_error(four, {.batch_counts = Numbers{2, 2}, .batch_size = 3}).find("batch_size = 3"),
            std::string::npos);
  EXPECT_EQ(coordinate_error(four, {.batch_size = 1}),
            "[Coordinates] batch_size = 1: must be at least 2, the highest batch id + 1");
  EXPECT_EQ(coordinate_error({{0, 1, 1}, {-2, 0, 0}}, {}),
            "[Coordinates] coords row 1 is (-2, 0, 0): batch ids must be at least 0");
}

TEST(SparseTensor, rows_from_outside_are_checked) {
  EXPECT_EQ(coordinate_error(four, {.active_rows = 5}),
            "[Coordinates] active_rows = 5: must be from 0 to the number of rows, 4");
  EXPECT_NE(coordinate_error(four, {.active_rows = -1}).find("active_rows = -1"), std::string::npos);
  EXPECT_EQ(error_of([] {
              Coordinates::make(Array(Type::f32, {4, 3}));
            }),
            "[Coordinates] coords of f32: coordinates must be i32 or i64");
  EXPECT_NE(error_of([] { Coordinates::make(Array(Type::i32, {4})); }).find("must be (rows, 1 + D)"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Coordinates::make(Array(Type::i32, {4, 1}));
            }).find("must be (rows, 1 + D)"),
            std::string::npos);
  const Array rows = row_array(four, 2);
  EXPECT_EQ(error_of([&] {
              SparseTensor(rows, Array(Type::f32, {3, 2}));
            }),
            "[SparseTensor] feats of shape (3, 2): must have as many rows as coords, 4");
  EXPECT_EQ(error_of([&] {
              SparseTensor(rows, Array(Type::i32, {4, 2}));
            }),
            "[SparseTensor] feats of i32: must be f16, bf16, f32 or f64");
  EXPECT_NE(error_of([&] { SparseTensor(rows, Array(Type::f32, {4})); }).find("(rows, channels)"), std::string::npos);
  EXPECT_NE(error_of([&] {
              SparseTensor(rows, Array(Type::f32, {4, 1}), {}, {1, 1, 1});
            }).find("3 columns"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              SparseTensor(rows, Array(Type::f32, {4, 1}), {}, 0);
            }).find("stride[0] = 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { SparseTensor(nullptr, Array(Type::f32, {4, 1})); }).find("null"), std::string::npos);
}

TEST(SparseTensor, duplicates_are_an_error_that_names_two_rows) {
  EXPECT_EQ(coordinate_error({{0, 5, 5}, {0, 1, 2}, {1, 1, 2}, {0, 1, 2}, {0, 5, 5}}, {}),
            "[Coordinates] coords rows 1 and 3 are both (0, 1, 2): rows must differ; coalesce merges duplicates");
  EXPECT_EQ(coordinate_error({{0, 1, 2}, {0, 1, 2}}, {.assume_unique = true}), "");
}

TEST(SparseTensor, coalesce_merges_in_first_seen_order) {
  const std::vector<Row> rows{{0, 5}, {0, 1}, {0, 5}, {1, 5}, {0, 5}};
  const Array coords = row_array(rows, 1), feats = array<float>({5, 2}, {1, -1, 2, -2, 4, -4, 8, -8, 7, -7});
  const auto merged = [&](Merge merge) { return SparseTensor::coalesced(coords, feats, merge); };
  EXPECT_EQ(rows_of(merged(Merge::sum).coords()), (std::vector<Row>{{0, 5}, {0, 1}, {1, 5}}));
  EXPECT_TRUE(holds(merged(Merge::sum).feats(), {3, 2}, {12, -12, 2, -2, 8, -8}));
  EXPECT_TRUE(holds(merged(Merge::mean).feats(), {3, 2}, {4, -4, 2, -2, 8, -8}));
  EXPECT_TRUE(holds(merged(Merge::max).feats(), {3, 2}, {7, -1, 2, -2, 8, -8}));
  EXPECT_TRUE(holds(merged(Merge::min).feats(), {3, 2}, {1, -7, 2, -2, 8, -8}));
  EXPECT_TRUE(holds(merged(Merge::first).feats(), {3, 2}, {1, -1, 2, -2, 8, -8}));
  EXPECT_EQ(merged(Merge::sum).batch_counts(), (Numbers{2, 1}));
  EXPECT_TRUE(merged(Merge::sum).coordinates()->known_unique());
  const SparseTensor whole = tensor(four, {1, 2, 3, 4});
  EXPECT_EQ(whole.coalesce(Merge::sum).coordinates(), whole.coordinates());
}

TEST(SparseTensor, coalesce_rounds_halves_once_and_keeps_nan) {
  const Array coords = row_array({{0, 5}, {0, 5}, {0, 5}}, 1);
  EXPECT_TRUE(
      holds(SparseTensor::coalesced(coords, array<f16>({3, 1}, {4096, 1, -4096}), Merge::sum).feats(), {1, 1}, {1}));
  for (const Merge merge : {Merge::max, Merge::min}) {
    EXPECT_TRUE(
        holds(SparseTensor::coalesced(coords, array<float>({3, 1}, {1, nan, 2}), merge).feats(), {1, 1}, {nan}));
  }
  EXPECT_TRUE(
      holds(SparseTensor::coalesced(coords, array<double>({3, 1}, {-0.0, 0, -1}), Merge::max).feats(), {1, 1}, {-0.0}));
}

TEST(SparseTensor, dense_arrays_and_back) {
  const SparseTensor x = tensor({{1, 0, 1}, {0, 1, 2}}, {1, 2, 3, 4});
  const Array dense = x.to_dense({2, 3}, -1);
  EXPECT_TRUE(holds(dense, {2, 2, 2, 3},
                    {-1, -1, -1, -1, -1, 3, -1, -1, -1, -1, -1, 4, -1, 1, -1, -1, -1, -1, -1, 2, -1, -1, -1, -1}));
  const SparseTensor back = SparseTensor::from_dense(dense, -1);
  EXPECT_EQ(rows_of(back.coords()), (std::vector<Row>{{0, 1, 2}, {1, 0, 1}}));
  EXPECT_TRUE(holds(back.feats(), {2, 2}, {3, 4, 1, 2}));
  EXPECT_EQ(SparseTensor::from_dense(array<float>({1, 1, 3}, {0, nan, -0.0})).rows(), 1);
  EXPECT_EQ(SparseTensor::from_dense(array<float>({1, 1, 3}, {0, nan, 1}), nan).rows(), 2);
  EXPECT_EQ(SparseTensor::from_dense(Array(Type::f32, {3, 0, 5})).batch_size(), 3);
  EXPECT_EQ(error_of([&] {
              x.to_dense({2, 2});
            }),
            "[to_dense] coords row 1 is (0, 1, 2): coordinate 1 must be in [0, 2), the extent");
  EXPECT_NE(error_of([&] { x.to_dense({2}); }).find("one number per lattice axis, 2"), std::string::npos);
  EXPECT_NE(error_of([] {
              SparseTensor::from_dense(Array(Type::f32, {2, 3}));
            }).find("D from 1 to 6"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              SparseTensor::from_dense(Array(Type::i32, {2, 3, 4}));
            }).find("must be f16"),
            std::string::npos);
}

TEST(SparseTensor, random_dense_arrays_survive_the_way_there_and_back) {
  check(200, [] {
    const int dimension = *rc::gen::inRange(1, 5);
    Extents shape{*rc::gen::inRange(0, 3), *rc::gen::inRange(1, 3)};
    for (int a = 0; a < dimension; ++a) shape.push_back(*rc::gen::inRange(0, 5));
    Array dense(Type::f32, shape);
    std::mt19937_64 random(static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 20)));
    for (float& value : dense.values<float>()) value = random() % 3 == 0 ? static_cast<float>(random() % 5) : 0.0f;
    Extents extent;
    for (int a = 2; a < shape.size(); ++a) extent.push_back(shape[a]);
    const SparseTensor x = SparseTensor::from_dense(dense);
    RC_ASSERT(holds(x.to_dense(extent), shape, numbers(dense)));
    RC_ASSERT(holds(x.sorted().to_dense(extent), shape, numbers(dense)));
    RC_ASSERT(rows_of(Coordinates::make(x.coords())->array()) == rows_of(x.coords()));
  });
}

/// The batch, and the bits of all coordinates from the highest level down, first axis first.
std::vector<int> morton_text(const Row& row) {
  std::vector<int> text{static_cast<int>(row[0])};
  for (int bit = 63; bit >= 0; --bit)
    for (std::size_t a = 1; a < row.size(); ++a)
      text.push_back(static_cast<int>((static_cast<std::uint64_t>(row[a]) ^ (std::uint64_t{1} << 63)) >> bit & 1));
  return text;
}

TEST(SparseTensor, sorted_rows_are_in_morton_order) {
  check(300, [] {
    const int dimension = *rc::gen::inRange(1, 5);
    std::mt19937_64 random(static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 20)));
    const auto kind = static_cast<CloudKind>(*rc::gen::inRange(0, cloud_kinds));
    const std::vector<Row> rows = cloud(kind, dimension, 300, random() % 2 == 0, random);
    std::vector<double> feats(rows.size());
    for (std::size_t i = 0; i < feats.size(); ++i) feats[i] = static_cast<double>(i);
    const Array coords = row_array(rows, dimension, true);
    const SparseTensor x(coords, array<double>({coords.shape()[0], 1}, feats)), y = x.sorted();
    std::vector<Row> expected = rows;
    std::sort(expected.begin(), expected.end(),
              [](const Row& a, const Row& b) { return morton_text(a) < morton_text(b); });
    RC_ASSERT(rows_of(y.coords()) == expected);
    RC_ASSERT(y.coordinates()->morton_ordered());
    RC_ASSERT(y.sorted().coordinates() == y.coordinates());
    for (std::int64_t i = 0; i < y.rows(); ++i)
      RC_ASSERT(rows[static_cast<std::size_t>(y.feats().at<double>({i, 0}))] == expected[static_cast<std::size_t>(i)]);
  });
}

TEST(SparseTensor, one_batch_alone) {
  const SparseTensor x = tensor(four, {1, 2, 3, 4}, {.batch_size = 3});
  EXPECT_EQ(rows_of(x.batch(0).coords()), (std::vector<Row>{{0, 1, 2}, {0, -3, 5}}));
  EXPECT_EQ(rows_of(x.batch(1).coords()), (std::vector<Row>{{0, 0, 0}, {0, 7, 7}}));
  EXPECT_TRUE(holds(x.batch(1).feats(), {2, 1}, {2, 4}));
  EXPECT_EQ(x.batch(2).rows(), 0);
  EXPECT_EQ(x.batch(2).batch_size(), 1);
  EXPECT_EQ(error_of([&] { x.batch(3); }), "[SparseTensor] batch(3): must be at least 0 and below batch_size, 3");
}

}  // namespace
}  // namespace cenote::test
