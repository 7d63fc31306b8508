// Before a sweep runs: every point is read, so that mistakes end it at once; points that resolve to the same scenario are found, and those with the same program are put together.
// docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/grid.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

struct SweepPlan {
  struct Unique {
    std::uint64_t key = 0;    // of all that the forecast depends on: the same in every run
    std::size_t point = 0;    // the first point that resolves to it
    std::uint64_t group = 0;  // alike where programs are likely to be alike
  };
  static constexpr std::size_t kRefused = static_cast<std::size_t>(-1);
  std::vector<Unique> uniques;         // in the order in which they are to be run
  std::vector<std::size_t> unique_of;  // by point: index into uniques, or kRefused
  std::vector<std::string> refusals;   // by point: why it can't be, where it is refused
};

/// Reads every point on up to `threads` threads. A combination that the rules of a scenario refuse is a point without forecast; a value that is refused in all its
/// combinations is a mistake. Throws InputError.
SweepPlan make_plan(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, unsigned threads);

/// Key of everything that the forecast of a scenario depends on: not its name and purpose, but the content of profile files.
std::uint64_t forecast_key(const scenarios::Scenario& scenario);

}  // namespace stepcast::cli
