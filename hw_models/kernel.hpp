// The vocabulary of device work: what a kernel or a collective is, by shape and never by time. Programs are written in it, cost models price it.
// FLOP and byte counts follow docs/models.md section 1; test: tests/model/kernel_test.cpp.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "hw_models/units.hpp"

namespace stepcast::hw {

enum class Dtype : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8 };
std::int64_t bytes_per_element(Dtype dtype);
const char* name(Dtype dtype);

enum class KernelKind : std::uint8_t {
  gemm,                // (m x k)(k x n), `batch` of them; out m x n
  attention_forward,   // fused; batch = sequences, n = query heads, m = sequence length, k = head dimension
  attention_backward,  // same shape; all kernels of the fused backward together
  memory_bound,        // read_bytes + write_bytes, of class `memory`
  copy_to_device,      // write_bytes from host memory (`pinned` or pageable), by a copy engine
  copy_to_host,        // read_bytes the other way
  fixed                // a phase of fixed-cost mode, see FixedPhase
};

/// Fused attention implementations. Unfused attention is gemm (batched) and memory_bound kernels.
enum class AttentionKernel : std::uint8_t { none, flash1, flash2, flash3, triton, efficient };

/// Classes of memory-bound kernel that reach different shares of the DRAM bandwidth.
/// `indexing`: gathers, scatters and elementwise kernels without vector loads (operands that are slices, transposed or broadcast, as in eager rotary embedding).
enum class MemoryClass : std::uint8_t { elementwise, normalization, softmax, indexing, copy, optimizer, tiny };

/// The phases of fixed-cost mode (the design's section 6): each is exactly one kernel.
enum class FixedPhase : std::uint8_t { none, embedding_forward, block_forward, head_forward, head_backward, block_backward, embedding_backward, optimizer };

struct KernelShape {
  KernelKind kind = KernelKind::memory_bound;
  Dtype dtype = Dtype::bf16;
  AttentionKernel attention = AttentionKernel::none;
  MemoryClass memory = MemoryClass::elementwise;
  FixedPhase phase = FixedPhase::none;
  bool causal = false;
  bool backward = false;  // gemm: a product of the backward, of a gradient
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t kv_heads = 0;                     // attention only
  std::int64_t window = 0;                       // attention only, with `causal`: positions that a query sees, 0: all before it
  std::int64_t read_bytes = 0, write_bytes = 0;  // memory_bound and copies
  bool pinned = true;                            // copies: the host's memory is page-locked
  bool together = false;                         // copies: all ranks of a node make it at the same moment
  auto operator<=>(const KernelShape&) const = default;
};

/// Share of the pairs of tokens that attention computes: 1; with a causal mask 1/2; with a window w of s positions as well w/s - (w/s)^2/2.
double attended_share(const KernelShape& shape);

/// Copies between host and device.
inline bool is_host_copy(KernelKind kind) { return kind == KernelKind::copy_to_device || kind == KernelKind::copy_to_host; }

/// FLOPs that the kernel executes (2mnk per GEMM; attention as executed, causal skipping included); 0 for memory-bound kernels.
Flops executed_flops(const KernelShape& shape);
/// DRAM traffic without cache reuse between kernels: operands once in, results once out.
Bytes dram_bytes(const KernelShape& shape);

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce };
const char* name(CollectiveKind kind);

/// Which ranks take part, as far as cost depends on it. `nodes` nodes with `ranks_per_node` members each.
struct GroupShape {
  std::int32_t ranks_per_node = 1, nodes = 1;
  [[nodiscard]] std::int32_t ranks() const { return ranks_per_node * nodes; }
  auto operator<=>(const GroupShape&) const = default;
};

/// `bytes` is the big side: the gathered output, the input of a reduce-scatter, the tensor of an all-reduce, on each rank.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_gather;
  Dtype dtype = Dtype::bf16;
  std::int64_t bytes = 0;
  GroupShape group;
  auto operator<=>(const CollectiveShape&) const = default;
};

/// What the host thread does between two device calls; each has a price of its own.
enum class HostWork : std::uint8_t {
  none,
  op_forward,       // one eager op of the forward: interpreter, dispatcher, autograd record, launch
  op_backward,      // one op of the C++ autograd engine, launch included
  op_compiled,      // one launch inside a compiled graph
  op_optimizer,     // one (multi-tensor) launch of the optimizer or of clipping
  extra_launch,     // a further kernel of the same op: the driver's launch alone
  collective_call,  // c10d call of one collective
  fsdp_pre_forward,
  fsdp_post_forward,
  fsdp_pre_backward,
  fsdp_post_backward,  // fixed part of each hook
  fsdp_root_pre_forward,
  fsdp_final_callback,
  views_unsharded,  // per parameter: point it at the gathered buffer
  views_sharded,    // per parameter: point it back at the shard
  event_record,
  stream_wait,
  allocation,  // one cached allocation or free
  step_begin,  // once per training step: loop, zero_grad, logging
  fsdp2_pre_forward,
  fsdp2_post_forward,
  fsdp2_pre_backward,
  fsdp2_post_backward,  // FSDP2: fixed part of each hook
  fsdp2_root_pre_forward,
  fsdp2_final_callback,
  dtensor_dispatch,  // per DTensor in the arguments of an optimizer's op, on top of the op
  ddp_pre_forward,
  ddp_final_callback,
  ddp_gradient_hook,   // per parameter: the reducer marks its gradient ready
  zero_gradient_hook,  // DeepSpeed, per parameter: a Python hook puts its gradient into a bucket
  zero_reduction,      // per bucket: slices, owners, bookkeeping of the gradients in it
  zero_pre_module,
  zero_post_module,  // stage 3: fixed part of each hook around a module
  zero_backward_epilogue,
  zero_step,           // fixed parts of the end of a backward and of the optimizer's step
  cpu_adam,            // on the processors of the host, per 2^20 elements: AdamW in one pass
  cpu_adam_by_tensor,  // ... op by op
  cpu_pass,            // ... one op on two tensors, such as an addition or a scaling and a norm
  op_megatron_forward,
  op_megatron_backward,  // one op of Megatron-LM's modules and autograd functions, in Python
  count_
};
inline constexpr std::size_t kHostWorkKinds = static_cast<std::size_t>(HostWork::count_);

}  // namespace stepcast::hw
