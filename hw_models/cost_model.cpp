// Dispatch only: each formula is in its own file. Test: tests/model/cost_model_test.cpp.
#include "hw_models/cost_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "hw_models/attention.hpp"
#include "hw_models/collective.hpp"
#include "hw_models/gemm.hpp"
#include "hw_models/host.hpp"
#include "hw_models/host_copy.hpp"
#include "hw_models/measured_times.hpp"
#include "hw_models/memory_bound.hpp"
#include "hw_models/occupancy.hpp"
#include "hw_models/rates.hpp"

namespace stepcast::hw {

namespace {

/// Ranks that copy at the same moment share their bridges.
Seconds copy_time(const KernelShape& shape, const Cluster& cluster) {
  return host_copy_time(dram_bytes(shape) * (shape.together ? bridge_sharers(cluster) : 1), shape.pinned, host_copy_rates(cluster.node));
}

Seconds kernel_time(const KernelShape& shape, const Profile& gpu, const Cluster& cluster) {
  switch (shape.kind) {
    case KernelKind::gemm: return gemm_time(shape, gemm_rates(gpu, shape.dtype));
    case KernelKind::attention_forward:
    case KernelKind::attention_backward: return attention_time(shape, attention_rates(gpu, shape.attention));
    case KernelKind::memory_bound: return memory_bound_time(dram_bytes(shape), memory_rates(gpu, shape.memory));
    case KernelKind::copy_to_device:
    case KernelKind::copy_to_host: return copy_time(shape, cluster);
    case KernelKind::fixed: break;
  }
  throw std::logic_error("a phase of fixed-cost mode has no hardware price");
}

/// A copy engine needs none of the multiprocessors that NCCL takes.
double nccl_slowdown(KernelKind kind, const Profile& gpu) {
  switch (kind) {
    case KernelKind::gemm: return gpu.at("nccl_slowdown_gemm");
    case KernelKind::attention_forward:
    case KernelKind::attention_backward: return gpu.at("nccl_slowdown_attention");
    case KernelKind::memory_bound: return gpu.at("nccl_slowdown_memory");
    case KernelKind::copy_to_device:
    case KernelKind::copy_to_host:
    case KernelKind::fixed: break;
  }
  return 0;
}

}  // namespace

CostModel::CostModel(Profile gpu, Cluster cluster) : gpu_(std::move(gpu)), cluster_(std::move(cluster)) {}

/// Kernels of ranks that share processors don't meet each other in memory but there: measured times hold what they do to each other beside that.
KernelPrice CostModel::kernel(const KernelShape& shape, std::string_view name) const {
  const double processors = shared_processors(gpu_), ranks = cluster_.gpus_per_node;
  const std::optional<Seconds> measured = measured_time(gpu_, shape, name, cluster_.gpus_per_node);
  const Seconds alone = measured ? *measured : kernel_time(shape, gpu_, cluster_) * crowding(ranks, processors);
  if (processors > 0) return {.alone = alone, .processor_share = thread_share(ranks, processors)};
  const double share = dram_bytes(shape) / (BytesPerSecond(gpu_.at("dram_bandwidth")) * alone);
  return {.alone = alone,
          .nccl_slowdown = nccl_slowdown(shape.kind, gpu_),
          .dram_share = std::min(1.0, share),
          .processor_share = processor_share(shape, gpu_.at("processors"))};
}

CollectivePrice CostModel::collective(const CollectiveShape& shape) const {
  const double processors = shared_processors(gpu_), ranks = cluster_.gpus_per_node;
  const std::optional<Seconds> measured = measured_time(cluster_.node, shape);
  CollectivePrice price = collective_price(shape, link_rates(cluster_));
  const Seconds skew = arrival_skew(shape.group, Seconds(cluster_.node.at("arrival_skew")));
  price.alone = measured ? *measured : price.alone * crowding(ranks, processors) + skew;
  if (processors > 0) price = {.alone = price.alone, .processor_share = thread_share(ranks, processors)};
  return price;
}

Seconds CostModel::host(HostWork work) const { return host_time(cluster_.node, work) * (shares_processors(work) ? cluster_.gpus_per_node : 1); }

Seconds CostModel::launch_latency() const { return Seconds(gpu_.at("launch_latency")); }

AllocatorCosts CostModel::allocator() const {
  return {.device_malloc = Seconds(gpu_.at("device_malloc")),
          .device_malloc_per_gib = Seconds(gpu_.at("device_malloc_per_gib")),
          .device_free = Seconds(gpu_.at("device_free")),
          .flush = Seconds(gpu_.at("allocator_flush"))};
}

FlopsPerSecond CostModel::peak(Dtype dtype) const { return peak_rate(gpu_, dtype); }
Bytes CostModel::device_memory() const { return Bytes(gpu_.at("device_memory")); }
Bytes CostModel::memory_outside_pool() const { return Bytes(gpu_.at("memory_outside_pool")); }

}  // namespace stepcast::hw
