// Reports side by side, with the reason for each difference: which settings differ, which parts of the step grew or vanished, whose memory.
// Works on report JSON, so that a report file of last week can stand beside a fresh forecast. Test: tests/unit/compare_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stepcast::cli {

/// The reports, each as `run --json` writes it, and for each one after the first what differs from the first:
/// {"schema": "stepcast.compare/1", "names": [...], "reports": [...], "differences": [{"name", "against", "settings": [{"pointer", "from", "to"}], "metrics": {name: {"from", "to", "change"}},
///  "step_time": {"from_s", "to_s", "delta_s", "scaled_to_tokens", "parts": [{"part", "from_s", "to_s", "delta_s"}]}, "phases": [...], "collectives": [...], "memory": [...]}]}.
/// Times of a report with other tokens per step are scaled to those of the first. A value that a report lacks is null.
nlohmann::ordered_json compare(const std::vector<std::string>& names, const std::vector<nlohmann::ordered_json>& reports);
std::string compare_text(const nlohmann::ordered_json& comparison);

}  // namespace stepcast::cli
