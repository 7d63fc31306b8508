// What a training step is, before it becomes a program: model shape, policy, batch, precision, recomputation, kernels, optimizer.
// Plain data, filled by scenarios/ (where the defaults' meaning is documented for users) and read by the program builder.
#pragma once

#include <cstdint>

#include "hw_models/kernel.hpp"

namespace stepcast::program {

enum class NormKind : std::uint8_t { rms_norm, layer_norm };
enum class FfnKind : std::uint8_t { swiglu, gelu };
enum class Positions : std::uint8_t { rope, learned, alibi, none };
/// Which eager kernel list a block runs: Hugging Face Llama code (fp32 norms, RoPE by pieces) or the GPT/MPT block (fused LayerNorm, fused QKV).
enum class BlockStyle : std::uint8_t { llama, gpt };

/// Architecture of a decoder-only transformer. All sizes in elements.
struct ModelShape {
  BlockStyle style = BlockStyle::llama;
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  std::int64_t max_positions = 0;  // rows of a learned position table
  FfnKind ffn_kind = FfnKind::swiglu;
  NormKind norm = NormKind::rms_norm;
  Positions positions = Positions::rope;
  bool tied_embeddings = false;
  bool attention_bias = false;  // bias of the q, k, v projections
  bool output_bias = false;     // bias of the attention output projection
  bool ffn_bias = false;
  bool norm_bias = false;  // LayerNorm beta
  bool clip_qkv = false;   // MPT's clamp of q, k, v
  bool operator==(const ModelShape&) const = default;
};

enum class Framework : std::uint8_t { fsdp1, fsdp2, ddp, zero1, zero2, zero3 };
enum class Sharding : std::uint8_t { full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2 };
enum class BackwardPrefetch : std::uint8_t { pre, post, none };

struct Policy {
  Framework framework = Framework::fsdp1;
  Sharding sharding = Sharding::full_shard;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;
  bool no_sync = false;              // accumulate without reduction until the last micro-batch
  std::int64_t blocks_per_unit = 1;  // wrapping: consecutive blocks that share one FSDP unit
  bool operator==(const Policy&) const = default;
};

struct Batch {
  std::int64_t micro_batch = 1;  // sequences per GPU and forward
  std::int64_t grad_accum = 1;
  std::int64_t seq_len = 0;
  bool operator==(const Batch&) const = default;
};

struct Precision {
  hw::Dtype param = hw::Dtype::bf16;   // compute and all-gather
  hw::Dtype reduce = hw::Dtype::bf16;  // reduce-scatter
  hw::Dtype master = hw::Dtype::fp32;  // sharded parameters and gradients, optimizer state
  bool operator==(const Precision&) const = default;
};

enum class RecomputeMode : std::uint8_t { none, full };
struct Recompute {
  RecomputeMode mode = RecomputeMode::none;
  bool early_stop = true;  // the recomputed forward ends once the last needed tensor is rebuilt (non-reentrant checkpointing)
  bool operator==(const Recompute&) const = default;
};

enum class KernelSet : std::uint8_t { pytorch_eager, pytorch_compile, native, fixed };
enum class Attention : std::uint8_t { flash1, flash2, flash3, triton, efficient, unfused };
enum class Loss : std::uint8_t { eager_fp32, fused };
struct KernelChoice {
  KernelSet set = KernelSet::pytorch_eager;
  Attention attention = Attention::flash2;
  bool causal_skip = true;  // fused attention skips masked tiles
  bool fused_norm = false;  // one RMSNorm kernel instead of the eager list
  Loss loss = Loss::eager_fp32;
  bool operator==(const KernelChoice&) const = default;
};

enum class OptimizerImpl : std::uint8_t { for_loop, foreach, fused };
struct Optimizer {
  OptimizerImpl implementation = OptimizerImpl::foreach;  // AdamW
  bool clip_grad_norm = true;
  bool operator==(const Optimizer&) const = default;
};

/// Everything that the program of a rank depends on. `world` describes the sharding group (all ranks for FULL_SHARD).
struct StepSpec {
  ModelShape model;
  Policy policy;
  Batch batch;
  Precision precision;
  Recompute recompute;
  KernelChoice kernels;
  Optimizer optimizer;
  hw::GroupShape world;
};

/// Tokens per GPU and micro-batch.
inline std::int64_t tokens(const Batch& batch) { return batch.micro_batch * batch.seq_len; }

}  // namespace stepcast::program
