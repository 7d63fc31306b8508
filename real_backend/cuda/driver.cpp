// See driver.hpp.
#include "real_backend/cuda/driver.hpp"

#include <optional>

#include "real_backend/cuda/device.hpp"

namespace stepcast::real::cuda {
namespace {

ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

class CudaDriver final : public Driver {
 public:
  /// `gpu`: of the one rank; none: rank i has GPU i.
  CudaDriver(const Common& common, const ncclUniqueId& id, std::optional<int> gpu) : common_(common), id_(id), gpu_(gpu) {}
  std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t) override {
    return std::make_unique<CudaDevice>(common_, World{static_cast<std::int32_t>(common_.training.ranks), rank, id_}, gpu_.value_or(rank), program);
  }

 private:
  Common common_;
  ncclUniqueId id_;
  std::optional<int> gpu_;
};

}  // namespace

Gpus gpus(int gpu) {
  Gpus result;
  const cudaError_t counted = cudaGetDeviceCount(&result.count);
  if (counted != cudaSuccess || result.count == 0) {
    result.count = 0;
    result.why_none = counted == cudaSuccess ? "CUDA finds no device" : cudaGetErrorString(counted);
    return result;
  }
  cudaDeviceProp properties{};
  std::size_t free = 0, total = 0;
  check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&result.cuda_version), "cudaDriverGetVersion");
  check(ncclGetVersion(&result.nccl_version), "ncclGetVersion");
  check(cudaSetDevice(gpu), "cudaSetDevice");
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
  return std::make_unique<CudaDriver>(common, new_id(), std::nullopt);
}

std::string new_job_id() {
  const ncclUniqueId id = new_id();
  return {id.internal, sizeof id.internal};
}

int gpu_of_process(std::int32_t local_rank, int visible) {
  if (visible == 1) return 0;  // each process sees its own
  if (local_rank < visible) return local_rank;
  throw DeviceError("process " + std::to_string(local_rank) + " of this machine has no GPU: there are " + std::to_string(visible));
}

MakeDriver driver_of_process(const std::string& job_id, int gpu) {
  ncclUniqueId id{};
  if (job_id.size() != sizeof id.internal) throw DeviceError("the job's id has " + std::to_string(job_id.size()) + " bytes: another NCCL than here");
  job_id.copy(id.internal, sizeof id.internal);
  return [id, gpu](const Common& common) { return std::make_unique<CudaDriver>(common, id, gpu); };
}

}  // namespace stepcast::real::cuda
