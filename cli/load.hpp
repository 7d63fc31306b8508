// Reads the scenario that a command line chose. Test: tests/golden/cli_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

struct Loaded {
  scenarios::Scenario scenario;
  std::vector<std::string> warnings;  // e.g. keys of a config.json that are not understood
};

/// Throws InputError.
Loaded load(const ScenarioChoice& choice);

struct LoadedTemplate {
  scenarios::ScenarioTemplate scenario;
  std::vector<std::string> warnings;
};

/// The same for a scenario that is going to be varied. Throws InputError.
LoadedTemplate load_template(const ScenarioChoice& choice);

}  // namespace stepcast::cli
