// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/host_causes.hpp"

namespace stepcast::trace::profile {

void add_part(FinerCauses& causes, std::string_view cause, Time time) {
  if (time <= Time{}) return;
  const auto known = causes.by_cause.find(cause);
  CauseSum& sum = known != causes.by_cause.end() ? known->second : causes.by_cause[std::string(cause)];
  ++sum.count;
  sum.total += time;
}

std::string_view HostCauses::cause_of(HostAt state, Time at) const {
  return state == HostAt::synchronisation && steps_.clipping(at) ? "clipping" : name(state);
}

void HostCauses::until(const HostCall& launch, Span part, std::string_view late) {
  const HostShares shares = host_.divide(launch.thread, part.begin, part.end);
  for (std::size_t i = 0; i < kHostStates; ++i) {
    const auto state = static_cast<HostAt>(i);
    if (state == HostAt::busy) too_late(launch, shares[i], late);
    else add_part(causes_, cause_of(state, part.begin), shares[i]);
  }
}

void HostCauses::too_late(const HostCall& launch, Time time, std::string_view late) {
  for (const LostLead::Charge& charge : lead_.charge(launch.thread, launch.begin, time)) {
    add_part(causes_, cause_of(charge.to.state, charge.to.time.begin), charge.time);
    time -= charge.time;
  }
  add_part(causes_, late, time);
}

}  // namespace stepcast::trace::profile
