// Three trainers with FSDP1 whose settings are command-line flags, written down as YAML: foundation-model-stack/fms-fsdp (config/training.py), meta-llama/llama-cookbook
// (configs/fsdp.py, configs/training.py) and aws-samples/awsome-distributed-training (3.test_cases/pytorch/FSDP). docs/import.md.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

/// Parameters, reductions and buffers in bf16, as these trainers' policies have it; the optimizer's copy in fp32.
void bf16_policy(Draft& draft) {
  draft.set("/policy/framework", "fsdp1");
  draft.set("/precision/param", "bf16");
  draft.set("/precision/reduce", "bf16");
}

/// The share in "2/3", or NaN.
double fraction_in(const std::string& text) {
  const auto number = [](std::string_view digits) {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : std::nan("");
  };
  const std::size_t bar = std::min(text.find('/'), text.size());
  return bar == text.size() ? number(text) : number(std::string_view(text).substr(0, bar)) / number(std::string_view(text).substr(bar + 1));
}

/// "1/3" or 0.33: of the blocks. 1, or nothing: all of them.
void set_fraction(Settings& s, const char* key, Draft& draft) {
  const double share = s.has(key) && s.json().at(key).is_number() ? s.number(key).value_or(1) : fraction_in(s.text(key).value_or("1"));
  if (!(share >= 0 && share <= 1)) s.refuse(key, "is no share of the blocks", "give a number from 0 to 1, or a fraction like 1/3");
  draft.set("/recompute/mode", share == 1 ? "full" : share == 0 ? "none" : "share");
  if (share > 0 && share < 1) draft.set("/recompute/share", share);
}

std::string one_of(Settings& s, const char* key, const char* fallback, std::initializer_list<std::pair<const char*, const char*>> known) {
  const std::string theirs = s.text(key).value_or(fallback);
  for (const auto& [name, ours] : known) {
    if (theirs == name) return ours;
  }
  s.refuse(key, "\"" + theirs + "\" is not supported yet");
}

}  // namespace

