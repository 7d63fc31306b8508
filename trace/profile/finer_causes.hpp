// Every gap cut into parts by what its end waited for: back from the kernel that ended it, through what that one waited for, to the gap's begin. The parts add up to the gaps.
// Definitions: docs/diagnose.md, "What a gap's end waited for". Tests: tests/unit/profile_finer_causes_test.cpp; planted: tests/model/profile_planted_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/profile/gaps.hpp"
#include "trace/profile/host_time.hpp"

namespace stepcast::trace::profile {

/// A collective, and what it may have waited for before it began.
struct QueuedCollective {
  /// Its type (collective_type: lives for ever) and its position among the device's collectives of the type.
  struct Id {
    std::string_view type;
    std::uint32_t position = 0;
  };
  Id id;
  Span time;
  Time ready{};                            // it had what it needs but for those before it
  std::optional<std::size_t> before = {};  // in FinerCauses::queue: the one that had ended right when it began, directly or through kernels of other streams
};

/// The part of a gap in which a collective ran for which the compute stream waited. Which of it was spent waiting for other ranks only the other ranks' profiles tell.
struct CollectiveWait {
  std::size_t collective = 0;  // in FinerCauses::queue
  Span gap;
  std::string transfer_cause;  // under which `transfer` was counted
  Time transfer{}, behind{};
};

struct FinerCauses {
  std::map<std::string, CauseSum, std::less<>> by_cause;  // count: parts
  std::vector<CollectiveWait> waits;
  std::vector<QueuedCollective> queue;  // those of `waits`, and those before them
};
FinerCauses finer_causes(const Profile& profile, std::uint32_t device, const Gaps& gaps, HostTime& host);

/// A cause that lies with the rank itself, not with other ranks or the links.
bool is_own_doing(std::string_view cause);

/// How much later than this rank the last one began each collective, by type and position.
using Lateness = std::map<std::string, std::vector<Time>, std::less<>>;
/// Moves to "TYPE_straggler" what of the waits would not have been if no collective had begun on another rank later than on this one: each would have run when it was ready and those
/// before it had ended, and the compute stream would have been earlier by what its gaps so far had been shorter by.
void settle_stragglers(FinerCauses& causes, const Lateness& lateness);

}  // namespace stepcast::trace::profile
