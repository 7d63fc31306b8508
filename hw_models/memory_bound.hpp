// Time of a kernel that only moves data. docs/models.md, "Memory-bound kernels". Test: tests/model/memory_bound_test.cpp.
#pragma once

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

struct MemoryRates {
  BytesPerSecond bandwidth;  // DRAM, datasheet
  double efficiency = 1;     // share of it that the class reaches
  Seconds fixed_time{};      // gap to the kernel before, start, last stores
};
/// For class `tiny` (scalars and per-row statistics) the fixed time is all that counts; its bytes go at elementwise speed.
MemoryRates memory_rates(const Profile& gpu, MemoryClass memory);

/// t = t0 + bytes / (e W). No reuse of cached data between kernels: too long for tensors that fit the L2 cache (40 MB on A100).
Seconds memory_bound_time(Bytes bytes, const MemoryRates& rates);

}  // namespace stepcast::hw
