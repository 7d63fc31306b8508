// How GPUs fare while they are measured: clocks, temperature, and what slows them down. docs/measurement_file.md; test: tests/unit/gpu_watch_test.cpp, tests/unit/cuda_monitor_test.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stepcast::real::bench {

/// What a device's driver tells, or why it doesn't.
template <class T>
struct Told {
  std::optional<T> value{};
  std::string why_not{};
};

/// What stays as it is: the highest clocks (Hz) and the power (W) that the GPU may draw.
struct GpuLimits {
  Told<double> sm_clock, memory_clock, power;
};

/// At an instant. Clocks in Hz, temperature in degrees Celsius.
struct GpuState {
  Told<double> sm_clock, memory_clock, temperature;
  Told<std::set<std::string>> slowed_by;  // reasons for which clocks are lower than they could be, idleness aside
};

class Monitor {
 public:
  Monitor() = default;
  virtual ~Monitor() = default;
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  [[nodiscard]] virtual std::size_t gpus() const = 0;
  [[nodiscard]] virtual Told<std::string> driver_version() = 0;
  [[nodiscard]] virtual GpuLimits limits(std::size_t gpu) = 0;
  [[nodiscard]] virtual GpuState state(std::size_t gpu) = 0;
};

/// States of all GPUs of a monitor, which must outlive it, over a run.
class MonitorLog {
 public:
  explicit MonitorLog(Monitor& monitor) : monitor_(monitor), states_(monitor.gpus()) {}
  void look();
  /// The same, unless that was done within the last `pause`: asking takes the driver's time.
  void look_after(std::chrono::steady_clock::duration pause);
  [[nodiscard]] Monitor& monitor() const { return monitor_; }
  /// In the order in which they were seen.
  [[nodiscard]] const std::vector<GpuState>& states(std::size_t gpu) const { return states_.at(gpu); }

 private:
  Monitor& monitor_;
  std::vector<std::vector<GpuState>> states_;
  std::optional<std::chrono::steady_clock::time_point> looked_;
};

}  // namespace stepcast::real::bench
