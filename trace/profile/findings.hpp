// What is wrong with a profiled run, as rules over its numbers: each finding has its evidence, what to try, and the most that it could gain.
// Rules and thresholds: docs/diagnose.md, "Findings". Tests: tests/unit/profile_findings_test.cpp, tests/model/profile_findings_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/profile/across_ranks.hpp"
#include "trace/profile/diagnosis.hpp"

namespace stepcast::trace::profile {

struct Finding {
  std::string name, where;  // where: rank and device
  double confidence = 0;    // 0 to 1: how surely the evidence means this cause
  double share = 0;         // of the window's length
  double upper_bound = 0;   // share of the window that would be gone if the cause were; 0 where no bound is known
  std::vector<std::string> evidence;
  std::string advice;
  std::optional<double> forecast =
      {};  // share of the window that the replay without the cause is shorter; or, where `change` is, of the step that a simulation with it is
  std::vector<std::string> change = {};  // of an inferred scenario, as "/policy/forward_prefetch=true"
};

/// Findings of one rank, largest share first.
std::vector<Finding> findings_of(const RankDiagnosis& rank);
/// Ranks that the others wait for. `window`: length of a rank's profile.
std::vector<Finding> findings_across(const AcrossRanks& across, Time window);
/// One finding a name: the largest share, with the number of other ranks that have it.
std::vector<Finding> merged(std::vector<Finding> findings);

}  // namespace stepcast::trace::profile
