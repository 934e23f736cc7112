// Problem strings: the grammar, what is refused, and that printing and reading are inverses.
#include <limits>
#include <string>
#include <variant>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/problem.h>

#include "support/arrays.h"
#include "support/property.h"
#include "support/random_problem.h"

namespace cenote::test {
namespace {

using Direction = Problem::Direction;

bool same_region(const Window& a, const Window& b) {
  return a.size == b.size && a.stride == b.stride && a.dilation == b.dilation && a.padding == b.padding &&
         a.ceil == b.ceil && a.exact == b.exact && a.allow_empty == b.allow_empty &&
         a.channels_last == b.channels_last && a.axes == b.axes;
}
bool same_region(const Adaptive& a, const Adaptive& b) {
  return a.output == b.output && a.channels_last == b.channels_last && a.axes == b.axes;
}
bool same_region(const Global& a, const Global& b) {
  return a.rank == b.rank && a.channels_last == b.channels_last && a.axes == b.axes && a.keepdims == b.keepdims;
}

bool equal(const Problem& a, const Problem& b) {
  const Pooling &p = a.pooling, &q = b.pooling;
  if (p.region.index() != q.region.index()) return false;
  const bool regions = std::visit(
      [&](const auto& region) { return same_region(region, std::get<std::decay_t<decltype(region)>>(q.region)); },
      p.region);
  return regions && p.reducer == q.reducer && p.divisor == q.divisor && p.beta == q.beta && p.pad == q.pad &&
         p.p == q.p && p.dtype == q.dtype && p.indices == q.indices && p.ties == q.ties && a.type == b.type &&
         a.shape == b.shape && a.direction == b.direction;
}

Window window_of(std::string_view text) { return std::get<Window>(parse_problem(text).pooling.region); }
std::string canonical(std::string_view text) { return to_string(parse_problem(text)); }

TEST(Problem, ReadsAWindow) {
  const Problem p = parse_problem("max f32 32x64x112x112 k3 s2 p1");
  EXPECT_EQ(p.pooling.reducer, Reducer::max);
  EXPECT_EQ(p.type, Type::f32);
  EXPECT_EQ(p.shape, (Extents{32, 64, 112, 112}));
  EXPECT_EQ(p.direction, Direction::forward);
  const Window w = std::get<Window>(p.pooling.region);
  EXPECT_EQ(w.size, (PerAxis{3, 3}));
  EXPECT_EQ(w.stride, (PerAxis{2, 2}));
  EXPECT_EQ(w.dilation, PerAxis(1));
  EXPECT_EQ(w.padding, (Padding{1, 1}));
  EXPECT_FALSE(w.channels_last || w.axes || w.ceil || w.exact || w.allow_empty);
}

TEST(Problem, OneNumberPoolsEveryAxisButTwo) {
  EXPECT_EQ(window_of("max f32 2x3x8 k3").size, (PerAxis{3}));
  EXPECT_EQ(window_of("max f32 2x3x8x8x8 k3").size, (PerAxis{3, 3, 3}));
  const Window last = window_of("avg bf16 8x56x56x64 k3 s2 same last");
  EXPECT_EQ(last.size, (PerAxis{3, 3}));
  EXPECT_TRUE(last.channels_last);
  EXPECT_EQ(last.padding, same);
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5 k3"); }, {"token 4 \"k3\" at column 11", "axes=0"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 k3"); }, {"token 4", "axes=1", "k3x3"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 global"); }, {"token 4 \"global\"", "axes=1"}));
}

TEST(Problem, ListsNameAsManyOfTheLastAxes) {
  EXPECT_EQ(window_of("max f32 5x5 k3x3").size, (PerAxis{3, 3}));
  const Window w = window_of("sum i8 2x3x4x5 k2x1x3 s1x2x3 d1x2x1 p0:1x2x0");
  EXPECT_EQ(w.size, (PerAxis{2, 1, 3}));
  EXPECT_EQ(w.stride, (PerAxis{1, 2, 3}));
  EXPECT_EQ(w.dilation, (PerAxis{1, 2, 1}));
  EXPECT_EQ(w.padding, (Padding{{0, 1}, 2, 0}));
  EXPECT_EQ(window_of("max f32 1x1x9x9 k3 p1:2").padding, (Padding{{1, 2}, {1, 2}}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 k3x3x3"); }, {"token 4", "3 axes", "has 2"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 k3x3 last"); }, {"token 4", "last keeps one"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 k3x3 s1x1x1"); }, {"token 5 \"s1x1x1\"", "must have 2"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 5x5 k3x3 p1x1x1"); }, {"token 5 \"p1x1x1\"", "must have 2"}));
}

