// Runs a planned sweep: every scenario once, in parallel, a program built once for neighbours that share it. docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/sweep/plan.hpp"
#include "cli/sweep/store.hpp"

namespace stepcast::cli {

struct SweepCounts {
  std::size_t simulated = 0, kept = 0, programs = 0;  // kept: by the store, from an earlier sweep
};

/// What is to be done and how; refers to what outlives it.
struct SweepWork {
  const scenarios::ScenarioTemplate& scenario;
  const planner::Grid& grid;
  const SweepPlan& plan;
  unsigned threads = 1;
};

/// Takes a forecast that was made; from several threads.
using Keep = std::function<void(std::uint64_t key, const std::string& point)>;

/// The scenarios of a plan that the store lacks, and the part of them that is number `index` of `count`: neighbours, which mostly share their program, stay together.
std::vector<SweepPlan::Unique> open_in(const SweepPlan& plan, const SweepStore& store);
std::vector<SweepPlan::Unique> part_of(const std::vector<SweepPlan::Unique>& open, std::size_t index, std::size_t count);

/// Forecasts these scenarios of the plan; returns the number of programs that were built. Throws InputError and what `keep` throws.
std::size_t simulate(const SweepWork& work, const std::vector<SweepPlan::Unique>& open, const Keep& keep);

/// Fills the store with every scenario of the plan that it doesn't have. `done` as in for_each_index, counting scenarios. Throws InputError, std::system_error.
SweepCounts run_sweep(const SweepWork& work, SweepStore& store, const std::function<void(std::size_t)>& done = {});

}  // namespace stepcast::cli
