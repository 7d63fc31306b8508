// Prices everything that a program names, once per program and hardware, so that the event loop handles integers only.
#include "sim/simulate.hpp"

namespace stepcast::sim {

PriceList price(const program::Program& program, const hw::CostModel& model) {
  PriceList list;
  for (const auto& kernel : program.kernels) {
    const hw::KernelPrice price = model.kernel(kernel.shape, kernel.op);
    list.kernels.push_back({to_sim_time(price.alone), price.nccl_slowdown, price.dram_share, price.processor_share});
  }
  for (const auto& collective : program.collectives) {
    const hw::CollectivePrice price = model.collective(collective.shape);
    list.collectives.push_back({to_sim_time(price.alone), price.nvlink_share, price.nic_share, price.processor_share});
  }
  for (std::size_t work = 0; work < hw::kHostWorkKinds; ++work) list.host[work] = to_sim_time(model.host(static_cast<hw::HostWork>(work)));
  const hw::AllocatorCosts allocator = model.allocator();
  list.launch_latency = to_sim_time(model.launch_latency());
  list.device_malloc = to_sim_time(allocator.device_malloc);
  list.device_malloc_per_gib = to_sim_time(allocator.device_malloc_per_gib);
  list.device_free = to_sim_time(allocator.device_free);
  list.flush = to_sim_time(allocator.flush);
  return list;
}

PriceList price(const program::Program& program, const FixedCosts& costs) {
  PriceList list;
  const auto phase = [&costs](hw::FixedPhase p) { return costs.phases[static_cast<std::size_t>(p)]; };
  for (const auto& kernel : program.kernels) list.kernels.push_back({phase(kernel.shape.phase), 0, 0, 0});
  for (const auto& collective : program.collectives) {
    const bool root = collective.root_unit;
    switch (collective.shape.kind) {
      case hw::CollectiveKind::all_gather: list.collectives.push_back({root ? costs.all_gather_root : costs.all_gather_block}); break;
      case hw::CollectiveKind::reduce_scatter: list.collectives.push_back({root ? costs.reduce_scatter_root : costs.reduce_scatter_block}); break;
      case hw::CollectiveKind::all_reduce: list.collectives.push_back({costs.all_reduce_block}); break;
    }
  }
  list.host[static_cast<std::size_t>(hw::HostWork::op_forward)] = costs.host_per_kernel;
  list.host[static_cast<std::size_t>(hw::HostWork::op_backward)] = costs.host_per_kernel;
  list.host[static_cast<std::size_t>(hw::HostWork::op_optimizer)] = costs.host_per_kernel;
  list.host[static_cast<std::size_t>(hw::HostWork::collective_call)] = costs.host_per_collective;
  return list;
}

}  // namespace stepcast::sim
