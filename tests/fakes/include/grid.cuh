// The fakes' form of real_backend/cuda/grid/grid.cuh: the same kernels, one after the other on host memory, and every access is checked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "real_backend/cuda/check.hpp"
#include "tests/fakes/machine.hpp"

#define STEPCAST_DEVICE inline

namespace stepcast::real::cuda {

/// A pointer into the memory of a fake GPU: the kernel that reads or writes through it must be allowed to.
template <class T>
class Global {
 public:
  Global(T* place) : place_(place) {}
  T& operator[](std::int64_t i) const { return *static_cast<T*>(const_cast<void*>(fakes::touched(place_ + i, sizeof(T), !std::is_const_v<T>))); }

 private:
  T* place_;
};

/// A block of one thread.
struct Block {
  static std::int64_t first() { return 0; }
  static std::int64_t step() { return 1; }
  template <class S>
  static S sum(S x) {
    return x;
  }
  template <class S>
  static S most(S x) {
    return x;
  }
};

template <class Kernel>
void for_elements(cudaStream_t stream, std::int64_t count, Kernel kernel) {
  if (count <= 0) return;
  check(fakes::launched(stream,
                        [kernel, count] {
                          for (std::int64_t i = 0; i < count; ++i) kernel(i);
                        }),
        "cudaLaunchKernel");
}

template <class Kernel>
void for_rows(cudaStream_t stream, std::int64_t count, Kernel kernel) {
  if (count <= 0) return;
  check(fakes::launched(stream,
                        [kernel, count] {
                          for (std::int64_t row = 0; row < count; ++row) kernel(Block{}, row);
                        }),
        "cudaLaunchKernel");
}

}  // namespace stepcast::real::cuda
