// The pages that web/ makes when stepcast is built, without their data. docs/page.md; test: tests/unit/page_test.cpp, tests/unit/serve_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepcast::cli {

inline constexpr const char* kReportTemplate = "report.html";
inline constexpr const char* kServeTemplate = "serve.html";

/// A template with its data, or nothing in a build without the pages.
std::string filled(std::string_view name, const nlohmann::ordered_json& data);

}  // namespace stepcast::cli
