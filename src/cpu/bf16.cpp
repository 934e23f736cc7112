// The CPU kernels for bf16, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/bf16.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::Table& table_bf16() { return make_table<bf16>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_bf16);
const cpu::Table& cpu::kernels_bf16() { return HWY_DYNAMIC_DISPATCH(table_bf16)(); }
}  // namespace cenote
#endif
