// Where the step's time goes that is not model FLOPs at the device's peak: losses that add up to the step exactly, from an MFU of 100 % down. docs/report.md, "Explain";
// test: tests/unit/explain_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"

namespace stepcast::cli {

struct Loss {
  std::string name;
  double seconds = 0;  // negative: FLOPs that the convention counts and nobody computes
};

struct Explanation {
  double step_s = 0;   // the last step
  double ideal_s = 0;  // model FLOPs at the device's peak
  std::vector<Loss> losses;
};

/// Of a prediction with its trace. Throws InputError where there is no peak (fixed costs) or no step.
Explanation explain(const Prediction& prediction);

nlohmann::ordered_json to_json(const Explanation& explanation);
std::string to_text(const Explanation& explanation);

}  // namespace stepcast::cli
