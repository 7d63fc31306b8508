// Writes report.json, report.txt, report.html and trace.json.gz of a prediction into the folder of --out. Test: tests/golden/cli_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/predict.hpp"
#include "cli/run/extras.hpp"

namespace stepcast::cli {

/// Refuses a folder that can't be used, before the work is done. Throws InputError.
void check_folder(const std::string& folder, bool force);
/// Writes the files under temporary names, then renames them. An out-of-memory run has no trace of steps and gets none. `extras` stand in all files but the trace; `stages`: see
/// page_of. Throws InputError, std::system_error.
void publish(const Prediction& prediction, const std::string& folder, bool force, const Extras& extras = {}, const std::vector<Report>& stages = {});

}  // namespace stepcast::cli
