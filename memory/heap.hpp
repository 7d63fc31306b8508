// Mechanics below the policy: blocks, their free lists and the running statistics, kept consistent together. It decides nothing.
// docs/caching_allocator.md, "Blocks" and "Counters"; test: tests/property/allocator_property_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/blocks.hpp"
#include "memory/free_list.hpp"

namespace stepcast::memory {

class Heap {
 public:
  Heap(int streams, bool expandable) : lists_(2 * static_cast<std::size_t>(streams)), expandable_(expandable) {}

  /// A fresh segment, not yet in a free list.
  BlockId add_segment(std::uint16_t list, std::int64_t bytes);
  /// Gives a free segment (an unsplit block) back to the device.
  void release_segment(BlockId id);

  /// Free block -> out of its list, no longer counted as inactive split.
  void unlist(BlockId id);
  void unlist(const FreeList::Fit& fit);
  /// Into its list, counted; neighbours are left alone.
  void enlist(BlockId id);
  /// Hands an unlisted block out; with `split` the part beyond `size` goes to the free list.
  void hand_out(BlockId id, std::int64_t size, std::int64_t requested, bool split);
  /// A block that is handed out or pending becomes free: merges with free neighbours.
  void give_back(BlockId id);

  [[nodiscard]] FreeList::Fit best_fit(std::uint16_t list, std::int64_t size) const { return lists_[list].best_fit(size); }
  /// The free blocks of a list, smallest first.
  [[nodiscard]] std::vector<BlockId> free_blocks(std::uint16_t list) const { return lists_[list].sorted(); }
  [[nodiscard]] std::uint16_t lists() const { return static_cast<std::uint16_t>(lists_.size()); }
  /// Addresses are never reused.
  std::uint64_t reserve_addresses(std::int64_t bytes);

  Blocks blocks;
  Statistics statistics;
  std::int64_t released = 0;  // bytes given back to the device so far
  std::int64_t lookups = 0;   // clock of garbage collection

 private:
  void count_unlisted(const Block& block) {
    if (block.is_split() && !expandable_) statistics.inactive_split -= block.size;
  }

  std::vector<FreeList> lists_;
  std::uint64_t next_address_ = 1ULL << 21;
  bool expandable_;
};

}  // namespace stepcast::memory
