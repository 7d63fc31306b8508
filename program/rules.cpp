// Rules between settings of the policy, recomputation and kernels. See validate.hpp; test: tests/unit/build_test.cpp.
#include "program/groups.hpp"
#include "program/units.hpp"
#include "program/validate.hpp"

namespace stepcast::program {
namespace {

using Broken = std::optional<BrokenRule>;

/// More chunks of the loss than any model has; keeps programs small.
constexpr std::int64_t kMaxChunks = 1024;

Broken shard_group_rule(const StepSpec& spec) {
  const std::int64_t node = spec.world.ranks_per_node, world = spec.world.ranks();
  const char* key = "/policy/shard_group_size";
  if (!is_hybrid(spec.policy.sharding)) {
    if (spec.policy.shard_group_size) return BrokenRule{key, "belongs to hybrid sharding", "use sharding \"HYBRID_SHARD\" or \"_HYBRID_SHARD_ZERO2\""};
    return {};
  }
  if (world == 1) return {};
  const std::int64_t size = hybrid_shard_size(spec);
  if (size < 2) return BrokenRule{key, "a shard group of one rank shards nothing", "use sharding \"NO_SHARD\""};
  const bool part_of_node = size <= node && node % size == 0, whole_nodes = size % node == 0 && size <= world && world % size == 0;
  if (part_of_node || whole_nodes) return {};
  return BrokenRule{key,
                    std::to_string(size) + " neither divides the " + std::to_string(node) + " ranks of a node nor is a multiple of them that divides all " +
                        std::to_string(world),
                    ""};
}

Broken per_op_rule(const StepSpec& spec) {
  const Recompute& r = spec.recompute;
  const bool fused = spec.kernels.attention != Attention::unfused;
  if (r.ops == RecomputeOps::attention && fused)
    return BrokenRule{"/recompute/ops", "\"attention\" drops what only unfused attention keeps", "fused attention recomputes its scores by itself"};
  if (r.ops == RecomputeOps::all_but_attention && !fused)
    return BrokenRule{"/recompute/ops", "\"all_but_attention\" keeps the output of fused attention", "set /kernels/attention, or use \"attention\""};
  if (r.reentrant) return BrokenRule{"/recompute/reentrant", "recomputation of chosen kernels is non-reentrant", ""};
  if (r.nesting == Nesting::outside) return BrokenRule{"/recompute/nesting", "recomputation of chosen kernels stands inside the unit", ""};
  return {};
}

Broken recompute_rule(const StepSpec& spec) {
  const Recompute& r = spec.recompute;
  if (r.mode == RecomputeMode::none) return {};
  if (r.mode == RecomputeMode::per_op) return per_op_rule(spec);
  if (r.nesting == Nesting::inside) return {};
  if (spec.policy.wrap == Wrap::model || blocks_per_unit(spec) != 1)
    return BrokenRule{"/recompute/nesting", "\"outside\" is known for units of one block only", "use \"inside\""};
  if (!r.reentrant && spec.policy.release == Release::before_2_1)
    return BrokenRule{"/recompute/nesting", "non-reentrant checkpointing around a unit fails before release 2.1, whose hooks do not know a recomputation",
                      "use \"inside\", or reentrant"};
  return {};
}

Broken kernel_rule(const StepSpec& spec) {
  const KernelChoice& kernels = spec.kernels;
  if (kernels.loss == Loss::chunked && spec.model.vocab > kMaxChunks * spec.model.hidden)
    return BrokenRule{"/kernels/loss", "\"chunked\" would take more than " + std::to_string(kMaxChunks) + " chunks, vocab / hidden", "use \"fused\""};
  if (kernels.loss == Loss::chunked && kernels.keep_logits)
    return BrokenRule{"/kernels/keep_logits", "a chunked loss makes no logits that could be kept", "leave it out"};
  if (kernels.expand_kv) return {};
  const char* key = "/kernels/expand_kv";
  if (spec.model.style != BlockStyle::llama) return BrokenRule{key, "a gpt block never expands keys and values", "leave it out"};
  if (spec.model.kv_heads == spec.model.heads) return BrokenRule{key, "the model has a key and a value for every query head", "leave it out"};
  if (kernels.attention == Attention::unfused) return BrokenRule{key, "unfused attention needs keys and values for every query head", "leave it out"};
  return {};
}

}  // namespace

std::optional<BrokenRule> broken_rule(const StepSpec& spec) {
  if (spec.optimizer.clip_host_sync && !spec.optimizer.clip_grad_norm)
    return BrokenRule{"/optimizer/clip_host_sync", "belongs to clip_grad_norm, which is false", "leave it out"};
  if (spec.optimizer.clip_host_sync && spec.policy.cpu_offload != CpuOffload::none)
    return BrokenRule{"/optimizer/clip_host_sync", "with cpu_offload the host reads the norm anyway", "leave it out"};
  if (spec.optimizer.clip_host_sync && spec.kernels.set == KernelSet::fixed)
    return BrokenRule{"/optimizer/clip_host_sync", "fixed costs have no clipping", "leave it out"};
  if (Broken broken = shard_group_rule(spec)) return broken;
  if (Broken broken = broken_framework_rule(spec)) return broken;
  if (Broken broken = broken_model_rule(spec)) return broken;
  if (spec.policy.wrap == Wrap::embedding_and_head && spec.model.tied_embeddings)
    return BrokenRule{"/policy/wrap", "\"embedding_and_head\" with tied embeddings: a shared parameter must belong to one unit", "use \"blocks\""};
  if (Broken broken = kernel_rule(spec)) return broken;
  return recompute_rule(spec);
}

}  // namespace stepcast::program
