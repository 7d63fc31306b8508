// Prediction interval: an ensemble of forecasts, each with constants drawn from the profile's spreads. docs/intervals.md. Test: tests/unit/hardware_test.cpp.
#pragma once

#include <cstdint>

#include "cli/report/report.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// Members that do not fit are left out and counted. Throws InputError for fixed costs, where nothing is uncertain.
IntervalRow interval_of(const scenarios::Scenario& scenario, std::int64_t members, std::uint64_t seed);

}  // namespace stepcast::cli
