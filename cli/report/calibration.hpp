// What `stepcast calibrate` says: tables, JSON, and the fitted profiles. docs/calibration.md. Test: tests/golden/calibrate_cli_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/advice.hpp"
#include "calibration/fit.hpp"
#include "calibration/measurement.hpp"
#include "calibration/residuals.hpp"

namespace stepcast::cli {

struct CalibrationReport {
  std::vector<calibration::MeasurementFile> files;
  std::string device;                           // the GPU whose rows were taken; empty if none names one
  std::map<std::string, std::size_t> left_out;  // rows of all files that were not used, by reason
  std::vector<calibration::Measurement> rows;   // that were used; the fit points at them
  calibration::Fit fit;
  std::vector<calibration::ResidualGroup> fitted, held_out;
  std::optional<calibration::Advice> advice;
  std::string gpu_profile, node_profile;  // texts of the fitted profiles; empty where none was asked for
};

std::string calibration_text(const CalibrationReport& report);
/// One object, schema "stepcast.calibration/1".
std::string calibration_json(const CalibrationReport& report);

}  // namespace stepcast::cli
