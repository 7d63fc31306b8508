// The best settings for clusters of several sizes. docs/tune.md, "Number of nodes"; test: tests/golden/tune_cli_test.cpp.
#pragma once

#include <functional>
#include <vector>

#include "cli/report/tune.hpp"
#include "cli/tune/run.hpp"

namespace stepcast::cli {

/// The scenario on so many nodes.
using OnNodes = std::function<scenarios::ScenarioTemplate(std::int64_t nodes)>;

/// One search for each number of nodes, with the global batch that `settings` give. Throws InputError where the scenario can't be tuned on any cluster.
std::vector<ScaleRow> best_by_nodes(const OnNodes& scenario, const std::vector<std::int64_t>& nodes, const TuneSettings& settings);

}  // namespace stepcast::cli
