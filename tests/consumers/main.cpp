// What a consumer does first: pool an array and look at the result. Exits with 0 only if it is right.
#include <cstdio>
#include <cstring>

#include <cenote/cenote.h>

int main() {
  const cenote::Array x({1, 4, 4},
                        {1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f, 11.f, 12.f, 13.f, 14.f, 15.f, 16.f});
  const cenote::Array y = cenote::max_pool(x, {.size = {2, 2}, .stride = 2});
  const float expected[] = {6, 8, 14, 16};
  if (y.shape() != cenote::Extents{1, 2, 2}) return 1;
  for (int i = 0; i < 4; ++i) {
    if (y.values<float>()[static_cast<std::size_t>(i)] != expected[i]) return 1;
  }
  if (std::strcmp(cenote::version(), CENOTE_VERSION) != 0) return 1;
  std::printf("cenote %s, %s\n", cenote::version(), cenote::simd_target().c_str());
}
