// The sections of a run's page that answer what was asked beside the forecast: uncertainty, cost, roofline, scaling, what must be true. docs/page.md; test: tests/unit/page_test.cpp.
#pragma once

#include "cli/page/page.hpp"
#include "cli/predict.hpp"
#include "cli/run/extras.hpp"

namespace stepcast::cli {

/// How far the step time may be off, and by what; of a report with an interval.
nlohmann::ordered_json interval_section(const Report& report);
nlohmann::ordered_json cost_section(const Cost& cost);
/// `micro_batch`: the scenario's own.
nlohmann::ordered_json roofline_section(const Roofline& roofline, std::int64_t micro_batch);
nlohmann::ordered_json scaling_section(const std::vector<ScalingRow>& rows);
nlohmann::ordered_json answers_section(const Answers& answers);

}  // namespace stepcast::cli
