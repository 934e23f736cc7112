// Threads over oneTBB, as many as the process may really use.
#include "core/parallel.h"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include <cenote/device.h>

#include "core/reject.h"

namespace cenote {
namespace {

constexpr int most_threads = 1024;

// Cores granted by a control group, as a quota of CPU time; 0 when there is none.
int cgroup_cores() {
  std::ifstream unified("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double limit = 0, period = 0;
  if (unified >> quota >> period) {
    limit = quota == "max" ? 0 : std::atof(quota.c_str());
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> limit;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return limit > 0 && period > 0 ? std::max(1, static_cast<int>(std::floor(limit / period))) : 0;
}

int default_threads() {
  static const int count = [] {
    if (const char* text = std::getenv("CENOTE_THREADS")) {
      int value = 0;
      const char* end = text + std::strlen(text);
      if (const auto [stop, error] = std::from_chars(text, end, value);
          error == std::errc() && stop == end && value > 0)
        return std::min(value, most_threads);
    }
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const int granted = cgroup_cores();
    return std::max(1, granted > 0 ? std::min(allowed, granted) : allowed);
  }();
  return count;
}

std::atomic<int> requested{0};

// The arena of the last thread count used: starting one is not free, and counts rarely change.
std::shared_ptr<tbb::task_arena> arena_of(int count) {
  static std::mutex mutex;
  static std::shared_ptr<tbb::task_arena> arena;
  static int size = 0;
  static std::unique_ptr<tbb::global_control> more;  // oneTBB grants no more threads than cores unless told to
  const std::scoped_lock lock(mutex);
  if (size != count) {
    const auto wanted = static_cast<std::size_t>(count);
    if (wanted > tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))
      more = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, wanted);
    arena = std::make_shared<tbb::task_arena>(count);
    size = count;
  }
  return arena;
}

}  // namespace

int thread_limit() noexcept {
  const int count = requested.load(std::memory_order_relaxed);
  return count > 0 ? count : default_threads();
}

int threads() noexcept { return thread_limit(); }

void set_threads(int count) {
  if (count < 0 || count > most_threads)
    reject("set_threads", "count = ", count, ": must be 0 (the default) or up to ", most_threads);
  requested.store(count, std::memory_order_relaxed);
}

namespace detail {

void run_parallel(std::int64_t n, void (*body)(const void*, std::int64_t), const void* context) {
  arena_of(thread_limit())->execute([&] {
    tbb::parallel_for(
        std::int64_t{0}, n, [&](std::int64_t i) { body(context, i); }, tbb::simple_partitioner());
  });
}

}  // namespace detail
}  // namespace cenote
