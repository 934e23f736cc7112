// Gradients of winners by every way that they can be sent, which must agree to the last bit on whole numbers.
#include <array>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cenote/cenote.h>

#include "cpu/route.h"
#include "support/arrays.h"
#include "support/machine.h"
#include "support/property.h"
#include "support/random_derivative.h"

namespace cenote::test {
namespace {

using cpu::Sending;

/// A pooling of planes, of lines or of rows of channels, and how often each way could be taken.
struct Routes {
  Pooling pooling;
  Type type;
  Extents shape;

  static Routes draw() {
    using namespace detail;
    const bool last = chance(40);
    const std::int64_t axes = between(1, 2), most = one_of<std::int64_t>({3, 5, 5, 17});
    Routes r{{.reducer = one_of<Reducer>({Reducer::max, Reducer::min})},
             one_of<Type>({Type::f32, Type::f32, Type::f64}),
             {between(1, 3)}};
    Extents size, stride, dilation;
    std::vector<Padding::Sides> padding;
    for (std::int64_t i = 0; i < axes; ++i) {
      const std::int64_t taps = between(1, most), apart = chance(15) ? 2 : 1;
      size.push_back(taps);
      stride.push_back(between(1, 4));
      dilation.push_back(apart);
      padding.emplace_back(between(0, (taps - 1) / 2), between(0, (taps - 1) / 2));
      r.shape.push_back(between((taps - 1) * apart + 1, axes == 1 ? 300 : 50));
    }
    if (last) r.shape.push_back(one_of<std::int64_t>({2, 8, 16, 33}));
    r.pooling.region = Window{
        .size = size, .stride = stride, .dilation = dilation, .padding = Padding(padding), .channels_last = last};
    return r;
  }
};

std::ostream& operator<<(std::ostream& out, const Routes& r) {
  return out << to_string(Problem{r.pooling, r.type, r.shape});
}

/// gx by the numbers of winners in the array itself.
std::vector<double> expected_of(const Routes& r, const Array& x, const Array& gy) {
  Pooling placed = r.pooling;
  placed.indices = IndexKind::tensor;
  const std::vector<double> places = numbers(pool_with_indices(x, placed).indices), given = numbers(gy);
  std::vector<double> result(static_cast<std::size_t>(x.size()), 0);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (places[i] >= 0) result[static_cast<std::size_t>(places[i])] += given[i];
  return result;
}

TEST(WaysToTheWinner, AgreeOnWholeNumbers) {
  std::array<int, 4> taken{};
  check(300, [&] {
    const Routes r = *rc::gen::exec([] { return Routes::draw(); });
    const Array x = drawn(r.shape, r.type, Data::few, 3);
    Pooling named = r.pooling;
    named.indices = IndexKind::offset;
    const Plan winners = plan(named, r.type, r.shape);
    const Array offsets = pool_with_indices(x, named).indices;
    const Array gy = drawn(winners.output_shape(), r.type, Data::few, 4);
    const std::vector<double> expected = expected_of(r, x, gy);
    for (const std::string& target : targets_under_test())
      for (const Sending way : {Sending::automatic, Sending::small, Sending::asked, Sending::together}) {
        const Machine machine(target, 3);
        Array gx(r.type, r.shape);
        if (!cpu::send(winners.impl(), offsets, gy, gx, way)) continue;
        ++taken[static_cast<std::size_t>(way)];
        if (numbers(gx) != expected) RC_FAIL("way " + std::to_string(static_cast<int>(way)) + " on " + target);
      }
  });
  for (const int count : taken) EXPECT_GT(count, test_scale() < 1 ? 0 : 40);
}

}  // namespace
}  // namespace cenote::test
