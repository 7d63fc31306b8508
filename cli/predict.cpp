// Turns a scenario into the inputs of the simulator, runs it, and adds warnings. docs/report.md; test: tests/golden/cli_test.cpp.
#include "cli/predict.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/report/table.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "program/build.hpp"

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

/// Pool memory = device memory less what lies outside the pool. A memory fraction is one of the whole device (torch.cuda.set_per_process_memory_fraction).
void set_memory(const scenarios::Scenario& scenario, const hw::CostModel& model, sim::Options& options) {
  const scenarios::Allocator& allocator = scenario.allocator;
  const double device = allocator.device_memory ? static_cast<double>(*allocator.device_memory) : model.device_memory().in(byte);
  const double pool = device - model.memory_outside_pool().in(byte);
  if (pool <= 0) {
    throw InputError(scenario.name, "/allocator/device_memory", "leaves nothing beside the context and NCCL's buffers",
                     "they take " + std::to_string(static_cast<std::int64_t>(model.memory_outside_pool().in(mebibyte))) + " MiB");
  }
  options.pool_bytes = static_cast<std::int64_t>(pool);
  options.allocator.max_split_size = allocator.max_split_size;
  options.allocator.roundup_power2_divisions = allocator.roundup_power2_divisions;
  options.allocator.garbage_collection_threshold = allocator.garbage_collection_threshold;
  options.allocator.expandable_segments = allocator.expandable_segments;
  if (allocator.memory_fraction) options.allocator.memory_fraction = std::min(1.0, *allocator.memory_fraction * device / pool);
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

/// Context, NCCL and workspaces take 2 to 4 GiB of a device by library version: this much nearer to the limit, a forecast that a run fits is not sharp.
constexpr double kNarrowHeadroom = 0.05;

void warn(const sim::Options& options, Prediction& prediction) {
  Report& report = prediction.report;
  const auto& retries = report.retries_per_step;
  const bool ok = report.outcome == "ok";
  if (ok && !retries.empty() && retries.back() > 0) {
    report.warnings.push_back("the allocator gives its cache back and takes it again in every step (" + std::to_string(retries.back()) +
                              " retries in the last one): the step runs at the limit of the device's memory");
  }
  if (prediction.scenario.run.steps == 1) report.warnings.push_back("one step only: the step time includes the start-up of the first step");
  const double limit = static_cast<double>(report.memory_limit_bytes), headroom = limit - static_cast<double>(report.peak_reserved_bytes);
  if (ok && options.memory_limit && headroom < kNarrowHeadroom * limit) {
    report.warnings.push_back("the peak of reserved memory is within 5 % of the limit (" + size_text(headroom) +
                              " left): retries may appear, and a longer sequence or another library version may run out of memory");
  }
}

/// What the pool may reserve, and for an out-of-memory how the device's memory is divided.
void set_memory_limit(const sim::Options& options, const hw::CostModel* model, Prediction& prediction) {
  const double fraction = options.allocator.memory_fraction.value_or(1);
  Report& report = prediction.report;
  report.memory_limit_bytes = static_cast<std::int64_t>(fraction * static_cast<double>(options.pool_bytes));
  if (!model) return;
  report.out_of_memory.outside_pool_bytes = static_cast<std::int64_t>(model->memory_outside_pool().in(byte));
  report.out_of_memory.device_bytes = options.pool_bytes + report.out_of_memory.outside_pool_bytes;
  report.out_of_memory.fraction = options.allocator.memory_fraction.has_value();
}

}  // namespace

Prediction predict(const scenarios::Scenario& scenario, std::vector<std::string> warnings) {
  Prediction prediction{scenario, program::build_program(scenarios::step_spec(scenario), scenario.run.steps), {}, {}};
  std::optional<hw::CostModel> model;
  if (!scenario.fixed_costs) { model.emplace(scenarios::gpu(scenario), scenarios::hardware(scenario)); }
  sim::PriceList prices = model ? sim::price(prediction.program, *model) : sim::price(prediction.program, fixed_costs(*scenario.fixed_costs));
  scale_host(prices, scenario.host.scale);
  const sim::Options options = options_of(scenario, model ? &*model : nullptr);
  prediction.result = sim::simulate(prediction.program, prices, options);
  prediction.result.trace.device_name = model ? model->gpu().name : "fixed costs";
  prediction.result.trace.device_memory_bytes = model ? static_cast<std::int64_t>(model->device_memory().in(byte)) : 0;
  prediction.report = make_report(scenario, prediction.program, prediction.result, model ? &*model : nullptr);
  set_memory_limit(options, model ? &*model : nullptr, prediction);
  prediction.report.warnings = std::move(warnings);
  warn(options, prediction);
  return prediction;
}

nlohmann::ordered_json json_of(const Prediction& prediction) {
  nlohmann::ordered_json json = to_json(prediction.report);
  json["resolved_scenario"] = scenarios::to_json(prediction.scenario);
  return json;
}

}  // namespace stepcast::cli
