// Checks of the allocator's settings, with PyTorch's own limits (c10/cuda/CUDAAllocatorConfig.cpp). Test: tests/unit/caching_allocator_test.cpp.
#include <bit>

#include "hw_models/input_error.hpp"
#include "memory/caching_allocator.hpp"
#include "memory/sizes.hpp"

namespace stepcast::memory {

void validate(const Settings& settings, const std::string& file) {
  const auto refuse = [&](const char* key, const std::string& what, const std::string& hint = "") {
    throw InputError(file, std::string("/allocator/") + key, what, hint);
  };
  if (settings.max_split_size && *settings.max_split_size <= kLargeSegmentBytes) refuse("max_split_size", "must be above 20 MiB", "leave it out for no limit");
  if (settings.max_split_size && *settings.max_split_size > kMaxBytes) refuse("max_split_size", "must be at most 1 PiB", "leave it out for no limit");
  const std::int64_t divisions = settings.roundup_power2_divisions;
  const bool power_of_two = divisions >= 0 && (divisions == 0 || std::has_single_bit(static_cast<std::uint64_t>(divisions)));
  if (!power_of_two || divisions > kMaxDivisions) refuse("roundup_power2_divisions", "must be a power of two up to 2^20", "0 turns it off");
  if (settings.memory_fraction && !(*settings.memory_fraction > 0 && *settings.memory_fraction <= 1))
    refuse("memory_fraction", "must be above 0 and at most 1");
  const double threshold = settings.garbage_collection_threshold;
  if (!(threshold >= 0 && threshold < 1)) refuse("garbage_collection_threshold", "must be at least 0 and below 1", "0 turns it off");
}

}  // namespace stepcast::memory
