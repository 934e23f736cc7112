// The CPU kernels for f64, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/f64.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::Table& table_f64() { return make_table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_f64);
const cpu::Table& cpu::kernels_f64() { return HWY_DYNAMIC_DISPATCH(table_f64)(); }
}  // namespace cenote
#endif
