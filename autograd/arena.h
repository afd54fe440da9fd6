// Bump allocator for everything that lives as long as one pass of a tape: values, gradients, closures.
//
// reset() forgets all of it at once and keeps the memory, so a training step that repeats the last one's sizes
// never calls malloc. A block handed back early (an activation's gradient, once used) goes to a free list keyed
// by its size and is given out again within the same pass.
#pragma once

#include <cstddef>
#include <vector>

namespace tapehead {

class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector register

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// `bytes` of uninitialised memory, aligned to kAlignment; never null. Throws std::bad_alloc.
  void* allocate(std::size_t bytes);
  template <class T>
  T* allocate_array(std::size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  /// Gives back a block of allocate(bytes) before reset().
  void recycle(void* block, std::size_t bytes);
  /// Forgets every block. Two or more chunks become one, so that the next pass fits in one piece.
  void reset();

  std::size_t used() const { return used_; }  // bytes handed out since reset(), recycled ones counted once
  std::size_t capacity() const;               // bytes held from the system

 private:
  struct Chunk {
    std::byte* data;
    std::size_t size;
  };
  struct Free {
    Free* next;
  };
  struct FreeList {
    std::size_t bytes;
    Free* head;
  };
  void add_chunk(std::size_t at_least);

  std::vector<Chunk> chunks_;
  std::vector<FreeList> free_;
  std::size_t offset_ = 0;  // into the last chunk
  std::size_t used_ = 0;
};

}  // namespace tapehead
