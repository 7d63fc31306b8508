// The pages of forecasts: of one run, and of the stages of a case study. docs/page.md; test: tests/unit/page_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/page/page.hpp"
#include "cli/page/timeline.hpp"
#include "cli/predict.hpp"
#include "cli/run/extras.hpp"

namespace stepcast::cli {

/// `extras`: what was asked beside the forecast. `stages`: the reports on the way to this one, for a chart of how far each gets; empty for a run by itself.
Page page_of(const Prediction& prediction, const Extras& extras = {}, const std::vector<Report>& stages = {});

/// What changes with a setting, as data small enough to be drawn at once: figures, waterfall, timeline of the last step, memory at the peak; or what held the memory.
Page live_page(const Prediction& prediction);

/// A device's memory through the recorded steps: at most kCurvePoints samples, of equal stretches of time each its highest, and by owner what makes it up.
struct MemoryCurve {
  static constexpr std::size_t kCurvePoints = 500;
  std::vector<std::int64_t> time_ns, allocated, reserved;
  std::vector<std::string> owners;                  // of the trace; "allocated" where it knows none
  std::vector<std::vector<std::int64_t>> by_owner;  // sums to `allocated`
};
MemoryCurve memory_curve(const trace::Trace& trace);

nlohmann::ordered_json progression_section(const std::vector<Report>& stages);
/// Of the last step, whose losses add up to it (report/explain.hpp).
nlohmann::ordered_json waterfall_section(const Prediction& prediction);
/// Host, compute, idle time by cause and the other streams of the last step.
nlohmann::ordered_json timeline_section(const Prediction& prediction, std::int64_t parts = Timeline::kFineParts);
nlohmann::ordered_json memory_section(const Prediction& prediction);
/// Every constant of the profiles in use with its kind and source.
nlohmann::ordered_json constants_section(const scenarios::Scenario& scenario);

}  // namespace stepcast::cli
