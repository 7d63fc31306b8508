// Owners of what CUDA and cuBLAS hand out. Test: tests/unit/cuda_device_test.cpp (nothing is left over).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "real_backend/cuda/check.hpp"

namespace stepcast::real::cuda {

/// What a close returns is of no use: errors of earlier work, which has failed the job already.
struct Close {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
template <class Handle>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Close>;

struct CloseDeviceMemory {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
using DeviceBytes = std::unique_ptr<std::byte, CloseDeviceMemory>;

struct ClosePinnedMemory {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using PinnedBytes = std::unique_ptr<std::byte, ClosePinnedMemory>;

/// A stream that does not wait for CUDA's default one.
Owner<cudaStream_t> make_stream();
Owner<cudaEvent_t> make_event(bool timed);
Owner<cublasHandle_t> make_blas(cudaStream_t stream);
/// Throws OutOfMemory.
DeviceBytes make_device_bytes(std::int64_t bytes);
PinnedBytes make_pinned_bytes(std::int64_t bytes);

/// Events with times, which are used over and over. From any thread.
class Timers {
 public:
  Owner<cudaEvent_t> take();
  void give(Owner<cudaEvent_t> event);

 private:
  std::mutex mutex_;
  std::vector<Owner<cudaEvent_t>> free_;
};

}  // namespace stepcast::real::cuda
