// torchtune's YAML for full fine-tuning on several devices: pytorch/torchtune, recipes/full_finetune_distributed.py. docs/import.md.
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

/// The last part of "torchtune.models.llama3.llama3_8b", in either way of writing it.
std::optional<std::string> component(Settings& s, const std::string& key) {
  std::optional<std::string> name;
  if (s.has(key + "._component_")) {
    name = s.text(key + "._component_");
    if (key == "model") s.ignore(key, "which model it is says _component_");
  } else {
    name = s.text(key);
  }
  if (name) name->erase(0, name->find_last_of('.') + 1);
  return name;
}

/// fully_shard without a policy of types: everything is in the type of the model.
void torchtune_precision(Settings& s, Draft& draft) {
  const std::string type = s.text("dtype").value_or("bf16");
  if (type != "bf16" && type != "fp32") s.refuse("dtype", "\"" + type + "\" is not supported yet", "bf16 or fp32");
  for (const char* pointer : {"/precision/param", "/precision/reduce", "/precision/master"}) draft.set(pointer, type);
}

void import_loss(Settings& s, Draft& draft) {
  const std::string loss = component(s, "loss").value_or("CrossEntropyLoss");
  if (loss == "LinearCrossEntropyLoss") draft.set("/kernels/loss", "chunked");
  else if (loss == "CrossEntropyLoss") draft.set("/kernels/loss", "eager_fp32");
  else if (loss == "CEWithChunkedOutputLoss") draft.set("/kernels/loss", "fused_fp32");
  else s.refuse("loss", "\"" + loss + "\" is not supported yet", "LinearCrossEntropyLoss, CEWithChunkedOutputLoss or CrossEntropyLoss");
  s.ignore({"loss"}, "in how many chunks the loss is taken is the kernels' choice");
}

void torchtune_optimizer(Settings& s, Draft& draft) {
  const std::string name = component(s, "optimizer").value_or("AdamW");
  if (name != "AdamW" && name != "Adam") s.refuse("optimizer", "\"" + name + "\" is not supported yet", "torch.optim.AdamW");
  if (s.has("optimizer.fused")) draft.set("/optimizer/implementation", s.flag("optimizer.fused").value_or(false) ? "fused" : "foreach");
  draft.maybe("/optimizer/in_backward", s.flag("optimizer_in_bwd"));
  s.ignore({"optimizer"}, "does not change the cost of a step");
  draft.set("/optimizer/clip_grad_norm", s.number("clip_grad_norm").value_or(0) > 0);
}

void import_sharding(Settings& s, Draft& draft) {
  draft.set("/policy/framework", "fsdp2");
  const auto own = s.texts("custom_sharded_layers").value_or(std::vector<std::string>{});
  for (const std::string& one : own) {
    if (one != "tok_embeddings" && one != "output") s.refuse("custom_sharded_layers", "\"" + one + "\" is not known", "tok_embeddings, output");
  }
  if (!own.empty()) draft.set("/policy/wrap", "embedding_and_head");
  draft.maybe("/policy/reshard_after_forward", s.flag("fsdp_reshard_after_forward"));
  if (s.flag("fsdp_cpu_offload").value_or(false)) draft.set("/policy/cpu_offload", "parameters");
  s.only_neutral({"tensor_parallel_dim", "context_parallel_dim"}, "tensor and context parallelism are not supported yet");
  const std::int64_t replicas = s.integer("data_parallel_replicate_dim", 1, kMaxRanks).value_or(1),
                     shards = s.integer("data_parallel_shard_dim", -1, kMaxRanks).value_or(-1);
  if (replicas == 1) return;
  draft.set("/policy/sharding", "HYBRID_SHARD");
  if (shards > 1) draft.set("/policy/shard_group_size", shards);
}

void torchtune_recomputation(Settings& s, Draft& draft) {
  const std::string mode = s.text("ac_mode").value_or("none");
  if (mode == "selective") {
    draft.set("/recompute/mode", "every_k");
    draft.set("/recompute/every", s.integer("ac_option", 1, kMaxLayers).value_or(2));
  } else if (s.flag("enable_activation_checkpointing").value_or(false) || mode == "full") {
    draft.set("/recompute/mode", "full");
  } else if (mode != "none") {
    s.refuse("ac_mode", "\"" + mode + "\" is not supported yet", "full or selective");
  }
  s.ignore({"ac_option", "enable_activation_checkpointing"}, "ac_mode says what is recomputed");
  s.only_neutral({"enable_activation_offloading"}, "activations stay on the device; offloading them is not supported yet");
}

}  // namespace

void import_torchtune(Settings& s, Draft& draft) {
  if (const auto model = component(s, "model")) set_model(s, s.has("model._component_") ? "model._component_" : "model", *model, draft);
  draft.maybe("/batch/micro_batch", s.integer("batch_size", 1, kMaxMicroBatch));
  draft.maybe("/batch/grad_accum", s.integer("gradient_accumulation_steps", 1, kMaxAccumulation));
  draft.maybe("/batch/seq_len", s.integer("tokenizer.max_seq_len", 1, kMaxSequence));
  torchtune_precision(s, draft);
  import_loss(s, draft);
  torchtune_optimizer(s, draft);
  import_sharding(s, draft);
  const bool checkpointing = s.flag("enable_activation_checkpointing").value_or(false);
  torchtune_recomputation(s, draft);
  if (checkpointing) s.take("enable_activation_checkpointing");
  if (s.flag("compile").value_or(false)) draft.set("/kernels/set", "pytorch-compile");
  s.ignore({"tokenizer",
            "dataset",
            "dataset_val",
            "shuffle",
            "seed",
            "epochs",
            "max_steps_per_epoch",
            "output_dir",
            "checkpointer",
            "resume_from_checkpoint",
            "save_adapter_weights_only",
            "lr_scheduler",
            "metric_logger",
            "log_every_n_steps",
            "log_peak_memory_stats",
            "log_level",
            "profiler",
            "device",
            "run_val_every_n_steps",
            "batch_size_val",
            "cudnn_deterministic_mode",
            "enable_async_checkpointing"},
           "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
