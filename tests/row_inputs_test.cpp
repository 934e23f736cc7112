// Bad inputs of sparse pooling: each is an error that names the argument, its value and what is allowed; then the next
// call works.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/clouds.h"
#include "support/sparse_line.h"
#include "support/strided.h"

namespace cenote::test {
namespace {

const Reduction most{.reducer = Reducer::max};

RowPooling pairs(const Reduction& reduction = {}) { return RowPooling(relate(line({0, 1, 2, 3}), {2, 2}), reduction); }

/// A call that is right, after one that was not.
void still_works() { EXPECT_TRUE(holds(pairs()(array({4, 1}, {1, 2, 3, 4})), {2, 1}, {3, 7})); }

std::string refusal(const Reduction& reduction) {
  return error_of([&] { pairs(reduction); });
}

testing::AssertionResult says(const std::string& text, const std::vector<std::string>& parts) {
  if (text.empty()) return testing::AssertionFailure() << "nothing was thrown";
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos) return testing::AssertionFailure() << part << " is not in: " << text;
  return testing::AssertionSuccess();
}

TEST(RowInputs, FeaturesMustFitTheRelation) {
  for (const std::int64_t rows : {0, 3, 5}) {
    const Array x = full({rows, 2}, 1);
    EXPECT_TRUE(rejects([&] { pairs()(x); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
    EXPECT_TRUE(rejects([&] { pairs(most).with_rows(x); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
    EXPECT_TRUE(rejects([&] { vjp(pairs(), x); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
    EXPECT_TRUE(rejects([&] { jvp(pairs(), x, x); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
    EXPECT_TRUE(rejects([&] { hvp(pairs(), x, full({2, 2}, 1), x); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
    EXPECT_TRUE(rejects([&] { pool(Tensor(x), pairs()); }, {"(" + std::to_string(rows) + ", 2)", "4"}));
  }
  EXPECT_TRUE(rejects([] { pairs()(full({4}, 1)); }, {"(4,)", "(4, channels)"}));
  EXPECT_TRUE(rejects([] { pairs()(full({4, 1, 1}, 1)); }, {"(4, 1, 1)", "(4, channels)"}));
  EXPECT_TRUE(rejects([] { pairs()(full({}, 1)); }, {"()", "(4, channels)"}));
  still_works();
}

TEST(RowInputs, ARelationOfOtherRowsIsRefused) {
  const SparseTensor x = line1({0, 1, 2}, {1, 2, 3}), same_count = line1({0, 1, 5}, {1, 2, 3});
  const Relation relation = relate(line({0, 1, 2, 3}), {2, 2});
  EXPECT_TRUE(rejects([&] { pool(x, relation, {}); }, {"3", "4"}));
  const Relation other = relate(same_count.coordinates(), {2, 2});
  EXPECT_NE(error_of([&] { pool(x, other, {}); }), "");
  EXPECT_EQ(error_of([&] { pool(line1({0, 1, 5}, {4, 5, 6}), other, {}); }), "");
  still_works();
}

TEST(RowInputs, FeaturesMustBeFloats) {
  for (const Type type : {Type::i32, Type::i64, Type::u8, Type::boolean}) {
    const Array x = Array::zeros(type, {4, 1});
    const std::string text(name(type));
    EXPECT_TRUE(rejects([&] { pairs()(x); }, {text, "f16, bf16, f32 or f64"}));
    EXPECT_TRUE(rejects([&] { pairs(most).with_rows(x); }, {text, "f16, bf16, f32 or f64"}));
    EXPECT_TRUE(rejects([&] { vjp(pairs(), x); }, {text, "f16, bf16, f32 or f64"}));
    EXPECT_TRUE(rejects([&] { jvp(pairs(), x, x); }, {text, "f16, bf16, f32 or f64"}));
    EXPECT_TRUE(rejects([&] { pool(Tensor(x), pairs()); }, {text}));
  }
  still_works();
}

TEST(RowInputs, SlopesMustHaveTheirTypesAndShapes) {
  const Array x = full({4, 2}, 1), gy = full({2, 2}, 1);
  EXPECT_TRUE(rejects([&] { jvp(pairs(), x, full({4, 1}, 1)); }, {"dx", "(4, 1)", "channels", "2"}));
  EXPECT_TRUE(rejects([&] { jvp(pairs(), x, full({2, 4}, 1)); }, {"dx", "(2, 4)", "channels", "2"}));
  EXPECT_TRUE(rejects([&] { jvp(pairs(), x, full<double>({4, 2}, 1)); }, {"dx", "f64", "f32"}));
  for (const Reducer reducer : all_reducers) {
    const RowPullback back = vjp(pairs({.reducer = reducer}), x).pullback;
    EXPECT_TRUE(rejects([&] { back(full({3, 2}, 1)); }, {"gy", "(3, 2)", "(2, "})) << name(reducer);
    EXPECT_TRUE(rejects([&] { back(full({2}, 1)); }, {"gy", "(2,)", "must"})) << name(reducer);
    EXPECT_TRUE(rejects([&] { back(full({0, 2}, 1)); }, {"gy", "(0, 2)", "(2, "})) << name(reducer);
    EXPECT_TRUE(rejects([&] { back(full<double>({2, 2}, 1)); }, {"gy", "f64", "f32"})) << name(reducer);
    EXPECT_TRUE(rejects([&] { back(Array::zeros(Type::i32, {2, 2})); }, {"gy", "i32", "f32"})) << name(reducer);
    EXPECT_EQ(back(gy).shape(), x.shape());
    const RowPooling pooling = pairs({.reducer = reducer});
    EXPECT_TRUE(rejects([&] { hvp(pooling, x, full({4, 2}, 1), x); }, {"gy", "(4, 2)", "(2, "})) << name(reducer);
    EXPECT_TRUE(rejects([&] { hvp(pooling, x, gy, gy); }, {"v", "(2, 2)", "(4, "})) << name(reducer);
    EXPECT_TRUE(rejects([&] { hvp(pooling, x, gy, full<f16>({4, 2}, 1)); }, {"v", "f16", "f32"})) << name(reducer);
  }
  still_works();
}

TEST(RowInputs, BetaMustBeFiniteAndNotZero) {
  const auto smooth = [](double beta) { return Reduction{.reducer = Reducer::smooth_max, .beta = beta}; };
  EXPECT_TRUE(says(refusal(smooth(0)), {"beta = 0", "finite"}));
  EXPECT_TRUE(says(refusal(smooth(-0.0)), {"beta", "finite"}));
  EXPECT_TRUE(says(refusal(smooth(nan)), {"beta = nan", "finite"}));
  EXPECT_TRUE(says(refusal(smooth(inf)), {"beta = inf", "finite"}));
  EXPECT_TRUE(says(refusal(smooth(-inf)), {"beta = -inf", "finite"}));
  // Finite and not zero, but not in single precision.
  for (const double beta : {1e300, 1e-300}) {
    const RowPooling pooling = pairs(smooth(beta));
    EXPECT_TRUE(rejects([&] { pooling(full({4, 1}, 1)); }, {"beta", "f32"})) << beta;
    EXPECT_TRUE(rejects([&] { pooling(full<f16>({4, 1}, 1)); }, {"beta"})) << beta;
    EXPECT_TRUE(rejects([&] { vjp(pooling, full({4, 1}, 1)); }, {"beta", "f32"})) << beta;
    EXPECT_TRUE(rejects([&] { jvp(pooling, full({4, 1}, 1), full({4, 1}, 1)); }, {"beta", "f32"})) << beta;
    EXPECT_EQ(pooling(full<double>({4, 1}, 1)).shape(), (Extents{2, 1}));
  }
  EXPECT_EQ(refusal({.reducer = Reducer::sum, .beta = 0}), "");
  still_works();
}

TEST(RowInputs, TheExponentMustBeAtLeastOne) {
  const auto norm = [](double p) { return Reduction{.reducer = Reducer::lp, .p = p}; };
  EXPECT_TRUE(says(refusal(norm(0.5)), {"p = 0.5", "at least 1"}));
  EXPECT_TRUE(says(refusal(norm(0)), {"p = 0", "at least 1"}));
  EXPECT_TRUE(says(refusal(norm(-2)), {"p = -2", "at least 1"}));
  EXPECT_TRUE(says(refusal(norm(nan)), {"p = nan", "at least 1"}));
  EXPECT_EQ(refusal(norm(inf)), "");
  still_works();
}

TEST(RowInputs, DivisorsMustBeFiniteAndPositive) {
  const auto average = [](double by) { return Reduction{.reducer = Reducer::avg, .divisor = by}; };
  EXPECT_TRUE(says(refusal(average(0)), {"divisor", "0", "finite"}));
  EXPECT_TRUE(says(refusal(average(-2)), {"divisor", "-2", "finite"}));
  EXPECT_TRUE(says(refusal(average(nan)), {"divisor", "nan", "finite"}));
  EXPECT_TRUE(says(refusal(average(inf)), {"divisor", "inf", "finite"}));
  EXPECT_NE(error_of([] {
              RowPooling::global(line({0, 1}), {.reducer = Reducer::avg, .divisor = EdgeDivisor::Rule::volume});
            }).find("volume"),
            std::string::npos);
  still_works();
}

TEST(RowInputs, AnEmptyRowIsNamed) {
  // Targets 0 and 1 have inputs; 7, the third, has none.
  const RelateOptions onto{.targets = line({0, 1, 7, 8})};
  const Relation relation = relate(line({0, 1, 2, 3}), {2, 2}, onto);
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::smooth_max})
    EXPECT_TRUE(rejects([&] { RowPooling(relation, {.reducer = reducer}); },
                        {std::string(name(reducer)), "row 2", "(0, 7)", "identity"}))
        << name(reducer);
  const SparseTensor x = line1({0, 1, 2, 3}, {1, 2, 3, 4});
  EXPECT_TRUE(rejects([&] { pool(x, {most, {2, 2}, onto}); }, {"row 2"}));
  const SparseTensor two(row_array({{0, 0}, {2, 0}}, 1), array({2, 1}, {1, 3}));
  EXPECT_TRUE(rejects([&] { global_max_pool(two); }, {"max", "batch 1"}));
  still_works();
}

TEST(RowInputs, WinnersAreOfMaxAndMinAlone) {
  for (const Reducer reducer : {Reducer::sum, Reducer::avg, Reducer::smooth_max, Reducer::lp})
    EXPECT_TRUE(rejects(
        [&] {
          pairs({.reducer = reducer}).with_rows(full({4, 1}, 1));
        },
        {std::string(name(reducer)), "max"}));
  still_works();
}

TEST(RowInputs, OutputsMustFitAndNotOverlap) {
  std::vector<float> memory(64, 1);
  const View x(memory.data(), {4, 2});
  const RowPooling pooling = pairs();
  const auto into = [&](float* at, const Extents& shape) {
    return [&, at, shape] { pooling.run(x, MutableView(at, shape)); };
  };
  EXPECT_TRUE(rejects(into(memory.data(), {2, 2}), {"overlap"}));
  EXPECT_TRUE(rejects(into(memory.data() + 7, {2, 2}), {"overlap"}));
  EXPECT_TRUE(rejects(into(memory.data() + 8, {3, 2}), {"(3, 2)", "(2, 2)"}));
  EXPECT_TRUE(rejects(into(memory.data() + 8, {4}), {"(4,)", "(2, 2)"}));
  Array doubled(Type::f64, {2, 2});
  EXPECT_TRUE(rejects([&] { pooling.run(x, doubled); }, {"f64", "f32"}));
  // Two elements in one place.
  EXPECT_NE(error_of([&] { pooling.run(x, MutableView(memory.data() + 8, Type::f32, {2, 2}, {0, 1})); }), "");
  for (const float value : memory) EXPECT_EQ(value, 1);
  pooling.run(x, MutableView(memory.data() + 8, {2, 2}));
  EXPECT_EQ(memory[8], 2);
  still_works();
}

TEST(RowInputs, PulledBackMemoryMustFitAndNotOverlap) {
  std::vector<float> memory(64, 1);
  const View gy(memory.data(), {2, 2});
  const RowPullback back = vjp(pairs(), full({4, 2}, 1)).pullback;
  const auto into = [&](float* at, const Extents& shape) {
    return [&, at, shape] { back.run(gy, MutableView(at, shape)); };
  };
  EXPECT_TRUE(rejects(into(memory.data() + 3, {4, 2}), {"gx", "overlap"}));
  EXPECT_TRUE(rejects(into(memory.data() + 8, {2, 2}), {"gx", "(2, 2)", "(4, 2)"}));
  Array doubled(Type::f64, {4, 2});
  EXPECT_TRUE(rejects([&] { back.run(gy, doubled); }, {"gx", "f64", "f32"}));
  EXPECT_NE(error_of([&] { back.run(gy, MutableView(memory.data() + 8, Type::f32, {4, 2}, {0, 1})); }), "");
  for (const float value : memory) EXPECT_EQ(value, 1);
  // Backwards, and with gaps.
  memory[0] = 5;
  back.run(gy, MutableView(memory.data() + 40, Type::f32, {4, 2}, {-6, 3}));
  EXPECT_EQ(memory[40], 5);
  EXPECT_EQ(memory[43], 1);
  EXPECT_EQ(memory[34], 5);
  still_works();
}

TEST(RowInputs, ViewsWithoutMemoryAreRefused) {
  EXPECT_NE(error_of([] { pairs()(View(static_cast<const float*>(nullptr), {4, 1})); }), "");
  EXPECT_NE(error_of([] { pairs().run(full({4, 1}, 1), MutableView(static_cast<float*>(nullptr), {2, 1})); }), "");
  still_works();
}

TEST(RowInputs, TransposedStridesMustDivide) {
  const SparseTensor x = line3({0, 1}, {2, 6}, {4, 3, 2});
  EXPECT_TRUE(rejects([&] { pool_transpose(x, {2, 2}); }, {"stride[1] = 2", "divide", "3"}));
  EXPECT_TRUE(rejects([&] { upsample(x, 2); }, {"stride[1] = 2", "divide", "3"}));
  EXPECT_EQ(pool_transpose(x, {2, {4, 3, 1}}).stride(), (Extents{1, 1, 2}));
  EXPECT_TRUE(rejects([&] { upsample(x, 0); }, {"scale[0] = 0", "from 1"}));
  EXPECT_TRUE(rejects([&] { upsample(x, {2, 1}); }, {"3"}));
  EXPECT_TRUE(rejects([&] { pool_transpose(x, {2, 1}, line({0})); }, {"targets"}));
  still_works();
}

TEST(RowInputs, RelationsThatWereTransposedDivideToo) {
  const SparseTensor x = line1({0, 1}, {2, 6}, 3);
  const Relation up = relate_transposed(x.coordinates(), {2, 2});
  EXPECT_TRUE(rejects([&] { pool(x, up, {}); }, {"stride[0] = 2", "divide", "3"}));
  EXPECT_TRUE(rejects([&] { pool(line1({0, 1}, {2, 6}), up, {}); }, {"stride[0] = 2", "divide", "1"}));
  EXPECT_EQ(pool(line1({0, 1}, {2, 6}, 6), up, {}).stride(), Extents{3});
  still_works();
}

TEST(RowInputs, MultilinearWantsItsOwnKernel) {
  const auto points = line({0, 1});
  EXPECT_EQ(error_of([&] { RowPooling::multilinear(relate_transposed(points, {3, 2, 1})); }), "");
  EXPECT_NE(error_of([&] { RowPooling::multilinear(relate_transposed(points, {2, 2})); }), "");
  EXPECT_NE(error_of([&] { RowPooling::multilinear(relate_transposed(points, {3, 2, 0})); }), "");
  EXPECT_NE(error_of([&] { RowPooling::multilinear(relate(points, {3, 2, 1})); }), "");
  still_works();
}

TEST(RowInputs, NamesOfThreeDimensionsWantThree) {
  const SparseTensor flat(row_array({{0, 0, 0}, {0, 1, 1}}, 2), array({2, 1}, {1, 2}));
  EXPECT_TRUE(rejects([&] { pool3d(flat); }, {"pool3d", "2", "3"}));
  EXPECT_TRUE(rejects([&] { max_pool3d(flat); }, {"pool3d", "2", "3"}));
  EXPECT_TRUE(rejects([&] { AvgPool3d{}(flat); }, {"pool3d", "2", "3"}));
  const SparseTensor x = line3({0, 1}, {1, 2});
  EXPECT_TRUE(rejects([&] { pool3d(x, {.kernel_size = 0}); }, {"0", "at least 1"}));
  EXPECT_TRUE(rejects([&] { pool3d(x, {.stride = {2, 2}}); }, {"stride", "3"}));
  EXPECT_TRUE(rejects([&] { pool3d(x, {.padding = -1}); }, {"padding", "-1"}));
  still_works();
}

TEST(RowInputs, CoordinatesMustBeThere) {
  EXPECT_TRUE(rejects([] { RowPooling::global(nullptr, {}); }, {"null"}));
  still_works();
}

TEST(RowInputs, OutputStridesMayNotOverflow) {
  const SparseTensor x = line1({0, 1}, {1, 2}, std::int64_t{1} << 62);
  EXPECT_NE(error_of([&] { pool(x, {.reduction = {}, .kernel = {2, 4}}); }), "");
  still_works();
}

}  // namespace
}  // namespace cenote::test
