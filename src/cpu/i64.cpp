// The CPU kernels for i64, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/i64.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::Table& table_i64() { return make_table<std::int64_t>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_i64);
const cpu::Table& cpu::kernels_i64() { return HWY_DYNAMIC_DISPATCH(table_i64)(); }
}  // namespace cenote
#endif
