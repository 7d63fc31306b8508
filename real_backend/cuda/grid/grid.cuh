// How kernels are spread over a GPU. Kernels are function objects that are written once, against the names of this file; the tests bring a file of the same name, which runs the
// same kernels on host memory and checks every access (tests/fakes/grid.cuh). docs/real_backend.md.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "real_backend/cuda/check.hpp"

#define STEPCAST_DEVICE __device__ __forceinline__

namespace stepcast::real::cuda {

/// Device memory as a kernel sees it. T is const where the kernel only reads.
template <class T>
using Global = T*;

inline constexpr int kThreads = 256, kWarp = 32;
inline constexpr std::int64_t kMostBlocks = 1 << 20;

/// The threads of a block, which share the work on one row. All of them must come to each call of sum and most.
class Block {
 public:
  STEPCAST_DEVICE std::int64_t first() const { return threadIdx.x; }
  STEPCAST_DEVICE std::int64_t step() const { return kThreads; }
  /// Over all threads, each of which gets the result; always in the same order.
  template <class S>
  STEPCAST_DEVICE S sum(S x) const {
    return fold(x, [](S a, S b) { return a + b; });
  }
  template <class S>
  STEPCAST_DEVICE S most(S x) const {
    return fold(x, [](S a, S b) { return a > b ? a : b; });
  }

 private:
  template <class S, class F>
  STEPCAST_DEVICE S fold(S x, F f) const {
    __shared__ S warps[kThreads / kWarp];
    for (int distance = kWarp / 2; distance > 0; distance /= 2) x = f(x, __shfl_xor_sync(~0U, x, distance));
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = x;
    __syncthreads();
    x = warps[0];
    for (int warp = 1; warp < kThreads / kWarp; ++warp) x = f(x, warps[warp]);
    __syncthreads();  // before the place is used again
    return x;
  }
};

template <class Kernel>
__global__ void __launch_bounds__(kThreads) grid_of_elements(Kernel kernel, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) kernel(i);
}

template <class Kernel>
__global__ void __launch_bounds__(kThreads) grid_of_rows(Kernel kernel, std::int64_t count) {
  const Block block;
  for (std::int64_t row = blockIdx.x; row < count; row += gridDim.x) kernel(block, row);
}

template <class Kernel>
void launch(cudaStream_t stream, void (*grid)(Kernel, std::int64_t), std::int64_t blocks, Kernel& kernel, std::int64_t count) {
  if (count <= 0) return;
  void* arguments[] = {&kernel, &count};
  const dim3 size(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
  check(cudaLaunchKernel(reinterpret_cast<const void*>(grid), size, dim3(kThreads), arguments, 0, stream), "cudaLaunchKernel");
}

/// kernel(i) for all i below `count`, each by a thread.
template <class Kernel>
void for_elements(cudaStream_t stream, std::int64_t count, Kernel kernel) {
  launch(stream, grid_of_elements<Kernel>, (count + kThreads - 1) / kThreads, kernel, count);
}

/// kernel(block, row) for all rows below `count`, each by a block.
template <class Kernel>
void for_rows(cudaStream_t stream, std::int64_t count, Kernel kernel) {
  launch(stream, grid_of_rows<Kernel>, count, kernel, count);
}

}  // namespace stepcast::real::cuda
