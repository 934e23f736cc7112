// Reductions of random rows against the oracle, on every target and number of threads; and against dense poolings.
#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "core/copy.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_rows.h"

namespace cenote::test {
namespace {

using detail::between;
using detail::chance;
using detail::one_of;

bool picks(const Reduction& r) { return r.reducer == Reducer::max || r.reducer == Reducer::min; }

/// The pooling's result in memory of the case's own layout, held against the oracle.
std::vector<std::byte> run_checked(const RowCase& c, const RowGiven& given, const std::vector<Element>& expected,
                                   const std::string& where) {
  Strided y(c.type, given.output_shape(c), c.y);
  given.pooling->run(given.features(), y.view());
  const std::string wrong = mismatch(expected, std::as_const(y).view());
  if (!wrong.empty()) RC_FAIL(wrong + where);
  if (!y.gaps_untouched()) RC_FAIL("memory outside the result was written" + where);
  return y.packed();
}

void equals_the_oracle(RowCase c) {
  const RowGiven given(c);
  const RowOracle oracle = given.oracle(c);
  const auto expected = oracle.values();
  std::optional<std::vector<std::byte>> anywhere;
  for (const std::string& target : targets_under_test()) {
    std::optional<std::vector<std::byte>> first;
    for (const int count : {1, 2, 5}) {
      const Machine machine(target, count);
      const std::string where = " on " + target + " with " + std::to_string(count) + " threads";
      const auto bytes = run_checked(c, given, expected, where);
      if (first && *first != bytes) RC_FAIL("other bits than with one thread" + where);
      first = bytes;
    }
    if (picks(c.reduction) && anywhere && *anywhere != *first) RC_FAIL("other bits on " + target);
    anywhere = first;
    if (!picks(c.reduction)) continue;
    const Machine machine(target, 2);
    const PooledRows found = given.pooling->with_rows(given.features());
    Strided values(c.type, found.values.shape(), Layout::plain(found.values.shape().size()));
    copy_strided(found.values, values.view());
    if (values.packed() != *first) RC_FAIL("other values with rows on " + target);
    const std::string wrong = mismatch(oracle.rows(), found.rows);
    if (!wrong.empty()) RC_FAIL("row " + wrong + " on " + target);
  }
  const Array alone = (*given.pooling)(given.features());
  RC_ASSERT(alone.type() == c.type);
  RC_ASSERT(alone.shape() == given.output_shape(c));
}

class RowPoolingLaws : public testing::TestWithParam<RowKind> {};
INSTANTIATE_TEST_SUITE_P(Every, RowPoolingLaws, testing::ValuesIn(row_kinds), row_label);

TEST_P(RowPoolingLaws, ValuesAndWinnersEqualTheOracleWithAnyTargetAndThreads) {
  const auto drawn = row_cases(GetParam().reducer, GetParam().ties);
  check(GetParam().ties == Ties::split ? 40 : 200, [&] { equals_the_oracle(*drawn); });
}

/// A sparse tensor of small integers inside an extent, and a window that fits there.
struct Densified {
  SparseTensor x;
  Extents extent;
  Kernel kernel;
  Window window;

