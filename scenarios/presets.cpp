// See presets.hpp.
#include "scenarios/presets.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "hw_models/embedded.hpp"
#include "hw_models/strict_json.hpp"
#include "scenarios/model_section.hpp"

namespace stepcast {
std::span<const EmbeddedFile> model_files();  // data/models
}  // namespace stepcast

namespace stepcast::scenarios {
namespace {

std::string stem(std::string_view file) { return std::string(file.substr(0, file.find(".json"))); }

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : model_files()) names.push_back(stem(file.name));
  return names;
}

Preset preset(const std::string& name) {
  for (const EmbeddedFile& file : model_files()) {
    if (stem(file.name) != name) continue;
    const Json json = parse_json(file.text, std::string(file.name));
    Reader reader(json, std::string(file.name));
    Preset found{name, reader.text("source"), reader.integer("parameters"), read_shape(reader.object("model"), {})};
    reader.finish();
    return found;
  }
  throw std::out_of_range("no model preset " + name);
}

}  // namespace stepcast::scenarios
