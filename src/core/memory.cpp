// Memory for arrays: aligned_alloc, and a word to the system about large pages.
#include "core/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace cenote {

void* allocate_memory(std::size_t bytes) {
  constexpr std::size_t line = 64, page = std::size_t{1} << 21;
  const bool large = bytes >= 2 * page;
  const std::size_t alignment = large ? page : line;
  const std::size_t rounded = (bytes / alignment + 1) * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  // Fresh memory costs a fault per page, often more than what is written to it; a refusal changes nothing.
  if (large) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

std::size_t machine_memory() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : SIZE_MAX;
}

}  // namespace cenote
