// Findings as JSON and text. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trace/profile/findings.hpp"

namespace stepcast::cli {

nlohmann::ordered_json json_of(const std::vector<trace::profile::Finding>& findings);
std::string text_of(const std::vector<trace::profile::Finding>& findings);

}  // namespace stepcast::cli
