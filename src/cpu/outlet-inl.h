// The way out of kernels that make whole planes.

#if defined(CENOTE_CPU_OUTLET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_OUTLET_INL_H_
#undef CENOTE_CPU_OUTLET_INL_H_
#else
#define CENOTE_CPU_OUTLET_INL_H_
#endif

#include "cpu/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote {
namespace HWY_NAMESPACE {

using cpu::Finish;
using cpu::Planes;
using cpu::PlaneWay;

/// The packs that value(i) gives for lanes i, i + 1, …, one after the other or, where that saves something, some again.
template <class T, class Value>
HWY_INLINE void write_values(T* dst, std::int64_t len, bool past_caches, const Value& value) {
  const std::int64_t L = lanes<Lane<T>>();
  std::int64_t i = 0;
  if (past_caches && len >= 2 * L) {
    const std::uintptr_t width = static_cast<std::uintptr_t>(L) * sizeof(T);
    const auto past = reinterpret_cast<std::uintptr_t>(dst) % width;
    if (past != 0) {
      store(value(0), dst);
      i = static_cast<std::int64_t>((width - past) / sizeof(T));
    }
    for (; i + L <= len; i += L) stream(value(i), dst + i);
  }
  for (; i + L <= len; i += L) store(value(i), dst + i);
  if (i < len) store_first(value(i), dst + i, len - i);
}

/// Past the caches as well, if that is wanted: else they would wait for each line of them.
inline void copy_bytes(const std::uint8_t* from, std::int64_t count, std::uint8_t* to, bool past_caches) {
  const Tag<std::uint8_t> tag;
  const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto copy = [&](std::int64_t i, std::int64_t n)
                        HWY_ATTR { std::memcpy(to + i, from + i, static_cast<std::size_t>(n)); };
  std::int64_t i = 0;
  if (past_caches) {
    i = HWY_MIN(-reinterpret_cast<std::intptr_t>(to) & (L - 1), count);
    copy(0, i);
    for (; i + L <= count; i += L) hn::Stream(hn::LoadU(tag, from + i), tag, to + i);
  }
  copy(i, count - i);
}

/// Joins `count` states, from `from` on of those of a plane, to those of the planes before it.
template <class C>
void join_planes(const Planes& call, std::int64_t from, std::int64_t count,
                 typename LaneOf<typename C::N>::type* states) {
  using A = typename LaneOf<typename C::N>::type;
  const C carry(call.line);
  const std::int64_t L = lanes<A>();
  const auto before = [&](int j, std::int64_t i)
                          CENOTE_INLINED { return carry.load_state(static_cast<const A*>(call.before[j]) + i, 0, 0); };
  for (std::int64_t i = 0; i < count; i += L) {
    const auto own = carry.load_state(states + i, 0, 0);
    if (call.keep) carry.store_state(own, static_cast<A*>(call.keep) + from + i, 0);
    if (call.joins == 0) continue;
    auto state = before(0, from + i);
    for (int j = 1; j < call.joins; ++j) state = carry.combine(state, before(j, from + i));
    state = carry.combine(state, own);
    // Those behind are joined when it is their turn.
    HWY_LIKELY(count - i >= L) ? store(state.part[0], states + i) : store_first(state.part[0], states + i, count - i);
  }
}

/// States on their way out: they wait until whole cache lines can be written. Those of a plane that are wanted as they
/// are stay where they are made.
template <class A>
class Outlet {
 public:
  using Join = void (*)(const Planes&, std::int64_t from, std::int64_t count, A* states);
  /// Where they are bytes, winners' numbers are given apart.
  explicit HWY_INLINE Outlet(const Planes& call, Join join, int parts = 1, std::uint8_t* bytes = nullptr)
      : call_(call),
        finish_(call.out),
        join_(call.joins > 0 || call.keep ? join : nullptr),
        parts_(parts),
        bytes_(bytes),
        raw_(call.finish == nullptr) {}
  /// States that are worth a turn: a kilobyte of them. Larger turns keep memory waiting.
  static constexpr std::int64_t least_written() { return 1024 / sizeof(A); }
  HWY_INLINE bool is_raw() const { return raw_; }
  HWY_INLINE A* states() const { return static_cast<A*>(raw_ ? finish_.dst : const_cast<void*>(finish_.src)); }
  /// Of `held` states, lets go those that are worth it. Returns how many are left.
  HWY_INLINE std::int64_t pass_on(std::int64_t held) {
    return held < least_written() || raw_ ? held : write_lines(held);
  }
  /// Of `held` states, writes those that end a cache line, and those before them. Returns how many are left.
  HWY_NOINLINE std::int64_t write_lines(std::int64_t held) {
    // A line of bytes ends where one of outputs does, as a rule.
    const std::int64_t size = bytes_ ? 1 : call_.out_size;
    const void* next = bytes_ ? static_cast<char*>(call_.indices) + done() : finish_.dst;
    const auto end = reinterpret_cast<std::uintptr_t>(next) + static_cast<std::uintptr_t>(held * size);
    return write(held, held - static_cast<std::int64_t>(end % 64) / size);
  }
  /// Goes on at dst, with what is held where that ends there; else all of it is written. Returns how many are held
  /// then.
  HWY_NOINLINE std::int64_t go_on(std::int64_t held, void* dst) {
    if (raw_ || static_cast<char*>(finish_.dst) + held * call_.out_size == dst) return held;
    write(held, held);
    finish_.dst = dst;
    return 0;
  }

 private:
  HWY_INLINE std::int64_t write(std::int64_t held, std::int64_t count) {
    if (count <= 0) return held;
    const auto move = [&](auto* part) HWY_ATTR {
      std::memmove(part, part + count, static_cast<std::size_t>(held - count) * sizeof(*part));
    };
    if (HWY_UNLIKELY(join_)) join_(call_, written_, count, states());
    written_ += count;
    finish_.len = count;
    call_.finish(finish_);
    char* indices = static_cast<char*>(call_.indices) + done() * call_.index_size;
    finish_.dst = static_cast<char*>(finish_.dst) + count * call_.out_size;
    for (int i = 0; i < parts_; ++i) move(states() + i * call_.line.dst_plane);
    if (bytes_) {
      copy_bytes(bytes_, count, reinterpret_cast<std::uint8_t*>(indices), finish_.stream);
      move(bytes_);
    } else if (call_.number) {
      A* numbers = states() + call_.line.dst_plane;
      call_.number(numbers, count, indices);
      move(numbers);
    }
    return held - count;
  }
  /// Outputs that have been written.
  HWY_INLINE std::int64_t done() const {
    return (static_cast<char*>(finish_.dst) - static_cast<char*>(call_.out.dst)) / call_.out_size;
  }

  const Planes& call_;
  Finish finish_;
  const Join join_;
  const int parts_;
  std::uint8_t* const bytes_;
  const bool raw_;
  std::int64_t written_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
