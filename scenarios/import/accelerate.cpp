// accelerate's configuration (`accelerate config`): huggingface/accelerate, utils/dataclasses.py, FullyShardedDataParallelPlugin. docs/import.md.
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// A strategy by name or by number, as old configurations have it.
std::string strategy_of(Settings& s, const char* key, const std::string& text) {
  static constexpr const char* kByNumber[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"};
  std::string name = upper(text);
  if (name.size() == 1 && name[0] >= '1' && name[0] <= '5') name = kByNumber[name[0] - '1'];
  if (name == "HYBRID_SHARD_ZERO2" || name == "_HYBRID_SHARD_ZERO2") return "_HYBRID_SHARD_ZERO2";
  for (const char* known : kByNumber) {
    if (name == known) return name;
  }
  s.refuse(key, "is no sharding strategy", "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2");
}

void accelerate_precision(Settings& s, bool fsdp, Draft& draft) {
  const std::string type = s.text("mixed_precision").value_or("no");
  const bool none = type == "no" || type == "false";
  if (!none && type != "bf16" && type != "fp16") s.refuse("mixed_precision", "\"" + type + "\" is not supported yet", "bf16, fp16 or no");
  draft.set("/precision/param", none ? "fp32" : type);
  if (fsdp) draft.set("/precision/reduce", none ? "fp32" : type);
  s.ignore({"downcast_bf16"}, "is for TPUs");
}

void import_sharding1(Settings& s, Draft& draft) {
  for (const char* key : {"fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_reshard_after_forward"}) {
    if (const auto name = s.text(key)) draft.set("/policy/sharding", strategy_of(s, key, *name));
  }
  for (const char* key : {"fsdp_config.fsdp_backward_prefetch", "fsdp_config.fsdp_backward_prefetch_policy"}) {
    const auto name = s.text(key);
    if (!name) continue;
    const std::string way = upper(*name);
    if (way != "BACKWARD_PRE" && way != "BACKWARD_POST" && way != "NO_PREFETCH" && way != "NONE")
      s.refuse(key, "is no prefetch", "BACKWARD_PRE, BACKWARD_POST or NO_PREFETCH");
    draft.set("/policy/backward_prefetch", way == "NO_PREFETCH" ? "NONE" : way);
  }
  draft.maybe("/policy/forward_prefetch", s.flag("fsdp_config.fsdp_forward_prefetch"));
  draft.maybe("/policy/use_orig_params", s.flag("fsdp_config.fsdp_use_orig_params"));
  draft.maybe("/policy/limit_all_gathers", s.flag("fsdp_config.fsdp_limit_all_gathers"));
}

void import_sharding2(Settings& s, Draft& draft) {
  draft.maybe("/policy/reshard_after_forward", s.flag("fsdp_config.fsdp_reshard_after_forward"));
  for (const char* key :
       {"fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_backward_prefetch", "fsdp_config.fsdp_backward_prefetch_policy",
        "fsdp_config.fsdp_forward_prefetch", "fsdp_config.fsdp_use_orig_params", "fsdp_config.fsdp_sync_module_states", "fsdp_config.fsdp_limit_all_gathers"})
    s.ignore(key, "FSDP2 has no such setting; accelerate ignores it");
}

void import_wrapping(Settings& s, Draft& draft) {
  const std::string policy = upper(s.text("fsdp_config.fsdp_auto_wrap_policy").value_or("TRANSFORMER_BASED_WRAP"));
  if (policy == "TRANSFORMER_BASED_WRAP") draft.set("/policy/wrap", "blocks");
  else if (policy == "SIZE_BASED_WRAP") draft.set("/policy/wrap", "size_based");
  else if (policy == "NO_WRAP") draft.set("/policy/wrap", "model");
  else s.refuse("fsdp_config.fsdp_auto_wrap_policy", "is no wrap policy", "TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP");
  const auto size = s.integer("fsdp_config.fsdp_min_num_params", 0, kMaxUnitParameters);
  if (policy == "SIZE_BASED_WRAP") draft.maybe("/policy/min_unit_parameters", size);
  s.ignore({"fsdp_config.fsdp_transformer_layer_cls_to_wrap"}, "names the class of the blocks, which are the units");
}

void accelerate_fsdp(Settings& s, Draft& draft) {
  const bool second = s.integer("fsdp_config.fsdp_version", 1, 2).value_or(1) == 2;
  draft.set("/policy/framework", second ? "fsdp2" : "fsdp1");
  second ? import_sharding2(s, draft) : import_sharding1(s, draft);
  import_wrapping(s, draft);
  if (s.flag("fsdp_config.fsdp_activation_checkpointing").value_or(false)) draft.set("/recompute/mode", "full");
  if (s.flag("fsdp_config.fsdp_offload_params").value_or(false)) draft.set("/policy/cpu_offload", "parameters");
  s.only_neutral({"fsdp_config.fsdp_num_layers_to_checkpoint"}, "checkpointing of some layers is not read here");
  s.ignore({"fsdp_config.fsdp_state_dict_type", "fsdp_config.fsdp_cpu_ram_efficient_loading", "fsdp_config.fsdp_sync_module_states"},
           "concerns loading and saving");
}

void accelerate_parallelism(Settings& s, Draft& draft) {
  s.only_neutral(
      {"parallelism_config.parallelism_config_tp_size", "parallelism_config.parallelism_config_cp_size", "parallelism_config.parallelism_config_sp_size"},
      "tensor and context parallelism are not supported yet");
  const auto replicas = s.integer("parallelism_config.parallelism_config_dp_replicate_size", 1, kMaxRanks);
  const auto shards = s.integer("parallelism_config.parallelism_config_dp_shard_size", 1, kMaxRanks);
  s.ignore({"parallelism_config.parallelism_config_cp_comm_strategy"}, "there is no context parallelism");
  if (!replicas || *replicas == 1) return;
  draft.set("/policy/sharding", "HYBRID_SHARD");
  if (shards && *shards > 1) draft.set("/policy/shard_group_size", *shards);
}

void accelerate_compile(Settings& s, Draft& draft) {
  const std::string backend = upper(s.text("dynamo_config.dynamo_backend").value_or("NO"));
  if (backend == "INDUCTOR") draft.set("/kernels/set", "pytorch-compile");
  else if (backend != "NO" && backend != "FALSE") s.refuse("dynamo_config.dynamo_backend", "\"" + backend + "\" is not supported yet", "INDUCTOR or NO");
  s.ignore({"dynamo_config"}, "how graphs are captured is not modelled beside whether they are compiled");
}

}  // namespace

