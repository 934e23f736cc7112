// Both modes of every pooling's derivative on random problems, held against the oracle and against each other.
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "core/copy.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

/// x, dx and gy of a case, where the windows can be planned.
struct Given {
  Plan planned;
  Strided x, dx, gy;

  explicit Given(const SlopeCase& c)
      : planned(plan(c.pooling, c.type, c.shape)),
        x(c.type, c.shape, c.x),
        dx(c.type, c.shape, c.dx),
        gy(planned.output_type(), planned.output_shape(), c.gy) {
    fill(x, c.data, c.seed);
    fill(dx, c.slopes, c.seed + 1);
    fill(gy, c.slopes, c.seed + 2);
  }
};

std::optional<Given> given(const SlopeCase& c) {
  try {
    return Given(c);
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // which requests are refused is for others to test
  }
}

/// dy and gx of a case, each in memory of its own.
struct Both {
  Strided dy, gx;

  Both(const SlopeCase& c, const Plan& planned)
      : dy(planned.output_type(), planned.output_shape(), c.dy), gx(c.type, c.shape, c.gx) {}
  Both(const SlopeCase& c, const Given& at) : Both(c, at.planned) {
    at.planned.jvp(at.x.view(), at.dx.view(), dy.view());
    at.planned.vjp(at.x.view(), at.gy.view(), gx.view());
  }
  bool same_bits(const Both& other) const {
    return dy.packed() == other.dy.packed() && gx.packed() == other.gx.packed();
  }
  bool gaps_untouched() const { return dy.gaps_untouched() && gx.gaps_untouched(); }
};

void check_both_are_adjoint(const SlopeCase& c, const Given& at, const Both& both, const Slopes& oracle) {
  const bool integers = c.slopes == Data::few;
  const auto dx = doubles(at.dx.view()), gy = doubles(at.gy.view());
  // Integers as small as these are exact in all but the halves, whose sums are rounded.
  const bool exact = integers && (is_routed(c.pooling) || c.pooling.reducer == Reducer::sum) && size_of(c.type) > 2;
  const long double error = inner_error(oracle.tangents(dx, integers), gy, at.gy.type()) +
                            inner_error(oracle.cotangents(gy, integers), dx, c.type);
  const bool adjoint = check_adjoint(doubles(both.dy.view()), gy, doubles(both.gx.view()), dx, exact ? 0 : 2 * error);
  RC_ASSERT(adjoint || !is_routed(c.pooling));
}

/// The short forms are the same derivatives. They copy x, so that sums may be grouped otherwise.
void check_functions(const SlopeCase& c, const Given& at, const std::vector<Element>& dy,
                     const std::vector<Element>& gx) {
  const View x = at.x.view();
  const Differentiated way = vjp(c.pooling, x);
  RC_ASSERT(bytes_of(way.y) == bytes_of(pool(x, c.pooling)));
  const std::string wrong_dy = mismatch(dy, jvp(c.pooling, x, at.dx.view()).dy);
  const std::string wrong_gx = mismatch(gx, way.pullback(at.gy.view()));
  if (!wrong_dy.empty()) RC_FAIL("dy of jvp " + wrong_dy);
  if (!wrong_gx.empty()) RC_FAIL("gx of a pullback " + wrong_gx);
}

/// The winners' offsets serve instead of x. Where they lie otherwise than y, sums may be grouped otherwise, too.
void check_offsets(const SlopeCase& c, const Given& at, const Both& both, const std::vector<Element>& gx) {
  Pooling with_offsets = c.pooling;
  with_offsets.indices = IndexKind::offset;
  const Plan winners = plan(with_offsets, c.type, c.shape);
  Strided y(c.type, winners.output_shape(), c.y), offsets(*winners.index_type(), winners.output_shape(), c.indices);
  winners.run(at.x.view(), y.view(), offsets.view());
  Both saved(c, at.planned);
  at.planned.jvp_from_offsets(std::as_const(offsets).view(), at.dx.view(), saved.dy.view());
  at.planned.vjp_from_offsets(std::as_const(offsets).view(), at.gy.view(), saved.gx.view());
  RC_ASSERT(saved.dy.packed() == both.dy.packed());
  const std::string wrong_gx = mismatch(gx, std::as_const(saved.gx).view());
  if (!wrong_gx.empty()) RC_FAIL("gx from offsets " + wrong_gx);
  RC_ASSERT(saved.gaps_untouched());
}

