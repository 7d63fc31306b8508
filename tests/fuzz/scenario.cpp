// Any bytes as a scenario: read_scenario_text accepts or throws InputError, and what it accepts reads back equal. A line beginning with '/' at the end is a --set.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/input_error.hpp"
#include "scenarios/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> sets;
  if (const auto line = text.rfind("\n/"); line != std::string_view::npos) {
    sets.emplace_back(text.substr(line + 1));
    text = text.substr(0, line);
  }
  try {
    const scenarios::Scenario scenario = scenarios::read_scenario_text(text, "fuzz/fuzz.json", sets);
    if (!(scenarios::read_scenario_text(scenarios::to_json_text(scenario), "again.json") == scenario)) std::abort();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
