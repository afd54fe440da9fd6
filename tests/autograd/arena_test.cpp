// The arena: aligned blocks, recycled within a pass, and no new memory for a pass like the last.
#include "autograd/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace tapehead {
namespace {

TEST(Arena, GivesDisjointAlignedBlocks) {
  Arena arena;
  std::vector<char*> blocks;
  for (std::size_t bytes = 0; bytes < 300; ++bytes) {
    blocks.push_back(static_cast<char*>(arena.allocate(bytes)));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % Arena::kAlignment, 0u);
    std::memset(blocks.back(), static_cast<int>(bytes % 251), bytes);
  }
  for (std::size_t bytes = 0; bytes < 300; ++bytes)
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(static_cast<unsigned char>(blocks[bytes][i]), bytes % 251);
}

TEST(Arena, GivesARecycledBlockOutAgain) {
  Arena arena;
  void* a = arena.allocate(1000);
  void* b = arena.allocate(1000);
  arena.recycle(a, 1000);
  EXPECT_NE(arena.allocate(2000), a);
  EXPECT_EQ(arena.allocate(1000), a);
  const void* c = arena.allocate(1000);
  EXPECT_NE(c, a);
  EXPECT_NE(c, b);
}

TEST(Arena, ForgetsRecycledBlocksAtReset) {
  Arena arena;
  void* a = arena.allocate(1000);
  arena.recycle(a, 1000);
  arena.reset();
  EXPECT_NE(arena.allocate(1000), arena.allocate(1000)) << "one block given out twice";
}

TEST(Arena, TakesNoNewMemoryForTheSamePass) {
  Arena arena;
  const auto pass = [&] {
    for (int i = 0; i < 100; ++i) arena.allocate(50000);
    const std::size_t used = arena.used();
    arena.reset();
    return used;
  };
  const std::size_t used = pass();
  const std::size_t capacity = arena.capacity();
  EXPECT_GE(capacity, used);
  EXPECT_EQ(pass(), used);
  EXPECT_EQ(arena.capacity(), capacity);
  EXPECT_EQ(arena.used(), 0u);
}

TEST(Arena, RefusesWhatNoMachineHas) {
  Arena arena;
  EXPECT_THROW(arena.allocate(std::numeric_limits<std::size_t>::max() - 10), std::bad_alloc);
  EXPECT_NE(arena.allocate(10), nullptr) << "still of use";
}

}  // namespace
}  // namespace tapehead
