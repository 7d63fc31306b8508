// Size rules of PyTorch's CUDA caching allocator: rounding of requests, small and large pool, segment and page sizes.
// docs/caching_allocator.md, "Sizes"; test: tests/unit/allocator_sizes_test.cpp.
#pragma once

#include <bit>
#include <cstdint>

namespace stepcast::memory {

// Values: PyTorch, c10/cuda/CUDACachingAllocator.cpp (kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kLargeBuffer, kRoundLarge).
inline constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
inline constexpr std::int64_t kMinBlockBytes = 512;            // every block is a multiple of this
inline constexpr std::int64_t kSmallRequestLimit = 1 * kMiB;   // rounded requests up to here live in the small pool
inline constexpr std::int64_t kSmallSegmentBytes = 2 * kMiB;   // device allocation, or page of an expandable range, of the small pool
inline constexpr std::int64_t kLargeSegmentBytes = 20 * kMiB;  // the same of the large pool, for requests below kOwnSegmentFrom
inline constexpr std::int64_t kOwnSegmentFrom = 10 * kMiB;     // from here on a request gets a segment of its own size ...
inline constexpr std::int64_t kSegmentGranularity = 2 * kMiB;  // ... rounded up to this
inline constexpr std::int64_t kLargeSplitRest = 1 * kMiB;      // a large block is split if more than this remains

/// Largest device and largest request that sizes are computed for (1 PiB); a request beyond it counts as this plus one byte and fits no device.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

inline constexpr std::int64_t kMaxDivisions = std::int64_t{1} << 20;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

constexpr bool is_small(std::int64_t rounded) { return rounded <= kSmallRequestLimit; }

/// Bytes of the block that serves a request of `bytes` > 0. With `divisions` k (a power of two) requests above 512*k go to the next k-th part of their
/// power-of-two interval.
constexpr std::int64_t round_request(std::int64_t bytes, std::int64_t divisions) {
  const std::int64_t asked = bytes > kMaxBytes ? kMaxBytes + 1 : bytes;
  if (divisions > 1 && asked > kMinBlockBytes * divisions) {
    return round_up(asked, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(asked))) / divisions);
  }
  return (asked + kMinBlockBytes - 1) & ~(kMinBlockBytes - 1);
}

/// Device allocation that is made for a rounded request which finds no free block.
constexpr std::int64_t segment_bytes(std::int64_t rounded) {
  if (is_small(rounded)) return kSmallSegmentBytes;
  return rounded < kOwnSegmentFrom ? kLargeSegmentBytes : round_up(rounded, kSegmentGranularity);
}

/// Index of the free list of a pool and stream, and back.
constexpr std::uint16_t list_index(int stream, bool small) { return static_cast<std::uint16_t>(2 * stream + (small ? 1 : 0)); }
constexpr bool is_small_list(std::uint16_t list) { return list % 2 == 1; }
constexpr int stream_of_list(std::uint16_t list) { return list / 2; }

/// Page of an expandable range.
constexpr std::int64_t page_bytes(bool small) { return small ? kSmallSegmentBytes : kLargeSegmentBytes; }

}  // namespace stepcast::memory
