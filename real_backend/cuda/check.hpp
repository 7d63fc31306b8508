// Results of CUDA, cuBLAS and NCCL, as exceptions. Test: tests/unit/cuda_device_test.cpp.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdexcept>

namespace stepcast::real::cuda {

/// A call that a library refused, or work on the device that failed.
struct DeviceError final : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws DeviceError: the call, and what the library says.
void check(cudaError_t result, const char* call);
void check(cublasStatus_t result, const char* call);
void check(ncclResult_t result, const char* call);

}  // namespace stepcast::real::cuda
