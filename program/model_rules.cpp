// Rules about the model and about what the kernels of a step can do for it. See validate.hpp; test: tests/unit/model_rules_test.cpp.
#include "program/validate.hpp"
#include "program/wrapping.hpp"

namespace stepcast::program {
namespace {

using Broken = std::optional<BrokenRule>;

constexpr std::int64_t kMaxExperts = 1024;

Broken experts_rule(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  if (m.experts == 0) {
    if (m.active_experts > 0) return BrokenRule{"/model/experts/active", "needs a count of experts", "set /model/experts/count"};
    return {};
  }
  if (m.experts > kMaxExperts) return BrokenRule{"/model/experts/count", "is above " + std::to_string(kMaxExperts), ""};
  if (m.active_experts < 1 || m.active_experts > m.experts)
    return BrokenRule{"/model/experts/active", "must be from 1 to the count of experts, " + std::to_string(m.experts),
                      "the experts that each token is routed to"};
  if (m.fused_gate_up) return BrokenRule{"/model/fused_gate_up", "experts have a gate and an up projection of their own", "use false"};
  if (spec.kernels.set == KernelSet::fixed) return {};
  if (tokens(spec.batch) * m.active_experts < m.experts)
    return BrokenRule{"/model/experts/count", "more experts than routed tokens: some would have no work", "use a larger micro-batch"};
  if (spec.kernels.set == KernelSet::pytorch_compile && m.layout != BlockLayout::sequential)
    return BrokenRule{"/kernels/set", "compiled experts are known for the layout \"sequential\" only", "use \"pytorch-eager\""};
  return {};
}

/// Flash-attention takes a window since version 2.3 and a soft cap since 2.6; the others have neither.
Broken attention_rule(const StepSpec& spec) {
  const Attention kernel = spec.kernels.attention;
  const bool able = kernel == Attention::flash2 || kernel == Attention::flash3 || kernel == Attention::unfused;
  bool windowed = false;
  for (std::int64_t block = 0; block < spec.model.layers; ++block) windowed = windowed || window_of(spec.model, block, spec.batch.seq_len) > 0;
  if (windowed && !able)
    return BrokenRule{"/kernels/attention", "has no sliding window, which the model has",
                      "use \"flash2\", \"flash3\" or \"unfused\", or /model/sliding_window \"none\""};
  if (spec.model.attention_softcap && !able)
    return BrokenRule{"/kernels/attention", "does not cap the scores, as the model does",
                      "use \"flash2\", \"flash3\" or \"unfused\", or /model/softcaps/attention false"};
  if (windowed && kernel != Attention::unfused && !spec.kernels.causal_skip)
    return BrokenRule{"/kernels/causal_skip", "fused attention always skips what lies outside a sliding window", "use true"};
  return {};
}

Broken dropout_rule(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  if (!m.attention_dropout && !m.hidden_dropout) return {};
  const char* key = m.attention_dropout ? "/model/dropout/attention" : "/model/dropout/hidden";
  if (spec.kernels.set == KernelSet::fixed || spec.kernels.set == KernelSet::native)
    return BrokenRule{key, "neither fixed costs nor native kernels have dropout", "leave it out"};
  if (spec.kernels.set == KernelSet::pytorch_compile) return BrokenRule{key, "what a compiled graph makes of dropout is not known", "use \"pytorch-eager\""};
  if (m.attention_dropout && spec.kernels.attention != Attention::unfused)
    return BrokenRule{key, "what it costs inside fused attention is not known", "use /kernels/attention \"unfused\", or false"};
  if (m.hidden_dropout && m.layout != BlockLayout::sequential)
    return BrokenRule{"/model/dropout/hidden", "is known for the layout \"sequential\" only", "use false"};
  return {};
}

/// The kernels that Megatron-LM fuses are those of a GPT block with learned positions.
Broken megatron_rule(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  if (spec.kernels.set != KernelSet::megatron) return {};
  const bool gpt = m.style == BlockStyle::gpt && m.norm == NormKind::layer_norm && m.ffn_kind == FfnKind::gelu && m.positions == Positions::learned;
  if (gpt && m.layout == BlockLayout::sequential && m.experts == 0 && !m.clip_qkv && !m.attention_softcap && !m.sliding_window) return {};
  return BrokenRule{"/kernels/set", "\"megatron\" is known for GPT blocks (style gpt, LayerNorm, GELU, learned positions) only", "use \"pytorch-eager\""};
}

Broken adapter_rule(const StepSpec& spec) {
  const char* key = "/model/lora_rank";
  if (spec.model.lora_rank == 0) {
    if (spec.model.lora_targets == LoraTargets::query_value) return {};
    return BrokenRule{"/model/lora_targets", "there are no adapters", "set /model/lora_rank"};
  }
  if (spec.policy.framework == Framework::fsdp1 && !spec.policy.use_orig_params)
    return BrokenRule{key, "frozen and trained parameters share a flat parameter only with use_orig_params", "set /policy/use_orig_params"};
  if (spec.policy.framework == Framework::fsdp1 && (spec.policy.sharding == Sharding::no_shard || spec.world.ranks() == 1))
    return BrokenRule{key, "adapters are not known for an fsdp1 that shards nothing", "use framework \"ddp\""};
  if (spec.model.experts > 0) return BrokenRule{key, "adapters are not known for experts", "leave it out"};
  if (in_fp8(spec.precision))
    return BrokenRule{key, "neither torchao's nor Transformer Engine's fp8 layers have adapters in PEFT or torchtune", "leave /precision/matmul out"};
  if (spec.kernels.set == KernelSet::megatron) return BrokenRule{key, "adapters are not known for \"megatron\"", "use \"pytorch-eager\""};
  if (spec.kernels.set == KernelSet::fixed) return BrokenRule{key, "fixed costs have no adapters", "leave it out"};
  return {};
}

/// Whether a flat parameter would hold frozen and trained tensors.
bool mixes_frozen(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  const Wrapping wrapping = wrapping_of(spec);
  if (!wrapping.blocks && m.frozen_blocks != (m.frozen_head || wrapping.ends ? m.layers : 0)) return true;
  if (!wrapping.ends && m.frozen_embedding != m.frozen_head) return true;
  return wrapping.blocks && m.frozen_blocks < m.layers && m.frozen_blocks % spec.policy.blocks_per_unit != 0;
}

Broken frozen_rule(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  if (!has_frozen_parts(m)) return {};
  if (m.lora_rank > 0) return BrokenRule{"/model/frozen", "with adapters everything else is frozen already", "leave it out"};
  if (m.frozen_blocks > m.layers) return BrokenRule{"/model/frozen/blocks", "is above layers = " + std::to_string(m.layers), ""};
  if (m.frozen_embedding && m.frozen_head && m.frozen_blocks == m.layers) return BrokenRule{"/model/frozen", "nothing is left to train", ""};
  if (m.tied_embeddings && m.frozen_embedding != m.frozen_head)
    return BrokenRule{"/model/frozen", "tied embeddings are one parameter: both ends are frozen or none", "set embedding and head alike"};
  if (spec.kernels.set == KernelSet::fixed) return BrokenRule{"/model/frozen", "fixed costs know no parameters", "leave it out"};
  const bool fsdp1 = spec.policy.framework == Framework::fsdp1;
  if (fsdp1 && (spec.policy.sharding == Sharding::no_shard || spec.world.ranks() == 1))
    return BrokenRule{"/model/frozen", "is not known for an fsdp1 that shards nothing", "use framework \"ddp\""};
  if (fsdp1 && !spec.policy.use_orig_params && mixes_frozen(spec))
    return BrokenRule{"/model/frozen", "frozen and trained parameters share a flat parameter only with use_orig_params", "set /policy/use_orig_params"};
  if (m.frozen_embedding && spec.recompute.mode != RecomputeMode::none && spec.recompute.reentrant)
    return BrokenRule{"/recompute/reentrant", "reentrant checkpointing trains no block whose input needs no gradient", "use false"};
  return {};
}

}  // namespace

std::optional<BrokenRule> broken_model_rule(const StepSpec& spec) {
  const ModelShape& m = spec.model;
  if (m.full_attention_every > 0 && !m.sliding_window)
    return BrokenRule{"/model/full_attention_every", "belongs to a sliding window", "set /model/sliding_window"};
  if (m.fused_gate_up && m.ffn_kind == FfnKind::gelu) return BrokenRule{"/model/fused_gate_up", "\"gelu\" has no gate", "use false"};
  if (m.norm_bias && m.norm == NormKind::rms_norm) return BrokenRule{"/model/biases/norm", "\"rms_norm\" has no bias", "use false"};
  if (Broken broken = experts_rule(spec)) return broken;
  if (Broken broken = dropout_rule(spec)) return broken;
  if (Broken broken = megatron_rule(spec)) return broken;
  if (Broken broken = adapter_rule(spec)) return broken;
  if (Broken broken = frozen_rule(spec)) return broken;
  return spec.kernels.set == KernelSet::fixed ? Broken{} : attention_rule(spec);
}

}  // namespace stepcast::program
