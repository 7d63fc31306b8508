// What `train` wrote about a real run (schema stepcast.train/1), as one of the runs that a machine's profiles are calibrated on. docs/calibration.md, "Tables of runs".
// Test: tests/unit/run_calibration_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/validate/judge.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

struct RunResult {
  std::string file, gpu;          // `gpu`: the profile that the run named
  scenarios::Scenario scenario;   // as it ran, on the profiles that are calibrated
  double tokens_per_s_per_gpu{};  // measured
};

/// At most so many of a file's first bytes; none of what is no regular file: what is read of a pipe is gone.
std::string beginning_of(const std::string& path, std::size_t bytes);
/// Whether a file begins as such a result does.
bool is_result(const std::string& path);

/// `gpu` and `node` are the profiles that are calibrated (names, or files ending in .json). Throws InputError: another schema, a run that failed, a scenario that can't be read.
RunResult read_result(const std::string& path, const std::string& gpu, const std::string& node);
RunResult parse_result(std::string_view text, const std::string& file, const std::string& gpu, const std::string& node);

/// The run's forecast on its machine with these factors against what was measured. Never throws: what can't be forecast, and a run on another GPU, is the reason in `skipped`.
JudgedRow judge_result(const RunResult& result, const MachineFactors& factors);

}  // namespace stepcast::cli
