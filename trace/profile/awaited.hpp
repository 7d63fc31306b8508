// For which other operation of its device one waited: the one that ended last before it began. Private to trace/profile. Document: docs/diagnose.md, "What a gap's end waited for".
// Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/profile/collective_line.hpp"

namespace stepcast::trace::profile {

class Awaited {
 public:
  /// Both are kept by reference.
  Awaited(const Profile& profile, const CollectiveLine& line, std::uint32_t device);
  /// The operation that ended last in (since, op.begin]; for a collective another one that ended right before it, if one did.
  [[nodiscard]] const DeviceOp* by(const DeviceOp& op, Time since) const;
  /// The collective before `op` for which it waited, directly or through kernels of other streams than `main`.
  [[nodiscard]] const DeviceOp* collective_before(const DeviceOp& op, std::uint32_t main) const;
  /// Begins of the launch calls of all operations, in order.
  [[nodiscard]] std::vector<Time> launch_times() const;

 private:
  const Profile& profile_;
  const CollectiveLine& line_;
  std::vector<const DeviceOp*> by_end_;
};

}  // namespace stepcast::trace::profile
