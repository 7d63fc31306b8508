// Expandable segments: an address range per pool and stream (another where fragments leave no room), filled with pages on demand and emptied page by page in a flush.
// docs/caching_allocator.md, "Expandable segments"; tests: tests/unit/expandable_ranges_test.cpp, tests/model/allocator_traces_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/heap.hpp"

namespace stepcast::memory {

class ExpandableRanges {
 public:
  /// `device_bytes`: of the whole card; each range spans 9/8 of it.
  ExpandableRanges(Heap& heap, std::int64_t device_bytes) : heap_(&heap), device_bytes_(device_bytes), ranges_(heap.lists()) {}

  /// Maps pages so that one free block of at least `size` bytes results, which is returned unlisted. Fills the lowest hole that, together with free
  /// neighbours, is large enough; all or nothing. kNoBlock if there is none or if `room` bytes of physical memory are too little.
  BlockId grow(std::uint16_t list, std::int64_t size, std::int64_t room);
  /// Gives the pages that lie wholly inside a free block back to the device.
  void unmap_pages(BlockId free_block);

 private:
  struct Span {  // of addresses
    std::uint64_t base = 0;
    std::int64_t mapped = 0;
  };
  struct Range {
    std::vector<Span> spans;  // in address order
    std::int64_t page = 0;
    std::vector<BlockId> holes;  // unmapped blocks in address order
  };
  struct Plan {
    BlockId start = kNoBlock;
    std::int64_t bytes_to_map = 0;
  };

  Range& range(std::uint16_t list);
  void add_span(Range& range, std::uint16_t list);
  [[nodiscard]] Plan plan(const Range& range, std::int64_t size) const;
  [[nodiscard]] Plan plan_from(const Range& range, BlockId start, std::int64_t size) const;
  BlockId carry_out(Range& range, BlockId start, std::int64_t size);
  void map(Range& range, BlockId hole, std::int64_t bytes);
  void punch_hole(Range& range, BlockId id);
  static Span& span_of(Range& range, std::uint64_t address);
  [[nodiscard]] std::size_t hole_index(const Range& range, std::uint64_t address) const;

  Heap* heap_;
  std::int64_t device_bytes_;
  std::vector<Range> ranges_;
};

}  // namespace stepcast::memory
