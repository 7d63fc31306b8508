// Reads the scenario that a command line chose. Test: tests/golden/cli_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

struct Loaded {
  scenarios::Scenario scenario;
  std::vector<std::string> warnings;  // e.g. keys of a config.json that are not understood
};

/// Throws InputError.
Loaded load(const ScenarioChoice& choice);

}  // namespace stepcast::cli
