// An allocator whose events the test completes by hand, for hand-checkable cases.
#pragma once

#include <array>
#include <cstdint>

#include "memory/caching_allocator.hpp"
#include "memory/sizes.hpp"

namespace stepcast::test {

class HandEvents final : public memory::EventSource {
 public:
  std::uint64_t record(int stream) override { return recorded[static_cast<std::size_t>(stream)]++; }
  [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return event < finished[static_cast<std::size_t>(stream)]; }
  void complete_all() { finished = recorded; }

  std::array<std::uint64_t, 8> recorded{}, finished{};
};

struct HandAllocator {
  explicit HandAllocator(std::int64_t device_bytes, const memory::Settings& settings = {}) : allocator(settings, device_bytes, 4, events) {}

  memory::Outcome malloc(std::int64_t bytes, int stream = 0) { return allocator.malloc(bytes, stream); }
  memory::Outcome drained(std::int64_t bytes, int stream = 0) {
    events.complete_all();
    return allocator.malloc_after_drain(bytes, stream);
  }
  void free(const memory::Outcome& outcome) { allocator.free(outcome.block); }
  [[nodiscard]] const memory::Statistics& now() const { return allocator.statistics(); }

  HandEvents events;
  memory::CachingAllocator allocator;
};

}  // namespace stepcast::test
