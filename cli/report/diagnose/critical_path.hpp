// The critical paths of a device's steps as JSON and text. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trace/profile/critical_path.hpp"

namespace stepcast::cli {

nlohmann::ordered_json json_of(const std::vector<trace::profile::CriticalPath>& paths);
/// All steps together; empty where there is none. `device`: its name.
std::string text_of(const std::vector<trace::profile::CriticalPath>& paths, const std::string& device);

}  // namespace stepcast::cli
