// Plans: what they know, what run() accepts, and their use from several threads at once.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/counting.h"
#include "support/machine.h"
#include "support/strided.h"

namespace cenote::test {
namespace {

const Window pairs{.size = {2}, .stride = 2};

TEST(PlanKnows, TypesShapesAndBytes) {
  const Pooling pooling{.region = Window{.size = {3, 3}, .stride = 2, .padding = 1}, .indices = IndexKind::plane};
  const Plan p = plan(pooling, Type::f16, {2, 3, 8, 9});
  EXPECT_EQ(p.input_type(), Type::f16);
  EXPECT_EQ(p.input_shape(), (Extents{2, 3, 8, 9}));
  EXPECT_EQ(p.output_type(), Type::f16);
  EXPECT_EQ(p.output_shape(), (Extents{2, 3, 4, 5}));
  EXPECT_EQ(p.index_type(), Type::i64);
  EXPECT_EQ(p.pooled(), (Extents{2, 3}));
  EXPECT_EQ(p.axes()[1].out, 5);
  EXPECT_EQ(p.bytes(), 2 * 3 * (8 * 9 * 2 + 4 * 5 * (2 + 8)));
  EXPECT_GE(p.scratch_bytes(), 0);
  EXPECT_EQ(p.pooling().indices, IndexKind::plane);
}

TEST(PlanKnows, TheNarrowestTypeOfOffsets) {
  const auto type = [](std::int64_t k, std::int64_t n) {
    const Window w{.size = {k, k}, .padding = same};
    return *plan({.region = w, .indices = IndexKind::offset}, Type::f32, {n, n}).index_type();
  };
  EXPECT_EQ(type(16, 4), Type::u8);
  EXPECT_EQ(type(17, 4), Type::u16);
  EXPECT_EQ(type(256, 4), Type::u16);
  EXPECT_EQ(type(257, 4), Type::i32);
  EXPECT_EQ(type(1 << 16, 4), Type::i64);
}

TEST(PlanKnows, WhichTypesEachReducerTakesAndGives) {
  for (int t = 0; t < type_count; ++t) {
    const auto type = static_cast<Type>(t);
    for (const Reducer reducer :
         {Reducer::max, Reducer::min, Reducer::sum, Reducer::avg, Reducer::smooth_max, Reducer::lp}) {
      const bool extremum = reducer == Reducer::max || reducer == Reducer::min;
      const bool linear = reducer == Reducer::sum || reducer == Reducer::avg;
      const bool defined = extremum || is_float(type) || (linear && is_integer(type));
      std::optional<Type> result;
      const std::string error =
          error_of([&] { result = plan({.reducer = reducer, .region = pairs}, type, {4}).output_type(); });
      SCOPED_TRACE(testing::Message() << name(reducer) << " of " << name(type) << ": " << error);
      ASSERT_EQ(result.has_value(), defined);
      if (!defined) {
        EXPECT_NE(error.find(name(type)), std::string::npos);
      } else {
        EXPECT_EQ(*result, reducer == Reducer::avg && is_integer(type) ? Type::f32 : type);
      }
    }
  }
}

TEST(PlanKnows, SumsTakeAWiderTypeOnly) {
  const auto result = [](Type type, Type wider, Reducer reducer = Reducer::sum) {
    return plan({.reducer = reducer, .region = pairs, .dtype = wider}, type, {4}).output_type();
  };
  EXPECT_EQ(result(Type::f16, Type::f32), Type::f32);
  EXPECT_EQ(result(Type::bf16, Type::f64), Type::f64);
  EXPECT_EQ(result(Type::u8, Type::u64), Type::u64);
  EXPECT_EQ(result(Type::i32, Type::i32), Type::i32);
  EXPECT_TRUE(rejects([&] { result(Type::f64, Type::f32); }, {"[sum_pool]", "dtype", "f32", "f64"}));
  EXPECT_TRUE(rejects([&] { result(Type::f16, Type::bf16); }, {"[sum_pool]", "dtype", "bf16"}));
  EXPECT_TRUE(rejects([&] { result(Type::i16, Type::i8); }, {"[sum_pool]", "dtype", "i8"}));
  EXPECT_TRUE(rejects([&] { result(Type::i16, Type::f32); }, {"[sum_pool]", "dtype", "f32"}));
  EXPECT_TRUE(rejects([&] { result(Type::f32, Type::f64, Reducer::max); }, {"[max_pool]", "dtype"}));
}

TEST(PlanKnows, IndicesBelongToMaxAndMin) {
  for (const Reducer reducer : {Reducer::sum, Reducer::avg, Reducer::smooth_max, Reducer::lp}) {
    const Pooling pooling{.reducer = reducer, .region = pairs, .indices = IndexKind::plane};
    EXPECT_TRUE(rejects([&] { plan(pooling, Type::f32, {4}); }, {std::string(name(reducer)), "indices", "max"}));
  }
}

TEST(PlanExplains, TheProblemTheAlgorithmAndTheReasonInOneLine) {
  const Pooling pooling{.region = Window{.size = {3, 3}, .stride = 2, .padding = 1}};
  const Plan first = plan(pooling, Type::f32, {2, 8, 20, 20});
  const std::string text = first.explain();
  EXPECT_NE(text.find("max f32 2x8x20x20 k3x3 s2x2"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_NE(text.find(", "), std::string::npos) << text;
  Pooling last = pooling;
  std::get<Window>(last.region).channels_last = true;
  const std::string other = plan(last, Type::f32, {2, 20, 20, 8}).explain();
  EXPECT_NE(text.substr(text.rfind(": ")), other.substr(other.rfind(": "))) << "rows and lines are two algorithms";
}

TEST(PlanExplains, WhichWindowsAreSwept) {
  const auto says = [](const Extents& size, const std::string& words) {
    const std::string text = plan({.region = Window{.size = size}}, Type::f32, {2, 40, 41, 42}).explain();
    return text.find(words) != std::string::npos;
  };
  EXPECT_FALSE(says({3, 3}, "swept"));
  EXPECT_TRUE(says({3, 20}, "; windows along axis 3 are swept, "));
  EXPECT_TRUE(says({20, 3}, "; windows along axis 2 are swept, "));
  EXPECT_TRUE(says({9, 9}, "; windows along axes 2 and 3 are swept, "));
  EXPECT_TRUE(says({9, 9, 9}, "; windows along axes 1, 2 and 3 are swept, "));
}

/// Runs a plan of max over pairs of four floats, with indices or without, on arrays that may not match.
class PlanRun : public testing::Test {
 protected:
  const Array x = array({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Plan bare = plan({.region = pairs}, Type::f32, {2, 4});
  const Plan indexed = plan({.region = pairs, .indices = IndexKind::plane}, Type::f32, {2, 4});

  /// The error of running into an output that must then be untouched.
  std::string error_into(Type type, const Extents& shape, const View& input) const {
    Strided y(type, shape, Layout::plain(shape.size()));
    const std::string text = error_of([&] { bare.run(input, y.view()); });
    EXPECT_TRUE(y.untouched());
    return text;
  }
};

TEST_F(PlanRun, WritesIntoStridedMemory) {
  Strided y(Type::f32, {2, 2}, {{1, 0}, {2, -3}});
  bare.run(x, y.view());
  EXPECT_EQ(read<float>(y.view()).values, (std::vector<double>{2, 4, 6, 8}));
  EXPECT_TRUE(y.gaps_untouched());
}

TEST_F(PlanRun, RefusesOtherShapesAndTypes) {
  EXPECT_NE(error_into(Type::f32, {2, 3}, x).find("(2, 3)"), std::string::npos);
  EXPECT_NE(error_into(Type::f32, {2, 3}, x).find("(2, 2)"), std::string::npos);
  EXPECT_NE(error_into(Type::f32, {4}, x).find("(4,)"), std::string::npos);
  EXPECT_NE(error_into(Type::f64, {2, 2}, x).find("f64"), std::string::npos);
  EXPECT_NE(error_into(Type::f32, {2, 2}, array({2, 5}, std::vector<double>(10, 1))).find("(2, 5)"), std::string::npos);
  EXPECT_NE(error_into(Type::f32, {2, 2}, array({1, 4}, {1, 2, 3, 4})).find("(1, 4)"), std::string::npos);
  EXPECT_NE(error_into(Type::f32, {2, 2}, array<double>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})).find("f64"),
            std::string::npos);
  Array y = full({2, 2}, -1);
  bare.run(x, y);
  EXPECT_TRUE(holds(y, {2, 2}, {2, 4, 6, 8}));
}

TEST_F(PlanRun, RefusesMissingAndUnaskedIndices) {
  Array y = full({2, 2}, -1), at = full<std::int64_t>({2, 2}, -7);
  EXPECT_TRUE(rejects([&] { indexed.run(x, y); }, {"[max_pool]", "indices"}));
  EXPECT_TRUE(rejects([&] { bare.run(x, y, at); }, {"[max_pool]", "indices"}));
  Array narrow = full<std::int32_t>({2, 2}, -7), small = full<std::int64_t>({2, 1}, -7);
  EXPECT_TRUE(rejects([&] { indexed.run(x, y, narrow); }, {"[max_pool]", "indices", "i32", "i64"}));
  EXPECT_TRUE(rejects([&] { indexed.run(x, y, small); }, {"[max_pool]", "indices", "(2, 1)", "(2, 2)"}));
  EXPECT_TRUE(holds(y, {2, 2}, {-1, -1, -1, -1}));
  EXPECT_TRUE(holds(at, {2, 2}, {-7, -7, -7, -7}));
  indexed.run(x, y, at);
  EXPECT_TRUE(holds(y, {2, 2}, {2, 4, 6, 8}));
  EXPECT_TRUE(holds(at, {2, 2}, {1, 3, 1, 3}));
}

TEST_F(PlanRun, RefusesOutputsThatOverlap) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1, -1};
  const View input(memory.data(), Type::f32, {2, 4});
  const auto into = [&](float* data, const Extents& strides) {
    return error_of([&] { bare.run(input, MutableView(data, Type::f32, {2, 2}, strides)); });
  };
  EXPECT_NE(into(memory.data(), {2, 1}).find("overlap"), std::string::npos);
  EXPECT_NE(into(memory.data() + 7, {2, 1}).find("overlap"), std::string::npos);
  EXPECT_NE(into(memory.data() + 10, {-2, -1}).find("overlap"), std::string::npos);
  EXPECT_NE(into(memory.data() + 8, {0, 1}), "") << "a zero stride makes elements share memory";
  EXPECT_NE(into(memory.data() + 8, {1, 1}), "") << "two elements share memory";
  EXPECT_EQ(memory, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, -1, -1, -1, -1, -1}));
  EXPECT_EQ(into(memory.data() + 8, {2, 1}), "");
  EXPECT_EQ(memory, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 6, 8, -1}));
}

