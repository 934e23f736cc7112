// Relations of random clouds against the oracle: every policy, engine, order and number of threads.
#include <random>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "../benchmarks/clouds.h"
#include "support/clouds.h"
#include "support/property.h"
#include "support/random_relation.h"

namespace cenote::test {
namespace {

struct Threads {
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(0); }
};

TEST(RelationRandom, every_engine_gives_the_oracles_relation) {
  check(1500, [] {
    const Request request = draw_request(draw(1, max_lattice_dimension));
    const auto expected = reference::sparse_relation(request.problem);
    const Kernel kernel = kernel_of(request.problem.kernel);
    const auto input = coordinates(request.problem.inputs, request.dimension, request.wide);
    for (const Engine engine : {Engine::automatic, Engine::sorted, Engine::hashed}) {
      const auto result = matches(relate(input, kernel, options_of(request, engine)), expected);
      if (!result) RC_FAIL(result.message());
    }
  });
}

TEST(RelationRandom, morton_ordered_rows_give_the_oracles_relation) {
  check(800, [] {
    Request request = draw_request(draw(1, max_lattice_dimension));
    const auto sorted = coordinates(request.problem.inputs, request.dimension, request.wide)->sorted();
    request.problem.inputs = rows_of(sorted->array());
    if (draw(0, 1) == 0) {
      const std::int64_t side = std::int64_t{1} << draw(1, request.dimension > 2 ? 2 : 4);
      for (auto* field : {&request.problem.kernel.size, &request.problem.kernel.stride})
        std::fill(field->begin(), field->end(), side);
      std::fill(request.problem.kernel.dilation.begin(), request.problem.kernel.dilation.end(), 1);
      std::fill(request.problem.kernel.padding.begin(), request.problem.kernel.padding.end(), 0);
      request.problem.extent.reset();
      request.problem.targets.reset();
    }
    const Relation relation = relate(sorted, kernel_of(request.problem.kernel), options_of(request, Engine::automatic));
    const auto result = matches(relation, reference::sparse_relation(request.problem));
    if (!result) RC_FAIL(result.message());
  });
}

TEST(RelationRandom, transposed_relations_are_the_oracles) {
  check(500, [] {
    const Request request = draw_request(draw(1, max_lattice_dimension));
    reference::SparseProblem p = request.problem;
    const auto expected = reference::sparse_transposed(p);
    const auto input = coordinates(p.inputs, request.dimension, request.wide);
    const auto targets = p.targets ? coordinates(*p.targets, request.dimension, request.wide) : nullptr;
    for (const Engine engine : {Engine::automatic, Engine::sorted, Engine::hashed}) {
      const auto result = matches(relate_transposed(input, kernel_of(p.kernel), targets, engine), expected);
      if (!result) RC_FAIL(result.message());
    }
  });
}

TEST(RelationRandom, relations_survive_being_saved_and_loaded) {
  check(200, [] {
    const Request request = draw_request(draw(1, max_lattice_dimension));
    const auto input = coordinates(request.problem.inputs, request.dimension, request.wide);
    const Relation relation = relate(input, kernel_of(request.problem.kernel), options_of(request, Engine::automatic));
    const Relation loaded = Relation::load(input, relation.save());
    const auto result = matches(loaded, reference::sparse_relation(request.problem));
    if (!result) RC_FAIL(result.message());
    RC_ASSERT(loaded.kernel() == relation.kernel());
    RC_ASSERT(loaded.output()->batch_size() == relation.output()->batch_size());
  });
}

TEST(RelationRandom, regular_and_extreme_clouds_give_the_oracles_relation) {
  std::mt19937_64 random(11);
  std::vector<Request> requests;
  const auto add = [&](int dimension, bool wide, const std::vector<Row>& rows) {
    for (const auto& [size, stride] : {std::pair{2, 2}, std::pair{8, 8}, std::pair{3, 1}, std::pair{3, 2}}) {
      const auto axes = [&](std::int64_t n) { return std::vector(static_cast<std::size_t>(dimension), n); };
      Request request{{rows, {axes(size), axes(stride), axes(0), axes(1)}}, dimension, wide};
      if (wide) request.problem.lowest = INT64_MIN, request.problem.highest = INT64_MAX;
      requests.push_back(request);
    }
  };
  const auto lattice = [&](std::int64_t low, std::int64_t side) {
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < side * side * side; ++i)
      rows.push_back({0, low + i / side / side, low + i / side % side, low + i % side});
    std::shuffle(rows.begin(), rows.end(), random);
    return rows;
  };
  add(3, false, lattice(8, 8));  // all in one cell of eight
  add(3, false, lattice(-11, 11));
  add(3, false, lattice(INT32_MIN, 4));
  add(3, false, lattice(INT32_MAX - 3, 4));
  std::vector<Row> line, ends;
  for (std::int64_t i = 0; i < 2000; ++i) line.push_back({i % 2, 5, i - 1000});
  add(2, false, line);
  for (std::int64_t i = 0; i < 40; ++i) ends.push_back({0, i % 2 == 0 ? INT64_MIN + i : INT64_MAX - i});
  add(1, true, ends);
  for (const Request& request : requests) {
    const auto input = coordinates(request.problem.inputs, request.dimension, request.wide);
    const Kernel kernel = kernel_of(request.problem.kernel);
    for (const Engine engine : {Engine::automatic, Engine::sorted, Engine::hashed}) {
      const auto expected = reference::sparse_relation(request.problem);
      EXPECT_TRUE(matches(relate(input, kernel, {.engine = engine}), expected));
      EXPECT_TRUE(
          matches(relate_transposed(input, kernel, nullptr, engine), reference::sparse_transposed(request.problem)));
    }
  }
}

