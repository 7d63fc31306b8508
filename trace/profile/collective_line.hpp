// The device's collectives in their one queue: which came before one, since when it could have begun, and when the queue was empty. Private to trace/profile.
// Document: docs/diagnose.md, "What a gap's end waited for". Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/profile/coverage.hpp"

namespace stepcast::trace::profile {

/// A gathering could have begun when the one before it had ended and the optimizer had written the parameters, if it had been launched.
class CollectiveLine {
 public:
  CollectiveLine(const Profile& profile, std::uint32_t device);

  struct Place {
    std::string_view type;
    std::uint32_t position = 0;        // among those of its type
    const DeviceOp* before = nullptr;  // of any type: ended last of those that had ended when it began
    Time earliest{};                   // its own begin where nothing says that it could have been earlier
  };
  [[nodiscard]] const Place& place(const DeviceOp& collective) const { return places_.at(&collective); }
  /// Time in [begin, end) in which no collective ran.
  [[nodiscard]] Time empty(Time begin, Time end) const { return end > begin ? end - begin - running_.within(begin, end) : Time{}; }

 private:
  std::unordered_map<const DeviceOp*, Place> places_;  // asked for by key, never walked
  Coverage running_;
};

}  // namespace stepcast::trace::profile
