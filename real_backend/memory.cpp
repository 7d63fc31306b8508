// See memory.hpp.
#include "real_backend/memory.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast::real {

DeviceMemory::DeviceMemory(const program::Program& program, Device& device, const MemoryLimits& limits)
    : program_(program),
      device_(device),
      events_(device),
      allocator_(limits.allocator, limits.pool_bytes, static_cast<int>(program::kStreams), events_),
      buffers_(program.buffers.size()) {}

void DeviceMemory::alloc(std::uint32_t buffer, program::Stream stream) {
  const program::BufferEntry& entry = program_.buffers[buffer];
  memory::Outcome outcome = allocator_.malloc(entry.bytes, static_cast<int>(stream));
  follow(outcome);
  if (outcome.kind == memory::Outcome::Kind::must_drain) {
    device_.synchronize();
    outcome = allocator_.malloc_after_drain(entry.bytes, static_cast<int>(stream));
    follow(outcome);
  }
  if (outcome.kind != memory::Outcome::Kind::done)
    throw OutOfMemory("no room for \"" + entry.label + "\", " + std::to_string(entry.bytes) + " bytes: " + std::to_string(statistics().allocated) +
                      " bytes are allocated and " + std::to_string(statistics().reserved) + " reserved");
  Buffer& b = buffers_[buffer];
  b = {outcome.block, nullptr, outcome.bytes, true};
  if (b.block != memory::kNoBlock) b.memory = device_.memory(allocator_.address(b.block), b.bytes);
  note(entry, b.bytes);
}

/// Tells the device what segments there are, where the request has changed them.
void DeviceMemory::follow(const memory::Outcome& outcome) {
  if (outcome.device_mallocs == 0 && outcome.device_frees == 0) return;
  std::vector<Segment> segments;
  for (const memory::BlockInfo& block : allocator_.snapshot()) {
    if (block.begins_segment) segments.push_back({block.address, 0});
    segments.back().bytes += block.size;
  }
  device_.map(segments);
}

void DeviceMemory::free(std::uint32_t buffer) {
  Buffer& b = buffers_[buffer];
  allocator_.free(b.block);
  note(program_.buffers[buffer], -b.bytes);
  b.live = false;
}

void DeviceMemory::record_stream(std::uint32_t buffer, program::Stream stream) { allocator_.record_stream(buffers_[buffer].block, static_cast<int>(stream)); }

std::byte* DeviceMemory::at(std::uint32_t buffer) const {
  if (!buffers_[buffer].live) throw std::logic_error("\"" + program_.buffers[buffer].label + "\" is used while it is not there");
  return buffers_[buffer].memory;
}

void DeviceMemory::note(const program::BufferEntry& entry, std::int64_t bytes) {
  by_owner_[static_cast<std::size_t>(entry.owner)] += bytes;
  const memory::Statistics& now = statistics();
  if (now.allocated > peaks_.allocated) {
    peaks_.allocated = now.allocated;
    peaks_.by_owner = by_owner_;
  }
  peaks_.active = std::max(peaks_.active, now.active);
  peaks_.reserved = std::max(peaks_.reserved, now.reserved);
}

MemoryPeaks DeviceMemory::peaks() const {
  MemoryPeaks result = peaks_;
  result.statistics = statistics();
  return result;
}

}  // namespace stepcast::real
