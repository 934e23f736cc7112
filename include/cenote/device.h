// How much of the machine to use: threads and SIMD instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cenote {

/// The most threads one call may use; at first the CENOTE_THREADS variable or the cores this process may use.
int threads() noexcept;
/// Sets it for all later calls; 0 restores the default. Results do not depend on it, not in one bit.
void set_threads(int count);

/// The SIMD targets that this build has and this machine can run, best first, such as "AVX3", "AVX2", "SSE4".
std::vector<std::string> simd_targets();
/// The target in use.
std::string simd_target();
/// Forces a target for all later calls; "" restores the best. The CENOTE_SIMD variable does the same at start.
void set_simd_target(std::string_view name);

}  // namespace cenote
