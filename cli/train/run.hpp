// A scenario run for real on this machine, and its result in the form of a forecast's. docs/real_backend.md; test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "cli/train/process.hpp"
#include "real_backend/train.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

inline constexpr const char* kTrainSchema = "stepcast.train/1";

struct TrainOptions {
  std::string device = "host";
  bool closed_form = false;
  double deadline_s = 60;
  std::int32_t traced_ranks = 1;            // the first so many
  TrainProcess* process = nullptr;          // of several
  std::function<std::string()> ended_by{};  // see real::JobSettings
};

struct Trained {
  Prediction measured;  // scenario, program, trace and report of the real run
  std::vector<real::StepMetrics> steps;
  std::vector<real::ParameterSummary> parameters;
  nlohmann::ordered_json machine;
  std::vector<std::string> failures;  // causes; nothing else is filled in then but the outcome and the steps that were done
};

/// The scenario must have native kernels. Of several processes the first alone has a result. Throws InputError, and real::JobEnded on others than the first.
Trained train(const scenarios::Scenario& scenario, const TrainOptions& options);

/// One line per step, and the report; after a failure the steps alone.
std::string to_text(const Trained& trained);
nlohmann::ordered_json to_json(const Trained& trained);

}  // namespace stepcast::cli
