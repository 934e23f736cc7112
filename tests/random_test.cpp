// Every reducer on random problems, held against the reference on every SIMD target and for several thread counts.
#include <cstring>
#include <optional>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "cpu/transpose.h"
#include "support/against_reference.h"
#include "support/property.h"

namespace cenote::test {
namespace {

class RandomTest : public testing::TestWithParam<std::tuple<Reducer, Region>> {};

TEST_P(RandomTest, EqualsTheReferenceOnEveryTargetWithAnyThreads) {
  const auto [reducer, region] = GetParam();
  const int count[] = {3000, 200, 400, 15};
  const auto drawn = cases(reducer, region);
  check(count[static_cast<int>(region)], [&] { equals_reference(*drawn); });
}

// Every half there is: NaN of either sign and any payload, zeros of either sign, subnormals.
TEST(HalvesOfAnyBits, EqualTheReference) {
  const auto problems = rc::gen::exec([] {
    Case c = *cases(*rc::gen::element(Reducer::max, Reducer::min), *rc::gen::element(Region::small, Region::large));
    c.type = *rc::gen::element(Type::f16, Type::bf16);
    c.pooling.indices.reset();
    return c;
  });
  check(300, [&] {
    Case c = *problems;
    const auto kind = *rc::gen::inRange(0, 3);
    c.x = Layout::plain(static_cast<int>(c.shape.size()));
    std::mt19937_64 random(c.seed);
    const auto bits = [&] {
      const auto any = static_cast<std::uint16_t>(random());
      if (kind == 0) return any;
      const bool rare = random() % 64 == 0;
      return static_cast<std::uint16_t>(kind == 1 ? (rare ? any : any & 0x8000) : (rare ? 0x8000 : any & 0x3fff));
    };
    equals_reference(c, [&](Strided& x) {
      const MutableView view = x.view();
      auto* to = static_cast<std::uint16_t*>(view.data);
      for (std::int64_t i = 0; i < element_count(view.shape); ++i) to[i] = bits();
    });
  });
}

// Lanes run along each window, a pack of windows at a time, and the first of equal zeros must still be found.
TEST(HalvesOfAnyBits, KeepTheFirstZeroOfWindowsThatAreFolded) {
  for (const Reducer reducer : {Reducer::max, Reducer::min})
    for (const Type type : {Type::f16, Type::bf16}) {
      Case c;
      c.type = type;
      c.pooling = {.reducer = reducer, .region = Window{.size = {1, 15}, .stride = {1, 15}}};
      c.shape = {64, 150};
      c.x = c.y = Layout::plain(2);
      std::mt19937_64 random(7);
      const auto zeros = [&](Strided& x) {
        auto* to = static_cast<std::uint16_t*>(x.view().data);
        for (std::int64_t i = 0; i < 64 * 150; ++i) to[i] = random() % 2 != 0 ? 0x8000 : 0;
      };
      check(1, [&] { equals_reference(c, zeros); });
    }
}

// Few rows folded as they are read, into a line of bins of unlike sizes.
TEST(UnevenBins, EqualTheReferenceUnderFoldedRows) {
  for (const Reducer reducer : all_reducers) {
    for (const std::int64_t rows : {1, 2, 3, 8}) {
      for (const std::int64_t columns : {5, 14, 15, 38, 97}) {
        for (const std::int64_t out : {4, 16, 17, 31, 60}) {
          Case c;
          c.pooling = {.reducer = reducer, .region = Adaptive{.output = {1, out}}};
          c.shape = {rows, columns};
          c.x = c.y = Layout::plain(2);
          Strided x(c.type, c.shape, c.x);
          fill(x, Data::unit, 1);
          const Result result(plan(c.pooling, c.type, c.shape), c, x);
          EXPECT_EQ(Expected(c, x).wrong_with(result), "")
              << name(reducer) << " " << rows << "x" << columns << " " << out;
        }
      }
    }
  }
}

IndexKind any_kind() {
  return detail::one_of<IndexKind>({IndexKind::offset, IndexKind::offset, IndexKind::plane, IndexKind::plane,
                                    IndexKind::tensor, IndexKind::tensor_column});
}

// Planes of lines, or of rows of channels, that one kernel makes: also of lines so long that they come in pieces.
Case draw_planes(Reducer reducer) {
  using namespace detail;
  const bool last = chance(40);
  const auto size = one_of<std::int64_t>({2, 2, 3, 3, 4, 5, 5, 7, 8, 9, 12, 16, 17, 33, 100});
  const auto rows = one_of<std::int64_t>({1, 2, 2, 3, 3, 5, 7, 8, 10, 13}), low = between(0, size - 1);
  Case c;
  c.type = reducer == Reducer::sum || reducer == Reducer::avg
               ? one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16})
               : one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::u8, Type::i32});
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::rare, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const std::int64_t columns = chance(25) && !last ? between(1, 5000) : between(1, 130);
  const std::int64_t height = columns > 1000 ? between(1, 6) : between(1, 30);
  if (last)
    c.shape = {between(1, 3), height, between(1, 40), one_of<std::int64_t>({8, 16, 17, 32, 63, 64, 70, 130, 300})};
  else
    c.shape = {between(1, 4), height, columns};
  Window window{.size = {rows, size}, .allow_empty = true, .channels_last = last};
  window.stride = Extents{between(1, 3), one_of<std::int64_t>({1, 1, 2, 2, 3})};
  window.padding = Padding{{between(0, rows - 1), between(0, rows - 1)}, {low, between(0, size - 1)}};
  if (!last && chance(30)) {
    window.size = Extents{size};
    window.stride = one_of<std::int64_t>({1, 1, 2, 3});
    window.padding = Padding{{low, between(0, size - 1)}};
  }
  c.pooling = {.reducer = reducer, .region = window};
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(40)) c.pooling.indices = any_kind();
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  c.y.shift = between(0, 17);
  c.indices.shift = between(0, 17);
  return c;
}

