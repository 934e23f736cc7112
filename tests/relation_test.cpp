// Relations: the facts of the semantics, routes, what is kept, arrays from outside, and requests that are none.
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "core/memory.h"
#include "support/arrays.h"
#include "support/clouds.h"

namespace cenote::test {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers degrees(const Relation& relation) {
  Numbers offsets = integers(relation.row_offsets()), result;
  for (std::size_t i = 1; i < offsets.size(); ++i) result.push_back(offsets[i] - offsets[i - 1]);
  return result;
}

/// The sum of 1, 2, 3, … over the inputs of each output: enough to see which inputs feed it.
Numbers sums(const Relation& relation) {
  Numbers result(static_cast<std::size_t>(relation.outputs()), 0);
  const Numbers in = integers(relation.in_row()), out = integers(relation.out_row());
  for (std::size_t e = 0; e < in.size(); ++e) result[static_cast<std::size_t>(out[e])] += in[e] + 1;
  return result;
}

std::shared_ptr<const Coordinates> line3(const Numbers& xs) {
  std::vector<Row> rows;
  for (const std::int64_t x : xs) rows.push_back({0, x, 0, 0});
  return coordinates(rows, 3);
}

TEST(Relation, three_voxels_in_a_line) {
  const Relation relation = relate(line3({0, 1, 2}), {.size = {3, 1, 1}, .stride = 1});
  EXPECT_EQ(integers(relation.in_row()), (Numbers{0, 1, 0, 1, 2, 1, 2}));
  EXPECT_EQ(integers(relation.out_row()), (Numbers{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(integers(relation.kernel_id()), (Numbers{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(integers(relation.row_offsets()), (Numbers{0, 2, 5, 7}));
  EXPECT_EQ(relation.output(), relation.input());
  EXPECT_EQ(sums(relation), (Numbers{3, 6, 5}));
}

TEST(Relation, padding_shifts_the_window) {
  EXPECT_EQ(sums(relate(line3({0, 1, 2}), {.size = {3, 1, 1}, .stride = 1, .padding = {1, 0, 0}})), (Numbers{1, 3, 6}));
}

TEST(Relation, a_stride_beyond_the_kernel_leaves_inputs_out) {
  const Relation relation = relate(line({0, 1, 2, 3}), {1, 2});
  EXPECT_EQ(rows_of(relation.output()->array()), (std::vector<Row>{{0, 0}, {0, 1}}));
  EXPECT_EQ(sums(relation), (Numbers{1, 3}));
  EXPECT_EQ(integers(*relation.group()), (Numbers{0, -1, 1, -1}));
}

TEST(Relation, cells_of_two) {
  EXPECT_EQ(sums(relate(line({0, 1, 2, 3, 4, 5, 6, 7}), {2, 2})), (Numbers{3, 7, 11, 15}));
}

TEST(Relation, negative_coordinates_are_floored) {
  const Relation relation = relate(line3({-3, -2, -1, 0}), {.size = {2, 1, 1}, .stride = {2, 1, 1}});
  EXPECT_EQ(rows_of(relation.output()->array()), (std::vector<Row>{{0, -2, 0, 0}, {0, -1, 0, 0}, {0, 0, 0, 0}}));
  EXPECT_EQ(sums(relation), (Numbers{1, 5, 4}));
}

TEST(Relation, batches_need_not_be_sorted) {
  const Relation relation = relate(coordinates({{1, 0}, {0, 0}, {1, 1}, {0, 3}}, 1), {2, 2});
  EXPECT_EQ(rows_of(relation.output()->array()), (std::vector<Row>{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(sums(relation), (Numbers{4, 2, 4}));
  EXPECT_EQ(relation.output()->batch_size(), 2);
  EXPECT_EQ(relation.output()->batch_counts(), (Numbers{2, 1}));
}

TEST(Relation, dilation_and_overlap_and_empty_rows) {
  EXPECT_EQ(sums(relate(line({0, 1, 2, 3, 4}), {.size = 3, .stride = 1, .dilation = 2})), (Numbers{4, 6, 9, 6, 8}));
  const Relation overlap = relate(line({0, 1, 2, 3, 4, 5, 6, 7}), {3, 2});
  EXPECT_EQ(sums(overlap), (Numbers{3, 9, 15, 21}));
  EXPECT_EQ(degrees(overlap), (Numbers{2, 3, 3, 3}));
  EXPECT_EQ(degrees(relate(line({2}), {3, 3})), Numbers{0});
}

TEST(Relation, minkowski_tiles_where_size_is_stride) {
  const RelateOptions minkowski{.policy = Policy::minkowski};
  EXPECT_EQ(degrees(relate(line({2}), {3, 3}, minkowski)), Numbers{1});
  EXPECT_EQ(sums(relate(line({0, 1, 2, 3, 4, 5}), {3, 3}, minkowski)), (Numbers{6, 15}));
  EXPECT_EQ(sums(relate(line({0, 1, 2, 3}), {3, 2}, minkowski)), (Numbers{3, 9}));
}

TEST(Relation, dense_has_every_window_that_holds_an_input) {
  const RelateOptions dense{.policy = Policy::dense};
  const Relation open = relate(line({5, 0}), {3, 1}, dense);
  EXPECT_EQ(rows_of(open.output()->array()), (std::vector<Row>{{0, -2}, {0, -1}, {0, 0}, {0, 3}, {0, 4}, {0, 5}}));
  EXPECT_EQ(sums(open), (Numbers{2, 2, 2, 1, 1, 1}));
  const Relation bounded = relate(line({5, 0}), {3, 1}, {.policy = Policy::dense, .extent = Extents{6}});
  EXPECT_EQ(rows_of(bounded.output()->array()), (std::vector<Row>{{0, 0}, {0, 3}}));
  const Relation seen = relate(line({5, 0}), {3, 1}, {.policy = Policy::dense, .order = Order::first_seen});
  EXPECT_EQ(rows_of(seen.output()->array()), (std::vector<Row>{{0, 3}, {0, 4}, {0, 5}, {0, -2}, {0, -1}, {0, 0}}));
}

TEST(Relation, targets_are_the_rows_and_may_stay_empty) {
  const auto targets = line({9, 1, 0});
  for (const Engine engine : {Engine::sorted, Engine::hashed}) {
    const Relation relation = relate(line({0, 1, 2, 3}), {2, 2}, {.targets = targets, .engine = engine});
    EXPECT_EQ(relation.output(), targets);
    EXPECT_EQ(sums(relation), (Numbers{0, 7, 3}));
    EXPECT_EQ(sums(relate(line({0, 1, 2, 3}), {3, 2}, {.targets = targets, .engine = engine})), (Numbers{0, 9, 3}));
  }
}

TEST(Relation, transposed_points_are_first_seen_by_input_and_tap) {
  const Relation relation = relate_transposed(line({1, 0}), {.size = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(rows_of(relation.output()->array()), (std::vector<Row>{{0, 1}, {0, 2}, {0, 3}, {0, -1}, {0, 0}}));
  EXPECT_EQ(integers(relation.in_row()), (Numbers{0, 1, 0, 0, 1, 1}));
  EXPECT_EQ(integers(relation.kernel_id()), (Numbers{0, 2, 1, 2, 0, 1}));
  EXPECT_TRUE(relation.transposed());
  // Coarse rows 0 and 1 onto x = 0, 1, 2: the first, both, the second.
  const Relation onto = relate_transposed(line({0, 1}), {.size = 3, .stride = 2, .padding = 1}, line({0, 1, 2}));
  EXPECT_EQ(degrees(onto), (Numbers{1, 2, 1}));
  EXPECT_EQ(sums(onto), (Numbers{1, 3, 2}));
}

TEST(Relation, coordinates_at_the_ends_of_their_type_have_no_neighbours_beyond) {
  const auto ends = line({INT32_MIN, INT32_MAX});
  EXPECT_EQ(degrees(relate(ends, {3, 1})), (Numbers{1, 1}));
  EXPECT_EQ(rows_of(relate(ends, {2, 2}).output()->array()),
            (std::vector<Row>{{0, INT32_MIN / 2}, {0, INT32_MAX / 2}}));
  const auto wide = coordinates({{0, INT64_MIN}, {0, INT64_MAX}}, 1, true);
  for (const Engine engine : {Engine::sorted, Engine::hashed}) {
    EXPECT_EQ(degrees(relate(wide, {5, 3}, {.engine = engine})), (Numbers{1, 1}));
    EXPECT_EQ(relate(wide, {2, 1}, {.policy = Policy::dense, .engine = engine}).outputs(), 3);
  }
}

TEST(Relation, empty_coordinates_have_empty_relations) {
  const auto none = coordinates({}, 2);
  for (const Policy policy : {Policy::lattice, Policy::dense, Policy::minkowski}) {
    for (const Engine engine : {Engine::automatic, Engine::sorted, Engine::hashed}) {
      for (const Kernel& kernel : {Kernel{2, 2}, Kernel{3, 1}, Kernel{3, 2}}) {
        const Relation relation = relate(none, kernel, {.policy = policy, .engine = engine});
        EXPECT_EQ(relation.outputs(), 0);
        EXPECT_EQ(relation.edges(), 0);
        EXPECT_EQ(integers(relation.row_offsets()), Numbers{0});
        EXPECT_EQ(integers(relation.input_offsets()), Numbers{0});
      }
    }
  }
  EXPECT_EQ(relate(none->sorted(), {2, 2}).outputs(), 0);
  EXPECT_EQ(relate_transposed(none, {2, 2}).outputs(), 0);
  EXPECT_EQ(degrees(relate(none, {2, 2}, {.targets = coordinates({{0, 0, 0}}, 2)})), Numbers{0});
}

TEST(Relation, explain_names_the_route) {
  const auto points = line({4, 1, 2, 7});
  const auto route = [&](const Relation& relation) {
    return relation.explain().substr(0, relation.explain().find(':'));
  };
  EXPECT_EQ(route(relate(points->sorted(), {2, 2})), "Morton");
  EXPECT_EQ(route(relate(points->sorted(), {4, 4})), "Morton");
  EXPECT_EQ(route(relate(points, {2, 2})), "grouping, hashed");
  EXPECT_EQ(route(relate(points, {2, 2}, {.engine = Engine::sorted})), "grouping, sorted as asked");
  EXPECT_EQ(route(relate(points->sorted(), {2, 3})), "grouping, hashed");
  EXPECT_EQ(route(relate(points, {3, 1})), "sorted");
  EXPECT_EQ(route(relate(points, {3, 1}, {.engine = Engine::hashed})), "hashed as asked");
  EXPECT_NE(relate(points, {3, 1}).explain().find("axis 0 offsets run -1..1"), std::string::npos);
  EXPECT_NE(relate(points, {2, 2}).explain().find("4 inputs, 4 outputs, 4 edges"), std::string::npos);
}

TEST(Relation, explain_says_why_rows_are_hashed_or_sorted) {
  const auto points = line({4, 1, 2, 7});
  const auto says = [](const Relation& relation, const char* text) {
    return relation.explain().find(text) != std::string::npos ? "" : relation.explain();
  };
  EXPECT_EQ(says(relate(points, {2, 2}), "hashed, since one lookup per input"), "");
  EXPECT_EQ(says(relate(points, {2, 2}, {.order = Order::sorted}), "sorted, since output rows are to be in"), "");
  EXPECT_EQ(says(relate(points, {2, 2}, {.engine = Engine::sorted}), "; sorted as asked; "), "");
  EXPECT_EQ(says(relate(points, {3, 1}), "sorted, since a line of a window is a range of sorted keys"), "");
  EXPECT_EQ(says(relate_transposed(points, {2, 2}), "windows: windows of different inputs do not overlap"), "");
  EXPECT_EQ(says(relate_transposed(points, {2, 2}, points), "hashed, since one lookup per target"), "");
  EXPECT_EQ(says(relate_transposed(points, {3, 2}), "windows of different inputs overlap"), "");
}

TEST(Relation, more_outputs_than_rows_can_be_numbered_are_refused_first) {
  const auto points = coordinates({{0, 0, 0}, {0, 100000, 100000}}, 2);
  const Kernel large{.size = 46340, .stride = 46340};
  EXPECT_EQ(error_of([&] {
              relate_transposed(coordinates({{0, 0, 0}, {0, 1, 1}}, 2), large);
            }),
            "[relate_transposed] 4294791200 output rows: there may be at most 2147483647");
  EXPECT_EQ(error_of([&] {
              relate_transposed(coordinates({{0, 0, 0}, {0, 9, 9}, {0, 10, 46341}}, 2), large);
            }),
            "[relate_transposed] 6227539920 output rows: there may be at most 2147483647");
  EXPECT_EQ(error_of([&] {
              relate(points, {46340, 1}, {.policy = Policy::dense});
            }),
            "[relate] 4294791200 output rows: there may be at most 2147483647");
}

TEST(Relation, a_pyramid_of_morton_ordered_rows_stays_morton_ordered) {
  auto level = coordinates({{1, 5, -3}, {0, -8, 2}, {0, 7, 7}, {1, 4, -4}, {0, -7, 3}}, 2)->sorted();
  for (int i = 0; i < 3; ++i) {
    const Relation relation = relate(level, {2, 2});
    EXPECT_EQ(relation.explain().substr(0, 6), "Morton");
    EXPECT_TRUE(relation.contiguous());
    level = relation.output();
    EXPECT_TRUE(level->morton_ordered());
    EXPECT_EQ(integers(level->morton_order()), integers(coordinates(rows_of(level->array()), 2)->morton_order()));
  }
}

TEST(Relation, relations_are_kept_with_their_coordinates) {
  const auto points = line({0, 1, 2});
  const Relation first = points->relation({2, 2}), again = points->relation({Extents{2}, 2});
  EXPECT_EQ(first.impl(), again.impl());
  EXPECT_NE(first.impl(), points->relation({3, 2}).impl());
  EXPECT_EQ(points->kept_relations(), (std::vector<std::string>{"lattice k(2,) s(2,) p(0,) d(1,) first_seen",
                                                                "lattice k(3,) s(2,) p(0,) d(1,) first_seen"}));
  points->relation({2, 2}, {.targets = line({0})});
  EXPECT_EQ(points->kept_relations().size(), 2u);
}

TEST(Relation, kept_relations_do_not_keep_their_coordinates_alive) {
  std::weak_ptr<const Coordinates> watch;
  {
    const auto points = line({0, 1, 2});
    watch = points;
    points->relation({3, 1}).output()->relation({2, 2}).out_row();
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Relation, arrays_are_made_once_whichever_thread_asks) {
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < 5000; ++i) rows.push_back({0, i * 7 % 5003, i % 11});
  const Relation relation = relate(coordinates(rows, 2), {2, 2});
  std::vector<const void*> seen(8);
  std::vector<std::thread> threads;
  for (auto& place : seen)
    threads.emplace_back(
        [&] { place = static_cast<const char*>(relation.input_edges().data()) + relation.out_row().size(); });
  for (auto& thread : threads) thread.join();
  for (const void* place : seen) EXPECT_EQ(place, seen[0]);
}

TEST(Relation, loading_checks_every_edge) {
  const auto points = line({0, 1, 2});
  const RelationArrays good = relate(points, {3, 1}).save();
  const auto load = [&](auto change) {
    RelationArrays arrays = good;
    change(arrays);
    return error_of([&] { Relation::load(points, arrays); });
  };
  EXPECT_EQ(load([](auto&) {}), "");
  EXPECT_EQ(load([](auto& a) { a.in_row.template values<std::int32_t>()[2] = 3; }),
            "[Relation::load] in_row[2] = 3: must be at least 0 and below 3");
  EXPECT_EQ(load([](auto& a) { a.in_row.template values<std::int32_t>()[0] = -1; }),
            "[Relation::load] in_row[0] = -1: must be at least 0 and below 3");
  EXPECT_EQ(load([](auto& a) { a.out_row.template values<std::int32_t>()[6] = 99; }),
            "[Relation::load] out_row[6] = 99: must be at least 0 and below 3");
  EXPECT_EQ(load([](auto& a) { a.kernel_id.template values<std::int32_t>()[0] = 3; }),
            "[Relation::load] kernel_id[0] = 3: must be at least 0 and below 3");
  EXPECT_NE(load([](auto& a) { a.out_row.template values<std::int32_t>()[0] = 2; }).find("sorted"), std::string::npos);
  EXPECT_EQ(
      load([](auto& a) { a.in_row.template values<std::int32_t>()[0] = 2; }),
      "[Relation::load] edge 0 is between input row 2 at (0, 2) and output row 0 at (0, 0): not where kernel id 1 "
      "leads");
  EXPECT_NE(load([](auto& a) { a.coords.template values<std::int32_t>()[5] = 7; }).find("edge 5"), std::string::npos);
  EXPECT_NE(load([](auto& a) { a.kernel.template values<std::int64_t>()[3] = 2; }).find("edge 1"), std::string::npos);
  EXPECT_NE(load([](auto& a) { a.kernel_id = Array(Type::i32, {2}); }).find("kernel_id is i32 of shape (2,)"),
            std::string::npos);
  EXPECT_NE(load([](auto& a) { a.facts.template values<std::int64_t>()[0] = 4; }).find("3 rows"), std::string::npos);
  EXPECT_NE(load([](auto& a) { a.facts.template values<std::int64_t>()[2] = 7; }).find("policy"), std::string::npos);
  EXPECT_NE(load([](auto& a) { a.kernel.template values<std::int64_t>()[0] = 0; }).find("at least 1"),
            std::string::npos);
  EXPECT_NE(load([](auto& a) { a.in_row = Array(Type::i64, {7}); }).find("must be i32"), std::string::npos);
}

TEST(Relation, more_outputs_than_memory_are_an_error_about_their_number) {
  if (machine_memory() >> 30 > 30) GTEST_SKIP() << "this machine might hold them";
  const auto point = coordinates({{0, 0, 0, 0}}, 3);
  try {
    relate(point, {.size = 1280, .stride = 1}, {.policy = Policy::dense});
    FAIL() << "two billion output rows were made";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("[relate] 2097152000 output rows: they need at least 31 GiB of memory"),
              std::string::npos)
        << error.what();
  }
}

TEST(Relation, kernels_that_are_none_are_rejected) {
  const auto points = coordinates({{0, 1, 2, 3}}, 3);
  const auto error = [&](const Kernel& kernel, const RelateOptions& options = {}) {
    return error_of([&] { relate(points, kernel, options); });
  };
  EXPECT_EQ(error({.size = {1, 0, 1}}), "[relate] kernel.size[1] = 0: every kernel extent must be at least 1");
  EXPECT_EQ(error({.size = -2}), "[relate] kernel.size = -2: every kernel extent must be at least 1");
  EXPECT_EQ(error({.stride = {1, 1, 0}}), "[relate] kernel.stride[2] = 0: every kernel stride must be at least 1");
  EXPECT_EQ(error({.padding = -1}), "[relate] kernel.padding = -1: every kernel padding must be at least 0");
  EXPECT_EQ(error({.dilation = 0}), "[relate] kernel.dilation = 0: every kernel dilation must be at least 1");
  EXPECT_EQ(error({.size = {2, 2}}), "[relate] kernel.size = (2, 2): must be one integer or one per lattice axis, 3");
  EXPECT_NE(error({.size = 1300}).find("must be below 2^31"), std::string::npos);
  EXPECT_NE(error({.size = 3, .dilation = INT64_MAX}).find("must fit 64 bits"), std::string::npos);
  EXPECT_NE(error({.padding = 1}, {.policy = Policy::minkowski}).find("kernel.padding[0] = 1"), std::string::npos);
  EXPECT_NE(error({}, {.extent = Extents{4, 4, 4}}).find("only policy dense"), std::string::npos);
  EXPECT_EQ(error({}, {.policy = Policy::dense, .extent = Extents{4, 4, 3}}),
            "[relate] coords row 0 is (0, 1, 2, 3): coordinate 2 must be in [0, 3), the extent");
  EXPECT_NE(error({}, {.policy = Policy::dense, .extent = Extents{4, 4}}).find("one number per lattice axis, 3"),
            std::string::npos);
  EXPECT_NE(error({5, 1}, {.policy = Policy::dense, .extent = Extents{4, 4, 4}}).find("must be at least 5"),
            std::string::npos);
  EXPECT_NE(error({}, {.targets = line({0})}).find("targets of dimension 1"), std::string::npos);
  EXPECT_NE(error({}, {.targets = points, .order = Order::sorted}).find("order with targets"), std::string::npos);
  EXPECT_NE(error_of([] { relate(nullptr, {}); }).find("coords is null"), std::string::npos);
  EXPECT_NE(error_of([&] { relate_transposed(points, {.stride = 0}); }).find("[relate_transposed] kernel.stride = 0"),
            std::string::npos);
}

TEST(Relation, a_range_beyond_128_bits_is_rejected_with_the_range) {
  const std::vector<Row> rows{{0, INT64_MIN, INT64_MIN, 0}, {1, INT64_MAX, INT64_MAX, 0}};
  const std::string error = error_of([&] { coordinates(rows, 3, true); });
  EXPECT_NE(error.find("[-9223372036854775808, 9223372036854775807]"), std::string::npos) << error;
  EXPECT_NE(error.find("129 bits and must fit 128"), std::string::npos) << error;
  // Nobody has looked at the keys of these yet.
  const auto unseen = Coordinates::make(row_array(rows, 3, true), {.assume_unique = true});
  for (const Engine engine : {Engine::automatic, Engine::sorted, Engine::hashed}) {
    for (const auto& make : {std::function<Relation()>([&] {
                               return relate(unseen, {3, 2}, {.engine = engine});
                             }),
                             std::function<Relation()>([&] {
                               return relate(unseen, {1, 1}, {.targets = unseen});
                             }),
                             std::function<Relation()>([&] {
                               return relate_transposed(unseen, {3, 2});
                             })}) {
      const std::string refused = error_of(make);
      EXPECT_NE(refused.find("9223372036854775807]"), std::string::npos) << refused;
      EXPECT_NE(refused.find("must fit 128"), std::string::npos) << refused;
    }
  }
}

TEST(Relation, rows_wrongly_assumed_to_differ_are_safe) {
  std::vector<Row> rows(300, Row{0, 1, 1});
  for (std::int64_t i = 0; i < 20; ++i) rows.push_back({0, i, 1});
  const auto points = Coordinates::make(row_array(rows, 2), {.assume_unique = true});
  EXPECT_FALSE(points->known_unique());
  for (const Engine engine : {Engine::sorted, Engine::hashed})
    for (const Kernel& kernel : {Kernel{2, 2}, Kernel{3, 1}, Kernel{3, 2}, Kernel{5, 1, 0, 2}, Kernel{40, 1}})
      for (const Policy policy : {Policy::lattice, Policy::dense})
        EXPECT_GT(relate(points, kernel, {.policy = policy, .engine = engine}).input_edges().size(), 0);
  EXPECT_GT(relate(points->sorted(), {2, 2}).out_row().size(), 0);
  EXPECT_GT(relate_transposed(points, {3, 2}).out_row().size(), 0);
}

}  // namespace
}  // namespace cenote::test
