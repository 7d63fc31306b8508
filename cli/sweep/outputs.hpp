// Where the points of a sweep go: each is read back from the store once and given to all that show it, so that memory does not grow with the grid. docs/sweep.md;
// test: tests/golden/sweep_test.cpp, tests/golden/sweep_mpi_test.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cli/output_folder.hpp"
#include "cli/report/sweep_text.hpp"
#include "cli/sweep/plan.hpp"
#include "cli/sweep/store.hpp"
#include "planner/grid.hpp"

namespace stepcast::cli {

/// A sweep that has run.
struct SweptPoints {
  const planner::Grid& grid;
  const SweepPlan& plan;
  const SweepStore& store;
};

struct SweepOutputs {
  std::string title;               // of the page
  std::size_t shown = 100;         // points in the table
  OutputFolder* folder = nullptr;  // of --out
  OutputFile* csv = nullptr;       // of --csv
};

/// Writes report.json, sweep.csv, sweep.txt and the page into the folder, and the CSV file, where they are asked for; returns the table. Throws InputError, std::system_error.
SweepTable write_points(const SweptPoints& points, const SweepOutputs& outputs);

/// `{"schema": ..., "points": [...]}` piece by piece.
void write_json(const SweptPoints& points, const std::function<void(const std::string&)>& write);

}  // namespace stepcast::cli
