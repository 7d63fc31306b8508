// The CUDA driver: one rank per GPU; ranks are threads of this process, or processes. docs/real_backend.md; test: tests/unit/cuda_train_test.cpp, tests/unit/cuda_launch_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "real_backend/driver.hpp"

namespace stepcast::real::cuda {

/// What CUDA says about this machine. No GPU: `why_none` is the reason.
struct Gpus {
  int count = 0;
  std::string why_none, name;                    // of the one that was asked about
  int cuda_version = 0;                          // the newest that the driver knows: 1000 major + 10 minor
  int nccl_version = 0;                          // 10000 major + 100 minor + patch
  std::int64_t free_bytes = 0, total_bytes = 0;  // of that one
};
Gpus gpus(int gpu = 0);

/// Throws std::runtime_error where there are fewer GPUs than ranks.
std::unique_ptr<Driver> make_driver(const Common& common);

/// Under which the ranks of several processes meet; one of them makes it.
std::string new_job_id();
/// The GPU of a process that is the `local_rank`-th of its machine and sees so many: the one that it sees, or that of its number. Throws std::runtime_error if there is none.
int gpu_of_process(std::int32_t local_rank, int visible);
/// Of a process with one rank, which has this GPU.
MakeDriver driver_of_process(const std::string& job_id, int gpu);

}  // namespace stepcast::real::cuda
