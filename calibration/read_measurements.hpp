// Reads a file of measurements of any kind that is known; which kind it is, its content says. docs/calibration.md, "Files".
// Test: tests/unit/measurement_file_test.cpp; fuzzed by tests/fuzz/measurements.cpp.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measurement.hpp"

namespace stepcast::calibration {

/// Throws InputError naming the file: of no known kind, malformed, too large.
MeasurementFile read_measurements(const std::string& path);
MeasurementFile parse_measurements(std::string_view text, const std::string& file);

}  // namespace stepcast::calibration
