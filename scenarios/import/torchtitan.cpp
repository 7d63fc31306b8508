// torchtitan's TOML: pytorch/torchtitan, torchtitan/config (job_config.py), and parallelize.py of its Llama 3. Defaults that a file leaves out are torchtitan's. docs/import.md.
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

void torchtitan_model(Settings& s, Draft& draft) {
  const std::string name = s.text("model.name").value_or("llama3");
  if (const auto flavor = s.text("model.flavor")) set_model(s, "model.flavor", name + "_" + *flavor, draft);
  const auto converters = s.texts("model.converters").value_or(std::vector<std::string>{});
  for (const std::string& one : converters) {
    if (one != "float8") s.refuse("model.converters", "\"" + one + "\" is not supported yet", "float8");
    draft.set("/precision/matmul", "fp8-tensorwise");
    if (s.flag("float8.enable_fsdp_float8_all_gather").value_or(false)) draft.set("/precision/fp8_all_gather", true);
    const std::string recipe = s.text("float8.recipe_name").value_or("tensorwise");
    if (recipe != "tensorwise") s.refuse("float8.recipe_name", "\"" + recipe + "\" is not supported yet", "tensorwise");
  }
  s.ignore({"float8", "mx", "quantize"}, converters.empty() ? "no converter asks for it" : "which layers are converted and how is the model's part of fp8");
  s.ignore({"model.norm_type", "model.tokenizer_path", "model.hf_assets_path", "model.print_after_conversion", "model.name"},
           "does not change the cost of a step");
}

