// See validate.hpp.
#include "scenarios/validate.hpp"

#include <fmt/format.h>

#include "hw_models/profiles.hpp"
#include "hw_models/rates.hpp"
#include "program/validate.hpp"
#include "scenarios/judge.hpp"
#include "scenarios/limits.hpp"

namespace stepcast::scenarios {
namespace {

void validate(const program::ModelShape& model, const Judge& judge) {
  judge.require(model.head_dim <= kMaxHeadDim, "/model/heads", fmt::format("makes heads of {} elements, more than {}", model.head_dim, kMaxHeadDim));
  judge.require(model.heads % model.kv_heads == 0, "/model/kv_heads", fmt::format("{} does not divide heads = {}", model.kv_heads, model.heads));
  judge.require(model.positions != program::Positions::learned || model.max_positions > 0, "/model/max_positions", "is needed with learned positions");
}

void validate(const Scenario& scenario, const program::Batch& batch, const Judge& judge) {
  const program::ModelShape& model = scenario.model;
  const bool table = model.positions == program::Positions::learned && !scenario.fixed_costs;
  judge.require(!table || batch.seq_len <= model.max_positions, "/batch/seq_len",
                fmt::format("{} is more than the {} learned positions of the model", batch.seq_len, model.max_positions));
  judge.require(program::tokens(batch) <= kMaxTokens, "/batch/micro_batch", fmt::format("micro_batch * seq_len is above {} tokens", kMaxTokens));
  const double scores = static_cast<double>(program::tokens(batch)) * static_cast<double>(batch.seq_len) * static_cast<double>(model.heads);
  judge.require(scenario.kernels.attention != program::Attention::unfused || scores <= static_cast<double>(kMaxScores), "/batch/seq_len",
                "the attention scores of unfused attention are too large", "use fused attention");
  judge.require(model.layers * batch.grad_accum <= kMaxUnitPasses, "/batch/grad_accum", fmt::format("layers * grad_accum is above {}", kMaxUnitPasses));
  judge.require(scenario.run.active * model.layers * batch.grad_accum <= kMaxTracedUnitPasses, "/run/active",
                fmt::format("active * layers * grad_accum is above {}, too much to trace", kMaxTracedUnitPasses));
}

void validate(const Cluster& cluster, bool fixed_costs, const Judge& judge) {
  judge.require(std::int64_t{cluster.nodes} * cluster.gpus_per_node <= kMaxRanks, "/cluster/nodes", fmt::format("more than {} ranks", kMaxRanks));
  judge.require(fixed_costs || !cluster.node.empty(), "/cluster/node", "is missing", "name a node profile, for example \"dgx-a100\"");
}

void validate(const Allocator& allocator, const Judge& judge) {
  // c10/cuda/CUDAAllocatorConfig.cpp: max_split_size_mb must exceed kLargeBuffer (20 MiB); the divisions must be a power of two.
  judge.require(!allocator.max_split_size || *allocator.max_split_size > std::int64_t{20} << 20, "/allocator/max_split_size",
                "must be more than 20 MiB, as PyTorch demands");
  const auto divisions = allocator.roundup_power2_divisions;
  judge.require((divisions & (divisions - 1)) == 0, "/allocator/roundup_power2_divisions", fmt::format("{} is not a power of two", divisions));
  judge.require(allocator.garbage_collection_threshold < 1, "/allocator/garbage_collection_threshold", "must be below 1");
  judge.require(allocator.garbage_collection_threshold == 0 || allocator.memory_fraction.has_value(), "/allocator/garbage_collection_threshold",
                "has no effect without memory_fraction: PyTorch collects garbage only in a process with a limit of its own",
                "set /allocator/memory_fraction, or leave it out");
}

/// A card without units for the chosen types, of which the price of the first product would tell later and without a pointer.
void validate_units(const Scenario& scenario, const Judge& judge) {
  if (scenario.fixed_costs) return;
  const program::Precision& precision = scenario.precision;
  const auto found = hw::find_gpu_profile(scenario.cluster.gpu);
  const hw::Profile& gpu = *found;
  const hw::Dtype product = program::in_fp8(precision) ? hw::Dtype::fp8 : program::peak_type(precision);
  const char* key = precision.matmul == program::Matmul::param ? "/precision/param" : "/precision/matmul";
  judge.require(hw::has_peak(gpu, product), key, fmt::format("{} has no matrix units for {}", gpu.name, hw::name(product)),
                hw::has_peak(gpu, hw::Dtype::bf16) ? "choose bf16 or another GPU" : "choose fp16 or another GPU");
  judge.require(hw::has_peak(gpu, precision.param), "/precision/param", fmt::format("{} has no matrix units for {}", gpu.name, hw::name(precision.param)),
                "choose fp16 or another GPU");
}

void validate(const Run& run, std::int32_t ranks, const Judge& judge) {
  const std::int32_t sum = run.wait + run.warmup + run.active;
  judge.require(run.steps == sum, "/run/steps", fmt::format("{} is not wait + warmup + active = {} + {} + {}", run.steps, run.wait, run.warmup, run.active),
                "give only steps, or the three parts");
  judge.require(run.ranks == Ranks::folded || ranks <= kMaxExplicitRanks, "/run/ranks",
                fmt::format("{} explicit ranks are above the limit of {}", ranks, kMaxExplicitRanks), "use \"folded\"");
}

}  // namespace

void validate(const Scenario& scenario, const Reader::Origin& origin) {
  const Judge judge(origin);
  validate(scenario.model, judge);
  validate(scenario, scenario.batch, judge);
  validate(scenario.cluster, scenario.fixed_costs.has_value(), judge);
  judge.require(scenario.policy.blocks_per_unit <= scenario.model.layers, "/policy/blocks_per_unit",
                fmt::format("is above layers = {}", scenario.model.layers));
  if (const auto broken = program::broken_rule(step_spec(scenario))) judge.require(false, broken->key, broken->what, broken->hint);
  validate_units(scenario, judge);
  validate(scenario.allocator, judge);
  validate(scenario.run, ranks(scenario), judge);
  validate_variation(scenario, judge);
}

}  // namespace stepcast::scenarios
