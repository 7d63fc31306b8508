// Any bytes as a configuration file of a training framework, in each syntax: a scenario or one line of InputError. What is imported can be read, or is refused by the scenario's rules.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hw_models/input_error.hpp"
#include "scenarios/import/import.hpp"
#include "scenarios/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"fuzz.yaml", "fuzz.toml", "fuzz.json"}) {
    try {
      const auto imported = scenarios::import_configs({{name, text}}, "gpt2-xl", "dgx-a100-2");
      static_cast<void>(scenarios::read_scenario_text(imported.document.dump(), name));
    } catch (const InputError& error) {
      if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
    }
  }
  return 0;
}
