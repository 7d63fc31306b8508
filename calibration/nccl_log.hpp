// Reads what nccl-tests (and rccl-tests) print: any release's columns, behind the prefixes of mpirun, srun and kubectl, between lines of NCCL's own.
// docs/calibration.md, "nccl-tests". Test: tests/unit/nccl_log_test.cpp; fuzzed by tests/fuzz/measurements.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurement.hpp"

namespace stepcast::calibration {

/// One placement's columns. `busbw` and `algbw` in GB/s as printed.
struct NcclTiming {
  double time_us = 0, algbw = 0, busbw = 0;
};

/// One line of the table.
struct NcclRow {
  std::size_t line = 0;
  std::int64_t bytes = 0, count = 0;
  std::string type, redop;           // redop is empty where the test has none
  std::optional<std::int64_t> root;  // absent without such a column, negative where the test has none
  std::optional<NcclTiming> out_of_place, in_place;
  bool wrong = false;  // the test's own check found wrong results
};

/// What the log says around its table.
struct NcclRun {
  std::string collective;              // "all_reduce"; empty if it isn't said
  std::set<std::int64_t> ranks;        // that are named with their host
  std::set<std::string> hosts;         // as far as they are named
  std::optional<std::int64_t> nranks;  // where the log says how many there are
  std::string gpu;
  std::vector<NcclRow> rows;
  std::size_t damaged = 0, first_damaged = 0;  // lines that begin like a row of the table and aren't one; line of the first
  std::size_t lines_without_data = 0;
  std::vector<std::string> failures;
};

/// Whether some line is a row of nccl-tests' table.
bool looks_like_nccl_log(std::string_view text);
/// Never throws on any text; a text without a row gives no rows.
NcclRun parse_nccl_log(std::string_view text);
/// Rows as measurements: which collective and how many ranks, from the log, from the ratio of the two bandwidths, last from the file's name.
MeasurementFile nccl_measurements(const NcclRun& run, const std::string& file);

}  // namespace stepcast::calibration
