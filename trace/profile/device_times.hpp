// How a device spent a window: unions of intervals, never sums. Definitions: docs/diagnose.md, "Device times". Test: tests/unit/profile_metrics_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

struct TimedOp {
  Span time;
  DeviceKind kind = DeviceKind::compute;
  bool nccl = false;  // a communication kernel of NCCL or RCCL
};
using TimedOps = std::vector<TimedOp>;

/// compute + exposed_comm + exposed_memory + idle = span. A kernel of another rank's making (communication) is no compute; memory: copies and sets.
struct DeviceTimes {
  Time span{}, busy{}, idle{}, compute{}, comm{}, memory{};
  Time exposed_comm{};  // communication with no compute kernel beside it
  Time exposed_comm_not_under_compute_or_memory{};
  Time exposed_memory{};  // beside neither
  Time kernel_sum{};      // plain sum of kernels: concurrent ones count twice
  std::int64_t device_ops = 0;
};
DeviceTimes device_times(const TimedOps& ops);
/// The same within a given window, which is also the span.
DeviceTimes device_times_within(const TimedOps& ops, Span window);

/// TraceLens' division of the same time: memsets count as computation, and so do communication kernels of other libraries than NCCL and RCCL.
struct TraceLensTimes {
  Time computation{}, exposed_comm{}, exposed_memcpy{}, busy{}, idle{}, total{}, total_comm{}, total_memcpy{};
};
TraceLensTimes tracelens_times(const TimedOps& ops);

/// The union of the ops of one kind.
Spans spans_of(const TimedOps& ops, DeviceKind kind);

}  // namespace stepcast::trace::profile
