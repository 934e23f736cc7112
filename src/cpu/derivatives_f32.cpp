// The CPU kernels of derivatives in f32, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/derivatives_f32.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::Table& table_derivatives_f32() { return make_derivatives<float>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_derivatives_f32);
const cpu::Table& cpu::derivatives_f32() { return HWY_DYNAMIC_DISPATCH(table_derivatives_f32)(); }
}  // namespace cenote
#endif
