// The prediction of predict.hpp for pages that are drawn anew at each change. Test: tests/unit/serve_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/predict.hpp"

namespace stepcast::cli {

/// The same report, with a trace of the last step alone where steps are alike.
Prediction predict_last_step(const scenarios::Scenario& scenario, std::vector<std::string> warnings = {});

}  // namespace stepcast::cli
