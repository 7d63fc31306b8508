// Sources: see the header. Test: tests/unit/chrome_writer_test.cpp.
#include "trace/kineto_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast::trace {

namespace {

const char* nccl_type(hw::Dtype dtype) {
  switch (dtype) {
    case hw::Dtype::fp64: return "f64";
    case hw::Dtype::fp32:
    case hw::Dtype::tf32: return "f32";
    case hw::Dtype::bf16: return "bf16";
    case hw::Dtype::fp16: return "f16";
    case hw::Dtype::fp8: return "f8e4m3";
  }
  return "?";
}

}  // namespace

std::string nccl_kernel_name(const hw::CollectiveShape& shape) {
  // The protocol that runs inside (LL, LL128, Simple) is not in the name: NCCL files all three under the LL kernel.
  constexpr const char* kArguments = "RING_LL(ncclDevComm*, unsigned long, ncclWork*)";
  switch (shape.kind) {
    case hw::CollectiveKind::all_gather: return fmt::format("ncclDevKernel_AllGather_{}", kArguments);
    case hw::CollectiveKind::reduce_scatter: return fmt::format("ncclDevKernel_ReduceScatter_Sum_{}_{}", nccl_type(shape.dtype), kArguments);
    case hw::CollectiveKind::all_reduce: return fmt::format("ncclDevKernel_AllReduce_Sum_{}_{}", nccl_type(shape.dtype), kArguments);
  }
  return "ncclDevKernel_Generic";
}

std::string_view attention_kernel_name(const hw::KernelShape& shape) {
  struct Names {
    const char *forward, *backward;
  };
  // In the order of AttentionKernel.
  constexpr Names kNames[] = {{"", ""},
                              {"fmha_fwd_loop_kernel", "fmha_bwd_loop_kernel"},
                              {"flash_fwd_kernel", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"},
                              {"flash::FlashAttnFwdSm90", "flash::FlashAttnBwdSm90"},
                              {"_attn_fwd", "_attn_bwd"},
                              {"fmha_cutlassF_aligned", "fmha_cutlassB_aligned"}};
  const Names& names = kNames[static_cast<std::size_t>(shape.attention)];
  return shape.kind == hw::KernelKind::attention_backward ? names.backward : names.forward;
}

const char* c10d_name(hw::CollectiveKind kind) {
  switch (kind) {
    case hw::CollectiveKind::all_gather: return "_allgather_base";
    case hw::CollectiveKind::reduce_scatter: return "_reduce_scatter_base";
    case hw::CollectiveKind::all_reduce: return "allreduce";
  }
  return "?";
}

const char* torch_name(hw::Dtype dtype) {
  switch (dtype) {
    case hw::Dtype::fp64: return "Double";
    case hw::Dtype::fp32:
    case hw::Dtype::tf32: return "Float";
    case hw::Dtype::bf16: return "BFloat16";
    case hw::Dtype::fp16: return "Half";
    case hw::Dtype::fp8: return "Float8_e4m3fn";
  }
  return "?";
}

MessageSize message_elements(const hw::CollectiveShape& shape) {
  const std::int64_t big = shape.bytes / std::max<std::int64_t>(1, hw::bytes_per_element(shape.dtype));
  const std::int64_t small = big / std::max(1, shape.group.ranks());
  switch (shape.kind) {
    case hw::CollectiveKind::all_gather: return {small, big};
    case hw::CollectiveKind::reduce_scatter: return {big, small};
    case hw::CollectiveKind::all_reduce: return {big, big};
  }
  return {};
}

std::vector<std::int32_t> group_ranks(std::int32_t size, bool strided, std::int32_t rank, std::int32_t world_size) {
  if (size < 1 || size > world_size || world_size % size != 0) return {};
  const std::int32_t stride = strided ? world_size / size : 1;
  const std::int32_t first = strided ? rank % stride : rank / size * size;
  std::vector<std::int32_t> ranks;
  ranks.reserve(static_cast<std::size_t>(size));
  for (std::int32_t i = 0; i < size; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

const char* name(Phase phase) {
  switch (phase) {
    case Phase::none: return "none";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::optimizer: return "optimizer";
  }
  return "?";
}

const char* host_category(const Slice& slice, std::string_view slice_name) {
  if (slice.category == Category::annotation) return "user_annotation";
  return slice.category == Category::host_runtime || slice_name.starts_with("cuda") ? "cuda_runtime" : "cpu_op";
}

const char* kernel_category(std::string_view kernel_name) {
  if (kernel_name.starts_with("Memcpy")) return "gpu_memcpy";
  return kernel_name.starts_with("Memset") ? "gpu_memset" : "kernel";
}

BlockForm block_form(HostState state, bool loader_workers) {
  switch (state) {
    case HostState::working: break;
    case HostState::rate_limiter: return {"user_annotation", "FullyShardedDataParallel.rate_limiter", "cudaEventSynchronize"};
    case HostState::synchronize: return {"cuda_runtime", "cudaStreamSynchronize", nullptr};
    case HostState::device_malloc: return {"cuda_runtime", "cudaMalloc", nullptr};
    case HostState::allocator_flush: return {"cuda_runtime", "cudaFree", nullptr};
    case HostState::data_loader:
      return {"user_annotation",
              loader_workers ? "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" : "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
              nullptr};
    case HostState::launch_queue_full: return {"overhead", "Command Buffer Full", nullptr};  // CUPTI's name for it
    case HostState::paused: return {"user_annotation", "host pause", nullptr};               // no operator: a profiler sees nothing there
  }
  return {"cpu_op", "wait", nullptr};
}

}  // namespace stepcast::trace
