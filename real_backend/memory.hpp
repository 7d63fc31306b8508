// Device memory of one rank: the caching allocator's policy over a device's address space, and what it came to. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "memory/caching_allocator.hpp"
#include "program/program.hpp"
#include "real_backend/device.hpp"

namespace stepcast::real {

struct MemoryLimits {
  memory::Settings allocator;
  std::int64_t pool_bytes = std::int64_t{1} << 34;
};

struct MemoryPeaks {
  std::int64_t allocated = 0, active = 0, reserved = 0;
  std::array<std::int64_t, program::kOwners> by_owner{};  // at the moment of `allocated`
  memory::Statistics statistics;                          // at the end
};

class DeviceMemory {
 public:
  DeviceMemory(const program::Program& program, Device& device, const MemoryLimits& limits);

  /// Throws OutOfMemory.
  void alloc(std::uint32_t buffer, program::Stream stream);
  void free(std::uint32_t buffer);
  void record_stream(std::uint32_t buffer, program::Stream stream);
  /// Where the buffer begins. Throws std::logic_error if it isn't there.
  [[nodiscard]] std::byte* at(std::uint32_t buffer) const;
  [[nodiscard]] MemoryPeaks peaks() const;
  [[nodiscard]] const memory::Statistics& statistics() const { return allocator_.statistics(); }
  [[nodiscard]] std::uint64_t address(std::uint32_t buffer) const { return allocator_.address(buffers_[buffer].block); }
  /// Handed out for the buffer: what was asked for, rounded up, and what was left of a block too small to be cut.
  [[nodiscard]] std::int64_t bytes(std::uint32_t buffer) const { return buffers_[buffer].bytes; }

 private:
  class Events final : public memory::EventSource {
   public:
    explicit Events(Device& device) : device_(device) {}
    std::uint64_t record(int stream) override { return device_.position(static_cast<program::Stream>(stream)); }
    [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return device_.reached(static_cast<program::Stream>(stream), event); }

   private:
    Device& device_;
  };
  struct Buffer {
    memory::BlockId block = memory::kNoBlock;
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;  // handed out
    bool live = false;
  };
  void note(const program::BufferEntry& entry, std::int64_t bytes);
  void follow(const memory::Outcome& outcome);

  const program::Program& program_;
  Device& device_;
  Events events_;
  memory::CachingAllocator allocator_;
  std::vector<Buffer> buffers_;
  std::array<std::int64_t, program::kOwners> by_owner_{};
  MemoryPeaks peaks_;
};

}  // namespace stepcast::real
