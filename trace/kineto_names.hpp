// How Kineto and NCCL name what a trace holds: categories, collective kernels and their arguments, what blocks a host. Private to trace/.
// Sources: profiles of PyTorch 2.x with NCCL 2.17 to 2.27; torch/csrc/distributed/c10d/ParamCommsUtils. Test: tests/unit/chrome_writer_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/kernel.hpp"
#include "trace/trace.hpp"

namespace stepcast::trace {

/// Of a fused attention kernel, as its library calls it; empty for other kernels.
std::string_view attention_kernel_name(const hw::KernelShape& shape);
/// e.g. "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)".
std::string nccl_kernel_name(const hw::CollectiveShape& shape);
/// "_allgather_base", "_reduce_scatter_base", "allreduce".
const char* c10d_name(hw::CollectiveKind kind);
/// "BFloat16", "Float" ...
const char* torch_name(hw::Dtype dtype);

/// Elements that each rank puts in and gets out.
struct MessageSize {
  std::int64_t in = 0, out = 0;
};
MessageSize message_elements(const hw::CollectiveShape& shape);

/// The group of `rank` when all ranks are divided into groups of `size`: of ranks in a row or, `strided`, of every n-th; empty where they can't be.
std::vector<std::int32_t> group_ranks(std::int32_t size, bool strided, std::int32_t rank, std::int32_t world_size);

const char* name(Phase phase);
/// "cuda_runtime" for a driver call by its name, "cpu_op" for anything else that a host does.
const char* host_category(const Slice& slice, std::string_view slice_name);
/// "kernel", "gpu_memcpy" or "gpu_memset".
const char* kernel_category(std::string_view kernel_name);

/// The event as which a profile would show that the host is blocked.
struct BlockForm {
  const char* category;
  const char* name;
  const char* inner;  // a driver call of the same length inside, or null
};
BlockForm block_form(HostState state, bool loader_workers);

}  // namespace stepcast::trace