  RelateOptions options(Engine engine) const { return {.policy = Policy::dense, .extent = extent, .engine = engine}; }
};

Array small_features(Type type, std::int64_t rows, std::int64_t channels, bool with_nan) {
  Array x = drawn({rows, channels}, type, Data::few, static_cast<std::uint64_t>(between(0, 1 << 20)));
  if (with_nan && x.size() > 0)
    visit(type, [&]<class T>(T) {
      if constexpr (!std::is_integral_v<T>) {
        using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
        for (int i = 0; i < 3; ++i)
          x.values<T>()[static_cast<std::size_t>(between(0, x.size() - 1))] = T(static_cast<Number>(nan));
      }
    });
  return x;
}

Densified draw_densified(bool with_nan) {
  const int dimension = static_cast<int>(between(1, 3));
  Extents extent, size, stride, padding, dilation;
  for (int a = 0; a < dimension; ++a) {
    size.push_back(between(1, 4));
    stride.push_back(between(1, 3));
    dilation.push_back(chance(30) ? 2 : 1);
    padding.push_back(chance(40) ? between(0, size[a] - 1) : 0);
    extent.push_back(std::max<std::int64_t>(1, (size[a] - 1) * dilation[a] + 1 - 2 * padding[a]) + between(0, 4));
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(between(0, 1 << 20)));
  const std::int64_t keep = between(1, 4), batches = between(1, 3);
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < batches; ++b) {
    reference::Shape at(static_cast<std::size_t>(dimension), 0);
    do {
      if (static_cast<std::int64_t>(random() % 4) >= keep) continue;
      rows.push_back({b});
      rows.back().insert(rows.back().end(), at.begin(), at.end());
    } while (reference::next(at, to_shape(extent)));
  }
  std::shuffle(rows.begin(), rows.end(), random);
  const Type type = one_of<Type>({Type::f32, Type::f64, Type::f16, Type::bf16});
  const Array feats = small_features(type, static_cast<std::int64_t>(rows.size()), between(1, 9), with_nan);
  std::vector<Padding::Sides> sides;
  for (const std::int64_t p : padding) sides.push_back({p, p});
  SparseTensor x(row_array(rows, dimension), feats, {.batch_size = batches});
  return {chance(30) ? x.sorted() : x,
          extent,
          {size, stride, padding, dilation},
          {.size = size, .stride = stride, .dilation = dilation, .padding = Padding(sides)}};
}

/// The elements of a dense (batch, channels, …) array at sparse rows, (rows, channels).
std::vector<double> at_rows(const Array& dense, const std::vector<Row>& rows) {
  const std::vector<double> values = numbers(dense);
  std::vector<double> result;
  for (const Row& row : rows) {
    for (std::int64_t c = 0; c < dense.shape()[1]; ++c) {
      std::int64_t at = row[0] * dense.shape()[1] + c;
      for (std::size_t a = 1; a < row.size(); ++a) at = at * dense.shape()[static_cast<int>(a) + 1] + row[a];
      result.push_back(values[static_cast<std::size_t>(at)]);
    }
  }
  return result;
}

/// The same of features, up to a relative tolerance.
void check_same(const Array& sparse, const std::vector<double>& dense, double tolerance, const std::string& what) {
  const std::vector<double> found = numbers(sparse);
  RC_ASSERT(found.size() == dense.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool same = found[i] == dense[i] || (found[i] != found[i] && dense[i] != dense[i]);
    if (!same && !(std::fabs(found[i] - dense[i]) <= tolerance * (1 + std::fabs(dense[i]))))
      RC_FAIL(what + " " + std::to_string(i) + " is " + std::to_string(found[i]) + ", the dense one " +
              std::to_string(dense[i]));
  }
}

double tolerance_of(Type type) { return type == Type::f64 ? 1e-13 : type == Type::f32 ? 1e-5 : 2e-2; }

void equals_the_dense_pooling(Reducer reducer, Ties ties) {
  const bool extremum = reducer == Reducer::max || reducer == Reducer::min;
  const Densified d = draw_densified(extremum && chance(30));
  const Reduction reduction{.reducer = reducer, .divisor = EdgeDivisor::Rule::volume, .ties = ties};
  Pooling dense_pooling{.reducer = reducer, .region = d.window, .ties = ties};
  const double fill = reducer == Reducer::max ? -inf : reducer == Reducer::min ? inf : 0;
  const Array dense = d.x.to_dense(d.extent, fill);
  const SparsePooling pooling{reduction, d.kernel, d.options(one_of<Engine>({Engine::sorted, Engine::hashed}))};
  const SparseTensor y = pool(d.x, pooling);
  const std::vector<Row> out = rows_of(y.coords());
  RC_ASSERT(std::is_sorted(out.begin(), out.end()));
  const bool exact = reducer != Reducer::lp;
  check_same(y.feats(), at_rows(pool(dense, dense_pooling), out), exact ? 0 : tolerance_of(d.x.type()), "value");

  const Array gy = drawn({y.rows(), y.channels()}, y.type(), Data::few, 5);
  Extents shape = plan(dense_pooling, dense.type(), dense.shape()).output_shape(), plane;
  for (int a = 2; a < shape.size(); ++a) plane.push_back(shape[a]);
  const Array dense_gy = y.with_feats(gy).to_dense(plane);
  const Array gx = vjp(row_pooling(d.x, pooling), d.x.feats()).pullback(gy);
  const bool whole = (extremum && ties == Ties::first) || reducer == Reducer::sum;
  check_same(gx, at_rows(vjp(dense_pooling, dense).pullback(dense_gy), rows_of(d.x.coords())),
             whole ? 0 : tolerance_of(d.x.type()), "gx");
  if (!extremum) return;

  dense_pooling.indices = IndexKind::plane;
  const std::vector<double> named = at_rows(pool_with_indices(dense, dense_pooling).indices, out);
  const SparsePooledRows found = pool_with_rows(d.x, pooling);
  const auto rows = rows_of(d.x.coords());
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Row& winner = rows[static_cast<std::size_t>(found.rows.values<std::int32_t>()[i])];
    std::int64_t index = 0;
    for (std::size_t a = 1; a < winner.size(); ++a) index = index * d.extent[static_cast<int>(a) - 1] + winner[a];
    RC_ASSERT(static_cast<double>(index) == named[i]);
    RC_ASSERT(winner[0] == out[i / static_cast<std::size_t>(y.channels())][0]);
  }
}

