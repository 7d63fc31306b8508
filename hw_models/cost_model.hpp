// One door to all cost formulas: prices a kernel, a collective, host work and allocator calls on given hardware. Pure: the same question has the same answer.
// Each formula lives in its own file (gemm, attention, memory_bound, collective, host); docs/models.md lists them.
#pragma once

#include <string_view>

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// How a kernel meets others that run at the same time.
struct KernelPrice {
  Seconds alone;               // duration with the device to itself
  double nccl_slowdown = 0;    // duration grows by this ratio while a collective runs on the device
  double dram_share = 0;       // share of the DRAM bandwidth that it needs to run at full speed
  double processor_share = 0;  // share of the multiprocessors that it fills; kernels of two streams that each fill them all take as long as one after the other
};

/// How a collective uses the links: shares of the bottleneck rate that it needs to run at full speed.
struct CollectivePrice {
  Seconds alone;
  double nvlink_share = 0, nic_share = 0;
  double processor_share = 0;  // as a kernel's, where collectives are threads of the same processors
};

/// Costs of the allocator's device calls (host time; `flush` after the device has drained).
struct AllocatorCosts {
  Seconds device_malloc, device_malloc_per_gib, device_free, flush;
};

class CostModel {
 public:
  CostModel(Profile gpu, Cluster cluster);
  /// `name`: of the kernel as launched, for profiles that measured kernels by name.
  [[nodiscard]] KernelPrice kernel(const KernelShape& shape, std::string_view name = {}) const;
  [[nodiscard]] CollectivePrice collective(const CollectiveShape& shape) const;
  [[nodiscard]] Seconds host(HostWork work) const;
  [[nodiscard]] Seconds launch_latency() const;  // from the driver call to the start on an idle stream
  [[nodiscard]] AllocatorCosts allocator() const;
  [[nodiscard]] FlopsPerSecond peak(Dtype dtype) const;
  [[nodiscard]] Bytes device_memory() const;
  [[nodiscard]] Bytes memory_outside_pool() const;  // context, NCCL, workspaces
  [[nodiscard]] const Profile& gpu() const { return gpu_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

 private:
  Profile gpu_;
  Cluster cluster_;
};

}  // namespace stepcast::hw
