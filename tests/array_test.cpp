// Element types, shapes, arrays and views.
#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"

namespace cenote::test {
namespace {

/// The value of sixteen bits read as sign, exponent and fraction, computed in double, which is exact.
double half_value(std::uint32_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const auto fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1));
  const int exponent = static_cast<int>((bits & 0x7fff) >> fraction_bits);
  const double sign = bits & 0x8000 ? -1 : 1, scale = std::ldexp(1, fraction_bits);
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? nan : sign * inf;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(scale + fraction, exponent - bias - fraction_bits);
}

/// Rounding of everything that matters between each number and the next: both ends, the middle, and beside the middle.
template <class Half>
void expect_nearest_even(int exponent_bits) {
  const std::uint32_t infinite = ((1u << exponent_bits) - 1) << (15 - exponent_bits);
  for (std::uint32_t bits = 0; bits < infinite; ++bits) {
    const double a = half_value(bits, exponent_bits);
    // Beyond the largest number the next would be where the exponent goes on; halfway there rounds to infinity.
    const double b =
        bits + 1 < infinite ? half_value(bits + 1, exponent_bits) : 2 * a - half_value(bits - 1, exponent_bits);
    const auto low = static_cast<float>(a), middle = static_cast<float>(a / 2 + b / 2);
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(Half(low).bits, bits);
    ASSERT_EQ(Half(middle).bits, even) << middle;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, bits) << middle;
    ASSERT_EQ(Half(std::nextafter(middle, static_cast<float>(inf))).bits, bits + 1) << middle;
    ASSERT_EQ(Half(-low).bits, bits | 0x8000);
    ASSERT_EQ(Half(-middle).bits, even | 0x8000);
  }
  ASSERT_EQ(Half(static_cast<float>(inf)).bits, infinite);
  ASSERT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, infinite | 0x8000);
}

template <class Half>
void expect_exact_value(int exponent_bits) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    const double value = static_cast<float>(half), expected = half_value(bits, exponent_bits);
    ASSERT_TRUE(expected != expected ? value != value : value == expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    if (expected == expected) {
      ASSERT_EQ(Half(static_cast<float>(half)).bits, bits);
    }
  }
}

TEST(Halves, EveryPatternHasItsExactValue) {
  expect_exact_value<f16>(5);
  expect_exact_value<bf16>(8);
}

TEST(Halves, RoundToNearestEvenBetweenAnyTwoNeighbours) {
  expect_nearest_even<f16>(5);
  expect_nearest_even<bf16>(8);
}

TEST(Halves, AnyNaNStaysANaN) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0x7f80ffffu, 0xffc12345u}) {
    const auto value = std::bit_cast<float>(bits);
    EXPECT_NE(static_cast<float>(f16(value)), static_cast<float>(f16(value))) << bits;
    EXPECT_NE(static_cast<float>(bf16(value)), static_cast<float>(bf16(value))) << bits;
  }
}

