// DeepSpeed's JSON: microsoft/DeepSpeed, docs/_pages/config-json.md and runtime/zero/config.py. docs/import.md.
#include <fmt/format.h>

#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

void deepspeed_batch(Settings& s, Draft& draft) {
  draft.global_batch = s.integer("train_batch_size", 1, std::int64_t{1} << 40);
  draft.maybe("/batch/micro_batch", s.integer("train_micro_batch_size_per_gpu", 1, kMaxMicroBatch));
  draft.maybe("/batch/grad_accum", s.integer("gradient_accumulation_steps", 1, kMaxAccumulation));
}

void deepspeed_precision(Settings& s, Draft& draft) {
  const bool bf16 = s.flag("bf16.enabled").value_or(false) || s.flag("bfloat16.enabled").value_or(false), fp16 = s.flag("fp16.enabled").value_or(false);
  if (bf16 && fp16) s.refuse("fp16.enabled", "goes with bf16.enabled only if one of them is false");
  draft.set("/precision/param", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  s.only_neutral({"amp.enabled"}, "apex is not supported yet");
  s.ignore({"fp16", "bf16", "bfloat16", "amp"}, "scaling of the loss is not modelled for ZeRO");
  s.ignore({"data_types"}, "the type of accumulated gradients is that of the reduction here");
  s.ignore({"communication_data_type", "prescale_gradients", "gradient_predivide_factor", "sparse_gradients", "fp32_allreduce"},
           "changes numbers, and sizes only for other types");
}

/// What lives in host memory. Old files say it in one flag.
void import_offload(Settings& s, Draft& draft) {
  const auto device_of = [&](const char* path, const char* key) -> std::string {
    const Json* found = s.take(path);
    if (!found || !found->is_object()) {
      s.only_neutral({path}, "is an object with a device");
      return "none";
    }
    std::string device = s.text(key).value_or("none");
    if (device != "none" && device != "cpu") s.refuse(key, "\"" + device + "\" is not supported yet", "none or cpu");
    s.ignore(path, "buffers and threads of offloading are not modelled beside pinned copies");
    return device;
  };
  const bool parameters = device_of("zero_optimization.offload_param", "zero_optimization.offload_param.device") == "cpu";
  const bool optimizer = device_of("zero_optimization.offload_optimizer", "zero_optimization.offload_optimizer.device") == "cpu" ||
                         s.flag("zero_optimization.cpu_offload").value_or(false);
  if (parameters || optimizer) draft.set("/policy/cpu_offload", parameters ? "parameters" : "optimizer");
}

void import_stage3(Settings& s, std::int64_t stage, Draft& draft) {
  for (const char* name : {"stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance", "stage3_param_persistence_threshold"}) {
    const std::string key = std::string("zero_optimization.") + name;
    if (stage != 3) s.ignore(key, "belongs to stage 3");
    else draft.maybe(("/policy/" + std::string(name)).c_str(), s.integer(key, 0, kMaxZeroSize));
  }
  s.ignore({"zero_optimization.stage3_gather_16bit_weights_on_model_save", "zero_optimization.stage3_gather_fp16_weights_on_model_save",
            "zero_optimization.stage3_module_granularity_threshold", "zero_optimization.stage3_use_all_reduce_for_fetch_params",
            "zero_optimization.load_from_fp32_weights", "zero_optimization.elastic_checkpoint", "zero_optimization.ignore_unused_parameters"},
           "concerns loading, saving and special models");
  s.ignore({"zero_optimization.sub_group_size", "zero_optimization.round_robin_gradients", "zero_optimization.legacy_stage1",
            "zero_optimization.log_trace_cache_warnings"},
           "cuts the optimizer's work into groups, which is not modelled");
}

void import_zero(Settings& s, Draft& draft) {
  const std::int64_t stage = s.integer("zero_optimization.stage", 0, 3).value_or(0);
  static constexpr const char* kFrameworks[] = {"ddp", "zero1", "zero2", "zero3"};
  draft.set("/policy/framework", kFrameworks[stage]);
  if (stage == 0) return s.ignore({"zero_optimization"}, "stage 0 is data parallelism without ZeRO");
  import_offload(s, draft);
  import_stage3(s, stage, draft);
  draft.maybe("/policy/reduce_bucket_size", s.integer("zero_optimization.reduce_bucket_size", 1, kMaxZeroSize));
  const auto gathered = s.integer("zero_optimization.allgather_bucket_size", 1, kMaxZeroSize);
  if (stage < 3) draft.maybe("/policy/allgather_bucket_size", gathered);
  else if (gathered) s.ignore("zero_optimization.allgather_bucket_size", "belongs to stages 1 and 2");
  draft.maybe("/policy/overlap_comm", s.flag("zero_optimization.overlap_comm"));
  draft.maybe("/policy/contiguous_gradients", s.flag("zero_optimization.contiguous_gradients"));
  draft.maybe("/policy/reduce_scatter", s.flag("zero_optimization.reduce_scatter"));
  if (s.flag("zero_optimization.allgather_partitions") == false) s.refuse("zero_optimization.allgather_partitions", "false is not supported yet");
  s.only_neutral(
      {"zero_optimization.zero_hpz_partition_size", "zero_optimization.zero_quantized_weights", "zero_optimization.zero_quantized_gradients",
       "zero_optimization.zero_quantized_nontrainable_weights", "zero_optimization.mics_shard_size", "zero_optimization.mics_hierarchical_params_gather"},
      "ZeRO++ and MiCS are not supported yet");
}

void deepspeed_optimizer(Settings& s, Draft& draft) {
  draft.set("/optimizer/clip_grad_norm", s.number("gradient_clipping").value_or(0) > 0);
  const std::string type = s.text("optimizer.type").value_or("AdamW");
  if (type != "AdamW" && type != "Adam") s.refuse("optimizer.type", "\"" + type + "\" is not supported yet", "AdamW");
  if (s.flag("optimizer.params.torch_adam").value_or(false)) draft.set("/optimizer/implementation", "foreach");
  s.ignore({"optimizer.params"}, "does not change the cost of a step");
}

}  // namespace

void import_deepspeed(Settings& s, Draft& draft) {
  deepspeed_batch(s, draft);
  deepspeed_precision(s, draft);
  if (s.has("zero_optimization")) import_zero(s, draft);
  else draft.set("/policy/framework", "ddp");
  deepspeed_optimizer(s, draft);
  s.ignore({"activation_checkpointing"}, "takes effect only where the model calls deepspeed.checkpointing: set /recompute/mode");
  s.only_neutral(
      {"sparse_attention", "pipeline", "tensor_parallel.autotp_size", "sequence_parallel_size", "compression_training", "curriculum_learning.enabled"},
      "is not supported yet");
  s.ignore({"_source",
            "steps_per_print",
            "wall_clock_breakdown",
            "dump_state",
            "zero_allow_untested_optimizer",
            "zero_force_ds_cpu_optimizer",
            "scheduler",
            "flops_profiler",
            "tensorboard",
            "wandb",
            "csv_monitor",
            "comet",
            "monitor_config",
            "comms_logger",
            "aio",
            "checkpoint",
            "autotuning",
            "elasticity",
            "data_efficiency",
            "memory_breakdown",
            "disable_allgather",
            "dataloader_drop_last",
            "seed",
            "timers",
            "curriculum_learning",
            "tensor_parallel",
            "use_node_local_storage",
            "load_universal_checkpoint"},
           "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
