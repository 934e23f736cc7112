// Sizes, paddings and the cells of windows, against an enumeration of every small axis.
#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "../reference/windows.h"
#include "support/arrays.h"

namespace cenote::test {
namespace {

Axis resolved(const Window& window, std::int64_t n) { return plan({.region = window}, Type::f32, {n}).axes()[0]; }

TEST(Sizes, SameHasTheListedOutputsAndPadding) {
  struct Row {
    std::int64_t n, k, s, out, low, high;
  };
  for (const Row& r : {Row{2, 2, 1, 2, 0, 1}, Row{4, 4, 1, 4, 1, 2}, Row{5, 2, 2, 3, 0, 1}, Row{6, 3, 2, 3, 0, 1},
                       Row{7, 3, 2, 4, 1, 1}, Row{10, 3, 4, 3, 0, 1}, Row{3, 5, 2, 2, 2, 2}, Row{5, 2, 3, 2, 0, 0}}) {
    const Axis high = resolved({.size = {r.k}, .stride = r.s, .padding = same}, r.n);
    EXPECT_EQ(std::tuple(high.out, high.low, high.high), std::tuple(r.out, r.low, r.high)) << r.n << " " << r.k;
    const Axis low = resolved({.size = {r.k}, .stride = r.s, .padding = same_lower}, r.n);
    EXPECT_EQ(std::tuple(low.out, low.low, low.high), std::tuple(r.out, r.high, r.low)) << r.n << " " << r.k;
  }
}

/// Counts, real cells and interior of every window of an axis.
void expect_same_windows(const Axis& axis, const reference::Axis& expected) {
  ASSERT_EQ(axis.out, expected.out());
  std::int64_t first_full = -1, last_full = -1;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const reference::Bin& bin = expected.bins[static_cast<std::size_t>(o)];
    const Axis::Span span = axis.span(o);
    ASSERT_EQ(span.count, static_cast<std::int64_t>(bin.real.size())) << "window " << o;
    ASSERT_EQ(axis.clipped(o), bin.clipped) << "window " << o;
    for (std::int64_t i = 0; i < span.count; ++i) {
      ASSERT_EQ(span.first + i * axis.dilation, bin.real[static_cast<std::size_t>(i)].position) << "window " << o;
      ASSERT_EQ(span.tap + i, bin.real[static_cast<std::size_t>(i)].number) << "window " << o;
    }
    if (span.count < bin.taps) continue;
    if (first_full < 0) first_full = o;
    last_full = o;
  }
  if (axis.adaptive) return;
  const auto [begin, end] = axis.interior();
  ASSERT_EQ(std::pair(begin, end), first_full < 0 ? std::pair(begin, begin) : std::pair(first_full, last_full + 1));
}

TEST(Sizes, EverySmallAxisEqualsItsEnumeration) {
  const Padding paddings[] = {valid, same, same_lower, {{0, 1}}, {{1, 0}}, {{2, 1}}, {{1, 4}}, {{5, 0}}, {{6, 7}}};
  for (int code = 0; code < 9 * 5 * 5 * 3 * 9 * 2; ++code) {
    int rest = code;
    const auto digit = [&](int base) { return std::exchange(rest, rest / base) % base; };
    const std::int64_t n = digit(9), k = 1 + digit(5), s = 1 + digit(5), d = 1 + digit(3);
    const Padding padding = paddings[digit(9)];
    const Window window{
        .size = {k}, .stride = s, .dilation = d, .padding = padding, .ceil = digit(2) == 1, .allow_empty = true};
    reference::Rule rule{.n = n, .size = k, .stride = s, .dilation = d, .ceil = window.ceil, .allow_empty = true};
    if (padding == same) rule.pad = reference::Pad::same;
    if (padding == same_lower) rule.pad = reference::Pad::same_lower;
    if (!padding.sides().empty()) rule.low = padding.sides()[0].low, rule.high = padding.sides()[0].high;
    const reference::Axis expected = reference::sliding(rule);
    const Axis axis = resolved(window, n);
    SCOPED_TRACE(testing::Message() << "n " << n << " k " << k << " s " << s << " d " << d << " padding "
                                    << expected.low << ":" << expected.high << (window.ceil ? " ceil" : ""));
    ASSERT_EQ(axis.low, expected.low);
    ASSERT_EQ(axis.high, expected.high);
    ASSERT_NO_FATAL_FAILURE(expect_same_windows(axis, expected));
  }
}

TEST(Sizes, ExactAndMisfitsAreErrorsExactlyWhereTheEnumerationHasNoAnswer) {
  for (int code = 0; code < 8 * 4 * 4 * 2 * 3 * 2; ++code) {
    int rest = code;
    const auto digit = [&](int base) { return std::exchange(rest, rest / base) % base; };
    const std::int64_t n = digit(8), k = 1 + digit(4), s = 1 + digit(4), d = 1 + digit(2), pad = digit(3);
    const bool exact = digit(2) == 1;
    const reference::Rule rule{.n = n, .size = k, .stride = s, .dilation = d, .low = pad, .high = pad, .exact = exact};
    bool answer = true;
    try {
      reference::sliding(rule);
    } catch (const std::domain_error&) {
      answer = false;
    }
    const Window window{.size = {k}, .stride = s, .dilation = d, .padding = pad, .exact = exact};
    EXPECT_EQ(error_of([&] { resolved(window, n); }).empty(), answer) << n << " " << k << " " << s << " " << d;
  }
}

TEST(Sizes, ExactExcludesSameAndCeil) {
  EXPECT_TRUE(rejects([] { resolved({.size = {2}, .padding = same, .exact = true}, 4); }, {"exact", "same"}));
  EXPECT_TRUE(rejects([] { resolved({.size = {2}, .padding = same_lower, .exact = true}, 4); }, {"exact", "same"}));
  EXPECT_TRUE(rejects([] { resolved({.size = {2}, .ceil = true, .exact = true}, 4); }, {"exact", "ceil"}));
}

TEST(Sizes, AdaptiveBinsOfEverySmallAxis) {
  for (std::int64_t n = 0; n <= 13; ++n) {
    for (std::int64_t out = 1; out <= 16; ++out) {
      SCOPED_TRACE(testing::Message() << n << " to " << out);
      const Axis axis = plan({.region = Adaptive{.output = {out}}}, Type::f32, {n}).axes()[0];
      ASSERT_NO_FATAL_FAILURE(expect_same_windows(axis, reference::adaptive(n, out)));
    }
  }
}

TEST(Sizes, HugeAxesStayExact) {
  const std::int64_t n = std::int64_t{1} << 52;
  const Axis axis = plan({.region = Adaptive{.output = {3}}}, Type::u8, {n}).axes()[0];
  EXPECT_EQ(axis.span(1).first, n / 3);
  EXPECT_EQ(axis.span(1).first + axis.span(1).count, 2 * n / 3 + 1);
  const Axis wide = resolved({.size = {std::int64_t{1} << 40}, .stride = 3, .padding = std::int64_t{1} << 40}, 5);
  EXPECT_EQ(wide.out, (5 + (std::int64_t{1} << 40)) / 3 + 1);
  EXPECT_EQ(wide.span(wide.out / 2).count, 5);
}

TEST(Axes, AreTheLastOnesOrThoseBeforeChannelsOrNamed) {
  const auto pooled = [](const Window& w) { return plan({.region = w}, Type::f32, {2, 3, 4, 5}).pooled(); };
  EXPECT_EQ(pooled({.size = {1, 1}}), (Extents{2, 3}));
  EXPECT_EQ(pooled({.size = {1, 1}, .channels_last = true}), (Extents{1, 2}));
  EXPECT_EQ(pooled({.size = {1, 1}, .axes = Extents{0, -1}}), (Extents{0, 3}));
  EXPECT_EQ(pooled({.size = 1, .axes = Extents{0, 2, 3}}), (Extents{0, 2, 3}));
}

}  // namespace
}  // namespace cenote::test
