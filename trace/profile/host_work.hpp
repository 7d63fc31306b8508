// What the host's own work takes in a step or a forward: its thread's time less what it was blocked, paused, or waited for a place in the launch queue.
// Document: docs/diagnose.md, "From a trace to a scenario". Test: tests/unit/profile_host_work_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/profile/passes.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// A stretch of a thread's time.
struct Watched {
  std::uint32_t thread = 0;
  Span time;
};

/// The ranges ProfilerStep#n but for the first, which a profiler's start makes longer (the only one counts). Where none is marked: from the first launch in the file to the last.
std::vector<Watched> steps_of_host(const Profile& profile);

/// From the first launch of a forward in a step to the last before a backward, and what it launched.
struct ForwardRun {
  Watched host;
  Span device;
};
std::vector<ForwardRun> forwards_of(const Profile& profile, std::uint32_t device, const Passes& passes);

/// The thread's time of all of them together but for waits, allocator calls, data loading, pauses (docs/diagnose.md, "What a gap's end waited for"), a full launch queue where the file names it,
/// and what a launch call takes beyond ten times the median of all: then it waited for a place in the queue, or loaded a module.
Time host_work(const Profile& profile, const std::vector<Watched>& stretches);

}  // namespace stepcast::trace::profile
