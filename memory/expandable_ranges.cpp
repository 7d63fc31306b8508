// Search, mapping and unmapping of pages. Rules: docs/caching_allocator.md, "Expandable segments". Test: tests/unit/expandable_ranges_test.cpp.
#include "memory/expandable_ranges.hpp"

#include <algorithm>
#include <utility>

#include "memory/sizes.hpp"

namespace stepcast::memory {

ExpandableRanges::Range& ExpandableRanges::range(std::uint16_t list) {
  Range& range = ranges_[list];
  if (range.spans.empty()) {
    range.page = page_bytes(is_small_list(list));
    add_span(range, list);
  }
  return range;
}

/// PyTorch reserves 1 1/8 of the card's memory.
void ExpandableRanges::add_span(Range& range, std::uint16_t list) {
  const std::int64_t bytes = round_up(device_bytes_ + device_bytes_ / 8, range.page);
  range.spans.push_back({heap_->reserve_addresses(bytes)});
  if (bytes > 0) range.holes.push_back(heap_->blocks.add({.size = bytes, .address = range.spans.back().base, .list = list, .state = BlockState::unmapped}));
}

/// Fragments may leave no room for a request in addresses although there is memory: then another span begins (find_expandable_block).
BlockId ExpandableRanges::grow(std::uint16_t list, std::int64_t size, std::int64_t room) {
  if (size > device_bytes_) return kNoBlock;
  Range& into = range(list);
  Plan found = plan(into, size);
  if (found.start == kNoBlock) {
    add_span(into, list);
    found = plan_from(into, into.holes.back(), size);
  }
  if (found.bytes_to_map > room) return kNoBlock;
  return carry_out(into, found.start, size);
}

ExpandableRanges::Plan ExpandableRanges::plan(const Range& range, std::int64_t size) const {
  for (const BlockId hole : range.holes) {
    const BlockId prev = heap_->blocks[hole].prev;
    const bool extends = prev != kNoBlock && heap_->blocks[prev].state == BlockState::free;
    const Plan found = plan_from(range, extends ? prev : hole, size);
    if (found.start != kNoBlock) return found;
  }
  return {};
}

/// Walks right over free blocks and holes until they add up to `size`.
ExpandableRanges::Plan ExpandableRanges::plan_from(const Range& range, BlockId start, std::int64_t size) const {
  Plan plan{.start = start};
  std::int64_t covered = 0;
  for (BlockId id = start; covered < size; id = heap_->blocks[id].next) {
    if (id == kNoBlock) return {};
    const Block& block = heap_->blocks[id];
    if (block.state == BlockState::unmapped) {
      const std::int64_t mapped = std::min(block.size, round_up(size - covered, range.page));
      plan.bytes_to_map += mapped;
      covered += mapped;
    } else if (block.state == BlockState::free) {
      covered += block.size;
    } else {
      return {};
    }
  }
  return plan;
}

/// Maps or unlists the blocks of a plan from the left and joins them. A free block behind the last hole joins too, so that no two free blocks touch.
BlockId ExpandableRanges::carry_out(Range& range, BlockId start, std::int64_t size) {
  Blocks& blocks = heap_->blocks;
  const auto take_in = [&](BlockId id, std::int64_t missing) {
    if (blocks[id].state == BlockState::unmapped) map(range, id, std::min(blocks[id].size, round_up(missing, range.page)));
    else heap_->unlist(id);
  };
  take_in(start, size);
  while (blocks[start].size < size) {
    take_in(blocks[start].next, size - blocks[start].size);
    blocks.absorb_next(start);
  }
  const BlockId next = blocks[start].next;
  if (next != kNoBlock && blocks[next].state == BlockState::free) {
    heap_->unlist(next);
    blocks.absorb_next(start);
  }
  return start;
}

/// Gives memory to the front of a hole; the rest stays one.
void ExpandableRanges::map(Range& range, BlockId hole, std::int64_t bytes) {
  Blocks& blocks = heap_->blocks;
  const auto at = range.holes.begin() + static_cast<std::ptrdiff_t>(hole_index(range, blocks[hole].address));
  if (bytes < blocks[hole].size) *at = blocks.split(hole, bytes);
  else range.holes.erase(at);
  blocks[hole].state = BlockState::free;
  Statistics& statistics = heap_->statistics;
  Span& span = span_of(range, blocks[hole].address);
  if (span.mapped == 0) ++statistics.segments;
  span.mapped += bytes;
  statistics.reserved += bytes;
  ++statistics.device_mallocs;
}

void ExpandableRanges::unmap_pages(BlockId free_block) {
  Blocks& blocks = heap_->blocks;
  const Block block = blocks[free_block];
  Range& owner = range(block.list);
  const auto begin = static_cast<std::int64_t>(block.address - span_of(owner, block.address).base);
  const std::int64_t first = round_up(begin, owner.page);
  const std::int64_t last = (begin + block.size) / owner.page * owner.page;
  if (last <= first) return;
  heap_->unlist(free_block);
  BlockId inner = free_block;
  if (first > begin) {
    inner = blocks.split(free_block, first - begin);
    heap_->enlist(free_block);
  }
  if (last < begin + block.size) heap_->enlist(blocks.split(inner, last - first));
  punch_hole(owner, inner);
}

/// A free, unlisted block of whole pages loses its memory and merges with neighbouring holes.
void ExpandableRanges::punch_hole(Range& range, BlockId id) {
  Blocks& blocks = heap_->blocks;
  const std::int64_t bytes = blocks[id].size;
  Span& span = span_of(range, blocks[id].address);
  span.mapped -= bytes;
  Statistics& statistics = heap_->statistics;
  statistics.reserved -= bytes;
  if (span.mapped == 0) --statistics.segments;
  ++statistics.device_frees;
  heap_->released += bytes;

  const auto unmapped = [&](BlockId other) { return other != kNoBlock && blocks[other].state == BlockState::unmapped; };
  blocks[id].state = BlockState::unmapped;
  const std::size_t index = hole_index(range, blocks[id].address);  // of the first hole behind it
  const auto at = range.holes.begin() + static_cast<std::ptrdiff_t>(index);
  const bool joins_right = unmapped(blocks[id].next);
  if (joins_right) blocks.absorb_next(id);
  if (unmapped(blocks[id].prev)) {
    blocks.absorb_next(blocks[id].prev);
    if (joins_right) range.holes.erase(at);
  } else if (joins_right) {
    *at = id;
  } else {
    range.holes.insert(at, id);
  }
}

ExpandableRanges::Span& ExpandableRanges::span_of(Range& range, std::uint64_t address) {
  const auto behind = std::upper_bound(range.spans.begin(), range.spans.end(), address, [](std::uint64_t a, const Span& span) { return a < span.base; });
  return *(behind - 1);
}

std::size_t ExpandableRanges::hole_index(const Range& range, std::uint64_t address) const {
  const auto before = [&](BlockId hole, std::uint64_t a) { return heap_->blocks[hole].address < a; };
  return static_cast<std::size_t>(std::lower_bound(range.holes.begin(), range.holes.end(), address, before) - range.holes.begin());
}

}  // namespace stepcast::memory
