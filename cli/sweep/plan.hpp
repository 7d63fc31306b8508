// Before a sweep runs: every point is read, so that mistakes end it at once; points that resolve to the same scenario are found, and those with the same program are put together.
// docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/grid.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

class SweepPlan {
 public:
  struct Unique {
    std::uint64_t key = 0;    // of all that the forecast depends on: the same in every run
    std::size_t point = 0;    // the first point that resolves to it
    std::uint64_t group = 0;  // alike where programs are likely to be alike
  };
  std::vector<Unique> uniques;  // in the order in which they are to be run

  /// What a point resolves to; nothing where it is refused.
  [[nodiscard]] const Unique* unique_of(std::size_t point) const { return places_[point] < kRefused ? &uniques[places_[point]] : nullptr; }
  /// Why a point that is refused can't be.
  [[nodiscard]] const std::string& refusal(std::size_t point) const { return reasons_[places_[point] - kRefused]; }

 private:
  friend SweepPlan make_plan(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, unsigned threads);
  static constexpr std::uint32_t kRefused = std::uint32_t{1} << 31;  // a grid has fewer points
  std::vector<std::uint32_t> places_;                                // by point: index into uniques, or kRefused plus one into reasons_
  std::vector<std::string> reasons_;                                 // each once, as many points are refused for one reason
};

/// Reads every point on up to `threads` threads. A combination that the rules of a scenario refuse is a point without forecast; a value that is refused in all its
/// combinations is a mistake. Throws InputError.
SweepPlan make_plan(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, unsigned threads);

/// Key of everything that the forecast of a scenario depends on: not its name and purpose, but the content of profile files.
std::uint64_t forecast_key(const scenarios::Scenario& scenario);

}  // namespace stepcast::cli
