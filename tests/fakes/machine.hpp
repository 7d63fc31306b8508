// A machine with GPUs that are not there: CUDA, cuBLAS, NCCL and NVML as far as real_backend/cuda uses them, with real numbers on host memory, streams that are threads, and no mercy.
// A fault is: memory used before what another stream does with it is known to be done, after it was given back, before it was written, or beyond its end; handles used after
// they were given back, or on another GPU than the current one; ranks that disagree about a collective; leading dimensions and types that cuBLAS refuses.
// docs/real_backend.md; each has a test with that fault planted: tests/unit/cuda_fakes_test.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/fakes/nvml.hpp"

namespace stepcast::fakes {

/// While it lives, the process has these GPUs. One at a time; all that was made on it must be idle when it goes.
class Machine {
 public:
  explicit Machine(int gpus, std::size_t bytes_of_gpu = std::size_t{1} << 30);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// In the order in which they happened, each at most once.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// Streams, events, memory, handles and communicators that were not given back.
  [[nodiscard]] std::vector<std::string> leaks() const;
  /// From now on NCCL says on this GPU that a peer has failed.
  void fail_network(int gpu);
  /// What NVML says; changes from the next question on.
  Nvml& nvml();
};

/// For grid.cuh: puts a kernel on a stream.
cudaError_t launched(cudaStream_t stream, std::function<void()> kernel);
/// For grid.cuh, inside of a kernel: where that memory really is; a fault ends the kernel.
const void* touched(const void* place, std::size_t bytes, bool write);

}  // namespace stepcast::fakes
