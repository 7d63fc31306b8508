// See settings.hpp. Names and meanings: PyTorch torch/distributed/fsdp, accelerate's FullyShardedDataParallelPlugin, torchtitan's config, DeepSpeed's config-json, llm-foundry's fsdp_config.
#include "cli/tune/settings.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/names.hpp"

namespace stepcast::cli {
namespace {

using program::Framework, program::RecomputeMode, program::Sharding;

const char* python(bool value) { return value ? "True" : "False"; }
const char* flag_text(bool value) { return value ? "true" : "false"; }

const char* torch_type(hw::Dtype type) { return type == hw::Dtype::fp32 ? "torch.float32" : type == hw::Dtype::fp16 ? "torch.float16" : "torch.bfloat16"; }

/// One policy in the terms of both FSDPs.
struct Terms {
  bool hybrid = false, none = false;
  std::int64_t reshard = program::kReshardAfterForward;
  std::string strategy, backward = "BACKWARD_PRE";
  bool forward = false, limiter = true;
};

Terms terms_of(const program::Policy& policy) {
  Terms t;
  t.hybrid = policy.sharding == Sharding::hybrid_shard || policy.sharding == Sharding::hybrid_shard_zero2;
  t.none = policy.sharding == Sharding::no_shard;
  if (policy.framework == Framework::fsdp2) {
    t.reshard = policy.reshard_after_forward;
    const bool kept = t.reshard == program::kKeepAfterForward;
    t.strategy = t.hybrid ? (kept ? "_HYBRID_SHARD_ZERO2" : "HYBRID_SHARD") : kept ? "SHARD_GRAD_OP" : "FULL_SHARD";
    t.forward = policy.forward_prefetch_depth > 0;
    return t;
  }
  if (policy.sharding == Sharding::shard_grad_op || policy.sharding == Sharding::hybrid_shard_zero2) t.reshard = program::kKeepAfterForward;
  t.strategy = spelled(scenarios::kShardings, policy.sharding);
  t.backward = spelled(scenarios::kBackwardPrefetches, policy.backward_prefetch);
  t.forward = policy.forward_prefetch;
  t.limiter = policy.limit_all_gathers;
  return t;
}

std::string reshard_text(const Terms& t, const char* (*flag)(bool)) {
  return t.reshard >= 2 ? std::to_string(t.reshard) : flag(t.reshard == program::kReshardAfterForward);
}

std::string batch_comment(const scenarios::Scenario& s, const char* mark) {
  return fmt::format("{} micro-batch {}, accumulation {}, sequence {}\n", mark, s.batch.micro_batch, s.batch.grad_accum, s.batch.seq_len);
}

/// What a format has no words for must be set in code.
struct Unsaid {
  bool set;
  std::string what;
};

std::string unsaid_comment(const std::vector<Unsaid>& settings) {
  std::string text;
  for (const Unsaid& one : settings) {
    if (one.set) text += "# not said here, set it in code: " + one.what + "\n";
  }
  return text;
}

/// Of settings that none of the three frameworks' files can hold.
std::vector<Unsaid> unsaid_of(const scenarios::Scenario& s, const Terms& t) {
  const program::Policy& p = s.policy;
  return {{p.blocks_per_unit > 1, fmt::format("one unit for every {} blocks", p.blocks_per_unit)},
          {t.reshard >= 2, fmt::format("resharding among {} ranks after the forward", t.reshard)},
          {p.framework == Framework::fsdp2 && (p.forward_prefetch_depth > 0 || p.backward_prefetch_depth > 1),
           fmt::format("prefetch of {} units in the forward, {} in the backward", p.forward_prefetch_depth, p.backward_prefetch_depth)}};
}

std::vector<Unsaid> with(std::vector<Unsaid> settings, std::initializer_list<Unsaid> more) {
  settings.insert(settings.end(), more);
  return settings;
}

std::string recompute_words(const scenarios::Scenario& s) {
  const auto& r = s.recompute;
  if (r.mode == RecomputeMode::every_k) return fmt::format("recomputation of every block out of {}", r.every);
  if (r.mode == RecomputeMode::share) return fmt::format("recomputation of {:.3g} of the blocks", r.share);
  return std::string("recomputation of ") + spelled(scenarios::kRecomputeOps, r.ops);
}

bool in_part(const program::Recompute& r) { return r.mode != RecomputeMode::none && r.mode != RecomputeMode::full; }

/// Which modules are recomputed, in Python.
std::string recomputed_python(const program::Recompute& r) {
  if (r.mode == RecomputeMode::full) return "isinstance(m, Block)";
  if (r.mode == RecomputeMode::every_k) return fmt::format("m in blocks[{}::{}]", r.every - 1, r.every);
  return fmt::format("m in [b for i, b in enumerate(blocks) if int((i + 1) * {0} + 0.5) > int(i * {0} + 0.5)]", r.share);
}

std::string recompute_python(const scenarios::Scenario& s) {
  const auto& r = s.recompute;
  if (r.mode == RecomputeMode::none) return "";
  const std::string head = "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, checkpoint_wrapper\n";
  if (r.mode == RecomputeMode::per_op)
    return "# selective recomputation (torch.utils.checkpoint.create_selective_checkpoint_contexts): " + std::string(spelled(scenarios::kRecomputeOps, r.ops)) +
           "\n";
  return head + fmt::format("apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda m: {})\n", recomputed_python(r));
}

std::string kernels_python(const scenarios::Scenario& s) {
  std::string text =
      fmt::format("# attention: {}; loss: {}\n", spelled(scenarios::kAttentions, s.kernels.attention), spelled(scenarios::kLosses, s.kernels.loss));
  if (s.kernels.set == program::KernelSet::pytorch_compile) text += "for block in blocks: block.compile()\n";
  const char* implementation = s.optimizer.implementation == program::OptimizerImpl::fused     ? "fused=True"
                               : s.optimizer.implementation == program::OptimizerImpl::foreach ? "foreach=True"
                                                                                               : "foreach=False";
  return text + fmt::format("optimizer = torch.optim.AdamW(model.parameters(), {})\n", implementation);
}

std::string units_comment(const scenarios::Scenario& s) {
  if (s.policy.blocks_per_unit > 1) return fmt::format("# one unit for every {} consecutive blocks: wrap lists of them\n", s.policy.blocks_per_unit);
  return s.policy.wrap == program::Wrap::embedding_and_head ? "# embedding and head are units of their own\n" : "";
}

std::string fsdp1(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  std::string text = batch_comment(s, "#") + units_comment(s);
  if (t.reshard >= 2) text += "# FSDP1 has no resharding among a part of the ranks\n";
  text +=
      "import functools, torch\nfrom torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy\n"
      "from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy\n";
  const std::string wrap = s.policy.wrap == program::Wrap::embedding_and_head
                               ? "lambda module, recurse, nonwrapped_numel: recurse or isinstance(module, Block) or module in (embedding, head)"
                               : "functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})";
  const std::string backward = t.backward == "NONE" ? "None" : "BackwardPrefetch." + t.backward;
  text += fmt::format(
      "model = FSDP(\n    model,\n    auto_wrap_policy={},\n    sharding_strategy=ShardingStrategy.{},\n    backward_prefetch={},\n    forward_prefetch={},\n"
      "    limit_all_gathers={},\n    use_orig_params={},\n    mixed_precision=MixedPrecision(param_dtype={}, reduce_dtype={}),\n    "
      "device_id=torch.cuda.current_device(),\n)\n",
      wrap, t.strategy, backward, python(t.forward), python(t.limiter),
      python(s.policy.use_orig_params || s.kernels.set == program::KernelSet::pytorch_compile), torch_type(s.precision.param), torch_type(s.precision.reduce));
  text += recompute_python(s) + kernels_python(s);
  if (s.policy.no_sync) text += "# with model.no_sync(): for all micro-batches but the last\n";
  return text;
}

std::string fsdp2(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  if (t.none) return "# NO_SHARD: FSDP2 always shards; use DistributedDataParallel\n";
  std::string text = batch_comment(s, "#") + units_comment(s) + "import torch\nfrom torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n";
  if (t.hybrid) {
    const std::int64_t shard = s.policy.shard_group_size.value_or(s.cluster.gpus_per_node);
    text += fmt::format("mesh = torch.distributed.init_device_mesh(\"cuda\", ({}, {}), mesh_dim_names=(\"replicate\", \"shard\"))\n",
                        scenarios::ranks(s) / shard, shard);
  }
  text += recompute_python(s);
  const std::string mesh = t.hybrid ? "mesh=mesh, " : "";
  text += fmt::format("policy = MixedPrecisionPolicy(param_dtype={}, reduce_dtype={})\n", torch_type(s.precision.param), torch_type(s.precision.reduce));
  const std::string shard = fmt::format("{}mp_policy=policy, reshard_after_forward={}", mesh, reshard_text(t, python));
  if (s.policy.blocks_per_unit > 1)
    text += fmt::format("for i in range(0, len(blocks), {0}): fully_shard(blocks[i:i + {0}], {1})\n", s.policy.blocks_per_unit, shard);
  else text += fmt::format("for block in blocks: fully_shard(block, {})\n", shard);
  if (s.policy.wrap == program::Wrap::embedding_and_head) text += fmt::format("fully_shard(embedding, {0})\nfully_shard([norm, head], {0})\n", shard);
  text += fmt::format("fully_shard(model, {}mp_policy=policy)\n", mesh);
  const std::int64_t ahead = s.policy.framework == Framework::fsdp2 ? s.policy.forward_prefetch_depth : t.forward ? 1 : 0;
  if (ahead > 0) text += fmt::format("for i, block in enumerate(blocks): block.set_modules_to_forward_prefetch(blocks[i + 1:i + {}])\n", ahead + 1);
  if (s.policy.framework == Framework::fsdp2 && s.policy.backward_prefetch_depth > 1)
    text += fmt::format("for i, block in enumerate(blocks): block.set_modules_to_backward_prefetch(blocks[max(0, i - {}):i][::-1])\n",
                        s.policy.backward_prefetch_depth);
  if (s.policy.no_sync) text += "# model.set_requires_gradient_sync(False) for all micro-batches but the last\n";
  return text + kernels_python(s);
}

const char* mixed(const scenarios::Scenario& s) { return s.precision.param == hw::Dtype::fp16 ? "fp16" : s.precision.param == hw::Dtype::bf16 ? "bf16" : "no"; }

std::string accelerate(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  std::string text = batch_comment(s, "#");
  text += unsaid_comment(
      with(unsaid_of(s, t), {{in_part(s.recompute), recompute_words(s)}, {s.policy.wrap == program::Wrap::embedding_and_head, "embedding and head as units"}}));
  text += fmt::format("distributed_type: FSDP\nmixed_precision: {}\nnum_machines: {}\nnum_processes: {}\nfsdp_config:\n", mixed(s), s.cluster.nodes,
                      scenarios::ranks(s));
  const bool second = s.policy.framework == Framework::fsdp2;
  text += fmt::format("  fsdp_version: {}\n", second ? 2 : 1);
  if (second) text += fmt::format("  fsdp_reshard_after_forward: {}\n", reshard_text(t, flag_text));
  else
    text += fmt::format("  fsdp_sharding_strategy: {}\n  fsdp_backward_prefetch: {}\n  fsdp_forward_prefetch: {}\n  fsdp_use_orig_params: {}\n", t.strategy,
                        t.backward == "NONE" ? "NO_PREFETCH" : t.backward, flag_text(t.forward), flag_text(s.policy.use_orig_params));
  text += fmt::format("  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_activation_checkpointing: {}\n  fsdp_offload_params: false\n",
                      flag_text(s.recompute.mode == RecomputeMode::full));
  if (second && t.hybrid)
    text += fmt::format("parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n  parallelism_config_dp_shard_size: {}\n",
                        scenarios::ranks(s) / s.cluster.gpus_per_node, s.cluster.gpus_per_node);
  if (s.kernels.set == program::KernelSet::pytorch_compile) text += "dynamo_config:\n  dynamo_backend: INDUCTOR\n  dynamo_use_regional_compilation: true\n";
  return text;
}

std::string torchtitan(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  const std::int64_t shard = t.hybrid ? s.policy.shard_group_size.value_or(s.cluster.gpus_per_node) : -1;
  const bool other_ops = s.recompute.mode == RecomputeMode::per_op && s.recompute.ops != program::RecomputeOps::all_but_every_second_matmul;
  std::string text = unsaid_comment(with(unsaid_of(s, t), {{other_ops, recompute_words(s) + " (\"op\" below is torchtitan's own list)"},
                                                           {s.recompute.mode == RecomputeMode::share, recompute_words(s) + " (\"full\" below is all)"}}));
  text += fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n", s.batch.micro_batch,
                      s.batch.micro_batch * s.batch.grad_accum * scenarios::ranks(s), s.batch.seq_len);
  text += fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"{}\"\n", s.precision.param == hw::Dtype::fp32 ? "float32" : "bfloat16",
                      s.precision.reduce == hw::Dtype::fp32 ? "float32" : "bfloat16");
  text += fmt::format("[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\nfsdp_reshard_after_forward = \"{}\"\n",
                      t.hybrid ? scenarios::ranks(s) / shard : 1, shard, t.reshard == program::kKeepAfterForward ? "never" : "always");
  const auto& r = s.recompute;
  text += "[activation_checkpoint]\n";
  if (r.mode == RecomputeMode::every_k) text += fmt::format("mode = \"selective\"\nselective_ac_option = \"{}\"\n", r.every);
  else if (r.mode == RecomputeMode::per_op) text += "mode = \"selective\"\nselective_ac_option = \"op\"\n";
  else text += fmt::format("mode = \"{}\"\n", r.mode == RecomputeMode::none ? "none" : "full");
  text += fmt::format("[compile]\nenable = {}\n[optimizer]\nimplementation = \"{}\"\n", flag_text(s.kernels.set == program::KernelSet::pytorch_compile),
                      spelled(scenarios::kOptimizerImpls, s.optimizer.implementation));
  return text;
}

