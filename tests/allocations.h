// Counts heap allocations of the whole process, over all threads: malloc, calloc, realloc, aligned_alloc,
// posix_memalign, memalign and mmap, and so operator new, which calls one of them. The definitions in allocations.cpp
// take the place of libc's in the test program. Under a sanitizer, which has an allocator of its own, nothing is
// counted.
#pragma once

#include <cstdint>

namespace tapehead::test {

/// Counts from its construction to stop(). One at a time.
class AllocationCounter {
 public:
  /// False in builds with a sanitizer: a test of allocations must then be skipped.
  static bool available();

  AllocationCounter();
  ~AllocationCounter() { stop(); }
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  /// Ends counting; the number of allocations since the construction.
  std::int64_t stop();
  /// What was allocated first, for a failure's message: "malloc of 64 bytes", or "nothing".
  const char* first() const;
};

}  // namespace tapehead::test
