// Lingua's YAML: facebookresearch/lingua, lingua/args.py and lingua/distributed.py. docs/import.md.
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

void import_distributed(Settings& s, Draft& draft) {
  const std::string type = s.text("distributed.fsdp_type").value_or("no_shard");
  if (type != "full_shard" && type != "no_shard") s.refuse("distributed.fsdp_type", "\"" + type + "\" is not supported", "full_shard or no_shard");
  draft.set("/policy/framework", type == "full_shard" ? "fsdp2" : "ddp");
  const std::int64_t replicas = s.integer("distributed.dp_replicate", 1, kMaxRanks).value_or(1),
                     shards = s.integer("distributed.dp_shard", 1, kMaxRanks).value_or(1);
  if (type == "full_shard" && replicas > 1 && shards > 1) {
    draft.set("/policy/sharding", "HYBRID_SHARD");
    draft.set("/policy/shard_group_size", shards);
  }
  const std::string dtype = s.text("distributed.model_dtype").value_or("bf16");
  if (dtype != "bf16" && dtype != "fp32" && dtype != "fp16") s.refuse("distributed.model_dtype", "\"" + dtype + "\" is not supported", "bf16, fp16 or fp32");
  draft.set("/precision/param", dtype);
  if (s.flag("distributed.compile").value_or(false)) draft.set("/kernels/set", "pytorch-compile");
  if (s.flag("distributed.selective_activation_checkpointing").value_or(false)) {
    draft.set("/recompute/mode", "per_op");
    draft.set("/recompute/ops", "all_but_matmul");
  }
  s.only_neutral({"distributed.tp_size", "distributed.float8_recipe"}, "tensor parallelism and float8 are not supported yet in this place");
  s.ignore({"distributed.matmul_allow_tf32", "distributed.detect_anomaly", "distributed.compile_cache_size_limit", "distributed.spawn_method",
            "distributed.float8_filter", "distributed.allow_bf16_reduced_precision_reduction"},
           "does not change the cost of a step");
}

}  // namespace

void import_lingua(Settings& s, Draft& draft) {
  set_llama_sizes(s, draft);
  s.ignore({"model.max_seqlen", "model.rope_theta", "model.norm_eps", "model.init_base_std", "model.init_std_factor", "model.seed"},
           "does not change the cost of a step");
  draft.maybe("/batch/grad_accum", s.integer("grad_acc_steps", 1, kMaxAccumulation));
  draft.maybe("/batch/micro_batch", s.integer("data.batch_size", 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("data.seq_len", 1, kMaxSequence));
  draft.set("/optimizer/clip_grad_norm", s.number("optim.clip").value_or(1.0) > 0);
  import_distributed(s, draft);
  s.ignore({"optim", "data", "profiling", "dump_dir", "name", "steps", "probe_freq", "seed", "env", "checkpoint", "logging", "async_eval_gpus", "eval"},
           "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