TEST_F(PlanRun, RefusesIndicesThatOverlapValues) {
  std::vector<std::int64_t> memory(8, -7);
  const MutableView values(memory.data() + 1, Type::f32, {2, 2});
  const MutableView at(memory.data(), Type::i64, {2, 2});
  EXPECT_TRUE(rejects([&] { indexed.run(x, values, at); }, {"overlap"}));
  EXPECT_EQ(memory, std::vector<std::int64_t>(8, -7));
}

TEST(PlanReuse, ManyThreadsShareOnePlan) {
  const Pooling pooling{.reducer = Reducer::sum, .region = Window{.size = {3, 3}, .padding = 1}};
  const Plan shared = plan(pooling, Type::f32, {2, 40, 50});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Array x = full({2, 40, 50}, t + 1);
      for (int repeat = 0; repeat < 20; ++repeat) {
        Array y = full({2, 40, 50}, -1);
        const Plan copy = shared;
        copy.run(x, y);
        for (std::int64_t i = 0; i < 40; ++i) {
          for (std::int64_t j = 0; j < 50; ++j) {
            const int cells = (3 - (i == 0) - (i == 39)) * (3 - (j == 0) - (j == 49));
            wrong[static_cast<std::size_t>(t)] += y.at<float>({1, i, j}) != static_cast<float>(cells * (t + 1));
          }
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// One per algorithm, of few cells and of so many that more threads would share them.
const char* const reused[] = {
    "max f32 2x3x20x20 k2x2 s2",        "max f32 4x8x112x112 k3x3 s2 p1",         "max f32 64x64x7x7 k3x3 p1",
    "max f32 1x200x200x8 k9x9 p4 last", "max f32 1x4x300x300 k9x9 p4 idx=plane",  "min f16 1x4x300x300 k9x9 s2",
    "sum i8 1x4x300x300 k3x3",          "avg u8 1x2x60000 k3 div=valid",          "avg f32 1x2x40000 k101 p50",
    "avg f32 1x2x10000 k30001 p15000",  "smooth_max f32 1x4x300x300 k3x3 p1",     "smooth_max f32 1x2x20000 k33 p16",
    "lp f64 1x20x30x40 k3x3x3 d2",      "avg f32 1x3x50x70 adaptive=7x9",         "max f32 16x512x7x7 k7x7",
    "avg f32 1x8x33x66x66 k3 s3",       "max f32 1x2x12x30x34 k3 s2 p1 idx=plane"};

#ifdef CENOTE_COUNTS_ALLOCATIONS
// What is handed to other threads is oneTBB's to keep.
TEST(PlanReuse, AllocatesNothing) {
  for (const char* text : reused) {
    const Problem problem = parse_problem(text);
    const Plan kept = problem.plan();
    const Machine machine("", kept.bytes() < 100000 ? 5 : 1);
    Array x(problem.type, problem.shape), y(kept.output_type(), kept.output_shape());
    std::memset(x.data(), 0, x.bytes());
    Array indices(kept.index_type().value_or(Type::u8), kept.output_shape());
    const auto run = [&] { kept.index_type() ? kept.run(x, y, indices) : kept.run(x, y); };
    run();
    const Counting scope;
    run();
    EXPECT_EQ(allocations, 0) << text;
  }
}
#endif

// In a process of its own, where nobody else has started threads.
TEST(PlanReuse, SmallProblemsStayOnTheirThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto threads_after = [](const char* text) {
    set_threads(4);
    const Problem problem = parse_problem(text);
    const Plan small = problem.plan();
    const Array x(problem.type, problem.shape);
    Array y(small.output_type(), small.output_shape());
    small.run(x, y);
    std::int64_t count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) count += !task.path().empty();
    return count;
  };
  for (const char* text : {"max f32 2x3x40x40 k3x3 s2", "avg f32 1x8x30x30 k9x9 p4", "sum f32 64x16x4x4 k3x3"})
    EXPECT_EXIT(std::_Exit(threads_after(text) == 1 ? 0 : 1), testing::ExitedWithCode(0), "") << text;
}

TEST(Device, ThreadsAndTargetsCanBeSetAndRestored) {
  const int before = threads();
  EXPECT_GE(before, 1);
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(0);
  EXPECT_EQ(threads(), before);
  EXPECT_TRUE(rejects([] { set_threads(-1); }, {"-1"}));
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  const std::string usual = simd_target();
  for (const std::string& target : targets) {
    set_simd_target(target);
    EXPECT_EQ(simd_target(), target);
  }
  set_simd_target("");
  EXPECT_EQ(simd_target(), usual);
  EXPECT_TRUE(rejects([] { set_simd_target("MMX"); }, {"MMX", simd_targets()[0]}));
  EXPECT_EQ(simd_target(), usual);
}

TEST(Version, OfHeadersAndLibraryAgree) { EXPECT_STREQ(version(), CENOTE_VERSION); }

}  // namespace
}  // namespace cenote::test
