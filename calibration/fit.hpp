// Measurements and prior constants in, fitted constants with their spread out. docs/calibration.md. Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibration/machine.hpp"
#include "calibration/measurement.hpp"

namespace stepcast::calibration {

inline constexpr double kUsualNoise = 0.05;  // of a measured time, until the rows themselves tell

struct FitOptions {
  std::uint64_t seed = 0;
  int starts = 5;         // the first from the priors, the others from draws around them
  double hold_out = 0.2;  // share of the operations that is not fitted
};

struct FittedParameter {
  Parameter parameter;
  double value = 0;
  double spread = 0;        // standard deviation of log(value) after the fit
  double undetermined = 1;  // variance after over variance before: 1 where the data say nothing
  int starts_agreed = 0;    // starts that ended within one spread (at least 1 %) of the value
  bool at_limit = false;    // the fit ran into the limit of what the profile's reader believes
};

/// Past this share of the prior's variance, the data do not determine a constant.
inline constexpr double kUndetermined = 0.5;

struct Fit {
  Machine machine;  // with the fitted values
  std::vector<FittedParameter> parameters;
  Eigen::MatrixXd covariance;           // of the logarithms
  std::map<std::string, double> noise;  // of log(time), by group of rows: scatter and what the formula misses
  std::vector<const Measurement*> fitted, held_out;
  int starts = 0;
  bool converged = false;
};

/// `rows` are usable and placed (predictor.hpp) and outlive the result. Throws InputError if there is nothing to fit.
Fit fit(const Machine& machine, const std::vector<Measurement>& rows, const FitOptions& options);

/// d log(time) / d log(constant) of rows (central differences), for the fitted parameters.
Eigen::MatrixXd sensitivities(const Machine& machine, const std::vector<Parameter>& parameters, const Eigen::VectorXd& logs,
                              const std::vector<const Measurement*>& rows);

/// log(predicted / measured)
Eigen::VectorXd log_errors(const Machine& machine, const std::vector<const Measurement*>& rows);

}  // namespace stepcast::calibration
