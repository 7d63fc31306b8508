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
    for (const BlockId id : heap.free_blocks(list)) {
      if (heap.blocks[id].is_split()) continue;
      candidates.push_back(id);
      total_age += age(id);
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
  if (const BlockId one = heap.best_fit(request.list, needed).block; one != kNoBlock) {
    heap.release_segment(one);
    return true;
  }
  std::int64_t sum = 0;
  const std::vector<BlockId> free = heap.free_blocks(request.list);
  for (auto id = free.rbegin(); id != free.rend() && heap.blocks[*id].size >= max_split && sum < needed; ++id) {
    sum += heap.blocks[*id].size;
    heap.release_segment(*id);
  }
  return sum >= needed;
}

void CachingAllocator::State::flush() {
  deferred.drain([&](BlockId block) { finish_event(block); });
  for (std::uint16_t list = 0; list < heap.lists(); ++list) {
    for (const BlockId id : heap.free_blocks(list)) {
      if (expandable) ranges.unmap_pages(id);
      else if (!heap.blocks[id].is_split()) heap.release_segment(id);
    }
  }
}

}  // namespace stepcast::memory
