// The tracer that works on arrays.
#include <vector>

#include <gtest/gtest.h>

#include "autodiff/eager.h"
#include "core/copy.h"
#include "support/arrays.h"

namespace cenote::test {
namespace {

using namespace autodiff;

class Counting final : public Op {
 public:
  mutable int runs = 0;
  std::string name() const override { return "counting"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    return {{inputs[0], inputs[0]}, 0, [this](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              ++runs;
              for (const MutableView& y : out) copy_strided(in[0], y);
            }};
  }
  std::vector<Maybe> jvp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {{}, {}};
  }
  std::vector<Maybe> vjp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {{}};
  }
};

TEST(EagerTracer, RunsWhatIsAskedForAndOnce) {
  const auto op = std::make_shared<Counting>();
  EagerTracer t;
  const Value x = t.hold(array({2}, {1, 2}));
  const std::vector<Value> y = t.apply(op, {&x, 1});
  const std::vector<Value> z = t.apply(op, {&y[1], 1});
  EXPECT_EQ(op->runs, 0);
  EXPECT_TRUE(holds(*t.share(y[0]), {2}, {1, 2}));
  EXPECT_EQ(op->runs, 1);
  const std::vector<Value> twice{z[0], z[0], x};
  const std::vector<Array> arrays = t.take(twice);
  EXPECT_EQ(op->runs, 2);
  for (const Array& a : arrays) EXPECT_TRUE(holds(a, {2}, {1, 2}));
  EXPECT_TRUE(holds(*t.share(x), {2}, {1, 2}));
}

}  // namespace
}  // namespace cenote::test