void obeys_the_laws(const SlopeCase& c) {
  const auto at = given(c);
  if (!at) return;
  const bool integers = c.slopes == Data::few;
  const Slopes oracle(c.pooling, c.type, c.shape, at->x.view());
  const auto dy = oracle.jvp(doubles(at->dx.view()), integers), gx = oracle.vjp(doubles(at->gy.view()), integers);
  std::optional<Both> anywhere;
  for (const std::string& target : targets_under_test()) {
    std::optional<Both> first;
    for (const int count : {1, 2, 5}) {
      const Machine machine(target, count);
      Both both(c, *at);
      const std::string where =
          " on " + target + " with " + std::to_string(count) + " threads: " + at->planned.explain();
      if (first && !first->same_bits(both)) RC_FAIL("other bits than with one thread" + where);
      if (first) continue;
      const std::string wrong_dy = mismatch(dy, both.dy.view()), wrong_gx = mismatch(gx, both.gx.view());
      if (!wrong_dy.empty()) RC_FAIL("dy " + wrong_dy + where);
      if (!wrong_gx.empty()) RC_FAIL("gx " + wrong_gx + where);
      if (!both.gaps_untouched()) RC_FAIL("memory outside the result was written" + where);
      first.emplace(std::move(both));
    }
    if (anywhere && is_routed(c.pooling) && !anywhere->same_bits(*first)) RC_FAIL("other bits on " + target);
    anywhere = std::move(first);
  }
  const Machine machine(targets_under_test().back(), 2);
  check_both_are_adjoint(c, *at, *anywhere, oracle);
  check_functions(c, *at, dy, gx);
  if (is_routed(c.pooling)) check_offsets(c, *at, *anywhere, gx);
}

/// A reducer, and who gets the derivative at ties.
struct Kind {
  Reducer reducer;
  Ties ties = Ties::first;
};
constexpr Kind kinds[] = {{Reducer::max}, {Reducer::min}, {Reducer::max, Ties::split}, {Reducer::min, Ties::split},
                          {Reducer::sum}, {Reducer::avg}, {Reducer::smooth_max},       {Reducer::lp}};

class DerivativeLaws : public testing::TestWithParam<std::tuple<Kind, Region>> {};

TEST_P(DerivativeLaws, BothModesEqualTheOracleAndAreAdjointWithAnyTargetAndThreads) {
  const auto [kind, region] = GetParam();
  const int count[] = {300, 12, 15, 2};
  const auto drawn = slope_cases(kind.reducer, kind.ties, region);
  check(count[static_cast<int>(region)], [&] { obeys_the_laws(*drawn); });
}

std::string label(const testing::TestParamInfo<std::tuple<Kind, Region>>& info) {
  constexpr const char* regions[] = {"small", "deep", "wide", "large"};
  const auto [kind, region] = info.param;
  return std::string(name(kind.reducer)) + (kind.ties == Ties::split ? "_split_" : "_") +
         regions[static_cast<int>(region)];
}

INSTANTIATE_TEST_SUITE_P(Every, DerivativeLaws,
                         testing::Combine(testing::ValuesIn(kinds),
                                          testing::Values(Region::small, Region::deep, Region::wide, Region::large)),
                         label);

/// Windows that are long and lie apart, so that those which hold a cell are swept, phase by phase.
SlopeCase draw_apart(Kind kind) {
  using namespace detail;
  SlopeCase c = *slope_cases(kind.reducer, kind.ties, Region::small);
  const bool last = chance(50), plane = chance(50);
  Extents size, stride, dilation;
  std::vector<Padding::Sides> padding;
  c.shape = {between(1, 2)};
  for (int i = 0; i < (plane ? 2 : 1); ++i) {
    stride.push_back(between(1, 4));
    dilation.push_back(one_of<std::int64_t>({1, 1, 2, 3, 4, 6}));
    size.push_back(between(1, (plane ? 10 : 24) * stride[i]));
    const std::int64_t extent = (size[i] - 1) * dilation[i] + 1;
    padding.emplace_back(between(0, extent), between(0, extent));
    c.shape.push_back(between(extent / 2 + 1, extent + (plane ? 20 : 200)));
  }
  if (last) c.shape.push_back(one_of<std::int64_t>({2, 3, 9, 16}));
  c.pooling.region = Window{.size = size,
                            .stride = stride,
                            .dilation = dilation,
                            .padding = Padding(padding),
                            .ceil = chance(20),
                            .allow_empty = true,
                            .channels_last = last};
  const int rank = c.shape.size();
  c.x = layout(rank, true);
  c.dx = chance(40) ? c.x : layout(rank, true);
  c.gy = layout(rank, true);
  c.y = c.indices = c.dy = layout(rank, false);
  c.gx = layout(rank, false);
  return c;
}

