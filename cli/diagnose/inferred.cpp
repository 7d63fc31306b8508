// Test: tests/golden/diagnose_scenario_test.cpp.
#include "cli/diagnose/inferred.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output_folder.hpp"
#include "cli/report/diagnose/scenario.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {

void InferenceOptions::add_to(CLI::App& command) {
  command.add_option("--scenario", file, "Write the scenario behind the trace into this file, simulate it, and lay both side by side")->type_name("OUT.JSON");
  command.add_option("--model", model, "config.json or a built-in model's name: the model that ran, where shapes don't tell")->type_name("CONFIG.JSON");
  changes.add_to(command);
}

Inferred infer(const trace::profile::RankDiagnosis& rank, const InferenceOptions& options) {
  Inferred inferred;
  std::optional<scenarios::ImportedModel> model;
  if (!options.model.empty()) model = scenarios::find_model(options.model);
  inferred.scenario = scenario_of(rank, model, options.changes.all());
  if (!inferred.scenario || !inferred.scenario->scenario) return inferred;
  inferred.training = is_training(rank);
  inferred.utilisation = utilisation_of(rank, *inferred.scenario->scenario);
  if (options.file.empty()) return inferred;
  add_host_cost(rank, options.changes.all(), *inferred.scenario);
  inferred.compared = side_by_side(rank, *inferred.scenario->scenario);
  return inferred;
}

void write_scenario(const Inferred& inferred, const InferenceOptions& options, bool force) {
  if (!inferred.scenario) throw InputError("--scenario", "", "no scenario can be inferred", "no file has operations of a device");
  const std::filesystem::path file(options.file);
  if (file.extension() != ".json") throw InputError("--scenario", "", printable(options.file) + " does not end with .json");
  const std::string name = file.filename().string(), keys = file.stem().string() + ".keys.json";
  for (const std::string& one : {name, keys}) {
    if (!force && std::filesystem::exists(file.parent_path() / one))
      throw InputError("--scenario", "", printable((file.parent_path() / one).string()) + " is there", "choose another name, or replace it with --force");
  }
  OutputFolder out(file.has_parent_path() ? file.parent_path() : std::filesystem::path("."), {name, keys}, force);
  out.stage(name, inferred.scenario->document.dump(2) + "\n");
  out.stage(keys, keys_document(*inferred.scenario, name).dump(2) + "\n");
  out.publish();
}

nlohmann::ordered_json json_of(const Inferred& inferred) {
  using Json = nlohmann::ordered_json;
  return {{"scenario", inferred.scenario ? json_of(*inferred.scenario) : Json()},
          {"utilisation", json_of(inferred.utilisation)},
          {"predicted_beside_traced", inferred.compared ? json_of(*inferred.compared) : Json()}};
}

std::string text_of(const Inferred& inferred, const InferenceOptions& options) {
  std::string text = text_of(inferred.utilisation);
  if (!options.file.empty() && inferred.scenario) text += text_of(*inferred.scenario);
  if (inferred.compared) text += text_of(*inferred.compared);
  return text;
}

}  // namespace stepcast::cli
