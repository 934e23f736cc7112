// Graphs: what programs compute, what the builder refuses, and nodes that users define.
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/graphs.h"
#include "support/property.h"

namespace cenote::test {
namespace {

using graph::Builder;
using graph::Program;
using graph::UserNode;
using graph::Var;

/// The text of the Unsupported error that f throws; empty if it throws nothing.
template <class F>
std::string unsupported_in(F&& f) {
  try {
    f();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return {};
}

bool holds_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// y = x², elementwise in f32, with a count of its runs.
UserNode square(std::atomic<int>* runs = nullptr) {
  const auto each = [](const View& v, auto f) {
    for (std::int64_t i = 0; i < element_count(v.shape); ++i) f(i, static_cast<const float*>(v.data)[i]);
  };
  UserNode node{.name = "square",
                .shape =
                    [](std::span<const Signature> in) {
                      if (in.size() != 1 || in[0].type != Type::f32)
                        throw std::invalid_argument("one f32 array is needed");
                      return std::vector<Signature>{in[0]};
                    },
                .forward =
                    [=](std::span<const View> in, std::span<const MutableView> out) {
                      if (runs) ++*runs;
                      each(in[0], [&](std::int64_t i, float x) { static_cast<float*>(out[0].data)[i] = x * x; });
                    }};
  node.jvp = node.vjp = [=](std::span<const View> in, std::span<const View>, std::span<const View> d,
                            std::span<const MutableView> result) {
    each(in[0], [&](std::int64_t i, float x) {
      static_cast<float*>(result[0].data)[i] = 2 * x * static_cast<const float*>(d[0].data)[i];
    });
  };
  return node;
}

TEST(Graph, RandomChainsGiveTheBitsOfTheirNodesAlone) {
  check(300, [] {
    const Type type = detail::one_of<Type>({Type::f16, Type::bf16, Type::f32, Type::f64});
    RandomGraph g(type, static_cast<int>(detail::between(4, 25)), false);
    std::vector<Var> outputs;
    std::vector<Array> expected;
    for (std::int64_t n = detail::between(1, 6); n > 0; --n) {
      const auto& chosen =
          g.values[static_cast<std::size_t>(detail::between(0, static_cast<std::int64_t>(g.values.size()) - 1))];
      outputs.push_back(chosen.first);
      expected.push_back(chosen.second);
    }
    const Program program = g.builder.compile(outputs);
    const std::vector<Array> actual = program.forward(g.views());
    for (std::size_t i = 0; i < actual.size(); ++i) RC_ASSERT(same_bits(actual[i], expected[i]));
  });
}

TEST(Graph, KnowsShapesBeforeAnythingRuns) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 3, 8, 9}, "x");
  EXPECT_EQ(max_pool(x, {.size = {2, 2}, .stride = 2}).shape(), (Extents{2, 3, 4, 4}));
  EXPECT_EQ(adaptive_avg_pool(x, {.output = {5, std::nullopt}}).shape(), (Extents{2, 3, 5, 9}));
  EXPECT_EQ(global_max_pool(x).shape(), (Extents{2, 3, 1, 1}));
  EXPECT_EQ(sum(x).shape(), Extents{});
  EXPECT_EQ(reshape(x, {6, -1}).shape(), (Extents{6, 72}));
  EXPECT_EQ((x + b.constant(array({9}, std::vector<double>(9, 1)))).shape(), x.shape());
  const Var bytes = b.input(Type::u8, {4, 4});
  EXPECT_EQ(avg_pool(bytes, {.size = {2, 2}}).type(), Type::f32);
  EXPECT_EQ(sum_pool(bytes, {.size = {2, 2}}, Type::u32).type(), Type::u32);
}

