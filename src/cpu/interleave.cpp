// The kernel behind interleave.h, compiled for every SIMD target.
#include "cpu/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/interleave.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class A>
void weave(const A* lines, std::int64_t apart, std::int64_t count, std::int64_t n, A* dst) {
  const hn::ScalableTag<A> tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto from = [&](std::int64_t k, std::int64_t i) HWY_ATTR { return hn::LoadU(tag, lines + k * apart + i); };
  if (count == 2) {
    for (std::int64_t i = 0; 2 * i < n; i += L) hn::StoreInterleaved2(from(0, i), from(1, i), tag, dst + 2 * i);
    return;
  }
  if (count == 3) {
    for (std::int64_t i = 0; 3 * i < n; i += L)
      hn::StoreInterleaved3(from(0, i), from(1, i), from(2, i), tag, dst + 3 * i);
    return;
  }
  if (count == 4) {
    for (std::int64_t i = 0; 4 * i < n; i += L)
      hn::StoreInterleaved4(from(0, i), from(1, i), from(2, i), from(3, i), tag, dst + 4 * i);
    return;
  }
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t i = 0; i * count + k < n; ++i) dst[i * count + k] = lines[k * apart + i];
}

}  // namespace

void interleave_in(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                   void* dst) {
  if (bytes == 4)
    weave(static_cast<const float*>(lines), apart, count, n, static_cast<float*>(dst));
  else
    weave(static_cast<const double*>(lines), apart, count, n, static_cast<double*>(dst));
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(interleave_in);
void cpu::interleave(std::int64_t bytes, const void* lines, std::int64_t apart, std::int64_t count, std::int64_t n,
                     void* dst) noexcept {
  HWY_DYNAMIC_DISPATCH(interleave_in)(bytes, lines, apart, count, n, dst);
}
}  // namespace cenote
#endif
