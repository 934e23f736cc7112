// The size of the last cache, as the kernel knows it.
#include "cpu/cache.h"

#include <unistd.h>

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

}  // namespace

std::int64_t last_level_cache() noexcept {
  static const std::int64_t bytes = [] {
    if (const std::int64_t known = cache_of_a_core(); known > 0) return known;
    // The C library adds up the caches of all cores where there are several.
    const long all = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return all > 0 && all <= (64 << 20) ? std::int64_t{all} : std::int64_t{32} << 20;
  }();
  return bytes;
}

}  // namespace cenote::cpu