TEST(Graph, TorchLeansFormsPoolTheLastTwoAxes) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 5, 6});
  const Array data = eighths(Type::f32, {2, 5, 6}, 1);
  const Program p = b.compile({max_pool2d(x, {2, 3}, 2), max_pool2d_pad(x, {2, 3}, 2, 1), avg_pool2d(x, {2, 3}, 2),
                               avg_pool2d_pad(x, {2, 3}, 2, 1), smooth_max_pool2d(x, {2, 3}, 2, 3.0)});
  const std::vector<Array> y = p.forward({data});
  const Window plain{.size = {2, 3}, .stride = 2}, padded{.size = {2, 3}, .stride = 2, .padding = 1};
  EXPECT_TRUE(same_bits(y[0], max_pool(data, plain)));
  EXPECT_TRUE(same_bits(y[1], max_pool(data, padded)));
  EXPECT_TRUE(same_bits(y[2], avg_pool(data, plain)));
  EXPECT_TRUE(same_bits(y[3], avg_pool(data, padded)));
  EXPECT_TRUE(same_bits(y[4], smooth_max_pool(data, plain, 3.0)));
  EXPECT_TRUE(rejects([&] { max_pool2d(x, {2}, 1); }, {"[graph] node", "max_pool2d", "(2,)", "two extents"}));
}

TEST(Graph, PoolingsGiveTheirIndicesToo) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 2, 5, 6});
  const Window window{.size = {2, 2}, .stride = 2};
  const graph::Pooled high = max_pool_with_indices(x, window),
                      low = min_pool_with_indices(x, window, IndexKind::offset);
  EXPECT_EQ(low.indices.type(), Type::u8);
  const Program p = b.compile({high.values, high.indices, low.indices});
  const Array data = eighths(Type::f32, {2, 2, 5, 6}, 1);
  const std::vector<Array> y = p.forward({data});
  EXPECT_TRUE(same_bits(y[0], max_pool(data, window)));
  EXPECT_TRUE(same_bits(y[1], max_pool_with_indices(data, window).indices));
  EXPECT_TRUE(same_bits(y[2], min_pool_with_indices(data, window, IndexKind::offset).indices));
  EXPECT_TRUE(
      rejects([&] { pool_with_indices(x, {.reducer = Reducer::sum, .region = window}); }, {"[graph] node", "sum"}));
}

TEST(Graph, OutputsMayBeInputsConstantsAndTheSameTwice) {
  Builder b;
  const Var x = b.input(Type::f32, {3}), labels = b.input(Type::i64, {2}), c = b.constant(array({2}, {7, 8}));
  const Var y = scale(x, 2);
  const Program p = b.compile({x, y, c, y, labels, x});
  const std::vector<Array> out = p.forward({array({3}, {1, 2, 3}), array<std::int64_t>({2}, {4, 5})});
  for (const std::size_t i : {0u, 5u}) EXPECT_TRUE(holds(out[i], {3}, {1, 2, 3}));
  for (const std::size_t i : {1u, 3u}) EXPECT_TRUE(holds(out[i], {3}, {2, 4, 6}));
  EXPECT_TRUE(holds(out[2], {2}, {7, 8}));
  EXPECT_TRUE(holds(out[4], {2}, {4, 5}));
  const auto v = p.vjp({array({3}, {1, 2, 3}), array<std::int64_t>({2}, {4, 5})},
                       {array({3}, {1, 1, 1}), array({3}, {10, 10, 10}), array({2}, {1, 1}), array({3}, {100, 0, 100}),
                        std::nullopt, std::nullopt});
  EXPECT_TRUE(holds(*v.cotangents[0], {3}, {221, 21, 221}));
  EXPECT_FALSE(v.cotangents[1].has_value());
}

TEST(Graph, StridedInputsAndOutputsAreServed) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 3});
  const Program p = b.compile({b.call(square(), {x}).front(), scale(x, 2), x});
  const std::vector<float> data{1, 4, 2, 5, 3, 6};
  const View columns(data.data(), Type::f32, {2, 3}, {1, 2});
  std::vector<float> first(6), second(6), third(6);
  const std::vector<MutableView> outputs{MutableView(first.data(), Type::f32, {2, 3}, {1, 2}),
                                         MutableView(second.data() + 5, Type::f32, {2, 3}, {-3, -1}),
                                         MutableView(third.data(), Type::f32, {2, 3}, {1, 2})};
  graph::Workspace workspace(p);
  p.run(std::span(&columns, 1), outputs, workspace);
  EXPECT_EQ(first, (std::vector<float>{1, 16, 4, 25, 9, 36}));
  EXPECT_EQ(second, (std::vector<float>{12, 10, 8, 6, 4, 2}));
  EXPECT_EQ(third, data);
}

