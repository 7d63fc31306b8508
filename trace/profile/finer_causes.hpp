// Every gap cut into parts by what its end waited for: back from the kernel that ended it, through what that one waited for, to the gap's begin. The parts add up to the gaps.
// Definitions: docs/diagnose.md, "What a gap's end waited for". Tests: tests/unit/profile_finer_causes_test.cpp; planted: tests/model/profile_planted_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/profile/gaps.hpp"
#include "trace/profile/host_time.hpp"

namespace stepcast::trace::profile {

/// The part of a gap in which a collective ran for which the compute stream waited. Which of it was spent waiting for other ranks only the other ranks' profiles tell.
struct CollectiveWait {
  /// A collective: its type (collective_type: lives for ever) and its position among the device's collectives of the type.
  struct Id {
    std::string_view type;
    std::uint32_t position = 0;
  };
  std::vector<Id> line;        // itself, and those before it that had ended right when the next one began, the last first
  std::string transfer_cause;  // under which `transfer` was counted
  Time transfer{}, behind{};
};

struct FinerCauses {
  std::map<std::string, CauseSum, std::less<>> by_cause;  // count: parts
  std::vector<CollectiveWait> waits;
};
FinerCauses finer_causes(const Profile& profile, std::uint32_t device, const Gaps& gaps, HostTime& host);

/// A cause that lies with the rank itself, not with other ranks or the links.
bool is_own_doing(std::string_view cause);

/// How much later than this rank the last one began each collective, by type and position.
using Lateness = std::map<std::string, std::vector<Time>, std::less<>>;
/// Moves to "TYPE_straggler" what of the waits was spent before the last rank had come, to the collective or to one right before it in the queue; each lateness counts once.
void settle_stragglers(FinerCauses& causes, const Lateness& lateness);

}  // namespace stepcast::trace::profile
