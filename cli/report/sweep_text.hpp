// A sweep as a table, and as CSV. docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep/points.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// The table of a sweep, of points that are given one after the other: it keeps the fastest alone, however many there are.
class SweepTable {
 public:
  /// At most `shown` points, the fastest where there are more.
  SweepTable(const planner::Grid& grid, std::size_t shown) : grid_(grid), shown_(shown) {}
  /// In the grid's order.
  void add(std::size_t point, const PointRow& row);
  /// The table, how the points ended, and the fastest.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::size_t count(const std::string& outcome) const;

 private:
  struct Entry {
    std::size_t point = 0;
    PointRow row;
  };
  /// Those that are shown if nothing follows.
  [[nodiscard]] std::vector<Entry> fastest() const;
  const planner::Grid& grid_;
  std::size_t shown_, points_ = 0;
  std::vector<Entry> entries_;
  std::optional<Entry> best_;
  std::map<std::string, std::size_t> outcomes_;
};

/// Names of the columns of a sweep's CSV: the varied pointers, then the figures; and the line of one point, SI units.
std::string sweep_csv_header(const planner::Grid& grid);
std::string sweep_csv_line(const planner::Grid& grid, std::size_t point, const PointRow& row);

}  // namespace stepcast::cli
