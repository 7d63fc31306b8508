// What a profile would have looked like without some of the host's time: its operations are run again in their recorded order, each after what it waited for.
// Rules and limits: docs/diagnose.md, "Forecast gains". Tests: tests/unit/profile_what_if_test.cpp; against the simulator: tests/model/profile_planted_test.cpp.
#pragma once

#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// Intervals of host time that are left out.
struct Change {
  Spans cut;                          // merged
  bool synchronisations_too = false;  // the host waits for nothing
};

/// From the first begin to the last end on `device`, with the change. Without a change it is what was recorded, exactly.
Time replayed_span(const Profile& profile, std::uint32_t device, const Change& change);

}  // namespace stepcast::trace::profile