TEST(Graph, ErrorsNameTheNodeWhatItWantsAndWhatItGot) {
  Builder b, other;
  const Var x = b.input(Type::f32, {3, 4}, "x"), y = b.input(Type::f32, {5}, "y"), z = other.input(Type::f32, {3, 4});
  const Var wide = b.constant(counting<double>({3, 4}));
  EXPECT_TRUE(rejects([&] { max_pool(x, {.size = {2, 9}}); }, {"[graph] node 3 (max_pool): ", "9", "%0 f32 (3, 4)"}));
  EXPECT_TRUE(rejects([&] { max_pool(x, {.size = {2, 0}}); }, {"[graph] node 3 (max_pool): window[1] = 0"}));
  EXPECT_TRUE(rejects([&] { add(x, y); }, {"[graph] node 3 (add): ", "(3, 4)", "(5,)"}));
  EXPECT_TRUE(rejects([&] { add(x, wide); }, {"[graph] node", "f32", "f64"}));
  EXPECT_TRUE(rejects([&] { reshape(x, {5, 5}); }, {"[graph] node", "(reshape)", "(5, 5)", "(3, 4)"}));
  EXPECT_TRUE(rejects([&] { add(x, z); }, {"[graph] node", "argument 1", "another builder"}));
  EXPECT_TRUE(rejects([&] { b.compile({x, z}); }, {"[graph] compile", "argument 1", "another builder"}));
  EXPECT_TRUE(rejects([&] { b.compile({}); }, {"[graph]", "at least one output"}));
  EXPECT_TRUE(rejects([&] { b.compile({Var()}); }, {"[graph]", "empty Var"}));
  EXPECT_TRUE(rejects([&] { exp(Var()); }, {"[graph]", "empty Var"}));
  EXPECT_TRUE(rejects([&] { Var().shape(); }, {"[graph]", "empty Var"}));
  EXPECT_TRUE(rejects([&] { b.input(Type::f32, {3, -1}, "bad"); }, {"[graph] node", "(input bad)", "shape[1] = -1"}));
  EXPECT_TRUE(rejects([&] { b.input(Type::f32, {1 << 30, 1 << 30, 1 << 30}); }, {"[graph] node", "64 bits"}));
  EXPECT_TRUE(rejects([&] { b.input(Type::f32, {1 << 30, 1 << 30}); }, {"[graph] node", "bytes"}));
  UserNode bad = square();
  bad.shape = [](auto) { return std::vector<Signature>{{Type::f32, {-4}}}; };
  EXPECT_TRUE(rejects([&] { b.call(bad, {x}); }, {"[graph] node", "(square)", "shape[0] = -4"}));
  bad.shape = [](auto) { return std::vector<Signature>{}; };
  EXPECT_TRUE(rejects([&] { b.call(bad, {x}); }, {"[graph] node", "(square)", "at least one"}));
  EXPECT_TRUE(rejects([&] { pool(x, {.region = Window{.size = {2}}, .indices = IndexKind::plane}); }, {"indices"}));
  EXPECT_TRUE(rejects([&] { b.call(square(), {x, y}); }, {"[graph] node", "(square)", "one f32 array", "f32 (5,)"}));
  EXPECT_TRUE(rejects([&] { b.call({}, {x}); }, {"[graph]", "name"}));
  EXPECT_EQ(b.compile({x}).forward({counting({3, 4}), counting({5})}).size(), 1u);
}

