// What a training step is, before it becomes a program: model shape, policy, batch, precision, recomputation, kernels, optimizer.
// Plain data, filled by scenarios/ (where the defaults' meaning is documented for users) and read by the program builder.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "hw_models/kernel.hpp"

namespace stepcast::program {

enum class NormKind : std::uint8_t { rms_norm, layer_norm };
enum class FfnKind : std::uint8_t { swiglu, gelu, geglu };
enum class Positions : std::uint8_t { rope, learned, alibi, none };
/// Whose eager attention a block runs: that of Hugging Face's Llama (keys and values repeated for every query head, softmax in fp32) or MPT's.
enum class BlockStyle : std::uint8_t { llama, gpt };
/// How attention and feed-forward are joined: one after the other, each behind a norm; both beside each other behind one norm (Falcon-7B); one after the other, each
/// between two norms (Gemma 2).
enum class BlockLayout : std::uint8_t { sequential, parallel, sandwich };

/// Linear layers of a block that low-rank adapters stand beside: the queries' and values' (or one projection of all three), all of attention, all of the block.
enum class LoraTargets : std::uint8_t { query_value, attention, all_linear };

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
  bool norm_bias = false;                         // LayerNorm beta
  bool clip_qkv = false;                          // MPT's clamp of q, k, v
  bool fused_qkv = false, fused_gate_up = false;  // one projection for all three; for both
  BlockLayout layout = BlockLayout::sequential;
  std::int64_t experts = 0, active_experts = 0;            // feed-forward networks of a block and those that a token passes through; 0: one, for all tokens
  std::optional<std::int64_t> sliding_window = {};         // positions that a query sees
  std::int64_t full_attention_every = 0;                   // with a window: blocks k - 1, 2 k - 1, ... see all positions; 0: none
  bool attention_softcap = false, logit_softcap = false;   // c tanh(x / c) on attention scores, on logits
  bool scaled_embedding = false;                           // times the root of `hidden`
  bool attention_dropout = false, hidden_dropout = false;  // of attention probabilities; of the embedding and of what attention and feed-forward add
  std::int64_t lora_rank = 0;                              // of adapters, which alone are trained; 0: none, and all is trained
  LoraTargets lora_targets = LoraTargets::query_value;
  bool frozen_embedding = false, frozen_head = false;  // requires_grad_(False) on the embedding with its positions; on the final norm and the head
  std::int64_t frozen_blocks = 0;                      // and on so many blocks, the first ones
  bool operator==(const ModelShape&) const = default;
};

enum class Framework : std::uint8_t { fsdp1, fsdp2, ddp, zero1, zero2, zero3 };
enum class Sharding : std::uint8_t { full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2 };
/// What lives in pinned memory of the host, the optimizer with it: nothing; the optimizer's state and master parameters (ZeRO-Offload); the shards of the parameters too.
enum class CpuOffload : std::uint8_t { none, optimizer, parameters };
enum class BackwardPrefetch : std::uint8_t { pre, post, none };
/// What becomes an FSDP unit of its own; the rest is the root's.
enum class Wrap : std::uint8_t { blocks, embedding_and_head, model, size_based, attention_and_ffn, linears };
/// Behaviour by PyTorch release; docs/fsdp1.md, "Releases".
enum class Release : std::uint8_t { before_2_1, from_2_1, from_2_8 };

/// FSDP2's reshard_after_forward: kept, resharded, or (2 and more) resharded among that many ranks.
inline constexpr std::int64_t kKeepAfterForward = 0, kReshardAfterForward = 1;

struct Policy {
  Framework framework = Framework::fsdp1;
  Sharding sharding = Sharding::full_shard;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;
  bool no_sync = false;                               // accumulate without reduction until the last micro-batch
  std::optional<std::int64_t> shard_group_size = {};  // hybrid sharding: ranks of a shard group; absent: those of a node
  Wrap wrap = Wrap::blocks;
  std::int64_t blocks_per_unit = 1;                // wrapping: consecutive blocks that share one FSDP unit
  std::int64_t min_unit_parameters = 100'000'000;  // size_based wrapping: the least that a unit holds (default of size_based_auto_wrap_policy)
  Release release = Release::from_2_1;
  // FSDP2
  std::int64_t reshard_after_forward = kReshardAfterForward;  // of the blocks; the root is kept
  std::int64_t forward_prefetch_depth = 0;                    // blocks in each set_modules_to_forward_prefetch list; 0: no lists
  std::int64_t backward_prefetch_depth = 1;                   // the same for the backward; 1 is what happens without lists
  bool unshard_embedding_in_backward = true;                  // false: set_unshard_in_backward(False) on an embedding of its own
  // DDP
  std::optional<std::int64_t> bucket_cap = std::nullopt;  // bytes; absent: 25 MiB, the first bucket 1 MiB
  bool gradient_as_bucket_view = false;
  // DeepSpeed's ZeRO, under its names; sizes in elements
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t allgather_bucket_size = 500'000'000;
  bool overlap_comm = false;  // scenarios: true for stage 3, as DeepSpeed
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  std::int64_t stage3_prefetch_bucket_size = 50'000'000;
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;
  std::int64_t stage3_param_persistence_threshold = 100'000;
  CpuOffload cpu_offload = CpuOffload::none;
  bool operator==(const Policy&) const = default;
};

