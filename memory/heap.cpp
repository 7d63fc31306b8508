// Moves of a block between its states, each with its counters. Rules: docs/caching_allocator.md, "Counters". Test: tests/property/allocator_property_test.cpp.
#include "memory/heap.hpp"

namespace stepcast::memory {

std::uint64_t Heap::reserve_addresses(std::int64_t bytes) {
  const std::uint64_t base = next_address_;
  next_address_ += static_cast<std::uint64_t>(bytes);
  return base;
}

BlockId Heap::add_segment(std::uint16_t list, std::int64_t bytes) {
  statistics.reserved += bytes;
  ++statistics.segments;
  ++statistics.device_mallocs;
  return blocks.add({.size = bytes, .address = reserve_addresses(bytes), .list = list});
}

void Heap::release_segment(BlockId id) {
  unlist(id);
  const std::int64_t bytes = blocks[id].size;
  statistics.reserved -= bytes;
  --statistics.segments;
  ++statistics.device_frees;
  released += bytes;
  blocks.drop(id);
}

void Heap::unlist(BlockId id) {
  const Block& block = blocks[id];
  lists_[block.list].erase(block, id);
  count_unlisted(block);
}

void Heap::unlist(const FreeList::Fit& fit) {
  const Block& block = blocks[fit.block];
  lists_[block.list].erase(fit);
  count_unlisted(block);
}

void Heap::enlist(BlockId id) {
  Block& block = blocks[id];
  block.state = BlockState::free;
  block.freed_at = lookups;
  lists_[block.list].insert(block, id);
  if (block.is_split() && !expandable_) statistics.inactive_split += block.size;
}

void Heap::hand_out(BlockId id, std::int64_t size, std::int64_t requested, bool split) {
  if (split) enlist(blocks.split(id, size));
  Block& block = blocks[id];
  block.state = BlockState::allocated;
  block.requested = requested;
  statistics.allocated += block.size;
  statistics.active += block.size;
  statistics.requested += requested;
}

void Heap::give_back(BlockId id) {
  statistics.active -= blocks[id].size;
  blocks[id].uses = 0;
  const BlockId next = blocks[id].next;
  if (next != kNoBlock && blocks[next].state == BlockState::free) {
    unlist(next);
    blocks.absorb_next(id);
  }
  const BlockId prev = blocks[id].prev;
  if (prev != kNoBlock && blocks[prev].state == BlockState::free) {
    unlist(prev);
    blocks.absorb_next(prev);
    id = prev;
  }
  enlist(id);
}

}  // namespace stepcast::memory
