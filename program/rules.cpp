// Rules between settings of the policy, recomputation and kernels. See validate.hpp; test: tests/unit/build_test.cpp.
#include "program/groups.hpp"
#include "program/model.hpp"
#include "program/units.hpp"
#include "program/validate.hpp"
#include "program/wrapping.hpp"

namespace stepcast::program {
namespace {

using Broken = std::optional<BrokenRule>;

/// More chunks of the loss than any model has; keeps programs small.
constexpr std::int64_t kMaxChunks = 1024;

Broken shard_group_rule(const StepSpec& spec) {
  const std::int64_t node = spec.world.ranks_per_node, world = spec.world.ranks();
  const char* key = "/policy/shard_group_size";
  const bool zero1 = spec.policy.framework == Framework::zero1;
  if (!is_hybrid(spec.policy.sharding) && !zero1) {
    if (spec.policy.shard_group_size)
      return BrokenRule{key, "belongs to hybrid sharding and to \"zero1\"", "use sharding \"HYBRID_SHARD\" or \"_HYBRID_SHARD_ZERO2\""};
    return {};
  }
  if (world == 1 || (zero1 && !spec.policy.shard_group_size)) return {};
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

/// A checkpoint of a block with units inside of it stands around them.
Broken inner_recompute_rule(const StepSpec& spec) {
  const Recompute& r = spec.recompute;
  if (r.mode == RecomputeMode::per_op)  // the attention's core has no parameters, and so no unit's hooks
    return r.ops == RecomputeOps::attention ? Broken{}
                                            : BrokenRule{"/recompute/ops", "hooks of units inside a block whose kernels are kept are not supported yet",
                                                         "recompute whole blocks, or use whole blocks as units"};
  if (r.nesting == Nesting::inside)
    return BrokenRule{"/recompute/nesting", "the checkpoint of a block stands around the units inside of it", "use \"outside\""};
  if (spec.model.experts > 0)
    return BrokenRule{"/recompute/mode", "is not known for units inside a block with experts, whose first kernels of the backward are no unit's",
                      "use whole blocks as units"};
  if (spec.policy.framework == Framework::fsdp2 && spec.policy.forward_prefetch_depth > 0)
    return BrokenRule{"/policy/forward_prefetch_depth", "in a recomputation the lists would gather units whose backward is over", "leave it out"};
  return {};
}

Broken recompute_rule(const StepSpec& spec) {
  const Recompute& r = spec.recompute;
  if (r.mode == RecomputeMode::none) return {};
  const Wrapping wrapping = wrapping_of(spec);
  if (!wrapping.inner.empty()) {
    if (Broken broken = inner_recompute_rule(spec)) return broken;
  }
  if (r.mode == RecomputeMode::per_op) return per_op_rule(spec);
  if (r.nesting == Nesting::inside) return {};
  if (wrapping.inner.empty() && (!wrapping.blocks || spec.policy.blocks_per_unit != 1))
    return BrokenRule{"/recompute/nesting", "\"outside\" is known for units of one block, or inside a block", "use \"inside\""};
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
  if (kernels.train_metrics > 0 && !kernels.keep_logits)
    return BrokenRule{"/kernels/train_metrics", "are taken of logits that are kept", "set /kernels/keep_logits"};
  if (kernels.train_metrics > 0 && (kernels.set == KernelSet::fixed || kernels.set == KernelSet::native))
    return BrokenRule{"/kernels/train_metrics", "neither fixed costs nor native kernels have metrics", "leave it out"};
  if (kernels.rope != RopeKernels::rotate_half) {
    if (spec.model.positions != Positions::rope) return BrokenRule{"/kernels/rope", "the model has no rotary positions", "leave it out"};
    if (kernels.set != KernelSet::pytorch_eager) return BrokenRule{"/kernels/rope", "is for eager blocks", "leave it out"};
  }
  if (kernels.expand_kv) return {};
  const char* key = "/kernels/expand_kv";
  if (spec.model.style != BlockStyle::llama) return BrokenRule{key, "a gpt block never expands keys and values", "leave it out"};
  if (spec.model.kv_heads == spec.model.heads) return BrokenRule{key, "the model has a key and a value for every query head", "leave it out"};
  if (kernels.attention == Attention::unfused) return BrokenRule{key, "unfused attention needs keys and values for every query head", "leave it out"};
  return {};
}

Broken wrap_rule(const StepSpec& spec) {
  const Wrap wrap = spec.policy.wrap;
  if (wrap == Wrap::embedding_and_head && spec.model.tied_embeddings)
    return BrokenRule{"/policy/wrap", "\"embedding_and_head\" with tied embeddings: a shared parameter must belong to one unit", "use \"blocks\""};
  if (spec.policy.blocks_per_unit != 1 && wrap != Wrap::blocks && wrap != Wrap::embedding_and_head)
    return BrokenRule{"/policy/blocks_per_unit", "belongs to wrap \"blocks\" and \"embedding_and_head\"", "leave it out"};
  if (spec.kernels.set == KernelSet::fixed && !wrapping_of(spec).inner.empty())
    return BrokenRule{"/policy/wrap", "fixed costs are those of whole blocks", "use \"blocks\""};
  return {};
}

bool multiple_of_16(std::int64_t size) { return size % 16 == 0; }

Broken fp8_rule(const StepSpec& spec) {
  const Precision& precision = spec.precision;
  const ModelShape& m = spec.model;
  if (precision.param != hw::Dtype::bf16) return BrokenRule{"/precision/matmul", "fp8 products stand between bf16 activations", "use param \"bf16\""};
  if (m.experts > 0 && (precision.matmul == Matmul::fp8_delayed || precision.matmul == Matmul::fp8_blockwise))
    return BrokenRule{"/precision/matmul", "Transformer Engine multiplies experts in groups, of which there are no figures",
                      "use \"fp8-tensorwise\" or \"fp8-rowwise\""};
  if (!multiple_of_16(m.hidden) || !multiple_of_16(m.ffn) || !multiple_of_16(query_width(m)) || !multiple_of_16(kv_width(m)) ||
      !multiple_of_16(tokens(spec.batch)))
    return BrokenRule{"/precision/matmul", "fp8 products need tokens, hidden, ffn and the widths of heads to be multiples of 16", ""};
  if (precision.matmul == Matmul::fp8_blockwise && tokens(spec.batch) % 128 != 0)
    return BrokenRule{"/precision/matmul", "blocks of 128 x 128 need a multiple of 128 tokens", "change the micro-batch"};
  if (!precision.fp8_all_gather) return {};
  if (spec.policy.framework != Framework::fsdp2) return BrokenRule{"/precision/fp8_all_gather", "belongs to fsdp2", "leave it out"};
  if (precision.matmul != Matmul::fp8_tensorwise)
    return BrokenRule{"/precision/fp8_all_gather", "needs one scale per tensor, found anew", "use \"fp8-tensorwise\""};
  if (precision.master == precision.param) return BrokenRule{"/precision/fp8_all_gather", "casts fp32 shards", "use master \"fp32\""};
  if (spec.policy.cpu_offload != CpuOffload::none) return BrokenRule{"/precision/fp8_all_gather", "is not known with cpu_offload", "leave it out"};
  return {};
}

Broken precision_rule(const StepSpec& spec) {
  const Precision& precision = spec.precision;
  if (in_fp8(precision)) {
    if (spec.kernels.set == KernelSet::fixed) return BrokenRule{"/precision/matmul", "fixed costs have no products", "leave it out"};
    if (Broken broken = fp8_rule(spec)) return broken;
  } else if (precision.fp8_all_gather) {
    return BrokenRule{"/precision/fp8_all_gather", "the products are not in fp8", "set /precision/matmul"};
  }
  if (precision.matmul == Matmul::tf32 && precision.param != hw::Dtype::fp32)
    return BrokenRule{"/precision/matmul", "\"tf32\" is a way to multiply fp32", "use param \"fp32\""};
  if (!precision.grad_scaler) return {};
  const char* key = "/precision/grad_scaler";
  if (precision.param != hw::Dtype::fp16) return BrokenRule{key, "only fp16 gradients need their loss scaled", "leave it out"};
  if (is_zero(spec.policy.framework)) return BrokenRule{key, "ZeRO scales fp16 by itself", "leave it out"};
  if (spec.policy.cpu_offload != CpuOffload::none) return BrokenRule{key, "is not known with cpu_offload", "leave it out"};
  if (spec.kernels.set == KernelSet::fixed) return BrokenRule{key, "fixed costs have no such kernels", "leave it out"};
  return {};
}

/// Whose hooks see a reduced gradient while the backward runs.
Broken in_backward_framework_rule(const StepSpec& spec) {
  const char* key = "/optimizer/in_backward";
  const Policy& p = spec.policy;
  if (p.framework == Framework::fsdp1)
    return BrokenRule{key, "\"fsdp1\" gives its flat parameters their gradients when the backward is over", "use \"fsdp2\", or \"ddp\" on one rank"};
  if (is_zero(p.framework)) return BrokenRule{key, "DeepSpeed steps when the backward is over", "use \"fsdp2\", or \"ddp\" on one rank"};
  if (p.cpu_offload != CpuOffload::none) return BrokenRule{key, "hooks would run before a gradient has reached the host", "leave cpu_offload out"};
  if (p.framework == Framework::fsdp2) return {};
  if (spec.world.ranks() > 1) return BrokenRule{key, "hooks of parameters run before \"ddp\" has reduced their gradients", "use \"fsdp2\""};
  if (p.bucket_cap) return BrokenRule{"/policy/bucket_cap", "one rank whose optimizer is in the backward has no buckets", "leave it out"};
  if (p.gradient_as_bucket_view)
    return BrokenRule{"/policy/gradient_as_bucket_view", "one rank whose optimizer is in the backward has no buckets", "leave it out"};
  return {};
}

/// What a step for each parameter, made as soon as its gradient is there, excludes.
Broken in_backward_rule(const StepSpec& spec) {
  if (!spec.optimizer.in_backward) return {};
  const char* key = "/optimizer/in_backward";
  if (spec.kernels.set == KernelSet::fixed) return BrokenRule{key, "fixed costs have one optimizer for everything", "leave it out"};
  if (Broken broken = in_backward_framework_rule(spec)) return broken;
  if (spec.batch.grad_accum > 1) return BrokenRule{key, "gradients that are used at once can't be accumulated", "use /batch/grad_accum 1"};
  if (spec.optimizer.clip_grad_norm)
    return BrokenRule{key, "the global norm is known only when the backward is over", "set /optimizer/clip_grad_norm to false"};
  if (spec.precision.grad_scaler) return BrokenRule{key, "GradScaler looks through all gradients before any is used", "use bf16"};
  if (!spec.optimizer.zero_grad_set_to_none)
    return BrokenRule{"/optimizer/zero_grad_set_to_none", "an optimizer in the backward gives gradients back", "leave it out"};
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
  if (Broken broken = in_backward_rule(spec)) return broken;
  if (Broken broken = shard_group_rule(spec)) return broken;
  if (Broken broken = broken_framework_rule(spec)) return broken;
  if (Broken broken = broken_model_rule(spec)) return broken;
  if (Broken broken = wrap_rule(spec)) return broken;
  if (spec.kernels.set == KernelSet::native) {
    if (Broken broken = broken_native_rule(spec)) return broken;
  }
  if (Broken broken = kernel_rule(spec)) return broken;
  if (Broken broken = precision_rule(spec)) return broken;
  return recompute_rule(spec);
}

}  // namespace stepcast::program