TEST(RelationRandom, threads_do_not_change_relations) {
  // Enough rows for every parallel loop to be cut into chunks: the largest take 2^16 rows at least.
  const auto points = Coordinates::make(bench::cloud("lidar", 150000));
  const auto sorted = points->sorted();
  struct Case {
    std::shared_ptr<const Coordinates> input;
    Kernel kernel;
    RelateOptions options;
    bool transposed = false;
    Relation relate() const {
      return transposed ? relate_transposed(input, kernel, options.targets, options.engine)
                        : cenote::relate(input, kernel, options);
    }
  };
  std::vector<Case> cases;
  for (const Engine engine : {Engine::sorted, Engine::hashed})
    for (const Order order : {Order::first_seen, Order::sorted})
      for (const Policy policy : {Policy::lattice, Policy::dense})
        for (const Kernel& kernel : {Kernel{2, 2, 0, 1}, Kernel{3, 2, 1, 1}})
          cases.push_back({points, kernel, {.policy = policy, .order = order, .engine = engine}});
  cases.push_back({sorted, {2, 2, 0, 1}, {}});
  cases.push_back({sorted, {4, 4, 0, 1}, {}});
  const auto coarse = relate(points, {4, 4, 0, 1}).output();
  for (const Engine engine : {Engine::sorted, Engine::hashed})
    for (const auto& targets : {std::shared_ptr<const Coordinates>(), points})
      for (const Kernel& kernel : {Kernel{2, 4, 1, 1}, Kernel{3, 2, 0, 1}})
        cases.push_back({coarse, kernel, {.targets = targets, .engine = engine}, true});
  for (const Case& c : cases) {
    std::optional<RelationArrays> expected;
    std::vector<std::int64_t> by_input;
    std::string explained;
    for (const int threads : {1, 2, 5}) {
      const Threads limit(threads);
      const Relation relation = c.relate();
      const RelationArrays arrays = relation.save();
      if (!expected) {
        expected = arrays;
        by_input = integers(relation.input_edges());
        explained = relation.explain();
        continue;
      }
      EXPECT_EQ(relation.explain(), explained);
      EXPECT_TRUE(integers(relation.input_edges()) == by_input) << explained;
      EXPECT_TRUE(integers(arrays.in_row) == integers(expected->in_row)) << explained;
      EXPECT_TRUE(integers(arrays.out_row) == integers(expected->out_row)) << explained;
      EXPECT_TRUE(integers(arrays.kernel_id) == integers(expected->kernel_id)) << explained;
      EXPECT_TRUE(rows_of(arrays.coords) == rows_of(expected->coords)) << explained;
    }
  }
}

}  // namespace
}  // namespace cenote::test
