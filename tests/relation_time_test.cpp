// How long relations take, printed and never asserted. Run with --gtest_also_run_disabled_tests.
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

namespace cenote::test {
namespace {

/// About n voxels of wavy surfaces in 4 x 1024^3, in random order.
Array surface(std::int64_t n) {
  std::mt19937_64 random(1);
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::array<std::int32_t, 4>> rows;
  const auto side = static_cast<int>(std::sqrt(static_cast<double>(n) / 8));
  for (int b = 0; b < 4; ++b) {
    for (int x = 0; x < side; ++x) {
      for (int y = 0; y < side; ++y) {
        const double height = 300 + 40 * b + 60 * std::sin(x * 0.02) + 50 * std::cos(y * 0.03);
        for (int layer = 0; layer < 2; ++layer) rows.push_back({b, x, y, static_cast<std::int32_t>(height) + layer});
      }
    }
  }
  std::shuffle(rows.begin(), rows.end(), random);
  Array array(Type::i32, {static_cast<std::int64_t>(rows.size()), 4});
  std::copy_n(rows[0].data(), rows.size() * 4, array.values<std::int32_t>().data());
  return array;
}

/// The best of several runs, in nanoseconds of processor time per point: others may be at work too.
double best(std::int64_t points, int runs, const std::function<void()>& work) {
  double least = 1e300;
  for (int i = 0; i < runs; ++i) {
    const std::clock_t start = std::clock();
    work();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    least = std::min(least, seconds * 1e9 / static_cast<double>(points));
  }
  return least;
}

/// What one would write first: a map from keys to rows, and one lookup per voxel and offset.
std::int64_t map_lookups(const Array& coords) {
  const auto c = coords.values<std::int32_t>();
  const auto key = [](std::int64_t b, std::int64_t x, std::int64_t y, std::int64_t z) {
    return ((b * 4096 + x + 1) * 4096 + y + 1) * 4096 + z + 1;
  };
  std::unordered_map<std::int64_t, std::int32_t> rows;
  rows.reserve(c.size() / 4);
  for (std::size_t i = 0; i < c.size(); i += 4)
    rows.emplace(key(c[i], c[i + 1], c[i + 2], c[i + 3]), std::int32_t(i / 4));
  std::int64_t found = 0;
  for (std::size_t i = 0; i < c.size(); i += 4)
    for (int x = -1; x <= 1; ++x)
      for (int y = -1; y <= 1; ++y)
        for (int z = -1; z <= 1; ++z)
          found += static_cast<std::int64_t>(rows.count(key(c[i], c[i + 1] + x, c[i + 2] + y, c[i + 3] + z)));
  return found;
}

TEST(RelationTime, DISABLED_prints_nanoseconds_per_point) {
  set_threads(1);
  const Array coords = surface(1000000);
  const std::int64_t n = coords.shape()[0];
  const auto points = Coordinates::make(coords);
  const auto sorted = points->sorted();
  const auto print = [](const char* what, double time) { std::printf("%-58s %8.2f ns/point\n", what, time); };
  std::printf("%ld voxels\n", static_cast<long>(n));
  print("coordinates with duplicate check", best(n, 5, [&] { Coordinates::make(coords); }));
  print("Morton order of them", best(n, 5, [&] { points->sorted(); }));
  print("k2 s2 Morton", best(n, 20, [&] { relate(sorted, {2, 2}); }));
  print("k2 s2 Morton and all edges", best(n, 10, [&] { relate(sorted, {2, 2}).out_row(); }));
  for (const Engine engine : {Engine::hashed, Engine::sorted}) {
    const RelateOptions options{.engine = engine};
    const char* name = engine == Engine::hashed ? "hashed" : "sorted";
    char text[80];
    std::snprintf(text, sizeof text, "k2 s2 unsorted, %s", name);
    print(text, best(n, 10, [&] { relate(points, {2, 2}, options); }));
    std::snprintf(text, sizeof text, "k2 s2 unsorted and all edges, %s", name);
    print(text, best(n, 10, [&] { relate(points, {2, 2}, options).out_row(); }));
    std::snprintf(text, sizeof text, "k3 s1, %s", name);
    print(text, best(n, 3, [&] { relate(points, {3, 1}, options); }));
    std::snprintf(text, sizeof text, "k3 s2, %s", name);
    print(text, best(n, 3, [&] { relate(points, {3, 2}, options); }));
  }
  print("k3 s2 dense", best(n, 2, [&] { relate(points, {3, 2}, {.policy = Policy::dense}); }));
  print("k2 s2 transposed", best(n, 2, [&] { relate_transposed(points, {2, 2}); }));
  std::int64_t found = 0;
  print("k3 s1 by unordered_map lookups", best(n, 1, [&] { found = map_lookups(coords); }));
  EXPECT_EQ(relate(points, {3, 1}).edges(), found);
  set_threads(0);
}

}  // namespace
}  // namespace cenote::test
