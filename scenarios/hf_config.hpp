// Importer of Hugging Face config.json: from the file that lies beside any public model's weights to a model shape and a ready scenario.
// For users: docs/scenario.md, "Hugging Face models". Test: tests/unit/hf_config_test.cpp; fuzzed by tests/fuzz/hf_config.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/spec.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

struct ImportedModel {
  std::string name;  // what _name_or_path ends in, else from the file's path, else model_type
  program::ModelShape shape;
  std::vector<std::string> warnings;  // keys that are not known here, and properties that are not modelled
};

/// Reads llama, mistral, qwen2, phi3, gpt2 and mpt. Throws InputError naming any other model_type, and on anything malformed.
ImportedModel import_hf_config(std::string_view text, const std::string& file);

/// The model in a config.json, or a preset by its name. Throws InputError.
ImportedModel find_model(const std::string& model);
/// "NAME-N" as a node profile's name and a number of nodes; a name alone is one node. Throws InputError.
std::pair<std::string, std::int64_t> cluster_of(const std::string& name);

/// A scenario as a text, for read_scenario_text or a ScenarioTemplate.
struct ImportedDocument {
  std::string text;
  std::vector<std::string> warnings;
};

/// What scenario_for reads. Throws InputError.
ImportedDocument document_for(const std::string& model, const std::string& cluster);

struct ImportedScenario {
  Scenario scenario;
  std::vector<std::string> warnings;
};

/// A scenario for a model (path of a config.json, or name of a preset) on a cluster "NAME-N": N nodes of profile NAME ("dgx-a100-4"). Policy and the rest are the
/// format's defaults; one sequence per GPU of the model's length, at most 4096. `sets` as in read_scenario. Throws InputError.
ImportedScenario scenario_for(const std::string& model, const std::string& cluster, Sets sets = {});

}  // namespace stepcast::scenarios
