// The page of a sweep: the grid of its points, and step time against headroom. docs/page.md; test: tests/unit/sweep_page_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/page/page.hpp"
#include "cli/sweep/points.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// `rows` by point of the grid.
Page sweep_page(const std::string& scenario, const planner::Grid& grid, const std::vector<PointRow>& rows);

/// A point of a chart of time (to be low) against headroom (to be high).
struct ParetoPoint {
  double time = 0;
  std::int64_t headroom_bytes = 0;
  std::string words;
  bool on_front = false;
};
/// Marks the points that no other beats in one and equals in the other.
void mark_front(std::vector<ParetoPoint>& points);
/// `label`: of the time.
nlohmann::ordered_json pareto_section(const std::vector<ParetoPoint>& points, const std::string& label);

}  // namespace stepcast::cli
