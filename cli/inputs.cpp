// See inputs.hpp. What each setting means: docs/scenario.md.
#include "cli/inputs.hpp"

#include <algorithm>

#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

sim::FixedCosts fixed_costs(const scenarios::FixedCosts& costs) {
  sim::FixedCosts fixed;
  const auto set = [&fixed](hw::FixedPhase phase, Seconds time) { fixed.phases[static_cast<std::size_t>(phase)] = to_sim_time(time); };
  set(hw::FixedPhase::embedding_forward, costs.embedding_forward);
  set(hw::FixedPhase::block_forward, costs.block_forward);
  set(hw::FixedPhase::head_forward, costs.head_forward);
  set(hw::FixedPhase::head_backward, costs.head_backward);
  set(hw::FixedPhase::block_backward, costs.block_backward);
  set(hw::FixedPhase::embedding_backward, costs.embedding_backward);
  set(hw::FixedPhase::optimizer, costs.optimizer);
  fixed.all_gather_block = to_sim_time(costs.all_gather_block);
  fixed.all_gather_root = to_sim_time(costs.all_gather_root);
  fixed.reduce_scatter_block = to_sim_time(costs.reduce_scatter_block);
  fixed.reduce_scatter_root = to_sim_time(costs.reduce_scatter_root);
  fixed.all_reduce_block = to_sim_time(costs.all_reduce_block);
  fixed.host_per_kernel = to_sim_time(costs.host_per_kernel);
  fixed.host_per_collective = to_sim_time(costs.host_per_collective);
  return fixed;
}

void scale_host(sim::PriceList& prices, double scale) {
  for (SimTime& time : prices.host) time = to_sim_time(to_seconds(time) * scale);
}

/// Pool memory = device memory less what lies outside the pool.
void set_memory(const scenarios::Scenario& scenario, const hw::CostModel& model, sim::Options& options) {
  const scenarios::Allocator& allocator = scenario.allocator;
  const double device = allocator.device_memory ? static_cast<double>(*allocator.device_memory) : model.device_memory().in(byte);
  const double pool = device - model.memory_outside_pool().in(byte);
  if (pool <= 0) {
    throw InputError(scenario.name, "/allocator/device_memory", "leaves nothing beside the context and NCCL's buffers",
                     "they take " + std::to_string(static_cast<std::int64_t>(model.memory_outside_pool().in(mebibyte))) + " MiB");
  }
  options.pool_bytes = static_cast<std::int64_t>(pool);
  options.allocator = allocator_settings(allocator, device, pool);
}

sim::VariationSettings variation_of(const scenarios::Scenario& scenario) {
  const scenarios::Jitter& jitter = scenario.run.jitter;
  const scenarios::Host& host = scenario.host;
  sim::VariationSettings v;
  v.seed = static_cast<std::uint64_t>(scenario.run.seed);
  v.kernel = jitter.kernel;
  v.host = jitter.host;
  v.collective = jitter.collective;
  v.rank_speed = jitter.rank_speed;
  const auto collections = host.gc_synchronised ? sim::Pauses::Kind::together : sim::Pauses::Kind::regular;
  v.pauses = {{{to_sim_time(host.gc_period), to_sim_time(host.gc_pause), collections},
               {to_sim_time(jitter.pause_period), to_sim_time(jitter.pause), sim::Pauses::Kind::random}}};
  for (const scenarios::SlowRank& slow : scenario.run.slow_ranks) v.slow_ranks.push_back({slow.rank, slow.compute_scale, slow.host_scale, slow.nic_scale});
  return v;
}

sim::Options options_of(const scenarios::Scenario& scenario, const hw::CostModel* model) {
  sim::Options options;
  options.world_size = scenarios::ranks(scenario);
  options.ranks = scenario.run.ranks == scenarios::Ranks::folded ? 1 : options.world_size;
  options.recorded_ranks = scenarios::traced_ranks(scenario);
  options.record_from_step = scenario.run.steps - scenario.run.active;
  options.launch_queue_depth = scenario.host.launch_queue_depth;
  options.one_queue = scenario.host.cuda_device_max_connections == 1;
  const scenarios::Loader& loader = scenario.loader;
  options.loader = {loader.workers, loader.prefetch_factor, to_sim_time(loader.batch_time), sim::Spread(loader.batch_time_spread)};
  options.variation = variation_of(scenario);
  options.memory_limit = model != nullptr;
  if (model) set_memory(scenario, *model, options);
  return options;
}

}  // namespace

memory::Settings allocator_settings(const scenarios::Allocator& allocator, double device_bytes, double pool_bytes) {
  memory::Settings settings;
  settings.max_split_size = allocator.max_split_size;
  settings.roundup_power2_divisions = allocator.roundup_power2_divisions;
  settings.garbage_collection_threshold = allocator.garbage_collection_threshold;
  settings.expandable_segments = allocator.expandable_segments;
  if (allocator.memory_fraction) settings.memory_fraction = std::min(1.0, *allocator.memory_fraction * device_bytes / pool_bytes);
  return settings;
}

Inputs inputs_of(const scenarios::Scenario& scenario, const program::Program& program, const Hardware* hardware) {
  Inputs inputs;
  if (!scenario.fixed_costs) {
    const Hardware own = hardware ? *hardware : hardware_of(scenario);
    inputs.model.emplace(own.gpu, own.cluster);
  }
  const hw::CostModel* model = inputs.model ? &*inputs.model : nullptr;
  inputs.prices = model ? sim::price(program, *model) : sim::price(program, fixed_costs(*scenario.fixed_costs));
  scale_host(inputs.prices, scenario.host.scale);
  inputs.options = options_of(scenario, model);
  return inputs;
}

}  // namespace stepcast::cli