/// The nearest of DeepSpeed's stages: parameters resharded after the forward are stage 3's, kept ones stage 2's.
std::string deepspeed(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  nlohmann::ordered_json json = {{"train_micro_batch_size_per_gpu", s.batch.micro_batch}, {"gradient_accumulation_steps", s.batch.grad_accum}};
  if (s.optimizer.clip_grad_norm) json["gradient_clipping"] = 1.0;
  json[s.precision.param == hw::Dtype::fp16 ? "fp16" : "bf16"] = {{"enabled", s.precision.param != hw::Dtype::fp32}};
  const int stage = t.none ? 0 : t.reshard == program::kKeepAfterForward ? 2 : 3;
  json["zero_optimization"] = {{"stage", stage}, {"overlap_comm", true}, {"contiguous_gradients", true}};
  if (t.hybrid && stage == 3) json["zero_optimization"]["zero_hpz_partition_size"] = s.cluster.gpus_per_node;
  return json.dump(2) + "\n";
}

std::string llm_foundry(const scenarios::Scenario& s) {
  const Terms t = terms_of(s.policy);
  std::string text = unsaid_comment(
      with(unsaid_of(s, t), {{in_part(s.recompute), recompute_words(s)}, {s.policy.wrap == program::Wrap::embedding_and_head, "embedding and head as units"}}));
  text += fmt::format("max_seq_len: {}\nglobal_train_batch_size: {}\ndevice_train_microbatch_size: {}\nprecision: {}\nfsdp_config:\n", s.batch.seq_len,
                      s.batch.micro_batch * s.batch.grad_accum * scenarios::ranks(s), s.batch.micro_batch,
                      s.precision.param == hw::Dtype::fp32 ? "fp32" : "amp_bf16");
  text += fmt::format(
      "  sharding_strategy: {}\n  mixed_precision: {}\n  activation_checkpointing: {}\n  activation_checkpointing_reentrant: {}\n  activation_cpu_offload: "
      "false\n",
      t.strategy, s.precision.reduce == hw::Dtype::fp32 ? "DEFAULT" : "PURE", flag_text(s.recompute.mode == RecomputeMode::full),
      flag_text(s.recompute.reentrant));
  text += fmt::format("  limit_all_gathers: {}\n  backward_prefetch: {}\n  forward_prefetch: {}\n", flag_text(t.limiter), t.backward, flag_text(t.forward));
  if (s.kernels.set == program::KernelSet::pytorch_compile) text += "compile_config: {}\n";
  return text;
}

