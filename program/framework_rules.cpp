// Which settings belong to which framework: one that would have no effect is refused, not ignored. See validate.hpp; test: tests/unit/framework_rules_test.cpp.
#include "program/groups.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"

namespace stepcast::program {
namespace {

using Broken = std::optional<BrokenRule>;

constexpr Policy kDefaults;

Broken only_fsdp1(const Policy& p, const char* hint_prefetch) {
  if (p.backward_prefetch != kDefaults.backward_prefetch) return BrokenRule{"/policy/backward_prefetch", "belongs to \"fsdp1\"", hint_prefetch};
  if (p.forward_prefetch) return BrokenRule{"/policy/forward_prefetch", "belongs to \"fsdp1\"", hint_prefetch};
  if (!p.limit_all_gathers) return BrokenRule{"/policy/limit_all_gathers", "belongs to \"fsdp1\"", "only FSDP1 has a rate limiter"};
  if (p.use_orig_params) return BrokenRule{"/policy/use_orig_params", "belongs to \"fsdp1\"", "only FSDP1 has flat parameters"};
  if (p.release == Release::before_2_1) return BrokenRule{"/policy/release", "\"before-2.1\" changes \"fsdp1\" only", "leave it out"};
  return {};
}

Broken only_fsdp2(const Policy& p) {
  if (p.reshard_after_forward != kDefaults.reshard_after_forward)
    return BrokenRule{"/policy/reshard_after_forward", "belongs to \"fsdp2\"", "for \"fsdp1\" sharding decides: \"FULL_SHARD\" or \"SHARD_GRAD_OP\""};
  if (p.forward_prefetch_depth != kDefaults.forward_prefetch_depth)
    return BrokenRule{"/policy/forward_prefetch_depth", "belongs to \"fsdp2\"", "for \"fsdp1\": forward_prefetch"};
  if (p.backward_prefetch_depth != kDefaults.backward_prefetch_depth)
    return BrokenRule{"/policy/backward_prefetch_depth", "belongs to \"fsdp2\"", "for \"fsdp1\": backward_prefetch"};
  if (!p.unshard_embedding_in_backward) return BrokenRule{"/policy/unshard_embedding_in_backward", "belongs to \"fsdp2\"", "leave it out"};
  return {};
}

Broken only_ddp(const Policy& p) {
  if (p.bucket_cap) return BrokenRule{"/policy/bucket_cap", "belongs to \"ddp\"", "FSDP's messages are as large as its units: blocks_per_unit"};
  if (p.gradient_as_bucket_view) return BrokenRule{"/policy/gradient_as_bucket_view", "belongs to \"ddp\"", "leave it out"};
  return {};
}

Broken only_stage3(const Policy& p) {
  const char* hint = "leave it out";
  if (p.stage3_prefetch_bucket_size != kDefaults.stage3_prefetch_bucket_size)
    return BrokenRule{"/policy/stage3_prefetch_bucket_size", "belongs to \"zero3\"", hint};
  if (p.stage3_max_live_parameters != kDefaults.stage3_max_live_parameters)
    return BrokenRule{"/policy/stage3_max_live_parameters", "belongs to \"zero3\"", hint};
  if (p.stage3_max_reuse_distance != kDefaults.stage3_max_reuse_distance) return BrokenRule{"/policy/stage3_max_reuse_distance", "belongs to \"zero3\"", hint};
  if (p.stage3_param_persistence_threshold != kDefaults.stage3_param_persistence_threshold)
    return BrokenRule{"/policy/stage3_param_persistence_threshold", "belongs to \"zero3\"", hint};
  return {};
}

Broken only_zero(const Policy& p) {
  const char* what = "belongs to DeepSpeed's \"zero1\", \"zero2\" and \"zero3\"";
  if (p.reduce_bucket_size != kDefaults.reduce_bucket_size) return BrokenRule{"/policy/reduce_bucket_size", what, "for \"ddp\": bucket_cap"};
  if (p.allgather_bucket_size != kDefaults.allgather_bucket_size) return BrokenRule{"/policy/allgather_bucket_size", what, "leave it out"};
  if (p.overlap_comm) return BrokenRule{"/policy/overlap_comm", what, "the others always overlap"};
  if (!p.contiguous_gradients) return BrokenRule{"/policy/contiguous_gradients", what, "leave it out"};
  if (!p.reduce_scatter) return BrokenRule{"/policy/reduce_scatter", what, "leave it out"};
  return only_stage3(p);
}

/// More parts of the all-gather of updated parameters than anyone would ask for; keeps programs small.
constexpr std::int64_t kMaxGatherParts = 4096;

Broken zero_rule(const StepSpec& spec) {
  const Policy& p = spec.policy;
  const bool stage3 = p.framework == Framework::zero3;
  if (spec.kernels.set == KernelSet::fixed) return BrokenRule{"/policy/framework", "fixed costs are those of units, which ZeRO has none of", "use \"fsdp1\""};
  if (p.sharding != Sharding::full_shard) return BrokenRule{"/policy/sharding", "the stage says what is sharded", "leave it out"};
  if (Broken broken = only_fsdp1(p, "for \"zero3\": stage3_prefetch_bucket_size")) return broken;
  if (Broken broken = only_fsdp2(p)) return broken;
  if (Broken broken = only_ddp(p)) return broken;
  if (p.wrap != Wrap::blocks || p.blocks_per_unit != 1) return BrokenRule{"/policy/wrap", "ZeRO has no units", "its messages are buckets: reduce_bucket_size"};
  if (p.no_sync) return BrokenRule{"/policy/no_sync", "ZeRO refuses it: stage 1 reduces in the last micro-batch anyway, 2 and 3 in every one", "leave it out"};
  if (spec.precision.master != hw::Dtype::fp32) return BrokenRule{"/precision/master", "ZeRO's partitions are fp32", "leave it out"};
  if (!spec.optimizer.zero_grad_set_to_none) return BrokenRule{"/optimizer/zero_grad_set_to_none", "ZeRO always clears gradients", "leave it out"};
  if (spec.recompute.nesting == Nesting::outside) return BrokenRule{"/recompute/nesting", "ZeRO has no units to be outside of", "leave it out"};
  if (p.cpu_offload != CpuOffload::none && spec.optimizer.implementation != OptimizerImpl::fused)
    return BrokenRule{"/optimizer/implementation", "an offloaded optimizer of ZeRO is DeepSpeed's CPU Adam, one pass", "use \"fused\", or leave it out"};
  if (!stage3 && parameters(spec.model) / p.allgather_bucket_size > kMaxGatherParts)
    return BrokenRule{"/policy/allgather_bucket_size", "cuts the parameters into more than " + std::to_string(kMaxGatherParts) + " parts", "make it larger"};
  if (!stage3) return only_stage3(p);
  if (p.allgather_bucket_size != kDefaults.allgather_bucket_size)
    return BrokenRule{"/policy/allgather_bucket_size", "belongs to \"zero1\" and \"zero2\"", "for \"zero3\": stage3_prefetch_bucket_size"};
  return {};
}

/// A mesh of M consecutive ranks: a part of the shard group that lies evenly over its nodes.
Broken reshard_rule(const StepSpec& spec) {
  const std::int64_t m = spec.policy.reshard_after_forward;
  if (m == kKeepAfterForward || m == kReshardAfterForward) return {};
  const hw::GroupShape shard = groups_of(spec).shard;
  const bool even = m <= shard.ranks_per_node ? shard.ranks_per_node % m == 0 : m % shard.ranks_per_node == 0;
  if (m > 1 && m < shard.ranks() && shard.ranks() % m == 0 && even) return {};
  return BrokenRule{"/policy/reshard_after_forward",
                    std::to_string(m) + " is no proper divisor of the " + std::to_string(shard.ranks()) + " ranks of the shard group that fits its nodes",
                    "true reshards among all of them, false keeps the parameters"};
}

Broken fsdp2_rule(const StepSpec& spec) {
  const Policy& p = spec.policy;
  if (p.sharding == Sharding::shard_grad_op || p.sharding == Sharding::hybrid_shard_zero2)
    return BrokenRule{"/policy/sharding", "belongs to \"fsdp1\"", "for \"fsdp2\": \"FULL_SHARD\" or \"HYBRID_SHARD\" with reshard_after_forward false"};
  if (p.sharding == Sharding::no_shard) return BrokenRule{"/policy/sharding", "\"fsdp2\" always shards", "use framework \"ddp\""};
  if (Broken broken = only_fsdp1(p, "for \"fsdp2\": forward_prefetch_depth and backward_prefetch_depth")) return broken;
  if (Broken broken = only_ddp(p)) return broken;
  if (!p.unshard_embedding_in_backward && p.wrap != Wrap::embedding_and_head)
    return BrokenRule{"/policy/unshard_embedding_in_backward", "needs an embedding of its own", "set wrap \"embedding_and_head\""};
  if (spec.recompute.nesting == Nesting::outside && spec.recompute.reentrant)
    return BrokenRule{"/recompute/nesting", "reentrant checkpointing around a unit is not supported yet for \"fsdp2\"", "use \"inside\""};
  return reshard_rule(spec);
}

Broken ddp_rule(const StepSpec& spec) {
  const Policy& p = spec.policy;
  if (p.sharding != Sharding::full_shard && p.sharding != Sharding::no_shard) return BrokenRule{"/policy/sharding", "\"ddp\" shards nothing", "leave it out"};
  if (Broken broken = only_fsdp1(p, "\"ddp\" gathers nothing")) return broken;
  if (Broken broken = only_fsdp2(p)) return broken;
  if (p.wrap != Wrap::blocks || p.blocks_per_unit != 1) return BrokenRule{"/policy/wrap", "\"ddp\" has no units", "its messages are buckets: bucket_cap"};
  if (spec.precision.reduce != spec.precision.master)
    return BrokenRule{"/precision/reduce", "\"ddp\" reduces gradients in the type of the parameters", "leave it out, or make it equal to master"};
  if (!spec.optimizer.zero_grad_set_to_none) return BrokenRule{"/optimizer/zero_grad_set_to_none", "false is not supported yet for \"ddp\"", "use true"};
  if (spec.recompute.nesting == Nesting::outside) return BrokenRule{"/recompute/nesting", "\"ddp\" has no units to be outside of", "leave it out"};
  return {};
}

Broken fsdp1_rule(const StepSpec& spec) {
  if (Broken broken = only_fsdp2(spec.policy)) return broken;
  return only_ddp(spec.policy);
}

Broken offload_rule(const StepSpec& spec) {
  const Policy& p = spec.policy;
  if (p.cpu_offload == CpuOffload::none) return {};
  if (p.framework == Framework::ddp) return BrokenRule{"/policy/cpu_offload", "\"ddp\" keeps everything on the device", "use \"fsdp2\" or \"zero2\""};
  const bool fsdp = p.framework == Framework::fsdp1 || p.framework == Framework::fsdp2;
  if (fsdp && p.cpu_offload == CpuOffload::optimizer)
    return BrokenRule{"/policy/cpu_offload", "\"optimizer\" belongs to ZeRO: FSDP offloads parameters, gradients and optimizer together", "use \"parameters\""};
  if (fsdp && !spec.optimizer.zero_grad_set_to_none)
    return BrokenRule{"/optimizer/zero_grad_set_to_none", "false is not supported yet with cpu_offload", "use true"};
  if (p.framework == Framework::fsdp1 && groups_of(spec).shard.ranks() == 1)
    return BrokenRule{"/policy/cpu_offload", "what is not sharded is not offloaded", "use a sharding strategy and several ranks, or \"zero2\""};
  if (p.framework == Framework::fsdp1 && spec.batch.grad_accum > 1 && !p.no_sync)
    return BrokenRule{"/policy/cpu_offload", "FSDP1 cannot accumulate gradients on the host", "set no_sync"};
  if (!fsdp && p.framework != Framework::zero3 && p.cpu_offload == CpuOffload::parameters)
    return BrokenRule{"/policy/cpu_offload", "stages 1 and 2 keep whole parameters on the device", "use \"optimizer\", or framework \"zero3\""};
  return {};
}

}  // namespace

std::optional<BrokenRule> broken_framework_rule(const StepSpec& spec) {
  if (Broken broken = offload_rule(spec)) return broken;
  if (is_zero(spec.policy.framework)) return zero_rule(spec);
  if (Broken broken = only_zero(spec.policy)) return broken;
  switch (spec.policy.framework) {
    case Framework::fsdp2: return fsdp2_rule(spec);
    case Framework::ddp: return ddp_rule(spec);
    default: return fsdp1_rule(spec);
  }
}

}  // namespace stepcast::program
