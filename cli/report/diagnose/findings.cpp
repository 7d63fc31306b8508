// Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/report/table.hpp"

namespace stepcast::cli {

nlohmann::ordered_json json_of(const std::vector<trace::profile::Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& f : findings) {
    json.push_back({{"finding", f.name},
                    {"where", f.where},
                    {"confidence", f.confidence},
                    {"share_of_step", f.share},
                    {"evidence", f.evidence},
                    {"advice", f.advice},
                    {"upper_bound_gain", f.upper_bound > 0 ? nlohmann::ordered_json(f.upper_bound) : nlohmann::ordered_json()},
                    {"forecast_gain", f.forecast ? nlohmann::ordered_json(*f.forecast) : nlohmann::ordered_json()},
                    {"forecast_by", !f.forecast ? nlohmann::ordered_json() : nlohmann::ordered_json(f.change.empty() ? "replay" : "simulation")},
                    {"forecast_change", f.change}});
  }
  return json;
}

std::string text_of(const std::vector<trace::profile::Finding>& findings) {
  if (findings.empty()) return "Nothing found that takes a noteworthy share of the time.\n";
  std::string text = "Findings\n";
  int number = 0;
  for (const auto& f : findings) {
    text += fmt::format("{}. {}: {} of the time ({}; confidence {:.2f})\n", ++number, f.name, percent_text(f.share), f.where, f.confidence);
    for (const std::string& evidence : f.evidence) text += wrapped(evidence, 5);
    text += wrapped("Try: " + f.advice, 5);
    if (!f.change.empty())
      text += fmt::format("     With {} the simulated step is {} shorter.\n", fmt::join(f.change, " and "), percent_text(f.forecast.value_or(0)));
    else if (f.forecast)
      text += fmt::format("     Without it this profile would be {} shorter (replayed); at most {} could be gained.\n", percent_text(*f.forecast),
                          percent_text(f.upper_bound > 0 ? f.upper_bound : f.share));
  }
  return text;
}

}  // namespace stepcast::cli