// Short windows two apart, the next of which begins with the last row of one, or behind it: with winners among ties,
// infinities and NaN.
Case draw_pairs(Reducer reducer) {
  using namespace detail;
  Case c = draw_planes(reducer);
  const bool last = c.shape.size() == 4;
  c.type = one_of<Type>({Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16});
  c.data = one_of<Data>({Data::few, Data::unit, Data::special, Data::rare, Data::rare});
  const auto rows = between(2, 4), size = between(2, 3);
  Window window{.size = {rows, size}, .allow_empty = true, .channels_last = last};
  window.stride = Extents{between(rows - 1, rows), 2};
  window.padding = Padding{{between(0, 1), between(0, 2)}, {between(0, 1), between(0, 2)}};
  c.pooling.region = window;
  c.pooling.indices.reset();
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(75)) c.pooling.indices = any_kind();
  return c;
}

TEST(WindowsThatShareARow, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(300, [&] { equals_reference(*rc::gen::exec([&] { return draw_pairs(reducer); })); });
}

TEST(WholePlanes, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(300, [&] { equals_reference(*rc::gen::exec([&] { return draw_planes(reducer); })); });
}

/// Windows at every place of planes, of any size both ways: planes so small that several are made at a time, some that
/// threads share, and rows of channels.
Case draw_swept(Reducer reducer) {
  using namespace detail;
  const bool last = chance(40), large = chance(15);
  const std::int64_t rows = between(2, one_of<std::int64_t>({5, 14, 40})),
                     size = between(2, one_of<std::int64_t>({14, 90}));
  Case c;
  c.type = reducer == Reducer::sum || reducer == Reducer::avg
               ? one_of<Type>({Type::f32, Type::f32, Type::f64, Type::i32, Type::i64})
               : one_of<Type>({Type::f32, Type::f32, Type::f64, Type::u8, Type::i16, Type::u32});
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const std::int64_t height = large ? between(100, 250) : between(1, one_of<std::int64_t>({24, 90}));
  if (last)
    c.shape = {between(1, 3), large ? height / 4 : height, between(1, large ? 60 : 24),
               one_of<std::int64_t>({16, 17, 32, 64, 70, 130})};
  else
    c.shape = {large ? 1 : between(1, 9), height, between(1, large ? 300 : one_of<std::int64_t>({24, 120}))};
  Window window{.size = {rows, size}, .allow_empty = true, .channels_last = last};
  window.padding = Padding{{between(0, rows - 1), between(0, rows - 1)}, {between(0, size - 1), between(0, size - 1)}};
  c.pooling = {.reducer = reducer, .region = window};
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  c.y.shift = between(0, 17);
  return c;
}

TEST(SweptPlanes, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(60, [&] { equals_reference(*rc::gen::exec([&] { return draw_swept(reducer); })); });
}

