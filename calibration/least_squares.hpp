// Robust least squares with priors and bounds: Levenberg-Marquardt on reweighted residuals. docs/calibration.md, "Method". Test: tests/unit/least_squares_test.cpp.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace stepcast::calibration {

/// Minimises sum of 2 (sqrt(1 + r^2) - 1) over the rows (soft L1: r^2 near 0, 2|r| far out) plus sum of ((x - prior) / width)^2 over the parameters.
struct LeastSquares {
  std::function<Eigen::VectorXd(const Eigen::VectorXd& x)> residuals;  // in units of the noise
  std::function<Eigen::MatrixXd(const Eigen::VectorXd& x)> jacobian;   // rows x parameters
  Eigen::VectorXd prior, width, lower, upper;                          // x stays strictly between lower and upper
};

struct Optimum {
  Eigen::VectorXd x;
  double cost = 0;
  int steps = 0;
  bool converged = false;
};

Optimum minimise(const LeastSquares& problem, const Eigen::VectorXd& start);

double cost(const LeastSquares& problem, const Eigen::VectorXd& x);

/// Weight of a row in the reweighted squares: 1 / sqrt(1 + r^2).
Eigen::VectorXd weights(const Eigen::VectorXd& residuals);

}  // namespace stepcast::calibration
