// See memory_bound.hpp.
#include "hw_models/memory_bound.hpp"

namespace stepcast::hw {

namespace {

std::string_view efficiency_key(MemoryClass memory) {
  switch (memory) {
    case MemoryClass::elementwise:
    case MemoryClass::tiny: return "efficiency_elementwise";
    case MemoryClass::normalization: return "efficiency_normalization";
    case MemoryClass::softmax: return "efficiency_softmax";
    case MemoryClass::indexing: return "efficiency_indexing";
    case MemoryClass::copy: return "efficiency_copy";
    case MemoryClass::optimizer: return "efficiency_optimizer";
  }
  return "efficiency_elementwise";
}

}  // namespace

MemoryRates memory_rates(const Profile& gpu, MemoryClass memory) {
  return {
      .bandwidth = BytesPerSecond(gpu.at("dram_bandwidth")), .efficiency = gpu.at(efficiency_key(memory)), .fixed_time = Seconds(gpu.at("memory_fixed_time"))};
}

Seconds memory_bound_time(Bytes bytes, const MemoryRates& rates) { return rates.fixed_time + bytes / (rates.bandwidth * rates.efficiency); }

}  // namespace stepcast::hw
