// A machine's profiles fitted to whole runs: four factors (clock, network, latency, host) on the constants that they stand for, from a table of one machine's runs.
// docs/calibration.md, "Tables of runs". Test: tests/unit/run_calibration_test.cpp.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "calibration/fit.hpp"
#include "cli/validate/recalibrate.hpp"

namespace stepcast::cli {

struct CalibratedRun {
  std::string id;
  bool held_out = false;         // judged only
  double measured = 0;           // tokens/s/GPU
  double before = 0, after = 0;  // forecast / measured - 1, with the profiles as they were and as fitted
};

struct RunCalibration {
  std::string file;
  std::array<FittedFactor, 4> factors;
  std::vector<CalibratedRun> runs;                           // in the table's order
  std::map<std::string, std::vector<std::string>> left_out;  // ids by reason
  hw::Profile gpu, node;                                     // the base profiles with what the runs determine
};

/// The constants of a profile that a factor moves, by name. Factors count as in kFactorNames.
std::vector<std::string> constants_of(std::size_t factor, const hw::Profile& gpu, const hw::Profile& node);

/// Whether a file begins with the header of a table of runs (docs/validate.md). Pipes are left alone: what is read of them is gone.
bool is_run_table(const std::string& path);

/// All runs of the table are forecast on the profiles `gpu` and `node` (names, or files ending in .json); those of another GPU are left out, as are those that no scenario can say.
/// `fit.hold_out` of the rest is judged and not fitted. A factor that the runs do not determine leaves its constants as they were.
/// Throws InputError: what read_runs_file refuses, and fewer than three runs to fit.
RunCalibration calibrate_runs(const std::string& file, const std::string& gpu, const std::string& node, const calibration::FitOptions& fit, unsigned threads);

/// The same of results that `train` wrote, one file a run.
RunCalibration calibrate_results(const std::vector<std::string>& files, const std::string& gpu, const std::string& node, const calibration::FitOptions& fit,
                                 unsigned threads);

std::string to_text(const RunCalibration& calibration);
/// One object, schema "stepcast.run_calibration/1".
nlohmann::ordered_json to_json(const RunCalibration& calibration);

}  // namespace stepcast::cli