void import_fms_fsdp(Settings& s, Draft& draft) {
  bf16_policy(draft);
  const std::string sharding = one_of(s, "sharding_strategy", "hsdp", {{"fsdp", "FULL_SHARD"}, {"hsdp", "HYBRID_SHARD"}, {"ddp", "NO_SHARD"}});
  draft.set("/policy/sharding", sharding);
  draft.maybe("/batch/micro_batch", s.integer("batch_size", 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("seq_length", 1, kMaxSequence));
  s.ignore({"nproc_per_node"}, "how many GPUs a node has is the cluster's");
  if (s.flag("fsdp_activation_checkpointing").value_or(false)) set_fraction(s, "selective_checkpointing", draft);
  s.ignore({"selective_checkpointing"}, "nothing is recomputed");
  if (s.flag("use_torch_compile").value_or(true)) {
    draft.set("/kernels/set", "pytorch-compile");
    draft.set("/policy/use_orig_params", true);
  }
  if (!s.flag("mixed_precision").value_or(true)) s.refuse("mixed_precision", "false is not supported yet");
  draft.set("/optimizer/clip_grad_norm", s.number("grad_clip_thresh").value_or(1.0) > 0);
  draft.maybe("/loader/workers", s.integer("num_workers", 0, kMaxLoaderWorkers));
  s.ignore({"low_cpu_fsdp", "report_interval", "checkpoint_interval", "num_steps", "learning_rate", "seed", "tracker", "tracker_dir", "tracker_project_name",
            "ckpt_load_path", "ckpt_save_path", "data_path", "datasets", "weights", "use_dummy_dataset", "vocab_size", "training_steps"},
           "does not change the cost of a step");
}

void import_llama_cookbook(Settings& s, Draft& draft) {
  bf16_policy(draft);
  std::string sharding = one_of(s, "sharding_strategy", "FULL_SHARD",
                                {{"FULL_SHARD", "FULL_SHARD"}, {"SHARD_GRAD_OP", "SHARD_GRAD_OP"}, {"NO_SHARD", "NO_SHARD"}, {"HYBRID_SHARD", "HYBRID_SHARD"}});
  const std::int64_t group = s.integer("sharding_group_size", 0, kMaxRanks).value_or(0);
  if (s.flag("hsdp").value_or(false)) sharding = "HYBRID_SHARD";
  draft.set("/policy/sharding", sharding);
  if (sharding == "HYBRID_SHARD" && group > 1) draft.set("/policy/shard_group_size", group);
  s.ignore({"replica_group_size"}, "follows from the size of a sharding group");
  if (s.flag("pure_bf16").value_or(false)) draft.set("/precision/master", "bf16");
  else if (!s.flag("mixed_precision").value_or(true)) s.refuse("mixed_precision", "false is not supported yet", "leave it true, or use pure_bf16");
  if (s.flag("fsdp_activation_checkpointing").value_or(true)) draft.set("/recompute/mode", "full");
  if (s.flag("fsdp_cpu_offload").value_or(false)) draft.set("/policy/cpu_offload", "parameters");
  draft.set("/optimizer/implementation", one_of(s, "optimizer", "AdamW", {{"AdamW", "foreach"}}));
  draft.maybe("/batch/micro_batch", s.integer("batch_size_training", 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("context_length", 1, kMaxSequence));
  draft.maybe("/batch/grad_accum", s.integer("gradient_accumulation_steps", 1, kMaxAccumulation));
  draft.set("/optimizer/clip_grad_norm", s.flag("gradient_clipping").value_or(false));
  draft.maybe("/loader/workers", s.integer("num_workers_dataloader", 0, kMaxLoaderWorkers));
  s.only_neutral({"use_peft", "quantization"}, "adapters and quantised weights are not supported yet");
  s.ignore({"batching_strategy"}, "every sequence is taken as full");
  s.ignore({"use_fast_kernels"}, "Hugging Face chooses fused attention by itself; /kernels/attention says otherwise");
  s.ignore({"gradient_clipping_threshold",
            "mixed_precision",
            "checkpoint_type",
            "model_name",
            "tokenizer_name",
            "enable_fsdp",
            "low_cpu_fsdp",
            "run_validation",
            "val_batch_size",
            "num_epochs",
            "lr",
            "weight_decay",
            "gamma",
            "seed",
            "dataset",
            "output_dir",
            "save_model",
            "save_optimizer",
            "use_wandb",
            "save_metrics",
            "max_train_step",
            "max_eval_step"},
           "does not change the cost of a step");
}

namespace {

void import_aws_model(Settings& s, Draft& draft) {
  const auto hidden = s.integer("hidden_width", 1, kMaxHidden), layers = s.integer("num_layers", 1, kMaxLayers), heads = s.integer("num_heads", 1, kMaxHeads),
             ffn = s.integer("intermediate_size", 1, kMaxFfn), vocab = s.integer("vocab_size", 1, kMaxVocab);
  const std::int64_t kv_heads = s.integer("num_key_value_heads", 1, kMaxHeads).value_or(heads.value_or(1));
  draft.own_model = hidden && layers && heads && ffn && vocab;
  if (draft.own_model)
    draft.document["model"] = {{"style", "llama"},     {"hidden", *hidden}, {"layers", *layers}, {"heads", *heads},
                               {"kv_heads", kv_heads}, {"ffn", *ffn},       {"vocab", *vocab}};
  else s.ignore("hidden_width", "without vocab_size and all other sizes it is no model: --model is needed");
}

}  // namespace

void import_aws_fsdp(Settings& s, Draft& draft) {
  bf16_policy(draft);
  const std::string sharding = one_of(s, "sharding_strategy", "full", {{"full", "FULL_SHARD"}, {"hybrid", "HYBRID_SHARD"}});
  draft.set("/policy/sharding", sharding);
  import_aws_model(s, draft);
  one_of(s, "model_type", "llama_v2", {{"llama_v2", ""}, {"llama_v3", ""}});
  draft.maybe("/batch/micro_batch", s.integer("train_batch_size", 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("max_context_width", 1, kMaxSequence));
  for (const char* key : {"offload_activations", "cpu_offload"}) {
    if (s.integer(key, 0, 1).value_or(0) == 1) s.refuse(key, "is not supported yet in this place");
  }
  if (!s.has("activation_checkpointing")) s.refuse("activation_checkpointing", "is missing", "1: every block is recomputed; 0: none");
  draft.set("/recompute/mode", s.integer("activation_checkpointing", 0, 1) == 1 ? "full" : "none");
  s.ignore({"max_steps", "epochs", "tokenizer", "dataset", "dataset_config_name", "checkpoint_dir", "checkpoint_freq", "validation_freq", "validation_batches",
            "logging_freq", "resume_from_checkpoint", "lr", "lr_decay_style", "weight_decay", "seed"},
           "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
