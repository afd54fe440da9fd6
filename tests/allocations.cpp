#include "tests/allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TAPEHEAD_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAPEHEAD_SANITIZED
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> count{0};
char first_text[64];

}  // namespace

#ifndef TAPEHEAD_SANITIZED
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

void note(const char* function, std::size_t bytes) {
  if (!counting.load(std::memory_order_relaxed) || count.fetch_add(1) > 0) return;
  std::snprintf(first_text, sizeof first_text, "%s of %zu bytes", function, bytes);  // numbers alone never allocate
}

}  // namespace

// glibc's own entry points, which stay reachable when a program defines malloc. free() needs no counterpart.
extern "C" {

void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t items, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  note("malloc", bytes);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t items, std::size_t bytes) noexcept {
  note("calloc", items * bytes);
  return __libc_calloc(items, bytes);
}

void* realloc(void* block, std::size_t bytes) noexcept {
  note("realloc", bytes);
  return __libc_realloc(block, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  note("memalign", bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  note("aligned_alloc", bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  note("posix_memalign", bytes);
  void* const p = __libc_memalign(alignment, bytes);
  if (p == nullptr) return ENOMEM;
  *block = p;
  return 0;
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  note("mmap", bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(address, bytes, protection, flags, file, offset);
}

}  // extern "C"
#endif

namespace tapehead::test {

bool AllocationCounter::available() {
#ifdef TAPEHEAD_SANITIZED
  return false;
#else
  return true;
#endif
}

AllocationCounter::AllocationCounter() {
  std::snprintf(first_text, sizeof first_text, "nothing");
  count = 0;
  counting = true;
}

std::int64_t AllocationCounter::stop() {
  counting = false;
  return count;
}

const char* AllocationCounter::first() const { return first_text; }

}  // namespace tapehead::test
