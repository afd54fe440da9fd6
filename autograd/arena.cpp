#include "autograd/arena.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tapehead {

namespace {
constexpr std::size_t kFirstChunk = std::size_t{1} << 18;

std::size_t round_up(std::size_t bytes) {
  const std::size_t mask = Arena::kAlignment - 1;
  if (bytes > ~mask) throw std::bad_alloc();
  return std::max(Arena::kAlignment, (bytes + mask) & ~mask);
}
}  // namespace

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) std::free(chunk.data);
}

void Arena::add_chunk(std::size_t at_least) {
  const std::size_t last = chunks_.empty() ? kFirstChunk / 2 : chunks_.back().size;
  const std::size_t size = std::max(at_least, 2 * last);
  chunks_.reserve(chunks_.size() + 1);  // before the block exists, so that nothing leaks if it throws
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (!data) throw std::bad_alloc();
  chunks_.push_back({data, size});
  offset_ = 0;
}

void* Arena::allocate(std::size_t bytes) {
  bytes = round_up(bytes);
  for (FreeList& list : free_)
    if (list.bytes == bytes && list.head) {
      Free* block = list.head;
      list.head = block->next;
      return block;
    }
  if (chunks_.empty() || chunks_.back().size - offset_ < bytes) add_chunk(bytes);
  void* block = chunks_.back().data + offset_;
  offset_ += bytes;
  used_ += bytes;
  return block;
}

void Arena::recycle(void* block, std::size_t bytes) {
  bytes = round_up(bytes);
  auto list = std::find_if(free_.begin(), free_.end(), [=](const FreeList& l) { return l.bytes == bytes; });
  if (list == free_.end()) list = free_.insert(free_.end(), {bytes, nullptr});
  list->head = new (block) Free{list->head};
}

void Arena::reset() {
  if (chunks_.size() > 1) {
    const std::size_t total = capacity();
    for (const Chunk& chunk : chunks_) std::free(chunk.data);
    chunks_.clear();
    add_chunk(round_up(total));
  }
  for (FreeList& list : free_) list.head = nullptr;  // the sizes stay: the next pass asks for the same ones
  offset_ = 0;
  used_ = 0;
}

std::size_t Arena::capacity() const {
  std::size_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.size;
  return total;
}

}  // namespace tapehead
