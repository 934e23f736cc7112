// Graphs that must not compile, one per value of CASE; each says behind it what an error of the compiler must hold.
#include <cenote/static_graph.h>

using namespace cenote::graph::fixed;

void refused() {
  Builder<Tensor<Shape<3, 8, 8>>, Tensor<Shape<4>>, Tensor<Shape<4, 4>, int>> b;
  [[maybe_unused]] const auto x = b.input<0>();
  [[maybe_unused]] const auto v = b.input<1>();
  [[maybe_unused]] const auto n = b.input<2>();
  // clang-format off
#if CASE == 0
  (void)max_pool<Sizes<2, 2>, Sizes<2, 2>>(x);  // this one compiles
#elif CASE == 1
  (void)max_pool<Sizes<2, 0>>(x);  // EXPECT every window extent must be at least 1
#elif CASE == 2
  (void)max_pool<Sizes<2, 2>, Sizes<0, 1>>(x);  // EXPECT every stride must be at least 1
#elif CASE == 3
  (void)avg_pool<Sizes<9, 2>>(x);  // EXPECT the window does not fit the padded array
#elif CASE == 4
  (void)max_pool2d_pad<12, 2, 1, 1>(x);  // EXPECT the window does not fit the padded array
#elif CASE == 5
  (void)max_pool<Sizes<2, 2>, Sizes<2>>(x);  // EXPECT stride must have one entry per axis of the window
#elif CASE == 6
  (void)max_pool<Sizes<2, 2>, Sizes<1, 1>, Sizes<-1, 0>>(x);  // EXPECT padding must be at least 0
#elif CASE == 7
  (void)max_pool<Sizes<2>, Sizes<1>, Sizes<0>, Sizes<0>>(x);  // EXPECT every dilation must be at least 1
#elif CASE == 8
  (void)max_pool<Sizes<2, 2>>(v);  // EXPECT the window has more axes than the array
#elif CASE == 9
  (void)add(x, v);  // EXPECT the shapes do not broadcast to each other
#elif CASE == 10
  (void)add(v, n);  // EXPECT the element types must be equal
#elif CASE == 11
  (void)reshape<Shape<5>>(v);  // EXPECT reshape must keep the number of elements
#elif CASE == 12
  (void)smooth_max_pool<Sizes<2>>(n, 1.0);  // EXPECT smooth_max_pool needs floating-point elements
#elif CASE == 13
  (void)b.input<3>();  // EXPECT the builder has fewer inputs
#elif CASE == 14
  (void)b.compile(v).forward(Tensor<Shape<3, 8, 8>>(), Tensor<Shape<5>>(), Tensor<Shape<4, 4>, int>());  // EXPECT Shape<5>
#elif CASE == 15
  (void)max_pool2d<2, 2, 0>(x);  // EXPECT every stride must be at least 1
#elif CASE == 16
  (void)max_pool<Sizes<>>(x);  // EXPECT a window needs at least one axis
#endif
  // clang-format on
}
