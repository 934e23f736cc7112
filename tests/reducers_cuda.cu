// Compiles every reducer as a CUDA kernel, so that the text stays one for host, SIMD and device.
#include <cenote/reducers.h>

#include "reduce/reducers.h"

namespace {

template <class R, class N>
__global__ void reduce_window(const N* x, N* y, int n, cenote::Params params) {
  const R reducer(params);
  auto state = reducer.template identity<N>();
  for (int i = 0; i < n; ++i) state = reducer.combine(state, reducer.lift(x[i]));
  *y = reducer.lower(state, N(n));
}

template <class R, class N>
__global__ void find_winner(const N* x, int* y, int n, cenote::Params params) {
  const cenote::scalar::Winner<R> reducer(params);
  cenote::scalar::Place<N> best{x[0], 0};
  for (int i = 1; i < n; ++i) best = reducer.combine(best, cenote::scalar::Place<N>{x[i], i});
  *y = static_cast<int>(best.index);
}

template <class R, class N>
__global__ void differentiate(const N* x, const N* dx, N* y, int n, cenote::Params params) {
  const cenote::scalar::Tangent<R> tangent(params);
  auto along = tangent.template identity<N>();
  for (int i = 0; i < n; ++i) along = tangent.combine(along, tangent.lift(x[i], dx[i]));
  y[0] = tangent.lower(along, N(0));
  const cenote::scalar::Cotangent<R> cotangent(params);
  auto back = cotangent.template identity<N>();
  for (int i = 0; i < n; ++i) back = cotangent.combine(back, cotangent.lift(x[i], dx[i]));
  y[1] = cotangent.lower(back, x[0]);
}

template <class N>
void instantiate(const N* x, N* y, int* index, int n) {
#define CENOTE_ITEM(name, struct_name) reduce_window<cenote::scalar::struct_name, N><<<1, 1>>>(x, y, n, {});
  CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
  differentiate<cenote::scalar::SmoothMax, N><<<1, 1>>>(x, x, y, n, {});
  differentiate<cenote::scalar::Lp, N><<<1, 1>>>(x, x, y, n, {});
  differentiate<cenote::scalar::Shared<true>, N><<<1, 1>>>(x, x, y, n, {});
  find_winner<cenote::scalar::Max, N><<<1, 1>>>(x, index, n, {});
  find_winner<cenote::scalar::Min, N><<<1, 1>>>(x, index, n, {});
}

}  // namespace

void instantiate_all(const float* a, float* b, const double* c, double* d, int* index) {
  instantiate(a, b, index, 4);
  instantiate(c, d, index, 4);
}
