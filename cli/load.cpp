// A scenario file or name, or an imported config.json. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/load.hpp"

#include "hw_models/input_error.hpp"
#include "scenarios/hf_config.hpp"

namespace stepcast::cli {

Loaded load(const ScenarioChoice& choice) {
  const std::vector<std::string> sets = choice.changes.all();
  if (!choice.model.empty()) {
    auto [scenario, warnings] = scenarios::scenario_for(choice.model, choice.cluster, sets);
    return {std::move(scenario), std::move(warnings)};
  }
  if (choice.scenario.empty()) throw InputError("command line", "", "no scenario given", "name a scenario, or use --model CONFIG.JSON --cluster NAME-N");
  return {scenarios::read_scenario(choice.scenario, sets), {}};
}

}  // namespace stepcast::cli
