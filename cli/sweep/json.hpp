// A point of a sweep as it is printed. docs/sweep.md; test: tests/golden/sweep_test.cpp, tests/python/test_stepcast.py.
#pragma once

#include <string>

#include "cli/sweep/plan.hpp"
#include "cli/sweep/store.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// {"set": {pointer: value}, "report": {...}} and what else point_of keeps: one JSON object, without a line break. Its scenario must be in the store.
std::string point_json(const planner::Grid& grid, const SweepPlan& plan, const SweepStore& store, std::size_t point);

/// What point_of or refused_point made of it.
std::string kept_json(const SweepPlan& plan, const SweepStore& store, std::size_t point);

}  // namespace stepcast::cli
