// One thing of the machine made faster by a factor, and the smallest factor from which on something holds of the step. docs/questions.md, "What must be true";
// test: tests/unit/must_be_true_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/hardware.hpp"
#include "cli/predict.hpp"

namespace stepcast::cli {

struct Lever {
  std::string name;
  std::function<void(scenarios::Scenario&, Hardware&, double factor)> pull;
};

/// Bandwidth between nodes (with the adapter's own limit), within a node, speed of the host; those that the cluster has. Not for fixed costs.
std::vector<Lever> links(const scenarios::Scenario& scenario);
Lever host_speed();

/// The scenario as it would run on the machine with the lever at `factor`.
Report pulled(const scenarios::Scenario& scenario, const program::Program& program, const Lever& lever, double factor);

/// Nothing proves that a step gets better with every bit of bandwidth (more overlap is more contention too), so factors are tried on a grid, each the fourth root of two above the one
/// before, and only the place between the first that holds and its neighbour below is found by bisection.
inline constexpr double kLargestFactor = 1024, kSmallestFactor = 1.0 / 16;
inline constexpr double kFactorPrecision = 0.01;  // relative

struct Crossing {
  bool reached = false;
  double factor = 0;          // the smallest that holds; where none does, the largest tried
  Report at;                  // at that factor
  bool every_larger = false;  // it holds at every larger factor of the grid too
  bool beyond = false;        // it holds at the smallest factor of the grid already
};

/// Factors from `smallest` (on the grid) to kLargestFactor. `holds` is asked only of steps that ran.
Crossing first_crossing(const std::function<Report(double factor)>& at, const std::function<bool(const Report&)>& holds, double smallest, unsigned threads);

}  // namespace stepcast::cli
