// The space of settings as a problem for the search: bounds from programs and prices, times from simulations. docs/tune.md; test: tests/unit/tune_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/report.hpp"
#include "planner/search.hpp"
#include "planner/space.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

/// The report of a scenario; of one with many micro-batches from a few (docs/validate.md, "Accumulation"). Throws InputError.
Report whole_step(const scenarios::Scenario& scenario);

class TuneProblem {
 public:
  /// `base` is the template's own scenario, folded and without draws. Throws InputError.
  TuneProblem(scenarios::ScenarioTemplate scenario, const scenarios::Scenario& base, planner::Space space);

  /// Refers to this object.
  [[nodiscard]] planner::Problem problem() const;
  [[nodiscard]] const planner::Space& space() const { return space_; }
  [[nodiscard]] const scenarios::ScenarioTemplate& scenario() const { return scenario_; }

  /// A point as --set texts on the template's scenario, and its choices.
  [[nodiscard]] std::vector<std::string> sets(const planner::Evaluated& point) const;
  [[nodiscard]] std::vector<const planner::Option*> choices(const planner::Evaluated& point) const;
  [[nodiscard]] const planner::Family& family(const planner::Evaluated& point) const { return space_.families[groups_[point.group].family]; }

 private:
  struct Group {
    std::size_t family = 0, work = 0;
  };
  [[nodiscard]] std::vector<std::string> head(const planner::Family& family) const;
  [[nodiscard]] std::vector<std::string> sets_of(std::size_t group, std::size_t cls, std::size_t order, std::size_t allocator) const;
  [[nodiscard]] planner::ClassBound group_bound(std::size_t group) const;
  [[nodiscard]] planner::ClassBound bound(std::size_t group, std::size_t cls) const;
  [[nodiscard]] planner::Score evaluate(std::size_t group, std::size_t cls, std::size_t order, double time_to_beat) const;

  scenarios::ScenarioTemplate scenario_;
  planner::Space space_;
  std::vector<Group> groups_;
  std::vector<std::string> own_policy_;  // settings of the base that stay
  std::int64_t memory_limit_ = 0;
};

}  // namespace stepcast::cli
