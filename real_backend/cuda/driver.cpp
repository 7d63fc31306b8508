// See driver.hpp.
#include "real_backend/cuda/driver.hpp"

#include "real_backend/cuda/device.hpp"

namespace stepcast::real::cuda {
namespace {

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(const Common& common) : common_(common) { check(ncclGetUniqueId(&id_), "ncclGetUniqueId"); }
  std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t) override {
    return std::make_unique<CudaDevice>(common_, World{static_cast<std::int32_t>(common_.training.ranks), rank, id_}, rank, program);
  }

 private:
  Common common_;
  ncclUniqueId id_{};
};

}  // namespace

Gpus gpus() {
  Gpus result;
  const cudaError_t counted = cudaGetDeviceCount(&result.count);
  if (counted != cudaSuccess || result.count == 0) {
    result.count = 0;
    result.why_none = counted == cudaSuccess ? "CUDA finds no device" : cudaGetErrorString(counted);
    return result;
  }
  cudaDeviceProp properties{};
  std::size_t free = 0, total = 0;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&result.cuda_version), "cudaDriverGetVersion");
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  result.name = properties.name;
  result.free_bytes = static_cast<std::int64_t>(free);
  result.total_bytes = static_cast<std::int64_t>(total);
  return result;
}

std::unique_ptr<Driver> make_driver(const Common& common) {
  const Gpus found = gpus();
  if (found.count == 0) throw DeviceError("no GPU: " + found.why_none);
  if (common.training.ranks > found.count)
    throw DeviceError(std::to_string(common.training.ranks) + " ranks need as many GPUs, and there are " + std::to_string(found.count));
  return std::make_unique<CudaDriver>(common);
}

}  // namespace stepcast::real::cuda
