// The measurement file of `stepcast bench`: JSON, schema "stepcast.bench/1". docs/measurement_file.md. Test: tests/unit/measurement_file_test.cpp.
#pragma once

#include <string>

#include "calibration/measurement.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast::calibration {

inline constexpr const char* kBenchSchema = "stepcast.bench/1";

/// Throws InputError: every key is known, every time has its unit.
MeasurementFile read_measurement_file(const Json& document, const std::string& file);

}  // namespace stepcast::calibration