// So many bytes that they are written past the caches, in rows that begin where a cache line does, and elsewhere.
// However many channels are worked on together, one that is left over is a channel and no line.
TEST(SweptPlanes, TakeEveryChannelByItself) {
  const Window window{.size = {16, 16}, .padding = Padding{{8, 7}, {8, 7}}, .channels_last = true};
  const Pooling pooling{.reducer = Reducer::max, .region = window};
  for (const std::int64_t channels : {4033, 4161}) {
    const Extents shape{20, 20, channels};
    Strided x(Type::f32, shape, Layout::plain(3));
    fill(x, Data::unit, 1);
    const Array all = pool(std::as_const(x).view(), pooling);
    const auto values = all.values<float>();
    for (const std::int64_t channel : {std::int64_t{0}, channels - 2, channels - 1}) {
      const View from = std::as_const(x).view();
      const View one(static_cast<const float*>(from.data) + channel, Type::f32, {20, 20, 1}, from.strides);
      const Array alone = pool(one, pooling);
      for (std::size_t i = 0; i < 400; ++i)
        ASSERT_EQ(alone.values<float>()[i],
                  values[i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(channel)])
            << "channel " << channel << " of " << channels << " at " << i;
    }
  }
}

TEST(SweptPlanes, AreTheSameInTilesAndPastTheCaches) {
  for (const Reducer reducer : {Reducer::max, Reducer::avg}) {
    for (const std::int64_t columns : {512, 464, 509}) {
      Case c;
      c.pooling = {.reducer = reducer, .region = Window{.size = {9, 70}, .padding = Padding{{4, 4}, {30, 39}}}};
      c.shape = {40, 450, columns};
      c.x = c.y = Layout::plain(3);
      Strided x(c.type, c.shape, c.x);
      fill(x, Data::unit, 1);
      const Plan planned = plan(c.pooling, c.type, c.shape);
      const Result whole(planned, c, x);
      for (const std::int64_t tile : {64, 200}) {
        auto impl = std::make_shared<Plan::Impl>(planned.impl());
        impl->algorithm.tile = tile;
        EXPECT_TRUE(Result(Plan(std::move(impl)), c, x).same_bits(whole)) << name(reducer) << " " << columns;
      }
      const std::int64_t one = 450 * columns;
      Case single = c;
      single.shape = {1, 450, columns};
      for (const std::int64_t i : {0, 39}) {
        Strided plane(c.type, single.shape, single.x);
        std::memcpy(plane.view().data, static_cast<const float*>(x.view().data) + i * one,
                    static_cast<std::size_t>(one) * 4);
        const Result alone(plan(c.pooling, c.type, single.shape), single, plane);
        EXPECT_EQ(std::memcmp(alone.values.view().data, static_cast<const float*>(whole.values.view().data) + i * one,
                              static_cast<std::size_t>(one) * 4),
                  0)
            << name(reducer) << " " << columns;
      }
    }
  }
}

/// Long lines and windows of any length at every place, some of them so long that threads share a line.
Case draw_line(Reducer reducer) {
  using namespace detail;
  const bool huge = chance(10);
  const std::int64_t size = between(2, one_of<std::int64_t>({9, 40, huge ? 80 : 140, huge ? 80 : 700}));
  Case c;
  std::vector<Type> types{Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16};
  if (accepts(reducer, Type::u8)) types.insert(types.end(), {Type::u8, Type::i16, Type::u32, Type::i64});
  c.type = one_of(types);
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::rare, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  c.shape = {huge ? 1 : between(1, 4), huge ? between(30000, 60000) : between(1, 6000)};
  Window window{.size = Extents{size}, .allow_empty = true};
  window.stride = one_of<std::int64_t>({1, 1, 1, 1, 2, 3});
  window.padding = Padding{{between(0, size - 1), between(0, size - 1)}};
  c.pooling = {.reducer = reducer, .region = window};
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(30)) c.pooling.indices = any_kind();
  if (reducer == Reducer::avg && chance(50)) c.pooling.divisor = Divisor::Rule::valid;
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  c.x.shift = between(0, 17);
  c.y.shift = between(0, 17);
  return c;
}

TEST(LongLines, EqualTheReference) {
  for (const Reducer reducer : all_reducers)
    check(60, [&] { equals_reference(*rc::gen::exec([&] { return draw_line(reducer); })); });
}

