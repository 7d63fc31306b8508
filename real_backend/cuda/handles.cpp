// See handles.hpp.
#include "real_backend/cuda/handles.hpp"

#include <string>
#include <utility>

#include "real_backend/device.hpp"

namespace stepcast::real::cuda {

Owner<cudaStream_t> make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return Owner<cudaStream_t>(stream);
}

Owner<cudaEvent_t> make_event(bool timed) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return Owner<cudaEvent_t>(event);
}

Owner<cublasHandle_t> make_blas(cudaStream_t stream) {
  cublasHandle_t made = nullptr;
  check(cublasCreate(&made), "cublasCreate");
  Owner<cublasHandle_t> handle(made);
  check(cublasSetStream(made, stream), "cublasSetStream");
  return handle;
}

DeviceBytes make_device_bytes(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (result == cudaErrorMemoryAllocation) throw OutOfMemory("the device has no " + std::to_string(bytes) + " bytes in one piece left");
  check(result, "cudaMalloc");
  return DeviceBytes(static_cast<std::byte*>(memory));
}

PinnedBytes make_pinned_bytes(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  return PinnedBytes(static_cast<std::byte*>(memory));
}

Owner<cudaEvent_t> Timers::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Owner<cudaEvent_t> event = std::move(free_.back());
      free_.pop_back();
      return event;
    }
  }
  return make_event(true);
}

void Timers::give(Owner<cudaEvent_t> event) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(event));
}

}  // namespace stepcast::real::cuda
