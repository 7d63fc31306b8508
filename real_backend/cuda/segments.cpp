// See segments.hpp.
#include "real_backend/cuda/segments.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace stepcast::real::cuda {

void Segments::follow(std::span<const Segment> wanted) {
  std::erase_if(held_, [&](const auto& held) { return !std::binary_search(wanted.begin(), wanted.end(), held.first); });
  for (const Segment& segment : wanted) {
    DeviceBytes& memory = held_[segment];
    if (!memory) memory = make_device_bytes(segment.bytes);
  }
}

std::byte* Segments::at(std::uint64_t address, std::int64_t bytes) const {
  const auto above = held_.upper_bound({address, std::numeric_limits<std::int64_t>::max()});
  if (above != held_.begin()) {
    const auto& [segment, memory] = *std::prev(above);
    if (memory && address + static_cast<std::uint64_t>(bytes) <= segment.address + static_cast<std::uint64_t>(segment.bytes))
      return memory.get() + (address - segment.address);
  }
  throw std::logic_error("an address of the allocator that lies in no segment");
}

}  // namespace stepcast::real::cuda
