// What NVIDIA's management library (NVML) says of the GPUs of this process. It comes with the driver, not with CUDA, and is looked for when it is needed.
// Test: tests/unit/cuda_monitor_test.cpp.
#pragma once

#include <memory>

#include "real_backend/bench/monitor.hpp"

namespace stepcast::real::cuda {

inline constexpr const char* kNvml = "libnvidia-ml.so.1";

/// Of the first `gpus` GPUs that CUDA sees here; without the library, or where it refuses, why. `library`: as dlopen takes it; null: the program itself.
bench::Told<std::unique_ptr<bench::Monitor>> monitor(int gpus, const char* library = kNvml);

}  // namespace stepcast::real::cuda
