// The CPU kernels of row reductions in bf16, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows_bf16.cpp"
#include <hwy/foreach_target.h>

#include "cpu/segments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::RowTable& table_of_rows_bf16() { return make_row_table<bf16>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_of_rows_bf16);
const cpu::RowTable& cpu::rows_bf16() { return HWY_DYNAMIC_DISPATCH(table_of_rows_bf16)(); }
}  // namespace cenote
#endif
