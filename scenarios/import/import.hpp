// Configuration files of training frameworks as a scenario: accelerate (YAML), torchtitan (TOML), DeepSpeed (JSON), llm-foundry and torchtune (YAML), beside a Hugging Face config.json.
// Every key is used, ignored for a reason that is told, or refused. docs/import.md; test: tests/unit/training_config_test.cpp; fuzzed by tests/fuzz/training_config.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/hf_config.hpp"
#include "scenarios/import/settings.hpp"

namespace stepcast::scenarios {

struct ConfigFile {
  std::string path, text;
};

struct ImportedConfigs {
  nlohmann::ordered_json document;   // as a user would write the scenario
  std::vector<std::string> formats;  // by file
  std::vector<IgnoredKey> ignored;
  std::vector<std::string> warnings;
};

/// `model`: path of a config.json or name of a preset, which stands before what the files say; may be empty. `cluster`: a node profile, whose number the files may say, or
/// "NAME-N". Later files stand before earlier ones. Throws InputError.
ImportedConfigs import_configs(const std::vector<ConfigFile>& files, const std::string& model, const std::string& cluster);

/// Reads the files. Throws InputError.
std::vector<ConfigFile> read_configs(const std::vector<std::string>& paths);

}  // namespace stepcast::scenarios
