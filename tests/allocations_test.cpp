// The counter itself: each way to memory is planted once and must be seen, from this thread and from another.
#include "tests/allocations.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

namespace tapehead::test {
namespace {

// Keeps the compiler from leaving out an allocation that nothing reads.
void* used(void* block) {
  static void* volatile sink;
  sink = block;
  return sink;
}

struct Plant {
  const char* name;
  void (*act)();
};

const Plant kPlants[] = {
    {"malloc", [] { std::free(used(std::malloc(24))); }},
    {"calloc", [] { std::free(used(std::calloc(3, 8))); }},
    {"realloc", [] { std::free(used(std::realloc(used(nullptr), 24))); }},
    {"aligned_alloc", [] { std::free(used(std::aligned_alloc(64, 128))); }},
    {"memalign", [] { std::free(used(memalign(64, 128))); }},
    {"posix_memalign",
     [] {
       void* block = nullptr;
       if (posix_memalign(&block, 64, 128) == 0) std::free(used(block));
     }},
    {"malloc", [] { ::operator delete(used(::operator new(24))); }},
    {"",  // one of the aligned ones, depending on the standard library
     [] { ::operator delete (used(::operator new (128, std::align_val_t{64})), std::align_val_t{64}); }},
    {"mmap", [] { munmap(used(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), 4096); }},
};

TEST(AllocationCounter, CountsEachWayToMemoryOnce) {
  if (!AllocationCounter::available()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const Plant& plant : kPlants) {
    AllocationCounter counter;
    plant.act();
    EXPECT_EQ(counter.stop(), 1) << plant.name;
    EXPECT_EQ(std::string(counter.first()).substr(0, std::string(plant.name).size()), plant.name);
  }
}

TEST(AllocationCounter, CountsOtherThreads) {
  if (!AllocationCounter::available()) GTEST_SKIP() << "the sanitizer owns the allocator";
  for (const Plant& plant : kPlants) {
    std::atomic<int> stage{0};  // the thread's own start and end allocate: count only between
    std::thread thread([&] {
      while (stage != 1) std::this_thread::yield();
      plant.act();
      stage = 2;
      while (stage != 3) std::this_thread::yield();
    });
    AllocationCounter counter;
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    EXPECT_EQ(counter.stop(), 1) << plant.name;
    stage = 3;
    thread.join();
  }
}

TEST(AllocationCounter, CountsNothingWhenNothingIsAllocated) {
  AllocationCounter counter;
  int on_the_stack[16] = {};
  used(on_the_stack);
  EXPECT_EQ(counter.stop(), 0) << counter.first();
}

}  // namespace
}  // namespace tapehead::test
