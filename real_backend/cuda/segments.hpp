// Device memory of one rank: a cudaMalloc for each segment of the allocator's policy. Test: tests/unit/cuda_device_test.cpp.
#pragma once

#include <map>
#include <span>

#include "real_backend/cuda/handles.hpp"
#include "real_backend/device.hpp"

namespace stepcast::real::cuda {

class Segments {
 public:
  /// Gives back first, then takes, as the policy counts on. Throws OutOfMemory.
  void follow(std::span<const Segment> wanted);
  /// Throws std::logic_error outside of the segments.
  [[nodiscard]] std::byte* at(std::uint64_t address, std::int64_t bytes) const;

 private:
  std::map<Segment, DeviceBytes> held_;
};

}  // namespace stepcast::real::cuda