TEST(LongWindowsApart, ObeyTheLaws) {
  for (const Kind kind : kinds)
    if (kind.reducer != Reducer::min)
      check(40, [&] { obeys_the_laws(*rc::gen::exec([&] { return draw_apart(kind); })); });
}

TEST(UnpoolDerivative, IsAdjointInBothModes) {
  check(400, [] {
    using namespace detail;
    const Axes a = axes(static_cast<int>(between(1, 3)), static_cast<int>(between(0, 2)));
    Extents y_shape = Extents::filled(a.rank, 1), x_shape = y_shape;
    for (int i = 0; i < a.rank; ++i) y_shape[i] = x_shape[i] = between(0, 5);
    std::int64_t plane = 1;
    for (const int axis : a.pooled) plane *= x_shape[axis] = between(1, 6);
    const Type type = one_of<Type>({Type::f32, Type::f64, Type::f16, Type::bf16});
    Strided dy(type, y_shape, layout(a.rank, true)), gx(type, x_shape, layout(a.rank, true)),
        places(Type::i64, y_shape, layout(a.rank, true));
    fill(dy, Data::few, 1);
    fill(gx, Data::few, static_cast<std::uint64_t>(between(0, 1000)));
    fill(places, Data::unit, static_cast<std::uint64_t>(between(0, 1000)));
    reference::Shape index(static_cast<std::size_t>(a.rank), 0);
    if (element_count(y_shape) > 0) {
      do {
        auto& place = *static_cast<std::int64_t*>(places.element(index));
        place = ((place % plane) + plane) % plane;
      } while (reference::next(index, to_shape(y_shape)));
    }
    const Plane named{.rank = a.named ? std::nullopt : std::optional(static_cast<int>(a.pooled.size())),
                      .channels_last = a.channels_last,
                      .axes = a.named};
    const View at = std::as_const(places).view(), tangent = std::as_const(dy).view(), back = std::as_const(gx).view();
    const Array dx = max_unpool(tangent, at, x_shape, named), gy = max_unpool_vjp(back, at, named);
    RC_ASSERT(gy.shape() == y_shape);
    const auto inner = [](const std::vector<double>& u, const std::vector<double>& v) {
      return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
    };
    RC_ASSERT(inner(numbers(dx), doubles(back)) == inner(doubles(tangent), numbers(gy)));
  });
}

/// Every second element of an array that is twice as long.
struct Apart {
  Array memory;
  MutableView view;
  Apart(Type type, const Extents& shape) : memory(type, {2 * std::max<std::int64_t>(element_count(shape), 1)}) {
    view = MutableView(memory.data(), type, shape);
    for (int i = 0; i < view.rank(); ++i) view.strides[i] *= 2;
  }
};

// Rows without gaps are made several at a time, of all phases of a stride at once; others one by one. Small whole
// numbers have exact sums in any order.
TEST(GradientsWithoutGaps, AreThoseWithGaps) {
  std::uint64_t number = 1;
  for (const std::int64_t size : {1, 2, 3, 5})
    for (const std::int64_t stride : {1, 2, 3, 4, 5, 7})
      for (const std::int64_t padding : {0, 1})
        for (const std::int64_t side : {5, 36, 70})
          for (const std::int64_t channels : {0, 3, 32}) {
            const bool last = channels > 0;
            Pooling pooling;
            pooling.reducer = std::array{Reducer::max, Reducer::sum, Reducer::min}[++number % 3];
            pooling.region =
                Window{.size = {3, size}, .stride = {2, stride}, .padding = padding, .channels_last = last};
            const Type type = std::array{Type::f32, Type::f64, Type::f32, Type::bf16}[number / 3 % 4];
            const Extents shape = last ? Extents{2, 7, side, channels} : Extents{2, 3, 7, side};
            if (padding >= size) continue;
            const Array x = drawn(shape, type, Data::unit, number);
            const Plan planned = plan(pooling, type, shape);
            const Array gy = drawn(planned.output_shape(), type, Data::few, number + 1);
            for (const std::string& target : targets_under_test()) {
              const Machine machine(target, 2);
              const auto pullback = vjp(pooling, x).pullback;
              Apart other(type, planned.output_shape()), expected(type, shape);
              copy_strided(gy, other.view);
              pullback.run(other.view, expected.view);
              EXPECT_TRUE(doubles(pullback(gy)) == doubles(expected.view)) << planned.explain() << " on " << target;
            }
          }
}