TEST(Graph, RunsRefuseArraysThatAreNotTheirs) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 3}, "image"), n = b.input(Type::i32, {2});
  const Program p = b.compile({relu(x), n});
  const Array good = counting({2, 3}), labels = counting<std::int32_t>({2});
  EXPECT_TRUE(rejects([&] { p.forward({good}); }, {"[graph] inputs: 1 were given, 2 are needed"}));
  EXPECT_TRUE(rejects([&] { p.forward({counting({3, 2}), labels}); }, {"input 0 (image)", "(3, 2)", "(2, 3)"}));
  EXPECT_TRUE(rejects([&] { p.forward({counting<double>({2, 3}), labels}); }, {"input 0 (image)", "f64", "f32"}));
  EXPECT_TRUE(rejects([&] { p.forward({View(nullptr, Type::f32, {2, 3}), labels}); }, {"input 0 (image)", "null"}));
  EXPECT_TRUE(rejects([&] { p.jvp({good, labels}, {good}); }, {"tangents: 1 were given, 2 are needed"}));
  EXPECT_TRUE(rejects([&] { p.jvp({good, labels}, {good, labels}); }, {"tangents[1]", "i32", "nullopt"}));
  EXPECT_TRUE(rejects(
      [&] {
        p.jvp({good, labels}, {counting({3}), {}});
      },
      {"tangent of input image", "(3,)", "(2, 3)"}));
  EXPECT_TRUE(rejects([&] { p.vjp({good, labels}, {counting({3, 2}), {}}); }, {"cotangent of output 0", "(3, 2)"}));
  EXPECT_TRUE(rejects([&] { p.vjp({good, labels}, {}); }, {"cotangents: 0 were given, 2 are needed"}));
  graph::Workspace w(p);
  Array y = counting({2, 3});
  Array m = labels;
  const std::vector<View> in{y, labels};
  const std::vector<MutableView> out{y, m};
  EXPECT_TRUE(rejects([&] { p.run(in, out, w); }, {"output 0", "input 0", "overlap"}));
  EXPECT_TRUE(rejects([&] { p.run(in, std::span(out).first(1), w); }, {"outputs: 1 were given, 2 are needed"}));
}

TEST(Graph, WorkspacesServeOneProgramOneModeOneRun) {
  Builder b;
  const Var x = b.input(Type::f32, {4});
  const Program p = b.compile({scale(x, 2)}), q = b.compile({scale(x, 2)});
  const Array data = counting({4});
  Array y(Type::f32, {4});
  const View in = data;
  const MutableView out = y;
  graph::Workspace other(q), reverse(p, graph::Mode::vjp), own(p);
  EXPECT_TRUE(rejects([&] { p.run({&in, 1}, {&out, 1}, other); }, {"workspace", "another program"}));
  EXPECT_TRUE(rejects([&] { p.run({&in, 1}, {&out, 1}, reverse); }, {"workspace", "run_vjp, not for run"}));
  const Program copy = p;
  copy.run({&in, 1}, {&out, 1}, own);
  EXPECT_TRUE(holds(y, {4}, {0, 2, 4, 6}));
  graph::Workspace moved = std::move(own);
  EXPECT_TRUE(rejects([&] { p.run({&in, 1}, {&out, 1}, own); }, {"workspace", "moved"}));
  p.run({&in, 1}, {&out, 1}, moved);

  // A node that uses the workspace it runs in.
  std::function<void()> again = [] {};
  UserNode nested = square();
  nested.forward = [&, plain = nested.forward](auto reads, auto writes) {
    again();
    plain(reads, writes);
  };
  const Program outer = b.compile({b.call(nested, {x}).front()});
  graph::Workspace one(outer);
  std::string text;
  again = [&] { text = error_of([&] { outer.run({&in, 1}, {&out, 1}, one); }); };
  outer.run({&in, 1}, {&out, 1}, one);
  EXPECT_TRUE(holds_text(text, "another run is using it")) << text;
  EXPECT_TRUE(holds(y, {4}, {0, 1, 4, 9}));
}