void import_accelerate(Settings& s, Draft& draft) {
  const std::string type = upper(s.text("distributed_type").value_or("NO"));
  const bool fsdp = type == "FSDP";
  if (type == "DEEPSPEED") s.refuse("distributed_type", "DeepSpeed is configured by its own file", "import DeepSpeed's JSON");
  if (!fsdp && type != "MULTI_GPU") s.refuse("distributed_type", "\"" + type + "\" is not supported yet", "FSDP or MULTI_GPU");
  accelerate_precision(s, fsdp, draft);
  if (fsdp) {
    accelerate_fsdp(s, draft);
    accelerate_parallelism(s, draft);
  } else {
    draft.set("/policy/framework", "ddp");
    s.ignore({"fsdp_config", "parallelism_config"}, "distributed_type is MULTI_GPU");
  }
  accelerate_compile(s, draft);
  draft.machines = s.integer("num_machines", 1, kMaxNodes);
  draft.processes = s.integer("num_processes", 1, kMaxRanks);
  draft.maybe("/batch/grad_accum", s.integer("gradient_accumulation_steps", 1, kMaxAccumulation));
  s.only_neutral({"use_cpu", "megatron_lm_config"}, "is not supported yet");
  s.ignore({"compute_environment",
            "machine_rank",
            "main_process_ip",
            "main_process_port",
            "main_training_function",
            "rdzv_backend",
            "rdzv_endpoint",
            "same_network",
            "deepspeed_config",
            "debug",
            "command_file",
            "commands",
            "gpu_ids",
            "enable_cpu_affinity",
            "mpirun_config",
            "tpu_env",
            "tpu_name",
            "tpu_zone",
            "tpu_use_cluster",
            "tpu_use_sudo",
            "main_process_args"},
           "says how processes are started, not what they do");
}

}  // namespace stepcast::scenarios
