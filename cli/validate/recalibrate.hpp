// A machine's own parameters fitted to some rows of a source and judged on its other rows: what a few runs of one's own buy. docs/validate.md, "Calibrating on rows".
// Test: tests/unit/recalibrate_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/validate/judge.hpp"

namespace stepcast::cli {

inline constexpr std::array<const char*, 4> kFactorNames{"clock", "network", "latency", "host"};

struct FittedFactor {
  double value = 1, spread = 0;  // standard deviation of its logarithm
  double variance_left = 1;      // of the prior's
};

struct SourceFit {
  std::string source;
  std::vector<std::string> fitted;  // ids
  std::array<FittedFactor, 4> factors;
  calibration::ErrorSummary before, after;  // of the rows that were not fitted
};

struct Recalibration {
  std::vector<SourceFit> sources;
  std::vector<std::string> too_few;         // sources with less than two rows beside those to fit
  calibration::ErrorSummary before, after;  // of all rows of `sources` that were not fitted
  std::vector<JudgedRow> rows;              // these, as judged with the fitted machines
};

/// Which rows are fitted, the seed decides, row by row. `count` of each source; half of each if it is 0.
struct Choice {
  std::int64_t count = 0;
  std::uint64_t seed = 0;
};

/// `judgement` is that of `runs`, row by row, with the profiles as they are.
Recalibration recalibrate(const std::vector<calibration::Run>& runs, const Judgement& judgement, const calibration::Sources& sources, const Choice& choice,
                          unsigned threads);

/// Factors that make forecasts of these rows meet what was measured, as far as the priors let them: log-normal around 1.
using Errors = std::function<std::vector<double>(const MachineFactors&)>;  // forecast / measured - 1 by row, in an order of its own
std::array<FittedFactor, 4> fit_factors(const Errors& errors);

}  // namespace stepcast::cli