/// Windows of one size along all pooled axes of a plane, and an array of them.
struct AnyWinners {
  std::vector<std::int64_t> cells;  // of the pooled axes
  std::int64_t size, stride, padding, channels;
  bool last;
  Type type;

  Pooling pooling() const {
    Window window{.size = Extents::filled(static_cast<int>(cells.size()), size), .channels_last = last};
    window.stride = stride;
    window.padding = padding;
    return {.reducer = Reducer::max, .region = window};
  }
  Extents shape() const {
    Extents shape = Extents::filled(static_cast<int>(cells.size()) + 2, channels);
    shape[0] = 2;
    for (std::size_t i = 0; i < cells.size(); ++i) shape[static_cast<int>(i) + (last ? 1 : 2)] = cells[i];
    return shape;
  }
};

/// Calls visit(output, offset, cell) for every output with a cell of its window that need be no winner of any array:
/// the first, the last, or any other.
template <class Visit>
void choose_winners(const AnyWinners& c, const Extents& out, std::uint64_t seed, const Visit& visit) {
  std::mt19937_64 random(seed);
  const std::size_t first = c.last ? 1 : 2;
  const reference::Shape outputs = to_shape(out), cells = to_shape(c.shape());
  reference::Shape index(outputs.size(), 0);
  do {
    std::int64_t offset = 0, cell = 0, output = 0;
    const auto kind = random() % 3;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool pooled = i >= first && i < first + c.cells.size();
      std::int64_t at = index[i];
      if (pooled) {
        const std::int64_t start = at * c.stride - c.padding, low = std::max<std::int64_t>(0, -start),
                           high = std::min(c.size, cells[i] - start) - 1;
        const auto any = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
        const std::int64_t tap = kind == 0 ? low : kind == 1 ? high : low + any;
        offset = offset * c.size + tap;
        at = start + tap;
      }
      cell = cell * cells[i] + at;
      output = output * outputs[i] + index[i];
    }
    visit(output, offset, cell);
  } while (reference::next(index, outputs));
}

// Lines so long that they are crossed, under few rows: windows of up to 16 taps along a line.
TEST(GradientsFromOffsets, GoToTheWinnersOfWideWindows) {
  for (const std::int64_t rows : {2, 3, 4})
    for (const std::int64_t size : {12, 13, 14, 15, 16, 17})
      for (const std::int64_t stride : {1, 2})
        for (const bool last : {false, true}) {
          const Extents shape = last ? Extents{1, 9, 106, 5} : Extents{2, 9, 106};
          const Window window{.size = {rows, size}, .stride = {stride, 1}, .channels_last = last};
          const Pooling indexed{.reducer = Reducer::max, .region = window, .indices = IndexKind::offset};
          const Array x = drawn(shape, Type::f32, Data::few, 3);
          const Plan forward = plan(indexed, Type::f32, shape);
          Array y(Type::f32, forward.output_shape()), offsets(*forward.index_type(), forward.output_shape());
          forward.run(x, y, offsets);
          const Array gy = drawn(forward.output_shape(), Type::f32, Data::unit, 4);
          std::vector<double> expected(static_cast<std::size_t>(x.size()), 0);
          const std::vector<double> given = numbers(gy), named = numbers(offsets);
          const std::int64_t channels = last ? 5 : 1, height = (9 - rows) / stride + 1, width = 106 - size + 1;
          for (std::int64_t i = 0; i < y.size(); ++i) {
            const auto offset = static_cast<std::int64_t>(named[static_cast<std::size_t>(i)]);
            const std::int64_t plane = i / channels / width / height;
            const std::int64_t row = i / channels / width % height * stride + offset / size;
            const std::int64_t column = i / channels % width + offset % size;
            const std::int64_t cell = ((plane * 9 + row) * 106 + column) * channels + i % channels;
            expected[static_cast<std::size_t>(cell)] += given[static_cast<std::size_t>(i)];
          }
          Pooling plain = indexed;
          plain.indices.reset();
          for (const std::string& target : targets_under_test()) {
            const Machine machine(target, 1);
            Array gx(Type::f32, shape);
            plan(plain, Type::f32, shape).vjp_from_offsets(offsets, gy, gx);
            const std::vector<double> got = numbers(gx);
            for (std::size_t i = 0; i < got.size(); ++i)
              ASSERT_NEAR(got[i], expected[i], 1e-4)
                  << rows << "x" << size << " stride " << stride << " at " << i << " on " << target;
          }
        }
}

