// Clocks, temperature and throttling of the GPUs that `bench` measures, for the measurement file. docs/measurement_file.md; test: tests/unit/gpu_watch_test.cpp.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "real_backend/bench/monitor.hpp"

namespace stepcast::cli {

class GpuWatch {
 public:
  /// Looks for the first time. Without a monitor it notes why there is none.
  explicit GpuWatch(real::bench::Told<std::unique_ptr<real::bench::Monitor>> monitor);
  /// Between two repetitions: looks now and then.
  void between();
  /// Looks for the last time, and adds what was seen to the facts of the machine.
  void add_to(nlohmann::ordered_json& machine);

 private:
  real::bench::Told<std::unique_ptr<real::bench::Monitor>> monitor_;
  std::optional<real::bench::MonitorLog> log_;
};

}  // namespace stepcast::cli
