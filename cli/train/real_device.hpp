// What --device names: how its driver is made, and the facts that reports state. Test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/train/process.hpp"
#include "real_backend/bench/monitor.hpp"
#include "real_backend/driver.hpp"

namespace stepcast::cli {

struct RealDevice {
  std::string name;               // "host" or "cuda"
  std::string unit;               // the processor or GPU, as the system names it
  std::int64_t memory_bytes = 0;  // that a rank's pool may have
  bool expandable_segments = true;
  nlohmann::ordered_json machine;  // for files
  real::MakeDriver make_driver;
  /// Of GPUs: watches the first so many of them; empty: nothing to watch.
  std::function<real::bench::Told<std::unique_ptr<real::bench::Monitor>>(int gpus)> monitor{};
  std::int32_t most_ranks = 64;
};

/// For so many ranks, in this process unless it is one of several. Throws InputError where this machine, or this build, has no such device or too few.
RealDevice real_device(const std::string& name, std::int32_t ranks, const TrainProcess* process = nullptr);
/// In cuda_device.cpp, of the program with the CUDA driver (cuda_program.hpp), else in no_cuda_device.cpp.
RealDevice cuda_device(std::int32_t ranks, const TrainProcess* process);

}  // namespace stepcast::cli
