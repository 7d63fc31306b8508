// KempnerForge's TOML: KempnerInstitute/KempnerForge, configs/train. docs/import.md.
#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

void import_kempner_training(Settings& s, Draft& draft) {
  draft.maybe("/batch/micro_batch", s.integer("train.batch_size", 1, kMaxMicroBatch));
  draft.maybe("/batch/seq_len", s.integer("train.seq_len", 1, kMaxSequence));
  draft.maybe("/batch/grad_accum", s.integer("train.grad_accum_steps", 1, kMaxAccumulation));
  draft.set("/optimizer/clip_grad_norm", s.number("train.grad_clip_norm").value_or(1.0) > 0);
  if (s.flag("train.compile_model").value_or(false)) draft.set("/kernels/set", "pytorch-compile");
  const std::string recompute = s.text("train.activation_checkpointing").value_or("none");
  if (recompute != "none" && recompute != "full") s.refuse("train.activation_checkpointing", "\"" + recompute + "\" is not supported yet", "none or full");
  draft.set("/recompute/mode", recompute);
}

void import_kempner_sharding(Settings& s, Draft& draft) {
  draft.set("/policy/framework", "fsdp2");
  const std::int64_t replicas = s.integer("distributed.dp_replicate", 1, kMaxRanks).value_or(1),
                     shards = s.integer("distributed.dp_shard", -1, kMaxRanks).value_or(-1);
  if (replicas > 1) draft.set("/policy/sharding", "HYBRID_SHARD");
  if (replicas > 1 && shards > 1) draft.set("/policy/shard_group_size", shards);
  s.only_neutral({"distributed.tp", "distributed.pp", "distributed.cp", "distributed.ep"},
                 "tensor, pipeline, context and expert parallelism are not supported yet");
}

}  // namespace

/// Parameters, gradients and reductions are in bf16 there.
void import_kempner_forge(Settings& s, Draft& draft) {
  set_llama_sizes(s, draft);
  s.ignore({"model.max_seq_len"}, "positions are rotary: no table");
  import_kempner_training(s, draft);
  import_kempner_sharding(s, draft);
  for (const char* pointer : {"/precision/param", "/precision/reduce", "/precision/master"}) draft.set(pointer, "bf16");
  const std::string optimizer = s.text("optimizer.name").value_or("adamw");
  if (optimizer != "adamw") s.refuse("optimizer.name", "\"" + optimizer + "\" is not supported yet", "adamw");
  draft.set("/optimizer/implementation", s.flag("optimizer.fused").value_or(false) ? "fused" : "foreach");
  draft.maybe("/loader/workers", s.integer("data.num_workers", 0, kMaxLoaderWorkers));
  draft.maybe("/loader/prefetch_factor", s.integer("data.prefetch_factor", 1, kMaxLoaderPrefetch));
  s.ignore({"optimizer", "data", "scheduler", "checkpoint", "metrics", "profiling", "eval"}, "does not change the cost of a step");
}

}  // namespace stepcast::scenarios
