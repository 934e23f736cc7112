// The parts of the machine that results must not depend on: SIMD targets and threads.
#pragma once

#include <string>
#include <vector>

#include <cenote/device.h>

namespace cenote::test {

/// The SIMD targets to try: all, or the best and the baseline where sanitizers make every one of them slow.
inline std::vector<std::string> targets_under_test() {
  std::vector<std::string> all = simd_targets();
#if defined(__SANITIZE_ADDRESS__)
  if (all.size() > 2) all = {all.front(), all.back()};
#endif
  return all;
}

/// Forces a SIMD target and a number of threads for as long as it lives.
class Machine {
 public:
  Machine(const std::string& target, int count) {
    set_simd_target(target);
    set_threads(count);
  }
  ~Machine() {
    set_simd_target("");
    set_threads(0);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
};

}  // namespace cenote::test
