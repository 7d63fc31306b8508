// Reads tables of measured kernels and collectives (CSV, columns by name): GEMM, fused attention, memory-bound kernels, copies, collectives.
// Columns: docs/calibration.md, "Tables". Test: tests/unit/measurement_tables_test.cpp; fuzzed by tests/fuzz/measurements.cpp.
#pragma once

#include <optional>
#include <string>

#include "calibration/csv.hpp"
#include "calibration/measurement.hpp"

namespace stepcast::calibration {

/// The rows of such a table, or nothing if its columns are those of none. Throws InputError with line and column on a cell that doesn't hold what it must.
std::optional<MeasurementFile> table_measurements(const CsvTable& table, const std::string& file);

}  // namespace stepcast::calibration
