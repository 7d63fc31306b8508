// Memory over a profile as JSON and text. docs/diagnose.md, "Memory over time"; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trace/profile/diagnosis.hpp"

namespace stepcast::cli {

nlohmann::ordered_json memory_json(const trace::profile::RankDiagnosis& rank);
/// Empty where the profile has no memory instants of a GPU.
std::string memory_text(const trace::profile::RankDiagnosis& rank);

}  // namespace stepcast::cli