TEST(Graph, NodesThatNoOutputNeedsAreNotRun) {
  std::atomic<int> needed{0}, dead{0};
  Builder b;
  const Var x = b.input(Type::f32, {4});
  const Var y = b.call(square(&needed), {x}).front();
  exp(b.call(square(&dead), {y}).front());
  const Program p = b.compile({y});
  EXPECT_EQ(p.node_count(), 1);
  p.forward({counting({4})});
  p.vjp({counting({4})}, {counting({4})});
  EXPECT_EQ(needed, 2);
  EXPECT_EQ(dead, 0);
  // The cotangents alone need no forward value of the node.
  p.vjp_program().forward({counting({4}), counting({4})});
  EXPECT_EQ(dead, 0);
}

TEST(Graph, UsersNodesHaveTheirOwnDerivatives) {
  Builder b;
  const Var x = b.input(Type::f32, {3});
  const Var y = b.call(square(), {x}).front();
  const Program p = b.compile({sum(y * y)});
  const Array at = array({3}, {1, 2, 3});
  EXPECT_TRUE(holds(*p.jvp({at}, {array({3}, {1, 0, 10})}).tangents[0], {}, {4 + 1080}));
  EXPECT_TRUE(holds(*p.vjp({at}, {full({}, 1)}).cotangents[0], {3}, {4, 32, 108}));
  EXPECT_TRUE(holds(*p.vjp({at}, {std::nullopt}).cotangents[0], {3}, {0, 0, 0}));
  // Linear in the cotangent, and unknown in x: the second derivative fails where it is not zero.
  const Program pullback = b.compile({y}).vjp_program();
  const Array g = array({3}, {1, 1, 1});
  EXPECT_TRUE(holds_text(unsupported_in([&] { pullback.jvp({at, g}, {at, g}); }), "square_vjp"));
  EXPECT_TRUE(holds_text(unsupported_in([&] { pullback.vjp({at, g}, {g}); }), "square_vjp"));
}

TEST(Graph, ANodeCanBeCalledOnAVariableWithoutItsBuilder) {
  Builder b;
  const Var x = b.input(Type::f32, {3});
  const Array at = array({3}, {1, 2, 3});
  const Program direct = b.compile({b.call(square(), {x}).front()}), free = b.compile({graph::call(square(), x)});
  EXPECT_TRUE(same_bits(free.forward({at}).front(), direct.forward({at}).front()));
  EXPECT_TRUE(same_bits(*free.vjp({at}, {at}).cotangents.front(), *direct.vjp({at}, {at}).cotangents.front()));
  EXPECT_TRUE(rejects([&] { graph::call(square(), Var()); }, {"square", "empty Var"}));
}

TEST(Graph, ANodeWithoutADerivativeFailsLoudlyUnlessNothingFlows) {
  UserNode plain = square();
  plain.jvp = plain.vjp = nullptr;
  Builder b;
  const Var x = b.input(Type::f32, {3}), labels = b.input(Type::i32, {3});
  const Var y = b.call(plain, {x}).front();
  const Array at = array({3}, {1, 2, 3}), ints = array<std::int32_t>({3}, {1, 2, 3});
  const Program p = b.compile({exp(y)});
  for (int twice = 0; twice < 2; ++twice) {
    const std::string jvp = unsupported_in([&] { p.jvp({at, ints}, {at, std::nullopt}); });
    const std::string vjp = unsupported_in([&] { p.vjp({at, ints}, {at}); });
    EXPECT_TRUE(holds_text(jvp, "[graph] node 2 (square): the node was defined without a jvp")) << jvp;
    EXPECT_TRUE(holds_text(vjp, "[graph] node 2 (square): the node was defined without a vjp")) << vjp;
  }
  EXPECT_EQ(p.forward({at, ints}).size(), 1u);

  const Var c = b.call(plain, {b.constant(at)}).front(), d = b.call(plain, {detach(x)}).front();
  const Program q = b.compile({c + d + detach(y) + x});
  EXPECT_TRUE(holds(*q.jvp({at, ints}, {at, std::nullopt}).tangents[0], {3}, {1, 2, 3}));
  EXPECT_TRUE(holds(*q.vjp({at, ints}, {at}).cotangents[0], {3}, {1, 2, 3}));
}

