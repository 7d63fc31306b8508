// How well a fit's rows and priors determine its constants. docs/calibration.md, "Spread". Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "calibration/least_squares.hpp"
#include "calibration/measurement.hpp"

namespace stepcast::calibration {

struct Covariance {
  Eigen::MatrixXd plain;   // inverse curvature, of the logarithms: rows taken as independent
  Eigen::VectorXd spread;  // standard deviations: the larger of plain and of the sandwich over cells of like rows
};

Covariance covariance_of(const LeastSquares& problem, const Eigen::VectorXd& x, const std::vector<const Measurement*>& rows);

}  // namespace stepcast::calibration
