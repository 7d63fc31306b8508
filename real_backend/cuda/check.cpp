// See check.hpp.
#include "real_backend/cuda/check.hpp"

#include <string>

namespace stepcast::real::cuda {
namespace {

void fail_unless(bool good, const char* call, const char* why) {
  if (!good) throw DeviceError(std::string(call) + ": " + why);
}

}  // namespace

void check(cudaError_t result, const char* call) { fail_unless(result == cudaSuccess, call, cudaGetErrorString(result)); }
void check(cublasStatus_t result, const char* call) { fail_unless(result == CUBLAS_STATUS_SUCCESS, call, cublasGetStatusString(result)); }
void check(ncclResult_t result, const char* call) { fail_unless(result == ncclSuccess, call, ncclGetErrorString(result)); }

}  // namespace stepcast::real::cuda