/// All reducers but smooth max: absent cells have no number that would stand for them.
class DenseTwins : public testing::TestWithParam<RowKind> {};
INSTANTIATE_TEST_SUITE_P(Of, DenseTwins,
                         testing::Values(RowKind{Reducer::max}, RowKind{Reducer::min},
                                         RowKind{Reducer::max, Ties::split}, RowKind{Reducer::sum},
                                         RowKind{Reducer::avg}, RowKind{Reducer::lp}),
                         row_label);

TEST_P(DenseTwins, APoolingWithAnExtentEqualsThatOfTheDenseArray) {
  check(250, [] { equals_the_dense_pooling(GetParam().reducer, GetParam().ties); });
}

TEST(RowPoolingRandom, TransposedPoolingsAndUpsamplingEqualTheOracle) {
  check(300, [] {
    const int dimension = draw_dimension();
    std::mt19937_64 random(static_cast<std::uint64_t>(between(0, 1 << 20)));
    const auto kind = one_of<CloudKind>({CloudKind::small, CloudKind::spread, CloudKind::full, CloudKind::line});
    const auto inputs = cloud(kind, dimension, static_cast<int>(between(0, 30)), false, random);
    reference::SparseProblem p{.inputs = inputs,
                               .kernel = reference::multilinear_kernel(draw_axes(dimension, 1, 2 + (dimension < 4)))};
    if (chance(50)) p.targets = cloud(CloudKind::small, dimension, 40, false, random);
    const Type type = one_of<Type>({Type::f32, Type::f64, Type::f16, Type::bf16});
    const auto n = static_cast<std::int64_t>(inputs.size());
    const SparseTensor x(row_array(inputs, dimension), drawn({n, between(1, 9)}, type, Data::unit, random()), {},
                         kernel_of(p.kernel).stride);
    const auto targets = p.targets ? coordinates(*p.targets, dimension) : nullptr;
    const auto relation = reference::sparse_transposed(p);
    const auto shares = reference::multilinear_jacobian(inputs, relation.outputs, p.kernel.stride, x.channels());

    const SparseTensor up = upsample(x, kernel_of(p.kernel).stride, targets);
    RC_ASSERT(rows_of(up.coords()) == relation.outputs);
    RC_ASSERT(up.stride() == Extents::filled(dimension, 1));
    const auto off = [&](const reference::Weight& w, long double by) {
      return 40 * unit(type) * std::fabs(w.weight * by);
    };
    std::vector<Element> expected, back;
    for (const auto& y : reference::jvp(shares, numbers(x.feats()), off))
      expected.push_back(near(type, y.value, y.error));
    const std::string wrong = mismatch(expected, up.feats());
    if (!wrong.empty()) RC_FAIL("upsampled " + wrong);

    const RowPooling weighed =
        RowPooling::multilinear(relate_transposed(x.coordinates(), kernel_of(p.kernel), targets));
    const Array gy = drawn(up.feats().shape(), type, Data::unit, 4);
    for (const auto& gx : reference::vjp(shares, numbers(gy), static_cast<std::size_t>(x.feats().size()), off))
      back.push_back(near(type, gx.value, gx.error));
    const std::string wrong_back = mismatch(back, vjp(weighed, x.feats()).pullback(gy));
    if (!wrong_back.empty()) RC_FAIL("gx of upsampling " + wrong_back);
    RC_ASSERT(bytes_of(jvp(weighed, x.feats(), x.feats()).dy) == bytes_of(up.feats()));

    const SparseTensor average = pool_transpose(x, kernel_of(p.kernel), targets);
    RC_ASSERT(rows_of(average.coords()) == relation.outputs);
    const RowOracle oracle({.reducer = Reducer::avg}, relation, 1, x.feats());
    const std::string wrong_average = mismatch(oracle.values(), average.feats());
    if (!wrong_average.empty()) RC_FAIL("averaged " + wrong_average);
  });
}

TEST(RowPoolingRandom, OnePoolingServesManyFeatures) {
  check(60, [] {
    RowCase c = *row_cases(one_of<Reducer>({Reducer::max, Reducer::sum, Reducer::lp}), Ties::first);
    const RowGiven given(c);
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16}) {
      const std::int64_t channels = between(0, 40);
      const Array x = drawn({given.input->rows(), channels}, type, Data::few, 9);
      const std::string wrong =
          mismatch(RowOracle(c.reduction, given.relation, given.volume, x).values(), (*given.pooling)(x));
      if (!wrong.empty()) RC_FAIL(wrong);
    }
  });
}

}  // namespace
}  // namespace cenote::test
