// The CPU kernels of row reductions in f64, compiled for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows_f64.cpp"
#include <hwy/foreach_target.h>

#include "cpu/segments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

const cpu::RowTable& table_of_rows_f64() { return make_row_table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {
HWY_EXPORT(table_of_rows_f64);
const cpu::RowTable& cpu::rows_f64() { return HWY_DYNAMIC_DISPATCH(table_of_rows_f64)(); }
}  // namespace cenote
#endif