/// Windows that lie far apart along lines: short ones and long ones, with padding and without, in lines of a few
/// outputs and in some that threads share.
Case draw_apart(Reducer reducer) {
  using namespace detail;
  const bool huge = chance(5), planes = !huge && chance(50);
  const std::int64_t size = between(1, one_of<std::int64_t>({5, 9, 17, 20}));
  const std::int64_t stride = chance(30) ? std::max<std::int64_t>(size, 5) : between(5, 17);
  Case c;
  std::vector<Type> types{Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16};
  if (accepts(reducer, Type::u8)) types.insert(types.end(), {Type::u8, Type::i8, Type::i16, Type::u32, Type::i64});
  c.type = one_of(types);
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const std::int64_t rest = chance(40) ? 0 : between(0, 20);
  const std::int64_t outputs = between(1, one_of<std::int64_t>({5, 20, planes ? 40 : 200}));
  const std::int64_t n = huge ? between(100000, 200000) : outputs * stride + rest;
  const std::int64_t low = chance(50) ? 0 : between(0, size - 1), high = chance(50) ? 0 : between(0, size - 1);
  const std::int64_t dilation = chance(10) ? 2 : 1;
  Window window{.size = Extents{size}, .stride = stride, .dilation = dilation, .allow_empty = true};
  window.padding = Padding{{low, high}};
  c.shape = {huge ? 1 : between(1, 40), n};
  if (planes) {
    const std::int64_t rows = between(1, 9);
    window.size = Extents{rows, size};
    window.stride = Extents{between(1, 9), stride};
    window.padding = Padding{{between(0, rows - 1), 0}, {low, high}};
    c.shape = {between(1, 5), between(1, 24), n};
  }
  c.pooling = {.reducer = reducer, .region = window};
  if ((reducer == Reducer::max || reducer == Reducer::min) && chance(20)) c.pooling.indices = IndexKind::offset;
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  c.x.shift = between(0, 17);
  c.y.shift = between(0, 17);
  return c;
}

TEST(WindowsFarApart, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    check(300, [&] { equals_reference(*rc::gen::exec([&] { return draw_apart(reducer); })); });
}

// Lanes of a window are joined in pairs, and the first of equal zeros must still be found.
TEST(WindowsFarApart, KeepTheFirstZero) {
  for (const Reducer reducer : {Reducer::max, Reducer::min})
    for (const std::int64_t size : {5, 8, 11, 16}) {
      Case c;
      c.type = Type::f32;
      c.pooling = {.reducer = reducer, .region = Window{.size = {1, size}, .stride = {1, 7}}};
      c.shape = {64, 150};
      c.x = c.y = Layout::plain(2);
      std::mt19937_64 random(7);
      const auto zeros = [&](Strided& x) {
        auto* to = static_cast<float*>(x.view().data);
        for (std::int64_t i = 0; i < 64 * 150; ++i) to[i] = random() % 2 != 0 ? -0.0F : 0.0F;
      };
      check(1, [&] { equals_reference(c, zeros); });
    }
}

// Rows of many channels, of which a window has more than are added up without a stack.
TEST(LongRows, EqualTheReference) {
  for (const Reducer reducer : {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg})
    for (const Type type : {Type::f32, Type::bf16, Type::f64, Type::i32})
      for (const std::int64_t cells : {9, 16, 49, 70, 257, 520}) {
        Case c;
        c.type = type;
        c.data = Data::rare;
        c.pooling = {.reducer = reducer, .region = Window{.size = {cells}, .stride = cells, .channels_last = true}};
        c.shape = {1, 2 * cells, 300 + cells * 3};
        c.x = c.y = c.indices = Layout::plain(3);
        check(1, [&] { equals_reference(c); });
      }
}

/// Many small planes, or short lines, of any windows.
Case draw_small(Reducer reducer) {
  using namespace detail;
  Case c;
  std::vector<Type> types{Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16};
  if (accepts(reducer, Type::u8)) types.insert(types.end(), {Type::u8, Type::i16, Type::u32, Type::i64});
  c.type = one_of(types);
  c.data = one_of<Data>({Data::few, Data::unit, Data::spikes, Data::special, Data::rare});
  c.seed = static_cast<std::uint64_t>(between(0, 1 << 20));
  const int axes = static_cast<int>(between(1, 3));
  const std::int64_t longest = axes == 1 ? 60 : axes == 2 ? 16 : 6;
  Extents size, stride, dilation;
  std::vector<Padding::Sides> padding;
  c.shape = {between(1, 3), one_of<std::int64_t>({1, 2, 7, 8, 15, 16, 17, 33, 64, 80, 130, 260})};
  for (int i = 0; i < axes; ++i) {
    const std::int64_t cells = between(1, longest / 2);
    size.push_back(cells);
    stride.push_back(between(1, 6));
    dilation.push_back(chance(20) ? 2 : 1);
    padding.emplace_back(between(0, cells - 1), between(0, cells));
    c.shape.push_back(between(1, longest));
  }
  c.pooling = {
      .reducer = reducer,
      .region = Window{
          .size = size, .stride = stride, .dilation = dilation, .padding = Padding(padding), .allow_empty = true}};
  if (chance(15)) {
    const std::optional<std::int64_t> out = between(1, 5);
    c.pooling.region =
        Adaptive{.output = std::vector<std::optional<std::int64_t>>(static_cast<std::size_t>(axes), out)};
  }
  if (accepts(reducer, Type::u8) && (reducer == Reducer::max || reducer == Reducer::min) && chance(50))
    c.pooling.indices = any_kind();
  if (reducer == Reducer::avg && chance(30)) c.pooling.divisor = Divisor::Rule::valid;
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  c.x.shift = between(0, 17);
  c.y.shift = between(0, 17);
  return c;
}

