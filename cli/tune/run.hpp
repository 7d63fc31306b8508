// A whole `tune`: search, front, decisions, advice, texts to paste. docs/tune.md; test: tests/unit/tune_test.cpp.
#pragma once

#include <functional>
#include <optional>

#include "cli/report/tune.hpp"
#include "planner/space.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

struct TuneSettings {
  planner::SpaceSettings space;
  double tolerance = 0;
  std::size_t simulations = 0;  // 0: no limit
  unsigned threads = 0;
  std::function<void(std::size_t simulations)> progress{};
};

/// Throws InputError where the scenario can't be tuned: fixed costs, explicit ranks, random draws, another framework.
TuneResult tuned(const scenarios::ScenarioTemplate& scenario, const TuneSettings& settings);
/// The fastest point alone; nothing if none fits. Throws as tuned.
std::optional<TunePoint> fastest(const scenarios::ScenarioTemplate& scenario, const TuneSettings& settings);

}  // namespace stepcast::cli
