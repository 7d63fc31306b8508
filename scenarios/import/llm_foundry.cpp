// llm-foundry's YAML: mosaicml/llm-foundry, scripts/train/train.py, and Composer's fsdp_config. docs/import.md.
#include <fmt/format.h>

#include "scenarios/hf_config.hpp"
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

/// MPT's sizes are read as those of an MPT config.json.
void llm_foundry_model(Settings& s, Draft& draft) {
  const Json* section = s.object("model");
  if (!section) return;
  const std::string name = s.text("model.name").value_or("mpt_causal_lm");
  s.ignore({"model.init_device", "model.pretrained", "model.init_config", "model.use_auth_token", "model.config_overrides.max_seq_len", "model.tokenizer_name",
            "model.loss_fn"},
           "does not change the cost of a step");
  if (name != "mpt_causal_lm") {
    if (const auto path = s.text("model.pretrained_model_name_or_path"))
      set_model(s, "model.pretrained_model_name_or_path", path->substr(path->find('/') + 1), draft);
    return;
  }
  Json model = *section;
  for (const char* key : {"name", "init_device", "pretrained", "init_config", "use_auth_token", "loss_fn", "tokenizer_name"}) model.erase(key);
  model["model_type"] = "mpt";
  if (!model.contains("max_seq_len") || model["max_seq_len"].is_string()) model["max_seq_len"] = s.integer("max_seq_len", 1, kMaxSequence).value_or(2048);
  const ImportedModel imported = import_hf_config(model.dump(), s.file());
  Scenario shape_only;
  shape_only.model = imported.shape;
  draft.document["model"] = to_json(shape_only)["model"];
  draft.set("/model/name", "mpt");
  draft.own_model = true;
  for (const std::string& warning : imported.warnings) {
    if (warning.find("not known") != std::string::npos) s.refuse("model", warning);
    s.ignore("model", warning);
  }
  const std::string attention = s.text("model.attn_config.attn_impl").value_or("flash");
  if (attention == "flash") draft.set("/kernels/attention", "flash2");
  else if (attention == "triton") draft.set("/kernels/attention", "triton");
  else if (attention == "torch") draft.set("/kernels/attention", "unfused");
  else s.refuse("model.attn_config.attn_impl", "\"" + attention + "\" is not supported yet", "flash, triton or torch");
}

void llm_foundry_batch(Settings& s, Draft& draft) {
  draft.maybe("/batch/seq_len", s.integer("max_seq_len", 1, kMaxSequence));
  draft.global_batch = s.integer("global_train_batch_size", 1, std::int64_t{1} << 40);
  for (const char* key : {"device_train_microbatch_size", "device_train_grad_accum"}) {
    const bool micro = std::string_view(key) == "device_train_microbatch_size";
    draft.maybe(micro ? "/batch/micro_batch" : "/batch/grad_accum", s.integer(key, 1, micro ? kMaxMicroBatch : kMaxAccumulation));
  }
}

/// PURE reduces in 16 bits, DEFAULT in fp32; FULL computes in fp32.
void llm_foundry_precision(Settings& s, Draft& draft) {
  const std::string precision = s.text("precision").value_or("amp_bf16");
  if (precision != "amp_bf16" && precision != "amp_fp16" && precision != "fp32")
    s.refuse("precision", "\"" + precision + "\" is not supported yet", "amp_bf16, amp_fp16 or fp32");
  const std::string type = precision == "amp_bf16" ? "bf16" : precision == "amp_fp16" ? "fp16" : "fp32";
  const std::string mixed = s.text("fsdp_config.mixed_precision").value_or("DEFAULT");
  if (mixed != "PURE" && mixed != "DEFAULT" && mixed != "FULL")
    s.refuse("fsdp_config.mixed_precision", "\"" + mixed + "\" is not supported yet", "PURE, DEFAULT or FULL");
  if (mixed == "FULL") s.refuse("fsdp_config.mixed_precision", "FULL gathers in fp32 and computes in 16 bits, which is not supported yet", "PURE or DEFAULT");
  draft.set("/precision/param", type);
  draft.set("/precision/reduce", mixed == "PURE" ? type : "fp32");
}

