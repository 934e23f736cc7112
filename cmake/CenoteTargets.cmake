# Sets CENOTE_DISABLED_TARGETS: the SIMD targets that Highway shall not compile, for the time that each costs to build.
# Left are SSE4, AVX2 and AVX-512, or NEON. CENOTE_BASELINE is what the compiler may use everywhere.
set(CENOTE_DISABLED_TARGETS "HWY_SSSE3|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
set(CENOTE_BASELINE "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Highway always compiles the baseline too: with these flags that is SSE4, and no lesser target is built.
  set(CENOTE_BASELINE -march=x86-64-v2 -maes -mpclmul)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(CENOTE_BASELINE -march=armv8-a+crypto)
endif()
if((CENOTE_SANITIZE OR CENOTE_ONE_TARGET) AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The best of this machine is enough to find bad accesses; results are compared on every target without sanitizers.
  set(_cpu "")
  if(EXISTS /proc/cpuinfo)
    file(READ /proc/cpuinfo _cpu)
  endif()
  if(_cpu MATCHES " avx512vl" AND _cpu MATCHES " avx512bw" AND _cpu MATCHES " avx512dq")
    set(CENOTE_BASELINE -march=x86-64-v4 -maes -mpclmul -DHWY_COMPILE_ONLY_STATIC)
  elseif(_cpu MATCHES " avx2")
    set(CENOTE_BASELINE -march=x86-64-v3 -maes -mpclmul -DHWY_COMPILE_ONLY_STATIC)
  endif()
  unset(_cpu)
endif()
