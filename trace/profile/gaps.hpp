// Idle intervals between the compute kernels of a device's main stream, and the cause of each. Rules: docs/diagnose.md, "Gaps". Test: tests/unit/profile_gaps_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

enum class Cause : std::uint8_t {
  // the host was late
  host_allocator_call,
  host_sync_on_comm,  // it waited for the device, on which communication ran
  host_sync_on_memcpy,
  host_sync,
  host_memcpy_call,
  host_dataloader,
  host_launch_bound,       // busy in torch or in the runtime
  host_outside_torch_ops,  // neither: Python, sleep, another library, descheduled
  // launched in time
  device_wait_comm,
  device_wait_memcpy,
  device_wait_other_stream_compute,
  device_wait_unexplained,
  back_to_back_under_10us,
  // the launch is not in the file
  comm_running,
  memcpy_running,
  other_stream_compute,
  no_launch_info,
  count_
};
inline constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::count_);
const char* name(Cause cause);

struct IdleGap {
  Span time;
  Cause cause = Cause::no_launch_info;
  Time comm{}, memory{}, other_compute{};  // time within it with such work on the device
  const DeviceOp* before = nullptr;        // the kernel that ended last; never null
  const DeviceOp* next = nullptr;          // the kernel that ended the gap; never null
  const HostCall* launch = nullptr;        // of `next`
};

/// Every gap cut by what ran, without thresholds.
struct ExactSplit {
  Time comm{}, memory{}, other_compute{}, before_launch{}, after_launch{}, no_launch{};
};

struct CauseSum {
  std::int64_t count = 0;
  Time total{};
};

struct Gaps {
  std::int64_t main_stream = 0, compute_kernels = 0, overlapping_pairs = 0;
  std::vector<IdleGap> gaps;  // in time order
  Time total{};
  std::array<CauseSum, kCauses> by_cause{};
  ExactSplit split;
};

/// Gaps of device number `device` (index into Profile::devices); nothing where it ran no compute kernel.
std::optional<Gaps> find_gaps(const Profile& profile, std::uint32_t device);

}  // namespace stepcast::trace::profile
