// A scenario with other micro-batches. Tests: tests/unit/must_be_true_test.cpp, tests/unit/roofline_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "scenarios/limits.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// The largest micro-batch that the rules of a scenario allow.
inline std::int64_t most_sequences(const scenarios::Scenario& scenario) {
  const std::int64_t length = scenario.batch.seq_len;
  return std::min({scenarios::kMaxMicroBatch, scenarios::kMaxTokens / length, scenarios::kMaxScores / (scenario.model.heads * length * length)});
}

/// The scenario with another micro-batch, the accumulation as it is.
inline scenarios::Scenario with_batch(scenarios::Scenario scenario, std::int64_t micro_batch) {
  scenario.batch.micro_batch = micro_batch;
  return scenario;
}

}  // namespace stepcast::cli