std::string environment(const scenarios::Scenario& s) {
  std::string options;
  const auto add = [&](const std::string& text) { options += (options.empty() ? "" : ",") + text; };
  if (s.allocator.expandable_segments) add("expandable_segments:True");
  if (s.allocator.max_split_size) add(fmt::format("max_split_size_mb:{}", *s.allocator.max_split_size >> 20));
  if (s.allocator.roundup_power2_divisions > 0) add(fmt::format("roundup_power2_divisions:{}", s.allocator.roundup_power2_divisions));
  if (s.allocator.garbage_collection_threshold > 0) add(fmt::format("garbage_collection_threshold:{:g}", s.allocator.garbage_collection_threshold));
  std::string text = options.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF\n" : "export PYTORCH_CUDA_ALLOC_CONF=" + options + "\n";
  if (s.host.cuda_device_max_connections == 1) text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_to_paste(const scenarios::Scenario& s) {
  return {{"fsdp1", fsdp1(s)},
          {"fsdp2", fsdp2(s)},
          {"accelerate", accelerate(s)},
          {"torchtitan", torchtitan(s)},
          {"deepspeed", deepspeed(s)},
          {"llm_foundry", llm_foundry(s)},
          {"environment", environment(s)}};
}

}  // namespace stepcast::cli
