// Programs and memory: buffers by liveness, runs without allocations, derivatives of linear size, threads.
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cenote/cenote.h>

#include "support/arrays.h"
#include "support/counting.h"
#include "support/graphs.h"

namespace {

#ifdef CENOTE_COUNTS_ALLOCATIONS
void* counted(std::size_t bytes, std::size_t alignment) {
  if (cenote::test::counting_now) ++cenote::test::allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes ? bytes : 1) != 0)
    return nullptr;
  return memory;
}
void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = counted(bytes, alignment)) return memory;
  throw std::bad_alloc();
}
#endif

}  // namespace

#ifdef CENOTE_COUNTS_ALLOCATIONS
#if defined(__GNUC__) && !defined(__clang__)
// GCC sees free but not that new is replaced too.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t n) { return counted_or_throw(n, alignof(std::max_align_t)); }
void* operator new[](std::size_t n) { return counted_or_throw(n, alignof(std::max_align_t)); }
void* operator new(std::size_t n, std::align_val_t a) { return counted_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted_or_throw(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
// What arrays take their memory from.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return counted(bytes, alignment); }
#endif

namespace cenote::test {
namespace {

using graph::Builder;
using graph::Mode;
using graph::Program;
using graph::Var;
using graph::Workspace;

// relu and add in turn: every node needs the one before it only.
Program chain(int length, const Extents& shape) {
  Builder b;
  Var x = b.input(Type::f32, shape);
  for (int i = 0; i < length; ++i) x = i % 2 ? relu(x) : scale(x, 1.0 + i);
  return b.compile({x});
}

TEST(GraphMemory, AChainNeedsTwoBuffers) {
  const Program p = chain(100, {64});
  EXPECT_EQ(p.node_count(), 100);
  EXPECT_EQ(p.buffer_count(), 2);
  EXPECT_EQ(Workspace(p).bytes(), p.workspace_bytes());
  EXPECT_LT(p.workspace_bytes(), 4 * 64 * 4);
}

TEST(GraphMemory, SmallValuesReuseLargeBuffersAndSizesGrow) {
  Builder b;
  const Var x = b.input(Type::f32, {1, 64});
  Var y = x;
  for (int i = 0; i < 4; ++i) y = max_pool(scale(y, 2), {.size = {2}, .stride = 2});
  const Program shrinking = b.compile({y});
  EXPECT_EQ(shrinking.buffer_count(), 2);
  Var z = reshape(y, {4, 1});
  for (int i = 0; i < 4; ++i) z = add(scale(z, 2), x);
  EXPECT_LE(b.compile({z}).buffer_count(), 3);
}

TEST(GraphMemory, ValuesStayUntilTheirLastReader) {
  Builder b;
  const Var x = b.input(Type::f32, {8});
  const Var early = scale(x, 3);
  Var y = x;
  for (int i = 0; i < 10; ++i) y = scale(y, 1);
  const Program p = b.compile({add(y, early)});
  EXPECT_TRUE(holds(p.forward({counting({8})})[0], {8}, {0, 4, 8, 12, 16, 20, 24, 28}));
}

TEST(GraphMemory, AReverseSweepIsLinearInTheNodes) {
  std::vector<int> nodes;
  for (const int length : {500, 1000, 2000}) {
    const Program p = chain(length, {4});
    nodes.push_back(p.vjp_program().node_count());
    EXPECT_LE(nodes.back(), 5 * length);
    EXPECT_LE(p.jvp_program().node_count(), 5 * length);
  }
  EXPECT_EQ(nodes[2] - nodes[1], 2 * (nodes[1] - nodes[0]));
  const Program p = chain(2000, {4});
  EXPECT_EQ(p.vjp({full({4}, 1)}, {full({4}, 1)}).cotangents.size(), 1u);
}

// x shared by all of a chain of sums, each with two paths: 2^n paths, but not 2^n nodes.
TEST(GraphMemory, SharedValuesAreSweptOnce) {
  Builder b;
  const Var x = b.input(Type::f64, {2});
  Var y = x;
  for (int i = 0; i < 40; ++i) y = add(scale(y, 0.5), scale(y, 0.5));
  const Program p = b.compile({y});
  EXPECT_LE(p.vjp_program().node_count(), 200);
  EXPECT_TRUE(holds(*p.vjp({array<double>({2}, {1, 2})}, {array<double>({2}, {3, 4})}).cotangents[0], {2}, {3, 4}));
}

Program mixed() {
  Builder b;
  const Var x = b.input(Type::f32, {2, 3, 8, 8}, "x"), w = b.input(Type::f32, {8}, "w"), n = b.input(Type::i64, {2});
  const Var y = relu(max_pool(x * w, {.size = {2, 2}, .stride = 2}));
  const Var z = avg_pool(exp(scale(y, 0.1)), {.size = {3, 3}, .padding = 1});
  return b.compile({mean(z), smooth_max_pool2d(y - z, {2, 2}, 1, 2.0), n, x});
}

#ifdef CENOTE_COUNTS_ALLOCATIONS
TEST(GraphMemory, TheCounterCounts) {
  const Counting scope;
  const Array one(Type::f32, {4});
  const auto two = std::make_unique<int>(3);
  counting_now = false;
  EXPECT_EQ(allocations, 2);
}

TEST(GraphMemory, RunsAllocateNothing) {
  const Program p = mixed();
  std::vector<Array> x, y, dx, dy;
  for (const Signature& s : p.inputs()) {
    x.push_back(eighths(s.type, s.shape, 1));
    dx.push_back(eighths(s.type, s.shape, 2));
  }
  for (const Signature& s : p.outputs()) {
    y.emplace_back(s.type, s.shape);
    dy.push_back(eighths(s.type, s.shape, 3));
  }
  const std::vector<View> in(x.begin(), x.end()), tangents(dx.begin(), dx.end()), cotangents(dy.begin(), dy.end());
  const std::vector<MutableView> out(y.begin(), y.end()), gx(dx.begin(), dx.end()), gy(dy.begin(), dy.end());
  Workspace forward(p), jvp(p, Mode::jvp), vjp(p, Mode::vjp);
  for (const bool warm : {false, true}) {
    const Counting scope;
    p.run(in, out, forward);
    p.run_jvp(in, tangents, out, gy, jvp);
    p.run_vjp(in, cotangents, out, gx, vjp);
    counting_now = false;
    if (warm) {
      EXPECT_EQ(allocations, 0);
    }
  }
}
#endif

TEST(GraphMemory, ThreadsShareAProgram) {
  const Program p = mixed();
  std::vector<Array> x;
  for (const Signature& s : p.inputs()) x.push_back(eighths(s.type, s.shape, 4));
  const std::vector<View> in(x.begin(), x.end());
  const std::vector<Array> expected = p.forward(in);
  const std::vector<std::optional<View>> seeds{expected[0], expected[1], std::nullopt, expected[3]};
  std::vector<Program::Cotangents> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&, program = p] {
      for (int i = 0; i < 20; ++i) result = program.vjp(in, seeds);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(result.outputs[i], expected[i]));
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(*result.cotangents[i], *results[0].cotangents[i]));
  }
}

}  // namespace
}  // namespace cenote::test
