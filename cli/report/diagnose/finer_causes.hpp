// What the gaps' ends waited for, as JSON and text. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "trace/profile/finer_causes.hpp"

namespace stepcast::cli {

nlohmann::ordered_json json_of(const trace::profile::FinerCauses& causes);
/// Empty where there is no gap. `device`: its name.
std::string text_of(const trace::profile::FinerCauses& causes, const std::string& device);

}  // namespace stepcast::cli