// Offsets that a caller saved may be those of any array, or of none: neighbours need not agree on anything.
TEST(GradientsFromOffsets, GoWhereOffsetsSay) {
  std::uint64_t number = 1;
  std::vector<AnyWinners> all;
  for (const std::int64_t size : {2, 3, 5, 7, 9, 13, 16, 21})
    for (const std::int64_t side : {11, 37, 130})
      for (const std::int64_t channels : {1, 5, 16, 33}) {
        const bool last = channels > 3;
        if (side == 130 && channels == 33) continue;
        const Type type = std::array{Type::f32, Type::f64, Type::f32, Type::bf16, Type::f16}[number % 5];
        all.push_back({{size + 5, side}, size, 1, size / 2, channels, last, type});
        if (++number % 3 == 0) all.push_back({{2 * size, side}, size, 2, size / 3, channels, last, type});
      }
  for (const std::int64_t stride : {2, 3, 4, 5, 9, 16})
    for (const std::int64_t size : {2, 3, 5, 8, 15})
      for (const std::int64_t side : {7, 34, 222}) {
        const Type type = std::array{Type::f32, Type::f64, Type::bf16, Type::f32, Type::f16}[number % 5];
        const std::int64_t cells = size + ++number % 4 * stride, padding = number % 2 * (size / 2);
        all.push_back({{cells, std::max(size, side)}, size, stride, padding, 3, false, type});
        if (size < 5) all.push_back({{size + 1, cells, std::max(size, side)}, size, stride, padding, 3, false, type});
      }
  all.push_back({{3000}, 3, 3, 1, 4, false, Type::f32});
  all.push_back({{3001}, 40, 7, 3, 3, false, Type::f64});
  for (const std::int64_t channels : {3, 40}) {
    all.push_back({{4, 6, 30}, 3, 1, 1, channels, channels > 3, Type::f32});
    for (const std::int64_t size : {4, 12, 100, 256, 300})
      all.push_back({{size + 400}, size, 1, size / 2, channels, channels > 3, Type::f32});
  }
  for (const AnyWinners& c : all) {
    const Pooling pooling = c.pooling();
    const Plan planned = plan(pooling, c.type, c.shape());
    Pooling indexed = pooling;
    indexed.indices = IndexKind::offset;
    const Type kind = *plan(indexed, c.type, c.shape()).index_type();
    const Array gy = drawn(planned.output_shape(), c.type, Data::few, ++number),
                real = drawn(planned.output_shape(), c.type, Data::unit, number);
    Array offsets(kind, planned.output_shape());
    std::vector<double> expected(static_cast<std::size_t>(element_count(c.shape())), 0);
    const std::vector<double> given = numbers(gy);
    choose_winners(c, planned.output_shape(), number, [&](std::int64_t output, std::int64_t offset, std::int64_t cell) {
      expected[static_cast<std::size_t>(cell)] += given[static_cast<std::size_t>(output)];
      if (kind == Type::u8)
        offsets.values<std::uint8_t>()[static_cast<std::size_t>(output)] = static_cast<std::uint8_t>(offset);
      else
        offsets.values<std::uint16_t>()[static_cast<std::size_t>(output)] = static_cast<std::uint16_t>(offset);
    });
    std::optional<std::vector<double>> bits;
    for (const std::string& target : targets_under_test())
      for (const int threads : {1, 3}) {
        const Machine machine(target, threads);
        Array gx(c.type, c.shape());
        planned.vjp_from_offsets(offsets, gy, gx);
        EXPECT_EQ(numbers(gx), expected) << planned.explain() << " on " << target;
        planned.vjp_from_offsets(offsets, real, gx);
        if (!bits) bits = numbers(gx);
        EXPECT_EQ(numbers(gx), *bits) << planned.explain() << " on " << target << " with " << threads;
      }
  }
}

