// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/main_inputs.hpp"

#include <algorithm>

namespace stepcast::trace::profile {

MainInputs::MainInputs(const Profile& profile, const Stream& main) {
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream] != main) continue;
    if (const HostCall* launch = profile.launch_of(op)) ends_.emplace_back(launch->begin, op.end);
  }
  std::sort(ends_.begin(), ends_.end());
  for (std::size_t i = 1; i < ends_.size(); ++i) ends_[i].second = std::max(ends_[i].second, ends_[i - 1].second);
}

Time MainInputs::ready(const HostCall& launch) const {
  const auto later = std::partition_point(ends_.begin(), ends_.end(), [&](const auto& end) { return end.first < launch.begin; });
  return later == ends_.begin() ? launch.end : std::max(launch.end, (later - 1)->second);
}

}  // namespace stepcast::trace::profile
