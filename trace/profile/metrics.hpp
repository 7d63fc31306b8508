// All numbers of one profile. Definitions: docs/diagnose.md. Tests: tests/unit/profile_metrics_test.cpp; against real profiles: tests/model/profile_figures_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/profile/critical_path.hpp"
#include "trace/profile/device_times.hpp"
#include "trace/profile/finer_causes.hpp"
#include "trace/profile/gaps.hpp"
#include "trace/profile/passes.hpp"
#include "trace/profile/profile.hpp"
#include "trace/profile/rates.hpp"

namespace stepcast::trace::profile {

std::vector<Step> steps_of(const Profile& profile);

/// Of n values in order, the p-quantile is number floor(p n), the last at most.
struct Distribution {
  std::int64_t count = 0;
  Time min{}, p50{}, p90{}, p99{}, max{}, sum{};
};
Distribution distribution(std::vector<Time> values);

struct Launches {
  std::int64_t matched = 0, unmatched = 0, negative = 0;  // negative: the op began before its call returned
  Distribution start_minus_launch_end, launch_call;
};

/// Operations launched and not begun yet.
struct Queue {
  std::int64_t ops = 0, max = 0;
  double time_weighted_mean = 0;
};

struct StreamSums {
  std::int64_t ops = 0;
  Time compute{}, comm{}, memory{};
};

struct NamedTotal {
  std::string name;
  std::int64_t count = 0;
  Time total{};
};

struct CollectiveTotal {
  std::int64_t count = 0;
  Time sum{}, not_under_compute{}, min{}, max{};
};

struct StepOnDevice {
  std::string step;
  DeviceTimes times;
};

struct DeviceMetrics {
  std::uint32_t device = 0;  // index into Profile::devices
  DeviceTimes whole_window;
  TraceLensTimes tracelens;
  std::optional<DeviceTimes> launched_only;  // of the ops whose launch call is in the file
  std::optional<TraceLensTimes> tracelens_launched_only;
  std::vector<StepOnDevice> per_cpu_step_window;
  std::vector<StepOnDevice> per_launching_step;  // "none": launched outside every step, or by a call that is not in the file
  std::map<std::int64_t, StreamSums> streams;
  std::vector<NamedTotal> ops;  // by name, longest total first
  std::map<std::string, CollectiveTotal, std::less<>> comm_by_type;
  Launches launches;
  std::map<std::int64_t, Queue> queues;
  std::optional<Gaps> gaps;
  FinerCauses finer;                // of the gaps
  std::vector<CriticalPath> paths;  // of the steps
  Rates rates;
  PassTotals passes{};
  StepsOnDevice steady;
};
/// In the order of the devices' names.
std::vector<DeviceMetrics> device_metrics(const Profile& profile);

struct CallTotal {
  std::int64_t count = 0;
  Time total{}, max{};
};

/// Memory instants of one device.
struct MemoryTotals {
  std::int64_t events = 0, allocs = 0, frees = 0, zero = 0, net_bytes = 0, running_sum_peak = 0, running_sum_min = 0, with_address = 0;
  bool has_totals = false;
  std::int64_t peak_allocated = 0, first_allocated = 0, last_allocated = 0, peak_reserved = 0, min_reserved = 0, reserved_changes = 0;
};

struct HostMetrics {
  std::map<std::string, CallTotal> calls;   // runtime and driver
  std::map<std::string, CallTotal> stalls;  // those that allocate or wait
  CallTotal data_loader;
  std::map<std::string, MemoryTotals> memory;  // by "device type:device id"
};
HostMetrics host_metrics(const Profile& profile);

}  // namespace stepcast::trace::profile
