// The rules behind findings_of, by what they look at. Private to trace/profile.
#pragma once

#include "trace/profile/findings.hpp"
#include "trace/profile/what_if.hpp"

namespace stepcast::trace::profile {

inline constexpr double kWorthwhile = 0.03;  // of the window; below it no finding is reported

/// What rules see: one device of one rank.
struct Scene {
  const RankDiagnosis& rank;
  const DeviceMetrics& device;

  [[nodiscard]] Time window() const { return device.whole_window.span; }
  [[nodiscard]] double share(Time time) const;
  [[nodiscard]] CauseSum gaps(Cause cause) const;
  /// Share of the window by which the device's replay is shorter with the change. `cut`: in any order.
  [[nodiscard]] double gain_without(Spans cut, bool synchronisations_too = false) const;
  [[nodiscard]] Time gap_total() const { return device.gaps ? device.gaps->total : Time{}; }
};

std::string milliseconds_text(Time time);
std::string percent_text(double share);

void find_host_causes(const Scene& scene, std::vector<Finding>& out);           // loader, allocator, launches, stalls, copies
void find_lost_lead(const Scene& scene, std::vector<Finding>& out);             // the rate limiter, clipping that waits
void find_communication_causes(const Scene& scene, std::vector<Finding>& out);  // exposed, serialised, small
void find_kernel_causes(const Scene& scene, std::vector<Finding>& out);         // unfused attention, contention

}  // namespace stepcast::trace::profile
