// `stepcast import`: configuration files of a training framework as a scenario, and what was made of every key. docs/import.md; test: tests/golden/import_test.cpp.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "scenarios/import/import.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {
namespace {

struct ImportOptions {
  std::vector<std::string> files;
  std::string model, cluster;
  ScenarioChanges changes;
  bool json = false;
};

nlohmann::ordered_json to_json(const scenarios::ImportedConfigs& imported, const scenarios::Scenario& resolved) {
  nlohmann::ordered_json json = {
      {"schema", "stepcast.import/1"}, {"formats", imported.formats}, {"scenario", imported.document}, {"resolved_scenario", scenarios::to_json(resolved)}};
  json["ignored"] = nlohmann::ordered_json::array();
  for (const scenarios::IgnoredKey& key : imported.ignored) json["ignored"].push_back({{"file", key.file}, {"key", key.key}, {"reason", key.reason}});
  json["warnings"] = imported.warnings;
  return json;
}

void name_ignored(const scenarios::ImportedConfigs& imported) {
  for (const scenarios::IgnoredKey& key : imported.ignored)
    std::fprintf(stderr, "stepcast: %s%s%s ignored: %s\n", key.file.c_str(), key.file.empty() ? "" : ": ", key.key.c_str(), key.reason.c_str());
  for (const std::string& warning : imported.warnings) std::fprintf(stderr, "stepcast: %s\n", warning.c_str());
}

Exit import_command(const ImportOptions& options) {
  const scenarios::ImportedConfigs imported = scenarios::import_configs(scenarios::read_configs(options.files), options.model, options.cluster);
  const std::string text = imported.document.dump(2) + "\n";
  const scenarios::Scenario resolved = scenarios::read_scenario_text(text, options.files.front(), options.changes.all());
  if (!options.json) name_ignored(imported);
  print(options.json ? to_json(imported, resolved).dump(2) + "\n" : options.changes.all().empty() ? text : scenarios::to_json_text(resolved) + "\n");
  return Exit::ok;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Configuration files of a training framework as a scenario");
  command->add_option("files", options->files, "Configuration of accelerate, torchtitan, DeepSpeed, llm-foundry or torchtune, and a Hugging Face config.json")
      ->required()
      ->expected(1, 100)
      ->type_name("FILE");
  command->add_option("--cluster", options->cluster, "Node type, of which the files say how many there are, or NAME-N")->type_name("NAME[-N]")->required();
  command->add_option("--model", options->model, "config.json or a built-in model's name, where the files don't say which")->type_name("CONFIG.JSON");
  options->changes.add_to(*command);
  command->add_flag("--json", options->json, "One JSON object on standard output: the scenario, and every key that is ignored with the reason");
  command->footer(
      "Examples:\n  stepcast import llama3_8b.toml --cluster dgx-a100-8 > scenario.json\n"
      "  stepcast import fsdp.yaml --model llama-2-7b --cluster dgx-a100\n"
      "  stepcast import ds_config.json config.json --cluster dgx-h100-2 --json");
  command->callback([options, &action] { action = [options] { return import_command(*options); }; });
}

}  // namespace stepcast::cli
