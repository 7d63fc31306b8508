// The inferred scenario, MFU, and prediction beside trace, as text and JSON. docs/diagnose.md; test: tests/golden/diagnose_scenario_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/diagnose/trace_scenario.hpp"

namespace stepcast::cli {

/// {keys: [{pointer, value, certainty, because, set}], complete, problem, document}.
nlohmann::ordered_json json_of(const TraceScenario& scenario);
nlohmann::ordered_json json_of(const std::optional<Utilisation>& utilisation);
nlohmann::ordered_json json_of(const SideBySide& compared);

std::string text_of(const TraceScenario& scenario);
std::string text_of(const std::optional<Utilisation>& utilisation);
std::string text_of(const SideBySide& compared);

/// A key's value in words; empty where it is missing.
std::string key_value_text(const nlohmann::ordered_json& value);

/// The list beside a written scenario: {schema, scenario, keys}.
nlohmann::ordered_json keys_document(const TraceScenario& scenario, const std::string& file);

}  // namespace stepcast::cli
