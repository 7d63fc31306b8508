// What a step could not have been shorter than, as it ran: from its last operation back through what each one waited for (stream order, launches, other streams, the host's own
// waits) to its begin. The parts follow each other without a hole and add up to the step. Definitions: docs/diagnose.md, "Critical path".
// Test: tests/unit/profile_critical_path_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/profile/finer_causes.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

struct PathPart {
  std::string kind;  // "compute", "copy", "TYPE" of a collective, a host cause of finer_causes, "launch_latency", "unexplained", "before_recording"
  std::string name;  // of the operation, or of the one that something unexplained came before; of host time and latencies empty
  std::int64_t count = 0;
  Time total{};
};

/// A collective on the path.
struct PathCollective {
  QueuedCollective::Id id;
  Time time{};
};

struct CriticalPath {
  std::string step;
  Span time;  // from the host's begin of the step to its last operation's end, or the host's end of the step if that is later
  std::map<std::string, Time, std::less<>> by_kind;
  std::vector<PathPart> parts;  // by kind and name, longest first
  std::vector<PathCollective> collectives;
};

/// One for each step of the host in which operations of the device were launched. Without steps: one for all launches in the file, named "".
std::vector<CriticalPath> critical_paths(const Profile& profile, std::uint32_t device, std::vector<Step> steps, HostTime& host);

/// Counts as "TYPE_straggler" what of the path's collectives was spent before the last rank had come.
void settle_stragglers(CriticalPath& path, const Lateness& lateness);

}  // namespace stepcast::trace::profile