void llm_foundry_fsdp(Settings& s, Draft& draft) {
  draft.set("/policy/framework", "fsdp1");
  const std::string sharding = s.text("fsdp_config.sharding_strategy").value_or("FULL_SHARD");
  for (const char* known : {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) {
    if (sharding == known) draft.set("/policy/sharding", sharding);
  }
  if (!draft.document["policy"].contains("sharding"))
    s.refuse("fsdp_config.sharding_strategy", "is unknown", "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD");
  draft.maybe("/policy/limit_all_gathers", s.flag("fsdp_config.limit_all_gathers"));
  draft.maybe("/policy/forward_prefetch", s.flag("fsdp_config.forward_prefetch"));
  draft.set("/policy/use_orig_params", s.flag("fsdp_config.use_orig_params").value_or(true));
  const std::string backward = s.text("fsdp_config.backward_prefetch").value_or("BACKWARD_POST");  // Composer's default
  if (backward != "BACKWARD_PRE" && backward != "BACKWARD_POST" && backward != "NONE")
    s.refuse("fsdp_config.backward_prefetch", "is unknown", "BACKWARD_PRE, BACKWARD_POST or NONE");
  draft.set("/policy/backward_prefetch", backward);
  if (s.flag("fsdp_config.cpu_offload").value_or(false)) draft.set("/policy/cpu_offload", "parameters");
  const bool checkpointing = s.flag("fsdp_config.activation_checkpointing").value_or(false);
  const bool reentrant = s.flag("fsdp_config.activation_checkpointing_reentrant").value_or(true);
  if (checkpointing) {
    draft.set("/recompute/mode", "full");
    draft.set("/recompute/reentrant", reentrant);
  }
  s.only_neutral({"fsdp_config.activation_cpu_offload", "fsdp_config.te_checkpoint_wrapper", "fsdp_config.te_shard_fp8_weight"}, "is not supported yet");
  s.ignore({"fsdp_config.state_dict_type", "fsdp_config.load_monolith_rank0_only", "fsdp_config.load_planner", "fsdp_config.save_planner",
            "fsdp_config.sharded_ckpt_prefix_dir", "fsdp_config.sync_module_states", "fsdp_config.verbose", "fsdp_config.keep_low_precision_grads",
            "fsdp_config.flatten_parameters", "fsdp_config.min_params", "fsdp_config.activation_checkpointing_target", "fsdp_config.process_group",
            "fsdp_config.auto_wrap", "fsdp_config.ignored_modules"},
           "concerns loading and saving, or has the value that is modelled");
}

void import_rest(Settings& s, Draft& draft) {
  const std::string optimizer = s.text("optimizer.name").value_or("decoupled_adamw");
  if (optimizer != "decoupled_adamw" && optimizer != "adamw") s.refuse("optimizer.name", "\"" + optimizer + "\" is not supported yet", "decoupled_adamw");
  draft.set("/optimizer/implementation", "for_loop");  // Composer's DecoupledAdamW updates one tensor at a time
  s.ignore({"optimizer"}, "does not change the cost of a step");
  const std::string clipping = s.text("algorithms.gradient_clipping.clipping_type").value_or("none");
  draft.set("/optimizer/clip_grad_norm", clipping == "norm");
  if (clipping != "none" && clipping != "norm") s.refuse("algorithms.gradient_clipping.clipping_type", "\"" + clipping + "\" is not supported yet", "norm");
  s.ignore({"algorithms.gradient_clipping.clipping_threshold"}, "does not change the cost of a step");
  if (s.has("algorithms.low_precision_layernorm")) s.ignore("algorithms.low_precision_layernorm", "norms run in 16 bits here anyway");
  draft.set("/kernels/loss", "fused");      // llm-foundry's default loss is flash-attention's
  draft.set("/kernels/keep_logits", true);  // Composer holds the model's output until the backward is over
  if (s.has("compile_config")) draft.set("/kernels/set", "pytorch-compile");
  s.ignore({"compile_config"}, "how graphs are captured is not modelled beside whether they are compiled");
  draft.maybe("/loader/workers", s.integer("train_loader.num_workers", 0, 1024));
  draft.maybe("/loader/prefetch_factor", s.integer("train_loader.prefetch_factor", 1, 1024));
  draft.maybe("/loader/pin_memory", s.flag("train_loader.pin_memory"));
  s.ignore({"train_loader"}, "which data are read does not change the cost of a step");
}

}  // namespace

void import_llm_foundry(Settings& s, Draft& draft) {
  llm_foundry_batch(s, draft);
  llm_foundry_model(s, draft);
  llm_foundry_precision(s, draft);
  llm_foundry_fsdp(s, draft);
  import_rest(s, draft);
  s.only_neutral({"deepspeed_config", "tp_config"}, "is not supported yet");
  s.ignore({"variables",
            "run_name",
            "name",
            "image",
            "compute",
            "command",
            "integrations",
            "data_local",
            "data_remote",
            "tokenizer",
            "tokenizer_name",
            "seed",
            "global_seed",
            "max_duration",
            "eval_interval",
            "eval_first",
            "eval_loader",
            "eval_subset_num_batches",
            "eval_batches",
            "device_eval_batch_size",
            "icl_tasks",
            "icl_max_seq_len",
            "scheduler",
            "callbacks",
            "loggers",
            "progress_bar",
            "log_to_console",
            "console_log_interval",
            "python_log_level",
            "save_folder",
            "save_interval",
            "save_num_checkpoints_to_keep",
            "save_overwrite",
            "save_filename",
            "load_path",
            "load_weights_only",
            "load_strict_model_weights",
            "autoresume",
            "dist_timeout",
            "expandable_segments",
            "max_split_size_mb",
            "code_paths",
            "profiler"},
           "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
