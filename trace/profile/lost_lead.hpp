// A host that is ahead of its device hides its own work. What blocks it while the device computes takes that lead away, and launches that come late afterwards are its cost.
// Document: docs/diagnose.md, "What a gap's end waited for". Private to trace/profile. Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "trace/profile/host_time.hpp"

namespace stepcast::trace::profile {

class LostLead {
 public:
  /// `gaps`: when the main stream was idle; `launches`: begins of launch calls, in order. Both are kept by reference or moved from.
  LostLead(HostTime& host, const Coverage& gaps, std::vector<Time> launches) : host_(host), gaps_(gaps), launches_(std::move(launches)) {}

  struct Charge {
    Blocked to;
    Time time{};
  };
  /// Charges `late`, by which a launch of `thread` at `launch` came too late, to what had blocked the thread within the 1024 launches before: at most for as long as it was
  /// blocked beside compute, the last one first, and each only once. Launches must be asked for in the order of time.
  std::vector<Charge> charge(std::uint32_t thread, Time launch, Time late);

 private:
  struct Thread {
    std::vector<Blocked> blocked;  // by end
    std::size_t next = 0;
    std::vector<Charge> open;  // what is left of those that ended
  };
  Thread& thread(std::uint32_t number);

  HostTime& host_;
  const Coverage& gaps_;
  std::vector<Time> launches_;
  std::map<std::uint32_t, Thread> threads_;
};

}  // namespace stepcast::trace::profile
