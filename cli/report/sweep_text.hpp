// A sweep as a table, and as CSV. docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep/points.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// `rows` by point of the grid. At most `shown` points, the fastest where there are more; then what stands out.
std::string sweep_text(const planner::Grid& grid, const std::vector<PointRow>& rows, std::size_t shown);
/// One line for each point, SI units, after a line of column names: the varied pointers, then the figures.
std::string sweep_csv(const planner::Grid& grid, const std::vector<PointRow>& rows);

}  // namespace stepcast::cli
