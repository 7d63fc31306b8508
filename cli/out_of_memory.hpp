// What would make a scenario fit that runs out of memory: a short ordered set of changes, each simulated. docs/report.md, "Out of memory".
// Test: tests/unit/out_of_memory_test.cpp, tests/golden/cli_test.cpp.
#pragma once

#include <vector>

#include "cli/report/report.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// The changes that apply to the scenario, in the order of how little they change, each with its forecast. The micro-batch is halved (and the accumulation doubled)
/// until it fits. Only if no single change fits, pairs of them; only if no pair
/// does, all together. More nodes come last.
std::vector<Remedy> remedies(const scenarios::Scenario& scenario);

}  // namespace stepcast::cli