/// Sizes of the batch, in the names of all versions.
void import_training(Settings& s, Draft& draft) {
  for (const char* key : {"training.batch_size", "training.local_batch_size"}) draft.maybe("/batch/micro_batch", s.integer(key, 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("training.seq_len", 1, kMaxSequence));
  if (const auto global = s.integer("training.global_batch_size", -1, std::int64_t{1} << 40); global && *global > 0) draft.global_batch = *global;
  draft.maybe("/batch/grad_accum", s.integer("training.gradient_accumulation_steps", 1, kMaxAccumulation));
  draft.set("/optimizer/clip_grad_norm", s.number("training.max_norm").value_or(1.0) > 0);
  const auto type = [&](const char* key, const char* fallback) {
    const std::string name = s.text(key).value_or(fallback);
    if (name != "bfloat16" && name != "float32") s.refuse(key, "\"" + name + "\" is not supported yet", "bfloat16 or float32");
    return name == "bfloat16" ? "bf16" : "fp32";
  };
  draft.set("/precision/param", type("training.mixed_precision_param", "bfloat16"));
  draft.set("/precision/reduce", type("training.mixed_precision_reduce", "float32"));
  draft.set("/precision/master", type("training.dtype", "float32"));
  if (s.flag("training.enable_cpu_offload").value_or(false)) draft.set("/policy/cpu_offload", "parameters");
  s.only_neutral({"training.tensor_parallel_degree", "training.pipeline_parallel_degree", "training.enable_fp8_linear"}, "is not supported yet in this place");
  s.ignore({"training.steps", "training.warmup_steps", "training.dataset", "training.dataset_path", "training.gc_freq", "training.gc_debug", "training.seed",
            "training.deterministic", "training.enable_loss_parallel", "training.disable_loss_parallel", "training.fp8_linear",
            "training.debug_moe_force_load_balance"},
           "does not change the cost of a step");
}

void torchtitan_parallelism(Settings& s, Draft& draft) {
  s.only_neutral({"parallelism.tensor_parallel_degree", "parallelism.pipeline_parallel_degree", "parallelism.context_parallel_degree",
                  "parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree", "experimental.pipeline_parallel_degree",
                  "experimental.context_parallel_degree"},
                 "tensor, pipeline, context and expert parallelism are not supported yet");
  std::int64_t replicas = 1, shards = -1;
  for (const char* key : {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"})
    replicas = s.integer(key, 1, kMaxRanks).value_or(replicas);
  for (const char* key : {"training.data_parallel_degree", "training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"})
    shards = s.integer(key, -1, kMaxRanks).value_or(shards);
  draft.set("/policy/framework", shards == 1 && replicas > 1 ? "ddp" : "fsdp2");
  if (replicas > 1 && shards != 1) {
    draft.set("/policy/sharding", "HYBRID_SHARD");
    if (shards > 1) draft.set("/policy/shard_group_size", shards);
  }
  const std::string reshard = s.text("parallelism.fsdp_reshard_after_forward").value_or("default");
  if (reshard != "default" && reshard != "always" && reshard != "never")
    s.refuse("parallelism.fsdp_reshard_after_forward", "is unknown", "default, always or never");
  if (reshard == "never") draft.set("/policy/reshard_after_forward", false);
  if (replicas == 1 || shards != 1) draft.set("/policy/wrap", "embedding_and_head");
  s.ignore({"parallelism", "comm"}, "belongs to a kind of parallelism that is off");
}

/// Where nothing is said torchtitan recomputes every second block.
void torchtitan_recomputation(Settings& s, Draft& draft) {
  const std::string mode = s.text("activation_checkpoint.mode").value_or("selective"),
                    option = s.text("activation_checkpoint.selective_ac_option").value_or("2");
  if (mode == "none" || mode == "full") {
    draft.set("/recompute/mode", mode);
  } else if (mode != "selective") {
    s.refuse("activation_checkpoint.mode", "\"" + mode + "\" is not supported yet", "none, full or selective");
  } else if (option == "op") {
    draft.set("/recompute/mode", "per_op");
    draft.set("/recompute/ops", "all_but_every_second_matmul");
  } else {
    if (option.empty() || option.size() > 4 || option.find_first_not_of("0123456789") != std::string::npos || std::stoi(option) < 1)
      s.refuse("activation_checkpoint.selective_ac_option", "is neither \"op\" nor a number of blocks");
    draft.set("/recompute/mode", "every_k");
    draft.set("/recompute/every", std::stoi(option));
  }
  s.ignore({"activation_checkpoint"}, "details of selective recomputation are not modelled");
}

void torchtitan_compile(Settings& s, Draft& draft) {
  bool compiled = false;
  for (const char* key : {"training.compile", "compile.enable"}) compiled = s.flag(key).value_or(compiled);
  const auto components = s.texts("compile.components").value_or(std::vector<std::string>{"model", "loss"});
  for (const std::string& one : components) {
    if (one != "model" && one != "loss") s.refuse("compile.components", "\"" + one + "\" is unknown", "model, loss");
    if (compiled && one == "model") draft.set("/kernels/set", "pytorch-compile");
    if (compiled && one == "loss") draft.set("/kernels/loss", "fused");
  }
  s.ignore({"compile.backend", "compile.fullgraph"}, "how graphs are captured is not modelled beside whether they are compiled");
}

void torchtitan_optimizer(Settings& s, Draft& draft) {
  const std::string name = s.text("optimizer.name").value_or("AdamW");
  if (name != "AdamW" && name != "Adam") s.refuse("optimizer.name", "\"" + name + "\" is not supported yet", "AdamW");
  std::string implementation = s.text("optimizer.implementation").value_or("fused");
  if (const auto fused = s.flag("optimizer.fused")) implementation = *fused ? "fused" : "foreach";
  if (implementation == "for-loop") implementation = "for_loop";
  if (implementation != "fused" && implementation != "foreach" && implementation != "for_loop")
    s.refuse("optimizer.implementation", "is unknown", "fused, foreach or for-loop");
  draft.set("/optimizer/implementation", implementation);
  s.only_neutral({"optimizer.early_step_in_backward"}, "an optimizer inside the backward is not supported yet");
  s.ignore({"optimizer.lr", "optimizer.beta1", "optimizer.beta2", "optimizer.eps", "optimizer.weight_decay"}, "does not change the cost of a step");
}

}  // namespace

void import_torchtitan(Settings& s, Draft& draft) {
  torchtitan_model(s, draft);
  torchtitan_parallelism(s, draft);
  import_training(s, draft);
  torchtitan_recomputation(s, draft);
  torchtitan_compile(s, draft);
  torchtitan_optimizer(s, draft);
  s.ignore(
      {"job", "profiling", "metrics", "checkpoint", "lr_scheduler", "validation", "fault_tolerance", "memory_estimation", "debug", "experimental.custom_import",
       "experimental.custom_args_module", "experimental.enable_async_tensor_parallel", "experimental.enable_compiled_autograd"},
      "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