TEST(Problem, AxesAreNamedFreely) {
  EXPECT_EQ(window_of("max f32 2x3x4x5 k2 axes=1,3").axes, (Extents{1, 3}));
  EXPECT_EQ(window_of("max f32 2x3x4x5 k2 axes=1,3").size, (PerAxis{2, 2}));
  EXPECT_EQ(window_of("max f32 2x3x4x5 k2x4 axes=-4,-1").axes, (Extents{0, 3}));
  // Where the layout says the same, it does.
  EXPECT_EQ(window_of("max f32 2x3x4x5 k2 axes=2,3").axes, std::nullopt);
  EXPECT_TRUE(window_of("max f32 2x3x4x5 k2 axes=1,2").channels_last);
  EXPECT_TRUE(rejects([] { parse_problem("max f32 2x3 k2 axes=2"); }, {"token 5 \"axes=2\"", "from -2 to 1"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 2x3 k2 axes=1,0"); }, {"token 5", "increasing"}));
  EXPECT_TRUE(rejects([] { parse_problem("max f32 2x3 k2x2 axes=1"); }, {"token 5", "must be 2"}));
}

TEST(Problem, ReadsEveryOption) {
  EXPECT_EQ(parse_problem("avg f32 1x1x9 k3 div=valid").pooling.divisor, Divisor::Rule::valid);
  EXPECT_EQ(parse_problem("avg f32 1x1x9 k3 div=clipped").pooling.divisor, Divisor::Rule::clipped);
  EXPECT_EQ(parse_problem("avg f32 1x1x9 k3 div=2.5").pooling.divisor, Divisor(2.5));
  const Problem smooth = parse_problem("smooth_max f64 1x1x9 k3 beta=-0.25 pad=ignore jvp");
  EXPECT_EQ(smooth.pooling.beta, -0.25);
  EXPECT_EQ(smooth.pooling.pad, SmoothPadding::ignore);
  EXPECT_EQ(smooth.direction, Direction::jvp);
  EXPECT_EQ(parse_problem("lp f32 1x1x9 k3 lp=inf").pooling.p, std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_problem("sum i8 1x1x9 k3 dtype=i64").pooling.dtype, Type::i64);
  const Problem max = parse_problem("max u8 1x1x9 k3 idx=tensor_column ties=split vjp");
  EXPECT_EQ(max.pooling.indices, IndexKind::tensor_column);
  EXPECT_EQ(max.pooling.ties, Ties::split);
  EXPECT_EQ(max.direction, Direction::vjp);
  const Window w = window_of("min bool 1x1x9 k3 ceil empty same_lower");
  EXPECT_TRUE(w.ceil && w.allow_empty && w.padding == same_lower);
  EXPECT_TRUE(window_of("min bool 1x1x9 exact k3").exact);
}

TEST(Problem, ReadsAdaptiveAndGlobalRegions) {
  const auto adaptive = [](std::string_view text) { return std::get<Adaptive>(parse_problem(text).pooling.region); };
  const std::vector<std::optional<std::int64_t>> seven_kept{7, std::nullopt};
  EXPECT_EQ(adaptive("avg f32 8x56x56 adaptive=7x_").output, seven_kept);
  EXPECT_EQ(adaptive("avg f32 1x8x56x56 adaptive=7").output.size(), 2u);
  EXPECT_TRUE(adaptive("avg f32 1x56x56x8 adaptive=7x7 last").channels_last);
  const auto global = [](std::string_view text) { return std::get<Global>(parse_problem(text).pooling.region); };
  EXPECT_TRUE(global("max f32 1x2x3x4 global").keepdims);
  EXPECT_FALSE(global("max f32 1x2x3x4 global keepdims=no").keepdims);
  EXPECT_TRUE(global("max f32 1x2x3x4 last global").channels_last);
  EXPECT_EQ(global("max f32 3x4 global axes=0").axes, Extents{0});
}

TEST(Problem, PrintsEveryAxis) {
  EXPECT_EQ(canonical("max f32 32x64x112x112 k3 s2 p1"), "max f32 32x64x112x112 k3x3 s2x2 p1x1");
  EXPECT_EQ(canonical("avg bf16 8x56x56x64 last same s2 k3x3"), "avg bf16 8x56x56x64 k3x3 s2x2 same last");
  EXPECT_EQ(canonical("sum i8 2x9x9 d1x2 k3x2 p0:1x2"), "sum i8 2x9x9 k3x2 d1x2 p0:1x2");
  EXPECT_EQ(canonical(" max\tf32 1x1x9  k3 s1 d1 p0 ties=first "), "max f32 1x1x9 k3");
  EXPECT_EQ(canonical("avg f32 1x1x9x9 adaptive=7 div=window"), "avg f32 1x1x9x9 adaptive=7x7");
}

TEST(Problem, PrintsWhatOneNumberCannotSay) {
  EXPECT_EQ(canonical("max f32 2x3x4x5 k2 axes=3"), "max f32 2x3x4x5 k2 axes=3");
  EXPECT_EQ(canonical("max f32 2x3x4x5 k2 axes=2"), "max f32 2x3x4x5 k2 axes=2");
  EXPECT_EQ(canonical("max f32 2x3x4 k2 axes=2"), "max f32 2x3x4 k2");
  EXPECT_EQ(canonical("max f32 2x3x4 k2 axes=1"), "max f32 2x3x4 k2 last");
  EXPECT_EQ(
      to_string(Problem{.pooling = {.region = Window{.size = {2}, .channels_last = true}}, .shape = {2, 3, 4, 5}}),
      "max f32 2x3x4x5 k2 axes=2");
  EXPECT_EQ(to_string(Problem{.pooling = {.region = Global{.rank = 1}}, .shape = {2, 3, 4, 5}}),
            "max f32 2x3x4x5 global axes=3");
  EXPECT_EQ(to_string(Problem{.pooling = {.region = Global{.rank = 2}}, .shape = {2, 3, 4, 5}}),
            "max f32 2x3x4x5 global");
}

TEST(Problem, PrintsNumbersThatReadBackExactly) {
  for (const double beta : {0.1, 1.0 / 3, 1e300, -5e-324, 4.0, 1e22, inf}) {
    Problem problem = parse_problem("smooth_max f64 1x1x9 k3");
    problem.pooling.beta = beta;
    EXPECT_EQ(parse_problem(to_string(problem)).pooling.beta, beta) << to_string(problem);
  }
  EXPECT_EQ(canonical("lp f32 1x1x9 k3 lp=2.50"), "lp f32 1x1x9 k3 lp=2.5");
  EXPECT_EQ(canonical("avg f32 1x1x9 k3 div=9"), "avg f32 1x1x9 k3 div=9");
}

TEST(Problem, NamesTheTokenThatIsWrong) {
  const auto bad = [](const std::string& text, const std::vector<std::string>& parts) {
    std::vector<std::string> all{"[problem]"};
    all.insert(all.end(), parts.begin(), parts.end());
    return rejects([&] { parse_problem(text); }, all) << " for " << text;
  };
  EXPECT_TRUE(bad("", {"reducer, a type and a shape"}));
  EXPECT_TRUE(bad("max f32", {"2 tokens"}));
  EXPECT_TRUE(bad("maxx f32 1x1x9 k3", {"token 1 \"maxx\" at column 1", "max, min, sum, avg, smooth_max, lp"}));
  EXPECT_TRUE(bad("max  f33 1x1x9 k3", {"token 2 \"f33\" at column 6", "f16, bf16, f32", "bool"}));
  EXPECT_TRUE(bad("max f32 1x1y9 k3", {"token 3 \"1x1y9\"", "\"1y9\" is not a number"}));
  EXPECT_TRUE(bad("max f32 1x-1x9 k3", {"token 3", "-1 is negative"}));
  EXPECT_TRUE(bad("max f32 1x1x k3", {"token 3", "\"\" is not a number"}));
  EXPECT_TRUE(bad("max f32 1x1x9223372036854775808 k3", {"token 3", "out of range"}));
  EXPECT_TRUE(bad("max f32 1x1x1x1x1x1x1x1x1x1x1x1x9 k3", {"token 3", "more than 12"}));
  EXPECT_TRUE(bad("max f32 1x1x9", {"one of k, adaptive= and global"}));
  EXPECT_TRUE(bad("max f32 1x1x9 q3", {"token 4 \"q3\" at column 15", "unknown", "kN", "same_lower", "idx="}));
  EXPECT_TRUE(bad("max f32 1x1x9 k", {"token 4 \"k\"", "unknown"}));
  EXPECT_TRUE(bad("max f32 1x1x9 k3.5", {"token 4", "\"3.5\" is not a number"}));
  EXPECT_TRUE(bad("max f32 1x1x9 k10000000000000000000", {"token 4", "out of range"}));
  EXPECT_TRUE(bad("max f32 1x1x9 k3 p1:2:3", {"token 5", "more than two sides"}));
  EXPECT_TRUE(bad("max f32 1x1x9 k3 foo=3", {"token 5 \"foo=3\"", "unknown option"}));
  EXPECT_TRUE(bad("max f32 1x1x9 k3 idx=here", {"token 5", "offset, plane, tensor, tensor_column"}));
  EXPECT_TRUE(bad("sum f32 1x1x9 k3 dtype=int", {"token 5", "i64"}));
  EXPECT_TRUE(bad("avg f32 1x1x9 k3 div=some", {"token 5", "window, valid, clipped or a number"}));
  EXPECT_TRUE(bad("smooth_max f32 1x1x9 k3 beta=1e999", {"token 5", "out of range"}));
  EXPECT_TRUE(bad("smooth_max f32 1x1x9 k3 beta=", {"token 5", "must be a number"}));
  EXPECT_TRUE(bad("avg f32 1x1x9x9 adaptive=7xx", {"token 4", "_ for a kept axis"}));
}

TEST(Problem, RefusesWhatIsSaidTwice) {
  const auto twice = [](const std::string& text, const std::string& token) {
    return rejects([&] { parse_problem(text); }, {token, "already"}) << " for " << text;
  };
  EXPECT_TRUE(twice("max f32 1x1x9 k3 k3", "token 5 \"k3\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 s1 s1", "token 6 \"s1\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 p1 same", "token 6 \"same\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 same same_lower", "token 6"));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 last axes=1", "token 6 \"axes=1\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 global", "token 5 \"global\""));
  EXPECT_TRUE(twice("max f32 1x1x9 adaptive=3 k3", "token 5 \"k3\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 jvp vjp", "token 6 \"vjp\""));
  EXPECT_TRUE(twice("max f32 1x1x9 k3 idx=plane idx=plane", "token 6"));
}

TEST(Problem, RefusesOptionsThatDoNotBelong) {
  const auto foreign = [](const std::string& text, const std::vector<std::string>& parts) {
    return rejects([&] { parse_problem(text); }, parts) << " for " << text;
  };
  EXPECT_TRUE(foreign("max f32 1x1x9 k3 div=valid", {"token 5 \"div=valid\"", "avg, not of max"}));
  EXPECT_TRUE(foreign("lp f32 1x1x9 k3 beta=2", {"token 5", "smooth_max, not of lp"}));
  EXPECT_TRUE(foreign("max f32 1x1x9 k3 pad=ignore", {"token 5", "smooth_max"}));
  EXPECT_TRUE(foreign("max f32 1x1x9 k3 lp=2", {"token 5", "lp, not of max"}));
  EXPECT_TRUE(foreign("max f32 1x1x9 k3 dtype=f64", {"token 5", "sum, not of max"}));
  EXPECT_TRUE(foreign("avg f32 1x1x9 k3 idx=plane", {"token 5", "max and min, not of avg"}));
  EXPECT_TRUE(foreign("sum f32 1x1x9 k3 ties=split", {"token 5", "max and min, not of sum"}));
  for (const std::string token : {"s2", "d2", "p1", "same", "same_lower", "ceil", "exact", "empty"}) {
    EXPECT_TRUE(foreign("max f32 1x1x9 global " + token, {"token 5 \"" + token + "\"", "window"}));
    EXPECT_TRUE(foreign("max f32 1x1x9 " + token + " adaptive=3", {"token 4 \"" + token + "\"", "window"}));
  }
  EXPECT_TRUE(foreign("max f32 1x1x9 k3 keepdims=no", {"token 5", "global"}));
  EXPECT_TRUE(foreign("max f32 1x1x9 adaptive=3 keepdims=no", {"token 5", "global"}));
}

TEST(Problem, TokensAfterTheShapeComeInAnyOrder) {
  check(200, [] {
    std::vector<std::string> tokens{"k3x2", "s2x1", "p1x0:1", "d1x2", "ceil", "empty", "last", "idx=plane", "vjp"};
    for (std::size_t i = tokens.size() - 1; i > 0; --i)
      std::swap(tokens[i], tokens[static_cast<std::size_t>(detail::between(0, static_cast<std::int64_t>(i)))]);
    std::string text = "max f32 2x9x9x4";
    for (const std::string& token : tokens) text += " " + token;
    RC_ASSERT(canonical(text) == "max f32 2x9x9x4 k3x2 s2x1 d1x2 p1x0:1 ceil empty last idx=plane vjp");
  });
}

TEST(Problem, PrintingAndReadingAreInverses) {
  for (const Reducer reducer : all_reducers) {
    check(300, [=] {
      const Case c = *cases(reducer, detail::chance(50) ? Region::small : Region::deep);
      Problem problem{c.pooling, c.type, c.shape, static_cast<Direction>(detail::between(0, 2))};
      if (reducer == Reducer::max && detail::chance(50)) problem.pooling.ties = Ties::split;
      const std::string text = to_string(problem);
      RC_LOG() << text << std::endl;
      const Problem read = parse_problem(text);
      RC_ASSERT(to_string(read) == text);
      RC_ASSERT(equal(parse_problem(to_string(read)), read));
      RC_ASSERT(read.type == problem.type && read.shape == problem.shape && read.direction == problem.direction);
      // The same operation: equal plans, or the same complaint.
      const std::string wrong = error_of([&] { problem.plan(); });
      RC_ASSERT(wrong.empty() == error_of([&] { read.plan(); }).empty());
      if (!wrong.empty()) return;
      const Plan a = problem.plan(), b = read.plan();
      RC_ASSERT(a.axes() == b.axes());
      RC_ASSERT(a.pooled() == b.pooled());
      RC_ASSERT(a.output_shape() == b.output_shape());
      RC_ASSERT(a.output_type() == b.output_type());
      RC_ASSERT(a.index_type() == b.index_type());
    });
  }
}

TEST(Problem, AnyTextIsReadOrRefused) {
  check(2000, [] {
    const std::vector<std::string> scraps{"max",
                                          "avg",
                                          "f32",
                                          "i8",
                                          "1x1x9",
                                          "9x9",
                                          "k3",
                                          "k3x3",
                                          "s2",
                                          "p1:2",
                                          "p",
                                          "x",
                                          "k-1",
                                          "axes=0",
                                          "axes=",
                                          "last",
                                          "global",
                                          "adaptive=_",
                                          "div=nan",
                                          "=",
                                          ":",
                                          "beta=1",
                                          "k99999999999999999999",
                                          "\xff",
                                          "same",
                                          "jvp",
                                          "k3x",
                                          "_"};
    std::string text;
    for (std::int64_t n = detail::between(0, 7); n > 0; --n) text += detail::one_of(scraps) + (n % 5 ? " " : "");
    RC_LOG() << text << std::endl;
    try {
      const Problem problem = parse_problem(text);
      RC_ASSERT(to_string(parse_problem(to_string(problem))) == to_string(problem));
    } catch (const std::invalid_argument& error) {
      RC_ASSERT(std::string(error.what()).rfind("[problem] ", 0) == 0u);
    }
  });
}

}  // namespace
}  // namespace cenote::test
