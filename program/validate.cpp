// The scenario reader checks what users write; this guards the builder against any caller.
#include "program/validate.hpp"

#include <string>

#include "hw_models/input_error.hpp"

namespace stepcast::program {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& hint = "") { throw InputError("scenario", key, what, hint); }

void require(bool holds, const char* key, const char* what) {
  if (!holds) refuse(key, what);
}

/// Bounds keep all products of the builder below 2^63 and a program within memory.
void in_range(std::int64_t value, std::int64_t low, std::int64_t high, const char* key) {
  if (value < low || value > high) refuse(key, std::to_string(value) + " is not between " + std::to_string(low) + " and " + std::to_string(high));
}

void check_model(const ModelShape& m) {
  in_range(m.hidden, 1, 1 << 18, "/model/hidden");
  in_range(m.layers, 1, 4096, "/model/layers");
  in_range(m.heads, 1, 1 << 12, "/model/heads");
  in_range(m.kv_heads, 1, m.heads, "/model/kv_heads");
  in_range(m.head_dim, 1, 1 << 12, "/model/head_dim");
  in_range(m.ffn, 1, 1 << 20, "/model/ffn");
  in_range(m.vocab, 1, 1 << 24, "/model/vocab");
  in_range(m.experts, 0, 1024, "/model/experts/count");
  in_range(m.active_experts, 0, m.experts, "/model/experts/active");
  in_range(m.sliding_window.value_or(1), 1, 1 << 22, "/model/sliding_window");
  in_range(m.full_attention_every, 0, 4096, "/model/full_attention_every");
  in_range(m.max_positions, m.positions == Positions::learned ? 1 : 0, 1 << 26, "/model/max_positions");
  require(m.heads % m.kv_heads == 0, "/model/kv_heads", "must divide the number of heads");
}

void check_batch(const StepSpec& spec) {
  in_range(spec.batch.micro_batch, 1, 1 << 16, "/batch/micro_batch");
  in_range(spec.batch.grad_accum, 1, 4096, "/batch/grad_accum");
  in_range(spec.batch.seq_len, 1, 1 << 22, "/batch/seq_len");
  in_range(tokens(spec.batch), 1, 1 << 24, "/batch/micro_batch");
  require(spec.model.positions != Positions::learned || spec.batch.seq_len <= spec.model.max_positions, "/batch/seq_len",
          "is longer than the model's table of learned positions");
}

void check_policy(const StepSpec& spec) {
  in_range(spec.policy.forward_prefetch_depth, 0, 4096, "/policy/forward_prefetch_depth");
  in_range(spec.policy.backward_prefetch_depth, 1, 4096, "/policy/backward_prefetch_depth");
  in_range(spec.policy.reshard_after_forward, 0, 1 << 16, "/policy/reshard_after_forward");
  in_range(spec.policy.bucket_cap.value_or(1), 1, std::int64_t{1} << 47, "/policy/bucket_cap");
  in_range(spec.policy.reduce_bucket_size, 1, std::int64_t{1} << 44, "/policy/reduce_bucket_size");
  in_range(spec.policy.allgather_bucket_size, 1, std::int64_t{1} << 44, "/policy/allgather_bucket_size");
  in_range(spec.policy.stage3_prefetch_bucket_size, 0, std::int64_t{1} << 44, "/policy/stage3_prefetch_bucket_size");
  in_range(spec.policy.stage3_max_live_parameters, 0, std::int64_t{1} << 44, "/policy/stage3_max_live_parameters");
  in_range(spec.policy.stage3_max_reuse_distance, 0, std::int64_t{1} << 44, "/policy/stage3_max_reuse_distance");
  in_range(spec.policy.stage3_param_persistence_threshold, 0, std::int64_t{1} << 44, "/policy/stage3_param_persistence_threshold");
  in_range(spec.policy.blocks_per_unit, 1, spec.model.layers, "/policy/blocks_per_unit");
  in_range(spec.policy.min_unit_parameters, 1, std::int64_t{1} << 50, "/policy/min_unit_parameters");
  in_range(spec.world.ranks_per_node, 1, 1 << 12, "/cluster/gpus_per_node");
  in_range(spec.world.nodes, 1, 1 << 18, "/cluster/nodes");
}

void check_kernels(const StepSpec& spec) {
  in_range(spec.kernels.train_metrics, 0, 16, "/kernels/train_metrics");
  const bool native = spec.kernels.set == KernelSet::native;
  const auto floating = [&](hw::Dtype dtype) {
    return dtype == hw::Dtype::fp32 || dtype == hw::Dtype::bf16 || dtype == (native ? hw::Dtype::fp64 : hw::Dtype::fp16);
  };
  const char* types = native ? "native kernels compute in fp64, fp32 and bf16" : "must be fp32, bf16 or fp16; fp64 with native kernels alone";
  require(floating(spec.precision.param), "/precision/param", types);
  require(floating(spec.precision.reduce), "/precision/reduce", types);
  require(floating(spec.precision.master), "/precision/master", types);
}

}  // namespace

void validate(const StepSpec& spec, int steps) {
  in_range(steps, 1, 1'000'000, "/run/steps");
  check_model(spec.model);
  check_batch(spec);
  check_policy(spec);
  check_kernels(spec);
  in_range(spec.recompute.every, 1, 4096, "/recompute/every");
  require(spec.recompute.share >= 0 && spec.recompute.share <= 1, "/recompute/share", "is not between 0 and 1");
  if (const auto broken = broken_rule(spec)) refuse(broken->key, broken->what, broken->hint);
  // Ops of one step: about 400 per block and micro-batch, 20 bytes each.
  in_range(spec.model.layers * spec.batch.grad_accum, 1, 1 << 15, "/batch/grad_accum");
}

}  // namespace stepcast::program
