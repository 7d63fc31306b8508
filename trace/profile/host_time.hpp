// What a host thread was at, moment by moment and without overlap: of several things that hold at once the first of HostState's order counts. Document: docs/diagnose.md,
// "What a gap's end waited for". Private to trace/profile. Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "trace/profile/coverage.hpp"

namespace stepcast::trace::profile {

enum class HostAt : std::uint8_t { rate_limiter, data_loader, allocator_call, blocking_copy, synchronisation, busy, pause, count_ };
inline constexpr std::size_t kHostStates = static_cast<std::size_t>(HostAt::count_);
/// "rate_limiter", ..., "launch_bound" where the host was busy.
std::string_view name(HostAt state);
using HostShares = std::array<Time, kHostStates>;
inline Time& at(HostShares& shares, HostAt state) { return shares[static_cast<std::size_t>(state)]; }

/// A stretch during which a thread waited for something and launched nothing.
struct Blocked {
  Span time;
  HostAt state = HostAt::synchronisation;
};

class HostTime {
 public:
  explicit HostTime(const Profile& profile);

  /// [begin, end) of a thread, divided. Where the thread itself shows nothing, what other threads show counts; where none does, it is busy too, but for stretches of 1 ms and
  /// more: a pause.
  HostShares divide(std::uint32_t thread, Time begin, Time end);
  /// When a thread was blocked, by end.
  std::vector<Blocked> blocked(std::uint32_t thread);

 private:
  struct Lane {
    std::array<Coverage, kHostStates> states;  // disjoint; of `pause` nothing
    Coverage any;                              // the union
  };
  Lane& lane(std::uint32_t thread);
  Lane build(std::uint32_t thread) const;

  const Profile& profile_;
  Spans limiter_, loading_, copies_;           // of any thread; copies: as the device ran them
  std::array<Spans, kHostStates> any_thread_;  // calls and ops of all threads, by state
  std::map<std::uint32_t, Lane> lanes_;
};

}  // namespace stepcast::trace::profile