struct Batch {
  std::int64_t micro_batch = 1;  // sequences per GPU and forward
  std::int64_t grad_accum = 1;
  std::int64_t seq_len = 0;
  bool operator==(const Batch&) const = default;
};

/// A micro-batch on its way from the data loader to the device (DataLoader(pin_memory=...), tensor.to(device, non_blocking=...)).
struct Input {
  std::optional<std::int64_t> sample_bytes = {};  // per sequence; absent: the ids and labels of its tokens
  bool pin_memory = true;
  bool non_blocking = true;
  bool operator==(const Input&) const = default;
};

/// What matrix products run in: the type of their operands; fp32 operands in tf32; the linear layers of the blocks in fp8, scaled by the largest element of each tensor
/// as it is (torchao's tensorwise, Transformer Engine's current scaling) or as it was in earlier steps (Transformer Engine's delayed scaling), by that of each row or
/// column (torchao's rowwise), or by that of each 128 elements and 128 x 128 weights (Transformer Engine's block scaling, DeepSeek-V3).
enum class Matmul : std::uint8_t { param, tf32, fp8_tensorwise, fp8_delayed, fp8_rowwise, fp8_blockwise };

struct Precision {
  hw::Dtype param = hw::Dtype::bf16;   // compute and all-gather
  hw::Dtype reduce = hw::Dtype::bf16;  // reduce-scatter
  hw::Dtype master = hw::Dtype::fp32;  // sharded parameters and gradients, optimizer state
  Matmul matmul = Matmul::param;
  bool fp8_all_gather = false;  // weights that are multiplied in fp8 are gathered in it
  bool grad_scaler = false;     // fp16: the loss is scaled, gradients are unscaled and looked through for overflow
  bool operator==(const Precision&) const = default;
};

enum class RecomputeMode : std::uint8_t { none, full, every_k, share, per_op };
/// per_op: what is recomputed. attention: the core between projections, unfused (Korthikanti et al., 2022); else all but what the named kernels wrote.
enum class RecomputeOps : std::uint8_t { attention, all_but_attention, all_but_matmul, all_but_every_second_matmul };
/// Whether the checkpoint wrapper stands inside the FSDP unit, FSDP(AC(block)), or around it, AC(FSDP(block)).
enum class Nesting : std::uint8_t { inside, outside };
struct Recompute {
  RecomputeMode mode = RecomputeMode::none;
  std::int64_t every = 2;  // every_k: blocks k - 1, 2 k - 1, ... are recomputed
  double share = 0.5;      // share: of the blocks, spread evenly
  RecomputeOps ops = RecomputeOps::all_but_attention;
  Nesting nesting = Nesting::inside;
  bool reentrant = false;  // torch.utils.checkpoint(use_reentrant=...): the forward runs without gradients and is rerun wholly
  bool early_stop = true;  // the recomputed forward ends once the last needed tensor is rebuilt (non-reentrant checkpointing)
  bool operator==(const Recompute&) const = default;
};

/// megatron: eager, with Megatron-LM's fused kernels and the host work of its modules.
enum class KernelSet : std::uint8_t { pytorch_eager, pytorch_compile, native, fixed, megatron };
enum class Attention : std::uint8_t { flash1, flash2, flash3, triton, efficient, unfused };
/// fused_fp32: one kernel on the fp32 copy that Hugging Face's models make of their logits. chunked: head and loss together, chunk of tokens by chunk, so that no
/// logits stay (fused linear cross-entropy).
enum class Loss : std::uint8_t { eager_fp32, fused, fused_fp32, chunked };
/// rotate_half: Hugging Face's halves, negation and concat. complex: Meta's product of complex numbers in fp32. fused: one kernel.
enum class RopeKernels : std::uint8_t { rotate_half, complex, fused };
struct KernelChoice {
  KernelSet set = KernelSet::pytorch_eager;
  Attention attention = Attention::flash2;
  bool causal_skip = true;                      // fused attention skips masked tiles
  bool fused_norm = false;                      // one RMSNorm kernel instead of the eager list
  bool expand_kv = true;                        // grouped keys and values are copied for every query head before the attention (repeat_kv)
  RopeKernels rope = RopeKernels::rotate_half;  // eager rotary positions
  Loss loss = Loss::eager_fp32;
  bool keep_logits = false;        // the training loop holds the model's output until the backward is over
  std::int64_t train_metrics = 0;  // cross-entropies that the training loop takes of the kept logits after each backward
  bool operator==(const KernelChoice&) const = default;
};

