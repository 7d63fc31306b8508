// Forecasts of built-in scenarios with settings changed, for tests that compare them.
#pragma once

#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::test {

inline cli::Prediction forecast(const std::string& scenario, const std::vector<std::string>& sets = {}) {
  return cli::predict(scenarios::read_scenario(scenario, sets));
}

inline cli::Prediction forecast_text(const std::string& text, const std::vector<std::string>& sets = {}) {
  return cli::predict(scenarios::read_scenario_text(text, "test", sets));
}

}  // namespace stepcast::test
