// The size of the last cache, as the kernel knows it, and what was measured of processors.
#include "cpu/machine.h"

#include <unistd.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>

namespace cenote::cpu {
namespace {

// "32768K", of the cache that the first core shares with its neighbours. 0: unknown.
std::int64_t cache_of_a_core() noexcept {
  std::FILE* file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
  if (!file) return 0;
  long long size = 0;
  char unit = 0;
  const int read = std::fscanf(file, "%lld%c", &size, &unit);
  std::fclose(file);
  if (read < 1 || size <= 0 || size > (1 << 20)) return 0;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

// Those for which something was measured.
enum class Maker { intel, zen_5, other };
Maker maker() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_is("intel")) return Maker::intel;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__builtin_cpu_is("amd") && __get_cpuid(1, &a, &b, &c, &d)) {
    const unsigned family = (a >> 8 & 15) + (a >> 20 & 255);
    if (family >= 26) return Maker::zen_5;
  }
#endif
  return Maker::other;
}

// Of a cache that many cores share, one program has but a part: on a Xeon with 260 MiB, plain stores into arrays of
// 128 MiB wrote 10 GB/s, those past the caches 24.
constexpr std::int64_t most_of_a_core = 32 << 20;

}  // namespace

std::int64_t last_level_cache() noexcept {
  static const std::int64_t bytes = [] {
    if (const std::int64_t known = cache_of_a_core(); known > 0) return std::min(known, most_of_a_core);
    // The C library adds up the caches of all cores where there are several.
    const long all = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return all > 0 && all <= (64 << 20) ? std::int64_t{all} : std::int64_t{32} << 20;
  }();
  return bytes;
}

std::int64_t asked_ahead() noexcept {
  // Measured: a Xeon reads 128 MiB at 28 GB/s if it is asked ahead, and at 18 else; 8 KiB were as good as 2 or better,
  // volumes 5.7 ms and 8.9. An EPYC of Zen 5 reads one run of addresses at 42 GB/s if it is asked, and at 37 else, rows
  // in turn at 35 and 24, and what is loaded by masks at a third of that; there 4 KiB were too few, and 16 too many for
  // rows in turn. Prototypes on an EPYC of Zen 4 were slowed down by it.
  static const std::int64_t bytes = maker() == Maker::other ? 0 : 8192;
  return bytes;
}

bool divides_slowly() noexcept {
  // By instructions and by products, averages of 101 cells along lines took a Xeon 21 and 16 ms, and averages of 3x3
  // cells an EPYC of Zen 5 4.1 and 4.6 ms.
  static const bool slowly = maker() == Maker::intel;
  return slowly;
}

}  // namespace cenote::cpu