TEST(Graph, UsersNodesMayMixTypesAndHaveSeveralOutputs) {
  // (x f32, shift i32 scalar) -> (x + shift, number of elements)
  UserNode node{.name = "shift_and_count",
                .shape =
                    [](auto in) {
                      return std::vector<Signature>{in[0], {Type::i64, {}}};
                    },
                .forward =
                    [](auto in, auto out) {
                      const std::int64_t n = element_count(in[0].shape);
                      const int shift = *static_cast<const int*>(in[1].data);
                      for (std::int64_t i = 0; i < n; ++i)
                        static_cast<float*>(out[0].data)[i] =
                            static_cast<const float*>(in[0].data)[i] + static_cast<float>(shift);
                      *static_cast<std::int64_t*>(out[1].data) = n;
                    }};
  node.vjp = [](auto in, auto outputs, auto g, auto gx) {
    EXPECT_EQ(in.size(), 2u);
    EXPECT_EQ(outputs.size(), 2u);
    EXPECT_EQ(g[1].data, nullptr);
    EXPECT_EQ(gx[1].data, nullptr);
    std::memcpy(gx[0].data, g[0].data, static_cast<std::size_t>(element_count(gx[0].shape)) * 4);
  };
  Builder b;
  const Var x = b.input(Type::f32, {3}), shift = b.input(Type::i32, {});
  const std::vector<Var> y = b.call(node, {x, shift});
  const Program p = b.compile({y[1], scale(y[0], 3)});
  const auto v = p.vjp({array({3}, {1, 2, 3}), full<std::int32_t>({}, 10)}, {std::nullopt, array({3}, {1, 2, 3})});
  EXPECT_TRUE(holds(v.outputs[0], {}, {3}));
  EXPECT_TRUE(holds(v.outputs[1], {3}, {33, 36, 39}));
  EXPECT_TRUE(holds(*v.cotangents[0], {3}, {3, 6, 9}));
  EXPECT_FALSE(v.cotangents[1].has_value());
}

TEST(Graph, DescribesItsNodesAndTheirBuffers) {
  Builder b;
  const Var x = b.input(Type::f32, {2, 8}, "x");
  const Program p = b.compile({exp(neg(exp(max_pool(x, {.size = {2}, .stride = 2}))))});
  EXPECT_EQ(p.describe(),
            "program: 1 input, 1 output, 4 operations, 2 buffers, 128 bytes\n"
            "%0 = input x: f32 (2, 8) in input 0\n"
            "%1 = max_pool(%0): f32 (2, 4) in buffer 0\n"
            "%2 = exp(%1): f32 (2, 4) in buffer 1\n"
            "%3 = neg(%2): f32 (2, 4) in buffer 0 after %1\n"
            "%4 = exp(%3): f32 (2, 4) in output 0\n"
            "output 0 = %4\n");
  const std::string dot = p.dot();
  EXPECT_TRUE(holds_text(dot, "digraph"));
  EXPECT_TRUE(holds_text(dot, "n0 -> n1;"));
  EXPECT_TRUE(holds_text(dot, "max_pool"));
}

TEST(Graph, ProgramsOutliveTheirBuilderAndItsLaterNodes) {
  std::optional<Builder> b(std::in_place);
  Var x = b->input(Type::f32, {3});
  Var y = scale(x, 2);
  const Program early = b->compile({y});
  const Var late = b->input(Type::f32, {1});
  const Program both = b->compile({y + late});
  b.reset();
  EXPECT_TRUE(holds(early.forward({array({3}, {1, 2, 3})})[0], {3}, {2, 4, 6}));
  EXPECT_EQ(both.inputs().size(), 2u);
  EXPECT_EQ(scale(y, 2).shape(), Extents{3});
}

}  // namespace
}  // namespace cenote::test
