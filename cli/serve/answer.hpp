// What `stepcast serve` answers to a change of settings: the forecast of `run` as data for the page, the controls with what they can be set to, and the command that gives
// the same. docs/serve.md, "Requests"; test: tests/unit/serve_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/serve/live_scenario.hpp"

namespace stepcast::cli {

inline constexpr const char* kServeSchema = "stepcast.serve/1";

/// The scenario that is served.
struct Served {
  LiveScenario scenario;
  std::vector<std::string> warnings;  // of reading it
  std::string command;                // that forecasts it: "stepcast run 7b-32xa100"
};

/// Throws InputError where the settings can't be forecast.
nlohmann::ordered_json answer(const Served& served, const ForecastRequest& request);

/// As a word of sh.
std::string shell_word(const std::string& text);

}  // namespace stepcast::cli
