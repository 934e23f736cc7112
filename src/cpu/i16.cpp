// The CPU kernels for i16, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/i16.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::Table& table_i16() { return make_table<std::int16_t>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_i16);
const cpu::Table& cpu::kernels_i16() { return HWY_DYNAMIC_DISPATCH(table_i16)(); }
}  // namespace cenote
#endif
