// What `tune` says beside the fastest settings: how one gets there from the scenario step by step, what would help beyond settings, and whether the winner stays one if the forecast is
// off. docs/tune.md; test: tests/unit/tune_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/report/report.hpp"
#include "cli/tune/problem.hpp"

namespace stepcast::cli {

/// A change on the way: the question that stood before it, and what it gave.
struct Decision {
  std::string question, answer;  // of the state before
  std::string change;
  std::vector<std::string> sets;
  std::string outcome;
  double step_time_s = 0, mfu = 0;
  double gain = 0;  // share of the step time before; 0 where it did not run before
};

/// The changes that lead from the scenario to the point, each time the one that gains most.
std::vector<Decision> decide(const TuneProblem& problem, const planner::Evaluated& winner, unsigned threads);

/// d ln(step time) / d ln(what is changed), from one change by a tenth.
struct Elasticity {
  std::string what;
  std::vector<std::string> sets;
  double step_time_s = 0, elasticity = 0;
};
std::vector<Elasticity> elasticities(const TuneProblem& problem, const planner::Evaluated& winner, double step_time_s);

/// How the winner does against the runners-up if the hardware is other than assumed.
struct Trial {
  std::string assumption;
  bool stays = true;  // the winner is still the fastest
  double loss = 0;    // what it takes more than the fastest then, as a share
};
std::vector<Trial> robustness(const TuneProblem& problem, const std::vector<planner::Evaluated>& leaders, unsigned threads);

}  // namespace stepcast::cli
