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

/// States on their way out: they wait until whole cache lines can be written.
template <class A>
class Outlet {
 public:
  /// Where they are bytes, winners' numbers are given apart.
  explicit HWY_INLINE Outlet(const Planes& call, int parts = 1, std::uint8_t* bytes = nullptr)
      : call_(call), finish_(call.out), parts_(parts), bytes_(bytes) {}
  HWY_INLINE A* states() const { return static_cast<A*>(const_cast<void*>(finish_.src)); }
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
    if (static_cast<char*>(finish_.dst) + held * call_.out_size == dst) return held;
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
    finish_.len = count;
    call_.finish(finish_);
    char* indices = static_cast<char*>(call_.indices) + done() * call_.index_size;
    finish_.dst = static_cast<char*>(finish_.dst) + count * call_.out_size;
    for (int i = 0; i < parts_; ++i) move(states() + i * call_.line.dst_plane);
    if (bytes_) {
      copy_bytes(count, reinterpret_cast<std::uint8_t*>(indices));
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
  /// Past the caches as well: else they would wait for each line of them.
  HWY_INLINE void copy_bytes(std::int64_t count, std::uint8_t* to) const {
    const Tag<std::uint8_t> tag;
    const auto L = static_cast<std::int64_t>(hn::Lanes(tag));
    const auto copy = [&](std::int64_t i, std::int64_t n)
                          HWY_ATTR { std::memcpy(to + i, bytes_ + i, static_cast<std::size_t>(n)); };
    std::int64_t i = 0;
    if (finish_.stream) {
      i = HWY_MIN(-reinterpret_cast<std::intptr_t>(to) & (L - 1), count);
      copy(0, i);
      for (; i + L <= count; i += L) hn::Stream(hn::LoadU(tag, bytes_ + i), tag, to + i);
    }
    copy(i, count - i);
  }

  const Planes& call_;
  Finish finish_;
  const int parts_;
  std::uint8_t* const bytes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace cenote
HWY_AFTER_NAMESPACE();

#endif  // toggle
