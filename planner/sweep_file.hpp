// A sweep as a file: which scenario, what is set, what is varied. docs/sweep.md; test: tests/unit/grid_test.cpp; fuzzed by tests/fuzz/sweep_file.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/grid.hpp"

namespace stepcast::planner {

struct SweepFile {
  std::string scenario;  // path (sought beside the file) or the name of a built-in scenario
  std::vector<std::string> sets;
  std::vector<Axis> axes;
};

/// `file` is its name in messages. Throws InputError.
SweepFile read_sweep(std::string_view text, const std::string& file);

}  // namespace stepcast::planner
