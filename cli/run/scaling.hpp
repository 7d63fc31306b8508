// The same scenario on clusters of several sizes, each GPU with the same batch (weak scaling). docs/questions.md, "Scaling"; test: tests/unit/scaling_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

struct ScalingRow {
  std::int64_t nodes = 1, gpus = 0;  // gpus 0: not known, since the scenario was refused
  std::string outcome;               // ok, out_of_memory, deadlock, or why the rules refuse it
  double step_time_s = 0, tokens_per_s_per_gpu = 0, mfu = 0, comm_s = 0, exposed_comm_s = 0;
  std::int64_t peak_reserved_bytes = 0;
  std::string bound;
  bool has_mfu = false;
  double efficiency = 0;  // tokens/s/GPU relative to the first row that runs
};

/// One forecast for each number of nodes, in the order given.
std::vector<ScalingRow> scaling(const scenarios::ScenarioTemplate& scenario, const std::vector<std::int64_t>& nodes, unsigned threads);

nlohmann::ordered_json to_json(const std::vector<ScalingRow>& rows);
std::string to_text(const std::vector<ScalingRow>& rows);

}  // namespace stepcast::cli
