// Whatever value a key of a training framework's configuration holds, the answer is a scenario or one line of InputError: each key of the examples that the fuzzers start from, section
// or value, is given a value of every kind.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/import/import.hpp"
#include "scenarios/import/text_formats.hpp"
#include "scenarios/scenario.hpp"
#include "support/paths.hpp"

using namespace stepcast;

namespace {

using Pointer = Json::json_pointer;

Json parsed(const std::string& text, const std::string& ending) {
  if (ending == ".json") return Json::parse(text);
  return ending == ".yaml" ? scenarios::parse_yaml(text, "example") : scenarios::parse_toml(text, "example");
}

void every_key(const Json& json, const Pointer& here, std::vector<Pointer>& keys) {
  for (const auto& [name, value] : json.items()) {
    keys.push_back(here / name);
    if (value.is_object()) every_key(value, here / name, keys);
  }
}

/// JSON is YAML, but not TOML: one line for each value there, with its keys dotted.
std::string toml(const Json& json, const std::string& prefix = "") {
  std::string lines;
  for (const auto& [name, value] : json.items()) {
    const std::string key = prefix + Json(name).dump();
    if (value.is_object() && !value.empty()) lines += toml(value, key + ".");
    else lines += key + " = " + value.dump() + "\n";
  }
  return lines;
}

/// Whether it became a scenario; refusals are one line.
bool reads(const Json& json, const std::string& ending) {
  try {
    const auto imported = scenarios::import_configs({{"example" + ending, ending == ".toml" ? toml(json) : json.dump()}}, "gpt2-xl", "dgx-a100-2");
    scenarios::read_scenario_text(imported.document.dump(), "example");
    return true;
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return false;
  }
}

}  // namespace

TEST_CASE("configurations: a value of any kind at any key gives a scenario or one line") {
  const Json values = {nullptr, true, 7, -1, 0.5, 1e300, "x", "${model}", "auto", Json::array(), {1}, Json::object(), {{"a", 1}}};
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/tests/fuzz/corpus/training_config")) {
    const std::string path = entry.path().string(), ending = entry.path().extension().string();
    CAPTURE(path);
    Json example;
    try {
      example = parsed(read_text_file(path, scenarios::kMaxConfigBytes), ending);
    } catch (const InputError&) { continue; }  // an input that is no document
    std::vector<Pointer> keys;
    every_key(example, Pointer(), keys);
    for (const Pointer& key : keys) {
      for (const Json& value : values) {
        if (value.is_null() && ending == ".toml") continue;  // it has none
        CAPTURE(key.to_string());
        CAPTURE(value.dump());
        Json changed = example;
        changed[key] = value;
        CHECK_NOTHROW(reads(changed, ending));
      }
    }
  }
}
