// What goes back to the device: garbage collection, release of oversize blocks, the flush.
#include <algorithm>
#include <limits>
#include <vector>

#include "memory/allocator_state.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {

/// Frees the unsplit large blocks that have gone unused for at least the mean number of lookups, again with the mean of the rest, until reserved memory is
/// back at the threshold (garbage_collect_cached_blocks). Pages of expandable ranges are no candidates.
void CachingAllocator::State::collect_garbage() {
  const std::int64_t target = heap.statistics.reserved - gc_above;
  if (target <= 0 || expandable) return;
  const std::int64_t freed_before = heap.released;
  std::vector<BlockId> candidates;
  std::int64_t total_age = 0;
  const auto age = [&](BlockId id) { return heap.lookups - heap.blocks[id].freed_at; };
  for (std::uint16_t list = 0; list < heap.lists(); ++list) {
    if (is_small_list(list)) continue;
    for (const FreeList::Entry& entry : heap.list(list).entries()) {
      if (heap.blocks[entry.block].is_split()) continue;
      candidates.push_back(entry.block);
      total_age += age(entry.block);
    }
  }
  while (heap.released - freed_before < target && !candidates.empty()) {
    const double mean = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    const auto young = std::stable_partition(candidates.begin(), candidates.end(), [&](BlockId id) { return static_cast<double>(age(id)) < mean; });
    for (auto old = young; old != candidates.end(); ++old) {
      total_age -= age(*old);
      heap.release_segment(*old);
    }
    candidates.erase(young, candidates.end());
  }
}

/// One free block that is large enough, else oversize blocks from the largest down until they add up; what was freed stays freed even if they don't.
bool CachingAllocator::State::release_oversize(const Request& request) {
  if (max_split == std::numeric_limits<std::int64_t>::max() || expandable) return false;
  const std::int64_t needed = std::max(request.rounded, max_split);
  const FreeList& free = heap.list(request.list);
  if (const auto at = free.lower_bound(needed, 0); free.found(at)) {
    heap.release_segment(free.at(at).block);
    return true;
  }
  std::int64_t sum = 0;
  const std::vector<FreeList::Entry> entries = free.entries();
  for (auto entry = entries.rbegin(); entry != entries.rend() && entry->size >= max_split && sum < needed; ++entry) {
    sum += entry->size;
    heap.release_segment(entry->block);
  }
  return sum >= needed;
}

void CachingAllocator::State::flush() {
  deferred.drain([&](BlockId block) { finish_event(block); });
  for (std::uint16_t list = 0; list < heap.lists(); ++list) {
    for (const FreeList::Entry& entry : heap.list(list).entries()) {
      if (expandable) ranges.unmap_pages(entry.block);
      else if (!heap.blocks[entry.block].is_split()) heap.release_segment(entry.block);
    }
  }
}

}  // namespace stepcast::memory
