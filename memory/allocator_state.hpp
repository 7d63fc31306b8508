// Inside of CachingAllocator: the tries of one malloc in PyTorch's order and what each may release.
// docs/caching_allocator.md, "The tries"; tests as of caching_allocator.hpp.
#pragma once

#include <cstdint>

#include "memory/caching_allocator.hpp"
#include "memory/deferred_frees.hpp"
#include "memory/expandable_ranges.hpp"
#include "memory/heap.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {

struct CachingAllocator::State {
  struct Request {
    std::int64_t bytes, rounded;
    std::uint16_t list;
  };

  State(const Settings& settings, std::int64_t device_bytes, int stream_count, EventSource& source);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Inline, so that the hot path keeps its parts in registers.
  [[nodiscard]] Request request(std::int64_t bytes, int stream) const {
    if (bytes < 0 || stream < 0 || stream >= streams) refuse_request();
    const std::int64_t rounded = round_request(bytes, divisions);
    return {bytes, rounded, list_index(stream, is_small(rounded))};
  }
  [[noreturn]] static void refuse_request();
  /// A request is served from its own list or by the device, so that only frees into that list can matter to it.
  [[nodiscard]] std::uint64_t polls(const Request& request) const { return poll_always ? deferred.streams() : deferred.streams(request.list); }
  /// What the device is asked for if nothing cached fits: a segment, or pages when no free block can be extended.
  [[nodiscard]] std::int64_t device_bytes_for(const Request& request) const;
  Block& handed_out(BlockId id);
  void finish_event(BlockId block);

  BlockId take_best_fit(const Request& request);
  BlockId take_from_device(const Request& request);
  Outcome hand_out(BlockId block, const Request& request);
  /// Tries 3 and 4: the device, if need be after garbage collection and release of oversize blocks.
  Outcome ask_device(const Request& request);
  /// Try 5, the device being idle.
  Outcome flush_and_retry(const Request& request);

  // reclaim.cpp: what goes back to the device
  void collect_garbage();
  bool release_oversize(const Request& request);
  void flush();

  // Constants of a run, worked out once from the settings.
  std::int64_t limit;      // bytes that may be reserved
  std::int64_t max_split;  // the largest integer if there is no limit
  std::int64_t divisions;
  std::int64_t gc_above;  // collect garbage when more than this is reserved; the largest integer = off
  bool expandable;
  bool poll_always = true;
  int streams;

  Heap heap;
  DeferredFrees deferred;
  ExpandableRanges ranges;
  EventSource* events;
};

}  // namespace stepcast::memory
