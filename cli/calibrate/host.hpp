// `stepcast calibrate` for a machine whose ranks share its processors: what was measured becomes the profile. docs/calibration.md, "Shared processors".
// Test: tests/golden/closed_loop_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calibration/host_profile.hpp"

namespace stepcast::cli {

struct HostCalibration {
  std::vector<calibration::MeasurementFile> files;
  calibration::HostProfiles profiles;
};

/// `gpu` and `node` are profiles to start from. Throws InputError.
HostCalibration calibrate_host(const std::vector<std::string>& files, const std::string& gpu, const std::string& node);

/// Which rows were used, and the constants that were measured.
std::string to_text(const HostCalibration& calibration);
nlohmann::ordered_json to_json(const HostCalibration& calibration);

}  // namespace stepcast::cli
