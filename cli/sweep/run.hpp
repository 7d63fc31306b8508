// Runs a planned sweep: every scenario once, in parallel, a program built once for neighbours that share it. docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstddef>
#include <functional>

#include "cli/sweep/plan.hpp"
#include "cli/sweep/store.hpp"

namespace stepcast::cli {

struct SweepCounts {
  std::size_t simulated = 0, kept = 0, programs = 0;  // kept: by the store, from an earlier sweep
};

/// Fills the store with every scenario of the plan that it doesn't have. `done` as in for_each_index, counting scenarios. Throws InputError, std::system_error.
SweepCounts run_sweep(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, const SweepPlan& plan, SweepStore& store, unsigned threads,
                      const std::function<void(std::size_t)>& done = {});

}  // namespace stepcast::cli