TEST(SmallPlanes, EqualTheReference) {
  for (const Reducer reducer : all_reducers)
    check(150, [&] { equals_reference(*rc::gen::exec([&] { return draw_small(reducer); })); });
}

/// Cases that were wrong once, or like them.
Case plain_case(Reducer reducer, Window window, Extents shape) {
  Case c;
  c.pooling = {.reducer = reducer, .region = std::move(window)};
  c.shape = std::move(shape);
  c.data = Data::unit;
  c.x = c.y = c.indices = Layout::plain(c.shape.size());
  return c;
}

TEST(WholePlanes, HaveOutputsWhereAnAxisHasNoCells) {
  Case c = plain_case(Reducer::sum,
                      {.size = {3, 3}, .padding = Padding{{2, 2}, {2, 2}}, .allow_empty = true, .channels_last = true},
                      {2, 0, 4, 16});
  check(1, [&] { equals_reference(c); });
  c.y.step = {3, 2, 1, 1};
  check(1, [&] { equals_reference(c); });
}

TEST(WholePlanes, OfVolumesAreNotCutIntoPieces) {
  for (const Reducer reducer : {Reducer::max, Reducer::sum}) {
    const Window halves{.size = {2, 2, 2}, .stride = 2, .channels_last = true};
    check(1, [&] { equals_reference(plain_case(reducer, halves, {1, 4, 4, 66, 64})); });
    const Window shared{.size = {3, 3, 3}, .stride = 2, .padding = Padding(1), .channels_last = true};
    check(1, [&] { equals_reference(plain_case(reducer, shared, {1, 5, 6, 112, 64})); });
    const Window first{.size = {2, 2, 2}, .stride = 2, .axes = Extents{1, 2, 3}};
    check(1, [&] { equals_reference(plain_case(reducer, first, {1, 4, 32, 400, 1})); });
    check(1, [&] { equals_reference(plain_case(reducer, {.size = {2, 2, 2}, .stride = 2}, {1, 1, 4, 4, 4300})); });
  }
}

template <class T>
void check_transpose(const std::string& target) {
  for (const std::int64_t rows : {1, 2, 3, 4, 8, 15, 16, 17, 33, 64, 150})
    for (const std::int64_t columns : {1, 2, 3, 4, 16, 17, 31, 49, 64, 140})
      for (const std::int64_t gap : {0, 3}) {
        const std::int64_t src_row = columns + gap, dst_row = rows + gap;
        std::vector<T> src(static_cast<std::size_t>(rows * src_row)), dst(static_cast<std::size_t>(columns * dst_row));
        for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i * 7 + i / 256);
        std::fill(dst.begin(), dst.end(), T{99});
        cpu::transpose(sizeof(T), src.data(), src_row, rows, columns, dst.data(), dst_row, gap * 5, gap * 4);
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < dst_row; ++i)
            ASSERT_EQ(dst[static_cast<std::size_t>(j * dst_row + i)],
                      i < rows ? src[static_cast<std::size_t>(i * src_row + j)] : T{99})
                << sizeof(T) << " bytes, " << rows << "x" << columns << " at " << i << ", " << j << " on " << target;
      }
}

TEST(Transposed, HasRowsForColumnsAndNothingElse) {
  for (const std::string& target : targets_under_test()) {
    const Machine machine(target, 1);
    check_transpose<std::uint8_t>(target);
    check_transpose<std::uint16_t>(target);
    check_transpose<std::uint32_t>(target);
    check_transpose<std::uint64_t>(target);
  }
}

std::string label(const testing::TestParamInfo<std::tuple<Reducer, Region>>& info) {
  constexpr const char* regions[] = {"small", "deep", "wide", "large"};
  return std::string(name(std::get<0>(info.param))) + "_" + regions[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Every, RandomTest,
                         testing::Combine(testing::ValuesIn(all_reducers),
                                          testing::Values(Region::small, Region::deep, Region::wide, Region::large)),
                         label);

}  // namespace
}  // namespace cenote::test
