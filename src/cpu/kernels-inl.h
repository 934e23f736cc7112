// The kernels of one element type: rows, lines, merge and finish, in a table. Included once per target by each type's
// translation unit.

#if defined(CENOTE_CPU_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_KERNELS_INL_H_
#undef CENOTE_CPU_KERNELS_INL_H_
#else
#define CENOTE_CPU_KERNELS_INL_H_
#endif

#include "cpu/lines-inl.h"
#include "cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Finish;
using cpu::Kernels;

template <class R, class T>
void finish(const Finish& call) {
  using A = Lane<T>;
  using C = Carry<R, A>;
  const C carry(call.params);
  const std::int64_t L = lanes<A>();
  const A* src = static_cast<const A*>(call.src);
  const A* counts = static_cast<const A*>(call.counts);
  T* dst = static_cast<T*>(call.dst);
  const auto value = [&](std::int64_t i) CENOTE_INLINED {
    const Pack<A> n = counts ? load(counts + i) : number<Pack<A>>(call.count);
    return carry.reducer.lower(carry.load_state(src + i, call.src_plane, 0), n);
  };
  std::int64_t i = 0;
  if (call.stream && call.len >= 2 * L) {
    store(value(0), dst);
    const std::uintptr_t width = static_cast<std::uintptr_t>(L) * sizeof(T);
    const auto past = reinterpret_cast<std::uintptr_t>(dst) % width;
    i = past ? static_cast<std::int64_t>((width - past) / sizeof(T)) : 0;
    for (; i + L <= call.len; i += L) stream(value(i), dst + i);
  }
  for (; i + L <= call.len; i += L) store(value(i), dst + i);
  if (i < call.len) store_first(value(i), dst + i, call.len - i);
}

/// States are merged in the lane type, so the halves leave that to f32.
template <class C, class T>
constexpr auto merger() -> void (*)(const Pass&) {
  if constexpr (std::is_same_v<T, Lane<T>>)
    return merge<C>;
  else
    return nullptr;
}

template <class R, class T>
HWY_INLINE void add_reducer(cpu::Table& table, Reducer reducer) {
  using A = Lane<T>;
  if constexpr (R::integers || std::is_floating_point_v<A>) {
    using C = Carry<R, A>;
    const auto i = static_cast<std::size_t>(reducer);
    table.plain[i] = Kernels{lines<C, T>, rows<C, T>, merger<C, T>(), finish<R, T>, R::parts};
    if constexpr (R::picks && sizeof(A) >= 4) {
      using W = Carry<Winner<R>, A>;
      table.winner[i] = Kernels{lines<W, T>, rows<W, T>, merger<W, T>(), finish<R, T>, 2};
    }
  }
}

template <class T>
const cpu::Table& make_table() {
  static const cpu::Table table = [] {
    cpu::Table result;
#define CENOTE_ITEM(name, struct_name) add_reducer<struct_name, T>(result, Reducer::name);
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
    return result;
  }();
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
