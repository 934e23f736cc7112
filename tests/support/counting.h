// Counts what the calling thread allocates; graph_memory_test.cpp replaces the functions that do.
#pragma once

// The sanitizers bring allocators of their own.
#if !defined(__SANITIZE_ADDRESS__)
#define CENOTE_COUNTS_ALLOCATIONS 1
#endif

namespace cenote::test {

inline thread_local bool counting_now = false;
inline thread_local int allocations = 0;

/// From zero, for as long as it lives.
class Counting {
 public:
  Counting() {
    allocations = 0;
    counting_now = true;
  }
  ~Counting() { counting_now = false; }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
};

}  // namespace cenote::test