TEST(Halves, TinyAndHugeFloats) {
  EXPECT_EQ(f16(0x1p-25f).bits, 0);
  EXPECT_EQ(f16(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(f16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(f16(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
  EXPECT_EQ(f16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(Types, NamesAndSizes) {
  for (int t = 0; t < type_count; ++t) {
    const auto type = static_cast<Type>(t);
    EXPECT_EQ(parse_type(name(type)), type);
    visit(type, [&](auto element) {
      EXPECT_EQ(size_of(type), sizeof(element));
      EXPECT_EQ(type_of<decltype(element)>, type);
    });
  }
  EXPECT_EQ(name(Type::boolean), "bool");
  EXPECT_TRUE(rejects([] { parse_type("f8"); }, {"f8", "f16", "bool"}));
  EXPECT_TRUE(rejects([] { parse_type(""); }, {"f16"}));
}

TEST(Types, NamesOfReducers) {
  for (const Reducer reducer : all_reducers) EXPECT_EQ(parse_reducer(name(reducer)), reducer);
  EXPECT_TRUE(rejects([] { parse_reducer("mean"); }, {"mean", "avg"}));
}

TEST(Extents, HoldUpToTwelveNumbers) {
  Extents extents = Extents::filled(12, 7);
  EXPECT_EQ(extents.size(), 12);
  EXPECT_EQ(extents[11], 7);
  EXPECT_TRUE(rejects([&] { extents.push_back(1); }, {"12"}));
  EXPECT_TRUE(rejects([] { Extents(std::vector<std::int64_t>(13, 1)); }, {"12"}));
  EXPECT_EQ(to_string(Extents{2, 3}), "(2, 3)");
  EXPECT_NE((Extents{2, 3}), (Extents{2, 3, 1}));
}

TEST(Shapes, StridesAndCounts) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Extents{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Extents{});
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 0, 4}), 0);
  EXPECT_TRUE(rejects([] { element_count({2, -3}); }, {"-3"}));
  EXPECT_TRUE(rejects([] { element_count(Extents::filled(5, 1879048192)); }, {"1879048192"}));
}

TEST(Array, OwnsAlignedElementsAndCopiesDeeply) {
  Array a({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
  EXPECT_EQ(a.bytes(), 24u);
  EXPECT_EQ(a.at<float>({1, 2}), 6);
  Array b = a;
  b.at<float>({1, 2}) = 9;
  EXPECT_EQ(a.at<float>({1, 2}), 6);
  EXPECT_TRUE(holds(b, {2, 3}, {1, 2, 3, 4, 5, 9}));
  a = std::move(b);
  EXPECT_TRUE(holds(a, {2, 3}, {1, 2, 3, 4, 5, 9}));
  EXPECT_TRUE(holds(Array::zeros(Type::i16, {3}), {3}, {0, 0, 0}));
  EXPECT_EQ(Array().size(), 0);
}

TEST(Array, ChecksTypesIndicesAndNumbersOfElements) {
  const Array a = counting({2, 3});
  EXPECT_TRUE(rejects([&] { a.values<double>(); }, {"f64", "f32"}));
  EXPECT_TRUE(rejects([&] { a.at<float>({2, 0}); }, {"2"}));
  EXPECT_TRUE(rejects([&] { a.at<float>({0, -1}); }, {"-1"}));
  EXPECT_TRUE(rejects([&] { a.at<float>({0}); }, {"2"}));
  EXPECT_TRUE(rejects([] { Array({2, 2}, {1.0f, 2.0f}); }, {"2", "4"}));
  EXPECT_TRUE(rejects([] { Array(Type::f32, {-1}); }, {"-1"}));
  EXPECT_TRUE(rejects([] { Array(Type::f64, {std::int64_t{1} << 60}); }, {"1152921504606846976"}));
  EXPECT_TRUE(rejects([] { Array(Type::f64, {std::int64_t{1} << 45}); }, {"35184372088832"}));
}

TEST(Array, SharesMemoryFromElsewhereAndKeepsIt) {
  const auto owner = std::make_shared<Array>(counting({2, 3}));
  Array a(std::shared_ptr<void>(owner, owner->data()), Type::f32, {3, 2});
  EXPECT_EQ(owner.use_count(), 2);
  owner->at<float>({0, 1}) = 9;
  EXPECT_TRUE(holds(a, {3, 2}, {0, 9, 2, 3, 4, 5}));
  const Array copy = a;
  EXPECT_NE(copy.data(), a.data());
  Array moved = std::move(a);
  EXPECT_EQ(moved.data(), owner->data());
  moved = Array({1}, {1.0f});
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(holds(moved, {1}, {1}));
  EXPECT_TRUE(rejects([] { Array(std::shared_ptr<void>(), Type::f32, {2}); }, {"null", "2"}));
  EXPECT_EQ(Array(std::shared_ptr<void>(), Type::f32, {0, 2}).size(), 0);
  const std::shared_ptr<void> odd(owner, static_cast<std::byte*>(owner->data()) + 2);
  EXPECT_TRUE(rejects([&] { Array(odd, Type::f32, {1}); }, {"misaligned", "f32", "4"}));
}

TEST(Array, CopiesViewsWithAnyStrides) {
  const Array a = counting({2, 3});
  const auto* data = static_cast<const float*>(a.data());
  EXPECT_TRUE(holds(Array(View(data, Type::f32, {3, 2}, {1, 3})), {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(holds(Array(View(data + 5, Type::f32, {2, 3}, {-3, -1})), {2, 3}, {5, 4, 3, 2, 1, 0}));
  EXPECT_TRUE(holds(Array(View(data, Type::f32, {2, 3}, {0, 1})), {2, 3}, {0, 1, 2, 0, 1, 2}));
  EXPECT_TRUE(holds(Array(View(data, Type::f32, {}, {})), {}, {0}));
  EXPECT_TRUE(holds(Array(View(nullptr, Type::f32, {0, 3})), {0, 3}, {}));
}

}  // namespace
}  // namespace cenote::test
