// A scenario file or name, or an imported config.json. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/load.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "scenarios/hf_config.hpp"
#include "scenarios/import/import.hpp"

namespace stepcast::cli {
namespace {

LoadedTemplate load_configs(const ScenarioChoice& choice, const std::vector<std::string>& sets) {
  scenarios::ImportedConfigs imported = scenarios::import_configs(scenarios::read_configs(choice.configs), choice.model, choice.cluster);
  if (!imported.ignored.empty())
    imported.warnings.push_back(std::to_string(imported.ignored.size()) + " keys of the configuration files change nothing here; stepcast import names them");
  return {scenarios::ScenarioTemplate(imported.document.dump(), choice.configs.front(), sets), std::move(imported.warnings)};
}

}  // namespace

LoadedTemplate load_template(const ScenarioChoice& choice) {
  const std::vector<std::string> sets = choice.changes.all();
  if (!choice.configs.empty()) return load_configs(choice, sets);
  if (!choice.model.empty()) {
    auto [text, warnings] = scenarios::document_for(choice.model, choice.cluster);
    return {scenarios::ScenarioTemplate(text, choice.model, sets), std::move(warnings)};
  }
  if (choice.scenario.empty()) throw InputError("command line", "", "no scenario given", "name a scenario, or use --model or --config with --cluster NAME-N");
  return {scenarios::ScenarioTemplate(choice.scenario, sets), {}};
}

Loaded load(const ScenarioChoice& choice) {
  auto [scenario, warnings] = load_template(choice);
  return {scenario.with({}), std::move(warnings)};
}

}  // namespace stepcast::cli
