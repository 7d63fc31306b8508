// The keys of every section of a scenario, each once, for reading and writing alike (fields.hpp). docs/scenario.md explains them, a test compares the two.
#pragma once

#include "scenarios/limits.hpp"
#include "scenarios/names.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

template <class Io>
void describe(Io& io, program::ModelShape& model) {
  io.choice("style", model.style, kBlockStyles);
  io.count("hidden", model.hidden, 1, kMaxHidden);
  io.count("layers", model.layers, 1, kMaxLayers);
  io.count("heads", model.heads, 1, kMaxHeads);
  io.count("kv_heads", model.kv_heads, 1, kMaxHeads);
  io.count("head_dim", model.head_dim, 1, kMaxHeadDim);
  io.count("ffn", model.ffn, 1, kMaxFfn);
  io.choice("ffn_kind", model.ffn_kind, kFfnKinds);
  io.count("vocab", model.vocab, 1, kMaxVocab);
  io.choice("norm", model.norm, kNorms);
  io.choice("positions", model.positions, kPositions);
  io.count("max_positions", model.max_positions, 0, kMaxSequence);
  io.flag("tied_embeddings", model.tied_embeddings);
  io.group("biases", [&](auto& biases) {
    biases.flag("qkv", model.attention_bias);
    biases.flag("output", model.output_bias);
    biases.flag("ffn", model.ffn_bias);
    biases.flag("norm", model.norm_bias);
  });
  io.flag("clip_qkv", model.clip_qkv);
  io.choice("layout", model.layout, kBlockLayouts);
  io.flag("fused_qkv", model.fused_qkv);
  io.flag("fused_gate_up", model.fused_gate_up);
  io.group("experts", [&](auto& experts) {
    experts.count("count", model.experts, 0, kMaxExperts);
    experts.count("active", model.active_experts, 0, kMaxExperts);
  });
  io.count_or("sliding_window", model.sliding_window, "none", 1, kMaxSequence);
  io.count("full_attention_every", model.full_attention_every, 0, kMaxLayers);
  io.group("softcaps", [&](auto& caps) {
    caps.flag("attention", model.attention_softcap);
    caps.flag("logits", model.logit_softcap);
  });
  io.flag("scaled_embedding", model.scaled_embedding);
  io.group("dropout", [&](auto& dropout) {
    dropout.flag("attention", model.attention_dropout);
    dropout.flag("hidden", model.hidden_dropout);
  });
  io.count("lora_rank", model.lora_rank, 0, kMaxHidden);
  io.choice("lora_targets", model.lora_targets, kLoraTargets);
  io.group("frozen", [&](auto& frozen) {
    frozen.flag("embedding", model.frozen_embedding);
    frozen.count("blocks", model.frozen_blocks, 0, kMaxLayers);
    frozen.flag("head", model.frozen_head);
  });
}

template <class Io>
void describe(Io& io, Cluster& cluster) {
  io.text("node", cluster.node);
  io.text("gpu", cluster.gpu);
  io.count("gpus_per_node", cluster.gpus_per_node, 1, kMaxGpusPerNode);
  io.count("nodes", cluster.nodes, 1, kMaxNodes, Need::required);
  io.choice_or("nvlink", cluster.nvlink, "profile", kNvLinks);
  io.rate_or("nvlink_rate", cluster.nvlink_rate, "profile", {1e6, 1e15}, "GB/s");
  io.flag_or("peer_access", cluster.peer_access, "profile");
  io.choice_or("fabric", cluster.fabric, "profile", kFabrics);
  io.flag_or("gpudirect", cluster.gpudirect, "profile");
  io.count_or("nics_per_node", cluster.nics_per_node, "profile", 1, kMaxNics);
  io.rate_or("nic_rate", cluster.nic_rate, "profile", {1e6, 1e15}, "Gb/s");
  io.ratio_or("oversubscription", cluster.oversubscription, "profile", {1, 1000});
}

