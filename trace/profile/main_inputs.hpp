// Since when a collective had what it needs of the compute stream: what the host had launched there before it. Private to trace/profile.
// Document: docs/diagnose.md, "What a gap's end waited for". Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

class MainInputs {
 public:
  MainInputs(const Profile& profile, const Stream& main);
  /// End of the last operation of the main stream launched before `launch`, and not before `launch` has returned.
  [[nodiscard]] Time ready(const HostCall& launch) const;

 private:
  std::vector<std::pair<Time, Time>> ends_;  // by begin of the launch call: end of the last operation so far
};

}  // namespace stepcast::trace::profile
