// Measurements out of a profile: products and attention by recorded shapes, memory-bound kernels that tell their traffic, collectives by message, launches.
// docs/calibration.md, "Traces". Test: tests/model/calibrate_trace_test.cpp.
#pragma once

#include <string>

#include "calibration/measurement.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::calibration {

/// One row for each shape: the median of its calls, of collectives the shortest (the longer ones wait for other ranks). What can't be compared with a formula is counted by reason.
MeasurementFile trace_measurements(const trace::profile::Profile& profile, const std::string& file);

/// Reads the profiles at a path: a file, an archive or a folder of ranks, all as one. Throws InputError.
MeasurementFile read_traces(const std::string& path);

/// Whether the file is a profile: it is compressed or an archive, or its text begins as an object with the events, or the headers, of one.
bool looks_like_trace(const std::string& path);

}  // namespace stepcast::calibration
