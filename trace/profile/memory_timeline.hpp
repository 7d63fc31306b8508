// The device's memory over a profile, from its memory instants: where the peak was, what each step took, how often the allocator took segments and gave them back.
// Definitions: docs/diagnose.md, "Memory over time". Test: tests/unit/profile_memory_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

struct MemoryPoint {
  Time time{};
  std::int64_t allocated = 0, reserved = 0;
};

/// The highest of both in the step; `allocations`: memory asked for in it, freed or not.
struct MemoryOfStep {
  std::string step;
  std::int64_t peak_allocated = 0, peak_reserved = 0, allocations = 0;
};

struct MemoryTimeline {
  MemoryPoint peak;      // the first at which most was allocated
  std::string step, op;  // around the peak: its ProfilerStep, and the innermost op or range of a host thread; empty where there is none
  std::int64_t peak_reserved = 0;
  std::int64_t growths = 0, drops = 0, grown_bytes = 0, dropped_bytes = 0;  // of the reserve
  std::vector<MemoryOfStep> steps;
  std::vector<MemoryPoint> curve;  // of each of at most kMemoryPoints equal stretches of time in which there was an instant the point with most allocated
};
inline constexpr std::int64_t kMemoryPoints = 200;

/// By "device type:device id"; of devices whose instants carry totals.
std::map<std::string, MemoryTimeline> memory_timelines(const Profile& profile, const std::vector<Step>& steps);

}  // namespace stepcast::trace::profile