// Windows that share at most one row carry the tangent of what wins, in one pass; winners that are found first, and
// asked for their tangents then, must say the same, at ties, padding, infinities and NaN.
TEST(TangentsOfWinners, AreThoseOfTheirOffsets) {
  std::uint64_t number = 1;
  std::vector<AnyWinners> all;
  for (const Type type : {Type::f32, Type::f64, Type::bf16})
    for (const std::int64_t size : {2, 3})
      for (const std::int64_t padding : {0, 1})
        for (const std::int64_t channels : {1, 3, 16, 24, 64, 70, 300}) {
          const std::int64_t side = channels > 3 ? 9 : 30 + static_cast<std::int64_t>(++number * 7 % 41);
          all.push_back({{8, side}, size, 2, padding, channels, channels > 3, type});
        }
  for (const AnyWinners& c : all)
    for (const Reducer reducer : {Reducer::max, Reducer::min}) {
      Pooling pooling = c.pooling();
      pooling.reducer = reducer;
      const Plan planned = plan(pooling, c.type, c.shape());
      pooling.indices = IndexKind::offset;
      const Plan winners = plan(pooling, c.type, c.shape());
      for (const Data data : {Data::few, Data::unit, Data::special, Data::rare}) {
        const Array x = drawn(c.shape(), c.type, data, ++number), dx = drawn(c.shape(), c.type, Data::unit, number);
        for (const std::string& target : targets_under_test())
          for (const int threads : {1, 3}) {
            const Machine machine(target, threads);
            const Extents& outputs = planned.output_shape();
            Array y(c.type, outputs), offsets(*winners.index_type(), outputs), dy(c.type, outputs),
                asked(c.type, outputs);
            winners.run(x, y, offsets);
            planned.jvp(x, dx, dy);
            planned.jvp_from_offsets(offsets, dx, asked);
            EXPECT_EQ(numbers(dy), numbers(asked)) << planned.explain() << " on " << target;
          }
      }
    }
}

TEST(TangentsOfWinners, AreMadeOnWideLinesWithAnyThreads) {
  for (const std::int64_t columns : {16000, 16380, 16382})
    for (const int threads : {1, 2, 5}) {
      const Machine machine(targets_under_test().back(), threads);
      Pooling pooling{.reducer = Reducer::max, .region = Window{.size = {2, 2}, .stride = 2}};
      const Extents shape{8, columns};
      const Plan planned = plan(pooling, Type::f32, shape);
      pooling.indices = IndexKind::offset;
      const Plan winners = plan(pooling, Type::f32, shape);
      const Array x = drawn(shape, Type::f32, Data::unit, 1), dx = drawn(shape, Type::f32, Data::unit, 2);
      Array y(Type::f32, planned.output_shape()), offsets(*winners.index_type(), planned.output_shape());
      Array dy = drawn(planned.output_shape(), Type::f32, Data::few, 3), asked(Type::f32, planned.output_shape());
      winners.run(x, y, offsets);
      planned.jvp(x, dx, dy);
      planned.jvp_from_offsets(offsets, dx, asked);
      EXPECT_EQ(numbers(dy), numbers(asked)) << columns << " columns, " << threads << " threads";
    }
}

TEST(TangentsOfWinners, AreZeroWhereAWindowHasNoCell) {
  const Window window{.size = {2}, .stride = 2, .padding = 1, .allow_empty = true};
  const Pooling pooling{.reducer = Reducer::max, .region = window};
  const std::vector<float> cells(20, 9);
  for (const Extents& shape : {Extents{0}, Extents{5, 0}}) {
    const Plan planned = plan(pooling, Type::f32, shape);
    Extents strides = row_major_strides(shape);
    if (shape.size() == 2) strides[0] = 2;
    const View x(cells.data() + 1, Type::f32, shape, strides), dx(cells.data() + 11, Type::f32, shape, strides);
    Array dy = drawn(planned.output_shape(), Type::f32, Data::unit, 1);
    planned.jvp(x, dx, dy);
    for (const double slope : numbers(dy)) EXPECT_EQ(slope, 0);
  }
}

}  // namespace
}  // namespace cenote::test
