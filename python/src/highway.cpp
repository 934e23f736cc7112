// The functions of libhwy that its headers call, for wheels: Debian has no archive of it, and nothing else is needed.
#include <hwy/targets.h>

#include <atomic>

namespace hwy {
namespace {

std::atomic<std::int64_t> replaced{0};

/// Of the targets that are compiled, those that the processor has and whose registers the system keeps.
std::int64_t detected() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") &&
                    __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("f16c");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  targets |= (sse4 ? HWY_SSE4 : 0) | (avx2 ? HWY_AVX2 : 0) | (avx3 ? HWY_AVX3 : 0);
#endif
  return targets;
}

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t targets = detected();
  const std::int64_t given = replaced.load();
  return given != 0 ? given : targets;
}

void SetSupportedTargetsForTest(std::int64_t targets) { replaced.store(targets); }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
