// What names in profiles mean: categories, collectives, driver calls of CUDA and ROCm.
#include "trace/profile/vocabulary.hpp"

#include <doctest/doctest.h>

namespace stepcast::trace::profile {
namespace {

TEST_CASE("categories of all releases, in any case; what is not known is other work") {
  CHECK(class_of("kernel") == EventClass::kernel);
  CHECK(class_of("Kernel") == EventClass::kernel);
  CHECK(class_of("Memcpy") == EventClass::copy);
  CHECK(class_of("gpu_memset") == EventClass::set);
  CHECK(class_of("cuda_driver") == EventClass::host_call);
  CHECK(class_of("Operator") == EventClass::host_op);
  CHECK(class_of("overhead") == EventClass::other);
  CHECK(is_known_category("overhead"));
  CHECK(class_of("ac2g2") == EventClass::other);
  CHECK_FALSE(is_known_category("ac2g2"));
  CHECK(class_of("gpu_memcpy") == EventClass::copy);
  CHECK(class_of("anything") == EventClass::other);
  CHECK_FALSE(is_known_category("anything"));
}

TEST_CASE("communication kernels by name, and their kind") {
  for (const char* kernel : {"ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "rcclGenericKernel", "void deep_ep::internode::dispatch<false>",
                             "multimem_all_reduce_kernel", "void vllm::cross_device_reduce_1stage<half>"})
    CHECK_MESSAGE(is_communication(kernel), kernel);
  CHECK_FALSE(is_communication("void at::native::reduce_kernel<512, 1>"));
  CHECK(is_nccl("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"));
  CHECK_FALSE(is_nccl("multimem_all_reduce_kernel"));
  CHECK(collective_type("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == "reducescatter");
  CHECK(collective_type("ncclDevKernel_AllReduce_Sum_f32_RING_LL") == "allreduce");
  CHECK(collective_type("ncclDevKernel_Reduce_Sum_f32_RING_LL") == "reduce");
  CHECK(collective_type("ncclKernel_SendRecv") == "sendrecv");
  CHECK(collective_type("ncclDevKernel_New") == "other");
  CHECK(is_communication("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"));
  CHECK(is_communication("void dpsk::ep::internode::dispatch<false>(int4*)"));
  CHECK_FALSE(is_communication("ampere_sgemm_32x32_sliced1x4_tn"));
  CHECK(collective_type("ncclDevKernel_AllGather_RING_LL") == "allgather");
  CHECK(collective_type("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t") == "sendrecv");
  CHECK(collective_type("ncclDevKernel_Reduce_Sum") == "reduce");
  // Forms of NCCL 2.23 and later, of 2.17 to 2.22, of RCCL.
  CHECK(collective_type("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "allgather");
  CHECK(collective_type("ncclKernel_ReduceScatter_RING_LL_Sum_bf16(ncclDevComm*, unsigned long, ncclWork*)") == "reducescatter");
  CHECK(collective_type("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)") == "generic");
  CHECK(collective_type("_allgather_base") == "allgather");
  CHECK(collective_type("all_to_allv") == "alltoall");
}

TEST_CASE("driver calls that stall a host, of CUDA's runtime and driver and of HIP") {
  for (const char* call : {"cudaStreamSynchronize", "hipDeviceSynchronize", "cuEventSynchronize"})
    CHECK_MESSAGE(kind_of_call(call) == CallKind::synchronise, call);
  for (const char* call : {"cudaMemcpyAsync", "hipMemcpyWithStream"}) CHECK_MESSAGE(kind_of_call(call) == CallKind::copy, call);
  for (const char* call : {"cudaMalloc", "hipFree", "cudaHostAlloc", "cuMemMap", "cuMemCreate"}) CHECK_MESSAGE(kind_of_call(call) == CallKind::allocator, call);
  for (const char* call : {"cudaLaunchKernel", "cudaMemsetAsync", "cuMemsetD8Async", "aten::mm"}) CHECK_MESSAGE(kind_of_call(call) == CallKind::plain, call);
  CHECK(kind_of_call("cudaMalloc") == CallKind::allocator);
  CHECK(kind_of_call("hipFree") == CallKind::allocator);
  CHECK(kind_of_call("cudaHostAlloc") == CallKind::allocator);
  CHECK(kind_of_call("cuMemCreate") == CallKind::allocator);
  CHECK(kind_of_call("cudaMemcpyAsync") == CallKind::copy);
  CHECK(kind_of_call("cudaStreamSynchronize") == CallKind::synchronise);
  CHECK(kind_of_call("hipDeviceSynchronize") == CallKind::synchronise);
  CHECK(kind_of_call("cudaLaunchKernel") == CallKind::plain);
  CHECK(kind_of_call("cudaMemsetAsync") == CallKind::plain);
  // A thread's own default stream, and versions.
  CHECK(kind_of_call("cudaStreamSynchronize_ptsz") == CallKind::synchronise);
  CHECK(kind_of_call("hipStreamSynchronize_spt") == CallKind::synchronise);
  CHECK(kind_of_call("cudaLaunchKernel_ptsz") == CallKind::plain);
  CHECK(kind_of_call("cuMemcpyHtoDAsync_v2") == CallKind::copy);
}

TEST_CASE("steps and data loaders") {
  CHECK(is_step("ProfilerStep#3"));
  CHECK_FALSE(is_step("enumerate ProfilerStep"));
  CHECK(is_data_loader("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"));
  CHECK_FALSE(is_data_loader("Optimizer.step#AdamW.step"));
}

}  // namespace
}  // namespace stepcast::trace::profile
