// What the host's threads did, as coverages: per thread and for all, by kind of call. Private to trace/profile. Test: tests/unit/profile_gaps_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "trace/profile/coverage.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

class HostActivity {
 public:
  explicit HostActivity(const Profile& profile);

  /// Time of calls of one kind in [begin, end) on one thread; on kAnyThread, of all threads together.
  [[nodiscard]] Time calls(CallKind kind, std::uint32_t thread, Time begin, Time end) const;
  [[nodiscard]] Time data_loading(Time begin, Time end) const { return loading_.within(begin, end); }
  /// Time covered by ops or calls of any thread; ranges that only name what is in them don't count.
  [[nodiscard]] Time any(Time begin, Time end) const { return any_.within(begin, end); }

  static constexpr std::uint32_t kAnyThread = kNoIndex;

 private:
  std::map<std::pair<std::uint32_t, CallKind>, Coverage> calls_;
  Coverage loading_, any_;
};

}  // namespace stepcast::trace::profile
