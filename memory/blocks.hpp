// Blocks in a dense table: each segment (or expandable range) is a doubly linked list of blocks in address order. Ids are reused, nothing else is allocated.
// docs/caching_allocator.md, "Blocks"; test: tests/property/allocator_property_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/caching_allocator.hpp"

namespace stepcast::memory {

/// One cache line: a malloc or free looks at a block and its neighbours, in no order that the hardware could foresee.
struct alignas(64) Block {
  std::int64_t size = 0;
  std::int64_t requested = 0;  // bytes before rounding, while handed out
  std::uint64_t address = 0;
  std::uint64_t uses = 0;                    // bit s: record_stream named stream s
  std::int64_t freed_at = 0;                 // large-pool lookups when it entered its free list: the clock of garbage collection
  BlockId prev = kNoBlock, next = kNoBlock;  // neighbours in the segment
  std::uint16_t list = 0;                    // free list that it belongs to: 2 * stream + (small pool)
  std::uint8_t events = 0;                   // outstanding events of a deferred free, one per stream at most
  BlockState state = BlockState::free;

  [[nodiscard]] bool is_split() const { return (prev & next) != kNoBlock; }
};

class Blocks {
 public:
  Block& operator[](BlockId id) { return table_[id]; }
  const Block& operator[](BlockId id) const { return table_[id]; }
  [[nodiscard]] bool valid(BlockId id) const { return id < table_.size(); }

  /// Invalidates references to blocks.
  BlockId add(const Block& block) {
    if (recycled_ == kNoBlock) {
      table_.push_back(block);
      return static_cast<BlockId>(table_.size() - 1);
    }
    const BlockId id = recycled_;
    recycled_ = table_[id].next;
    table_[id] = block;
    return id;
  }

  void drop(BlockId id) {
    table_[id].state = BlockState::gone;
    table_[id].next = recycled_;
    recycled_ = id;
  }

  /// Cuts `id` after `front` bytes and returns the rest: its new right neighbour, with the same state and list.
  BlockId split(BlockId id, std::int64_t front) {
    Block rest = table_[id];
    rest.address += static_cast<std::uint64_t>(front);
    rest.size -= front;
    rest.prev = id;
    const BlockId cut = add(rest);
    if (rest.next != kNoBlock) table_[rest.next].prev = cut;
    table_[id].next = cut;
    table_[id].size = front;
    return cut;
  }

  /// Joins the right neighbour into `id`.
  void absorb_next(BlockId id) {
    const BlockId eaten = table_[id].next;
    table_[id].size += table_[eaten].size;
    table_[id].next = table_[eaten].next;
    if (table_[id].next != kNoBlock) table_[table_[id].next].prev = id;
    drop(eaten);
  }

  [[nodiscard]] const std::vector<Block>& table() const { return table_; }

 private:
  std::vector<Block> table_;
  BlockId recycled_ = kNoBlock;
};

}  // namespace stepcast::memory
