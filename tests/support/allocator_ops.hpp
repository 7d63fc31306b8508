// Drives a caching allocator with operations decoded from bytes and checks it against a full recount: shared by the property test and the fuzzer.
// Rules: docs/caching_allocator.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "memory/caching_allocator.hpp"

namespace stepcast::test {

/// First broken invariant among blocks and counters, or an empty text: blocks tile their segments without overlap, free neighbours are merged, and
/// allocated, active, reserved, inactive split, requested and segment counts equal sums over all blocks.
std::string audit(const memory::CachingAllocator& allocator, bool expandable);

struct DrivenRun {
  std::string violation;  // empty = none
  memory::Statistics last;
  std::size_t operations = 0, cache_hits = 0, best_fits_checked = 0;
};

/// The first bytes choose settings, card and streams, the rest operations; audits after every `audit_every` operations and at the end.
DrivenRun drive_allocator(std::span<const std::uint8_t> bytes, std::size_t audit_every);

}  // namespace stepcast::test