enum class OptimizerImpl : std::uint8_t { for_loop, foreach, fused };
struct Optimizer {
  OptimizerImpl implementation = OptimizerImpl::foreach;  // AdamW
  bool clip_grad_norm = true;
  bool zero_grad_set_to_none = true;  // false: gradients are kept and zeroed, and later ones added to them
  bool clip_host_sync = false;        // the host reads the norm before it goes on (error_if_nonfinite, a logged norm)
  bool in_backward = false;           // each parameter is updated as soon as its gradient is there, which is given back at once
  bool operator==(const Optimizer&) const = default;
};

/// Everything that the program of a rank depends on. `world`: all ranks, data-parallel.
struct StepSpec {
  ModelShape model;
  Policy policy;
  Batch batch;
  Input input;
  Precision precision;
  Recompute recompute;
  KernelChoice kernels;
  Optimizer optimizer;
  hw::GroupShape world;
  bool sync_each_step = false;   // the host waits for the device at the end of each step, as loss.item() makes it
  bool sync_each_phase = false;  // and at the end of each forward and backward, as timers of Megatron-LM make it
};

/// Of a share p of the blocks: how many of the first n are recomputed. The next one is when n p reaches 1/2, 3/2, 5/2, ... (fms-fsdp, apply_fsdp_checkpointing).
inline std::int64_t recomputed_of_first(double share, std::int64_t n) { return static_cast<std::int64_t>(std::floor(static_cast<double>(n) * share + 0.5)); }

/// Whether checkpointing drops and rebuilds activations of this block. Every k-th as torchtitan counts them (parallelisms, "selective" with an integer).
inline bool recomputes(const Recompute& recompute, std::int64_t block) {
  if (recompute.mode == RecomputeMode::every_k) return (block + 1) % recompute.every == 0;
  if (recompute.mode == RecomputeMode::share) return recomputed_of_first(recompute.share, block + 1) > recomputed_of_first(recompute.share, block);
  return recompute.mode != RecomputeMode::none;
}

/// Positions that queries of this block see, where a window makes them fewer than the sequence has; else 0.
inline std::int64_t window_of(const ModelShape& model, std::int64_t block, std::int64_t seq_len) {
  const bool full = model.full_attention_every > 0 && (block + 1) % model.full_attention_every == 0;
  return full || model.sliding_window.value_or(seq_len) >= seq_len ? 0 : *model.sliding_window;
}

/// The type whose peak MFU is counted against: that of the operands, and for fp8 that of 16 bits, by the convention of published figures.
inline hw::Dtype peak_type(const Precision& precision) { return precision.matmul == Matmul::tf32 ? hw::Dtype::tf32 : precision.param; }

inline bool in_fp8(const Precision& precision) { return precision.matmul != Matmul::param && precision.matmul != Matmul::tf32; }

/// Blocks that no gradient passes through: frozen ones behind a frozen embedding. They run without a backward.
inline std::int64_t blocks_without_backward(const ModelShape& model) { return model.frozen_embedding ? model.frozen_blocks : 0; }

/// Whether nobody asks for the gradient of the embedding's output: with adapters alone, or if the embedding is frozen.
inline bool embedding_is_frozen(const ModelShape& model) { return model.lora_rank > 0 || model.frozen_embedding; }

/// Whether some parts are frozen and others trained as a whole.
inline bool has_frozen_parts(const ModelShape& model) { return model.frozen_embedding || model.frozen_head || model.frozen_blocks > 0; }

inline bool is_zero(Framework framework) { return framework == Framework::zero1 || framework == Framework::zero2 || framework == Framework::zero3; }

/// Tokens per GPU and micro-batch.
inline std::int64_t tokens(const Batch& batch) { return batch.micro_batch * batch.seq_len; }

}  // namespace stepcast::program
