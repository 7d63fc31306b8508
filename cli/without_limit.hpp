// What a scenario would take on a device with memory enough. docs/sweep.md; test: tests/unit/sweep_test.cpp, tests/unit/must_be_true_test.cpp.
#pragma once

#include <cstdint>

#include "cli/predict.hpp"

namespace stepcast::cli {

/// The report of a run that no memory limits, from the scenario's program.
Report without_memory_limit(scenarios::Scenario scenario, const program::Program& program);

/// What the pool of a run that ran out of memory would have to reserve more: the peak of a run without limit, or at least what the failed request lacked.
std::int64_t missing_bytes(const scenarios::Scenario& scenario, const program::Program& program, const Report& failed);

}  // namespace stepcast::cli