template <class Io>
void describe(Io& io, program::Policy& policy) {
  io.choice("framework", policy.framework, kFrameworks);
  io.choice("sharding", policy.sharding, kShardings);
  io.choice("backward_prefetch", policy.backward_prefetch, kBackwardPrefetches);
  io.flag("forward_prefetch", policy.forward_prefetch);
  io.choice("release", policy.release, kReleases);
  io.flag("limit_all_gathers", policy.limit_all_gathers, policy.release != program::Release::before_2_1);  // the default of each release
  io.flag("use_orig_params", policy.use_orig_params);
  io.flag("no_sync", policy.no_sync);
  io.count_or("shard_group_size", policy.shard_group_size, "node", 2, kMaxRanks);
  io.choice("wrap", policy.wrap, kWraps);
  io.count("blocks_per_unit", policy.blocks_per_unit, 1, kMaxLayers);
  io.count("min_unit_parameters", policy.min_unit_parameters, 1, kMaxUnitParameters);
  io.flag_or_count("reshard_after_forward", policy.reshard_after_forward, kMaxRanks);
  io.count("forward_prefetch_depth", policy.forward_prefetch_depth, 0, kMaxLayers);
  io.count("backward_prefetch_depth", policy.backward_prefetch_depth, 1, kMaxLayers);
  io.flag("unshard_embedding_in_backward", policy.unshard_embedding_in_backward);
  io.size_or("bucket_cap", policy.bucket_cap, "default", 1, kMaxMemory);
  io.flag("gradient_as_bucket_view", policy.gradient_as_bucket_view);
  io.count("reduce_bucket_size", policy.reduce_bucket_size, 1, kMaxZeroSize);
  io.count("allgather_bucket_size", policy.allgather_bucket_size, 1, kMaxZeroSize);
  io.flag("overlap_comm", policy.overlap_comm, policy.framework == program::Framework::zero3);  // DeepSpeed's default
  io.flag("contiguous_gradients", policy.contiguous_gradients);
  io.flag("reduce_scatter", policy.reduce_scatter);
  io.count("stage3_prefetch_bucket_size", policy.stage3_prefetch_bucket_size, 0, kMaxZeroSize);
  io.count("stage3_max_live_parameters", policy.stage3_max_live_parameters, 0, kMaxZeroSize);
  io.count("stage3_max_reuse_distance", policy.stage3_max_reuse_distance, 0, kMaxZeroSize);
  io.count("stage3_param_persistence_threshold", policy.stage3_param_persistence_threshold, 0, kMaxZeroSize);
  io.choice("cpu_offload", policy.cpu_offload, kCpuOffloads);
}

template <class Io>
void describe(Io& io, program::Batch& batch) {
  io.count("micro_batch", batch.micro_batch, 1, kMaxMicroBatch);
  io.count("grad_accum", batch.grad_accum, 1, kMaxAccumulation);
  io.count("seq_len", batch.seq_len, 1, kMaxSequence);
}

template <class Io>
void describe(Io& io, program::Precision& precision) {
  io.choice("param", precision.param, kDtypes);
  io.choice("reduce", precision.reduce, kDtypes);
  io.choice("master", precision.master, kDtypes);
  io.choice("matmul", precision.matmul, kMatmuls);
  io.flag("fp8_all_gather", precision.fp8_all_gather);
  io.flag("grad_scaler", precision.grad_scaler);
}

template <class Io>
void describe(Io& io, program::Recompute& recompute) {
  io.choice("mode", recompute.mode, kRecomputeModes);
  io.count("every", recompute.every, 1, kMaxLayers);
  io.ratio("share", recompute.share, 0, 1);
  io.choice("ops", recompute.ops, kRecomputeOps);
  io.choice("nesting", recompute.nesting, kNestings);
  io.flag("reentrant", recompute.reentrant);
  io.flag("early_stop", recompute.early_stop);
}

template <class Io>
void describe(Io& io, program::KernelChoice& kernels) {
  io.choice("set", kernels.set, kKernelSets);
  io.choice("attention", kernels.attention, kAttentions);
  io.flag("causal_skip", kernels.causal_skip);
  io.flag("fused_norm", kernels.fused_norm);
  io.flag("expand_kv", kernels.expand_kv);
  io.choice("rope", kernels.rope, kRopes);
  io.choice("loss", kernels.loss, kLosses, kernels.set == program::KernelSet::native ? program::Loss::fused : program::Loss::eager_fp32);
  io.flag("keep_logits", kernels.keep_logits);
  io.count("train_metrics", kernels.train_metrics, 0, kMaxTrainMetrics);
}

template <class Io>
void describe(Io& io, program::Optimizer& optimizer) {
  io.choice("implementation", optimizer.implementation, kOptimizerImpls);
  io.flag("clip_grad_norm", optimizer.clip_grad_norm);
  io.flag("clip_host_sync", optimizer.clip_host_sync);
  io.flag("zero_grad_set_to_none", optimizer.zero_grad_set_to_none);
  io.flag("in_backward", optimizer.in_backward);
}

