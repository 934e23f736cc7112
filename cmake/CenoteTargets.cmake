# Sets CENOTE_DISABLED_TARGETS: the SIMD targets that Highway shall not compile, for the time that each costs to build.
# Left are SSE4, AVX2 and AVX-512, or NEON.
set(CENOTE_DISABLED_TARGETS "HWY_SSSE3|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
if(CENOTE_SANITIZE)
  # The baseline and the best of this machine are enough to find bad accesses.
  set(_cpu "")
  if(EXISTS /proc/cpuinfo)
    file(READ /proc/cpuinfo _cpu)
  endif()
  if(_cpu MATCHES " avx512vl" AND _cpu MATCHES " avx512bw" AND _cpu MATCHES " avx512dq")
    string(APPEND CENOTE_DISABLED_TARGETS "|HWY_AVX2")
  else()
    string(APPEND CENOTE_DISABLED_TARGETS "|HWY_AVX3")
  endif()
  unset(_cpu)
endif()
