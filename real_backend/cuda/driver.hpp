// The CUDA driver: one rank per GPU, ranks are threads of this process. docs/real_backend.md; test: tests/unit/cuda_train_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "real_backend/driver.hpp"

namespace stepcast::real::cuda {

/// What CUDA says about this machine. No GPU: `why_none` is the reason.
struct Gpus {
  int count = 0;
  std::string why_none, name;                    // of the first
  int cuda_version = 0;                          // the newest that the driver knows: 1000 major + 10 minor
  std::int64_t free_bytes = 0, total_bytes = 0;  // of the first
};
Gpus gpus();

/// Throws std::runtime_error where there are fewer GPUs than ranks.
std::unique_ptr<Driver> make_driver(const Common& common);

}  // namespace stepcast::real::cuda
