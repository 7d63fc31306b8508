// Errors of the fitted formulas by kind of operation and decade of size. Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "calibration/errors.hpp"
#include "calibration/fit.hpp"

namespace stepcast::calibration {

struct ResidualGroup {
  std::string group, decade;  // decade is empty for all sizes together
  ErrorSummary errors;        // of predicted / measured - 1
};

/// Each group with all sizes first, then its decades from small to large.
std::vector<ResidualGroup> residuals(const Machine& machine, const std::vector<const Measurement*>& rows);

}  // namespace stepcast::calibration