template <class Io>
void describe(Io& io, Allocator& allocator) {
  io.size_or("max_split_size", allocator.max_split_size, "none", 0, kMaxMemory);
  io.flag("expandable_segments", allocator.expandable_segments);
  io.count("roundup_power2_divisions", allocator.roundup_power2_divisions, 0, 64);
  io.ratio("garbage_collection_threshold", allocator.garbage_collection_threshold, 0, 1);
  io.ratio_or("memory_fraction", allocator.memory_fraction, "none", {1e-3, 1});
  io.size_or("device_memory", allocator.device_memory, "profile", 1, kMaxMemory);
  io.size_or("memory_outside_pool", allocator.memory_outside_pool, "profile", 0, kMaxMemory);
}

template <class Io>
void describe(Io& io, Loader& loader) {
  io.count("workers", loader.workers, 0, 1024);
  io.count("prefetch_factor", loader.prefetch_factor, 1, 1024);
  io.flag("pin_memory", loader.input.pin_memory);
  io.flag("non_blocking", loader.input.non_blocking);
  io.size_or("sample_bytes", loader.input.sample_bytes, "tokens", 1, kMaxSampleBytes);
  io.time("batch_time", loader.batch_time, kMaxSeconds);
  io.ratio("batch_time_spread", loader.batch_time_spread, 0, kMaxSpread);
}

template <class Io>
void describe(Io& io, Host& host) {
  io.ratio("scale", host.scale, 0, 1000);
  io.count("launch_queue_depth", host.launch_queue_depth, 1, 1 << 20);
  io.count("cuda_device_max_connections", host.cuda_device_max_connections, 1, 32);
  io.flag("sync_each_step", host.sync_each_step);
  io.flag("sync_each_phase", host.sync_each_phase);
  io.time("gc_period", host.gc_period, kMaxSeconds);
  io.time("gc_pause", host.gc_pause, kMaxSeconds);
  io.flag("gc_synchronised", host.gc_synchronised);
}

template <class Io>
void describe(Io& io, Run& run) {
  io.count("steps", run.steps, 1, kMaxSteps);
  io.count("wait", run.wait, 0, kMaxSteps);
  io.count("warmup", run.warmup, 0, kMaxSteps);
  io.count("active", run.active, 1, kMaxSteps);
  io.count("seed", run.seed, 0, std::int64_t{1} << 53);
  io.choice("ranks", run.ranks, kRanks);
  io.count("traced_ranks", run.traced_ranks, 1, kMaxExplicitRanks);
  io.choice("flops_convention", run.flops_convention, kFlopsConventions);
  io.group("jitter", [&](auto& jitter) {
    jitter.ratio("kernel", run.jitter.kernel, 0, kMaxSpread);
    jitter.ratio("host", run.jitter.host, 0, kMaxSpread);
    jitter.ratio("collective", run.jitter.collective, 0, kMaxSpread);
    jitter.ratio("rank_speed", run.jitter.rank_speed, 0, kMaxSpread);
    jitter.time("pause_period", run.jitter.pause_period, kMaxSeconds);
    jitter.time("pause", run.jitter.pause, kMaxSeconds);
  });
  io.list("slow_ranks", run.slow_ranks, kMaxExplicitRanks, [](auto& entry, SlowRank& slow) {
    entry.count("rank", slow.rank, 0, kMaxExplicitRanks - 1, Need::required);
    entry.ratio("compute_scale", slow.compute_scale, kMinSlowScale, kMaxSlowScale);
    entry.ratio("host_scale", slow.host_scale, kMinSlowScale, kMaxSlowScale);
    entry.ratio("nic_scale", slow.nic_scale, kMinSlowScale, kMaxSlowScale);
  });
}

template <class Io>
void describe(Io& io, FixedCosts& costs) {
  io.time("embedding_forward", costs.embedding_forward, kMaxSeconds);
  io.time("block_forward", costs.block_forward, kMaxSeconds);
  io.time("head_forward", costs.head_forward, kMaxSeconds);
  io.time("head_backward", costs.head_backward, kMaxSeconds);
  io.time("block_backward", costs.block_backward, kMaxSeconds);
  io.time("embedding_backward", costs.embedding_backward, kMaxSeconds);
  io.time("optimizer", costs.optimizer, kMaxSeconds);
  io.time("all_gather_block", costs.all_gather_block, kMaxSeconds);
  io.time("all_gather_root", costs.all_gather_root, kMaxSeconds);
  io.time("reduce_scatter_block", costs.reduce_scatter_block, kMaxSeconds);
  io.time("reduce_scatter_root", costs.reduce_scatter_root, kMaxSeconds);
  io.time("all_reduce_block", costs.all_reduce_block, kMaxSeconds);
  io.time("host_per_kernel", costs.host_per_kernel, kMaxSeconds);
  io.time("host_per_collective", costs.host_per_collective, kMaxSeconds);
}

}  // namespace stepcast::scenarios
