// The page of a sweep: the grid of its points, and step time against headroom. docs/page.md; test: tests/unit/sweep_page_test.cpp.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/page/page.hpp"
#include "cli/sweep/points.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// A point of a chart of time (to be low) against headroom (to be high).
struct ParetoPoint {
  double time = 0;
  std::int64_t headroom_bytes = 0;
  std::string words;
  bool on_front = false;
};
/// Marks the points that no other beats in one and equals in the other.
void mark_front(std::vector<ParetoPoint>& points);
/// `label`: of the time; `of`: how many points these are the best of.
nlohmann::ordered_json pareto_section(const std::vector<ParetoPoint>& points, const std::string& label, std::size_t of);

/// The page of points that are given one after the other. It keeps of them what it can show: a grid that is not too large, the points that no other beats, and some more.
class SweepPage {
 public:
  SweepPage(std::string scenario, const planner::Grid& grid);
  /// In the grid's order.
  void add(std::size_t point, const PointRow& row);
  [[nodiscard]] Page page() const;

 private:
  /// A point that ran and has a limit of memory.
  struct Candidate {
    std::size_t point = 0;
    double step_time_s = 0, token_s = 0;  // token_s: the time for a token of a GPU
    std::int64_t headroom_bytes = 0;
  };
  void add_to_grid(const PointRow& row);
  [[nodiscard]] std::vector<Tile> tiles() const;
  [[nodiscard]] nlohmann::ordered_json grid_section() const;
  [[nodiscard]] nlohmann::ordered_json front_section() const;
  /// The candidates that may be drawn, whatever follows.
  [[nodiscard]] std::vector<Candidate> lasting() const;

  std::string scenario_;
  const planner::Grid& grid_;
  std::size_t points_ = 0, out_of_memory_ = 0, refused_ = 0, candidates_seen_ = 0;
  std::optional<std::pair<std::size_t, PointRow>> fastest_;
  double fewest_tokens_ = std::numeric_limits<double>::infinity(), most_tokens_ = 0;  // of a step
  bool any_mfu_ = false;
  std::vector<Candidate> candidates_;
  std::size_t kept_ = 0;            // candidates when it was last asked which may go
  nlohmann::ordered_json columns_;  // of the grid, by name
};

}  // namespace stepcast::cli
