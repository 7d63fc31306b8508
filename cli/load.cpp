// A scenario file or name, or an imported config.json. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/load.hpp"

#include "hw_models/input_error.hpp"
#include "scenarios/hf_config.hpp"

namespace stepcast::cli {

LoadedTemplate load_template(const ScenarioChoice& choice) {
  const std::vector<std::string> sets = choice.changes.all();
  if (!choice.model.empty()) {
    auto [text, warnings] = scenarios::document_for(choice.model, choice.cluster);
    return {scenarios::ScenarioTemplate(text, choice.model, sets), std::move(warnings)};
  }
  if (choice.scenario.empty()) throw InputError("command line", "", "no scenario given", "name a scenario, or use --model CONFIG.JSON --cluster NAME-N");
  return {scenarios::ScenarioTemplate(choice.scenario, sets), {}};
}

Loaded load(const ScenarioChoice& choice) {
  auto [scenario, warnings] = load_template(choice);
  return {scenario.with({}), std::move(warnings)};
}

}  // namespace stepcast::cli
