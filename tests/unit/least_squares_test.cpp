// Robust least squares: optima that can be written down, bounds, starts on the prior.
#include "calibration/least_squares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

using namespace stepcast::calibration;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

VectorXd vector(std::initializer_list<double> values) {
  VectorXd result(static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

/// Rows y_i = x (all of one parameter) with noise s, prior 0 of width w, x in [-10, 10].
LeastSquares mean_of(const VectorXd& y, double noise, double width) {
  LeastSquares problem;
  problem.residuals = [y, noise](const VectorXd& x) { return VectorXd((x[0] - y.array()) / noise); };
  problem.jacobian = [y, noise](const VectorXd&) { return MatrixXd(MatrixXd::Constant(y.size(), 1, 1 / noise)); };
  problem.prior = VectorXd::Zero(1);
  problem.width = VectorXd::Constant(1, width);
  problem.lower = VectorXd::Constant(1, -10);
  problem.upper = VectorXd::Constant(1, 10);
  return problem;
}

}  // namespace

TEST_CASE("The middle of symmetric rows, and between rows and prior") {
  const VectorXd y = vector({0.9, 1.1});
  const Optimum wide = minimise(mean_of(y, 0.1, 100), VectorXd::Zero(1));
  CHECK(wide.converged);
  CHECK(wide.x[0] == doctest::Approx(1).epsilon(1e-4));
  // Rows that fit exactly pull like squares near 0: 2 (x - 0.01) / 1 + x / 1 = 0 has x = 2/3 of 0.01, up to the third order of soft L1.
  const Optimum drawn = minimise(mean_of(VectorXd::Constant(2, 0.01), 1, 1), VectorXd::Zero(1));
  CHECK(drawn.x[0] == doctest::Approx(0.01 * 2 / 3).epsilon(1e-4));
}

TEST_CASE("An outlier pulls with at most one noise") {
  VectorXd y = VectorXd::Constant(11, 1.0);
  y[10] = 9;
  // ten rows: 10 r; the outlier: at most 1, so that r is at most 0.1 of the noise of 0.1
  const Optimum best = minimise(mean_of(y, 0.1, 100), VectorXd::Zero(1));
  CHECK(best.x[0] > 1);
  CHECK(best.x[0] < 1.0101);
}

TEST_CASE("A start that lies on the prior up to rounding moves as far as any other") {
  for (const double offset : {0.0, 1e-16, -1e-16, 1e-12}) {
    const Optimum best = minimise(mean_of(VectorXd::Constant(20, 3.0), 0.05, 1), VectorXd::Constant(1, offset));
    CHECK(best.steps > 0);
    CHECK(best.x[0] == doctest::Approx(3).epsilon(1e-3));
  }
}

TEST_CASE("Bounds hold, also where the start is on one") {
  for (const double start : {-10.0, 0.0, 10.0}) {
    const Optimum best = minimise(mean_of(VectorXd::Constant(20, 50.0), 0.05, 100), VectorXd::Constant(1, start));
    CHECK(best.x[0] <= 10);
    CHECK(best.x[0] > 9.9);
  }
}

TEST_CASE("A valley of two coupled parameters (Rosenbrock)") {
  LeastSquares problem;
  problem.residuals = [](const VectorXd& x) { return vector({10 * (x[1] - x[0] * x[0]), 1 - x[0]}); };
  problem.jacobian = [](const VectorXd& x) {
    MatrixXd j(2, 2);
    j.row(0) = vector({-20 * x[0], 10});
    j.row(1) = vector({-1, 0});
    return j;
  };
  problem.prior = VectorXd::Zero(2);
  problem.width = VectorXd::Constant(2, 1e6);
  problem.lower = VectorXd::Constant(2, -5);
  problem.upper = VectorXd::Constant(2, 5);
  const Optimum best = minimise(problem, vector({-1.2, 1}));
  CHECK(best.x[0] == doctest::Approx(1).epsilon(1e-3));
  CHECK(best.x[1] == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("Residuals that are not numbers never win") {
  LeastSquares problem = mean_of(VectorXd::Constant(3, 1.0), 0.1, 100);
  problem.residuals = [](const VectorXd& x) {
    return VectorXd(VectorXd::Constant(3, x[0] > 0.5 ? std::numeric_limits<double>::quiet_NaN() : (x[0] - 1) / 0.1));
  };
  const Optimum best = minimise(problem, VectorXd::Zero(1));
  CHECK(best.x[0] <= 0.5);
  CHECK(best.x[0] > 0.45);
  CHECK(std::isfinite(best.cost));
}

TEST_CASE("At a kink, where no smooth step goes down, the fit still finds the minimum") {
  // one row, 50 |x - 1| + 50 |y - 2| + 10 (x + y), far in the linear part of soft L1: the minimum is the corner (1, 2)
  LeastSquares problem;
  problem.residuals = [](const VectorXd& x) { return VectorXd(VectorXd::Constant(1, 50 * (std::abs(x[0] - 1) + std::abs(x[1] - 2)) + 10 * (x[0] + x[1]))); };
  problem.jacobian = [](const VectorXd& x) {
    MatrixXd j(1, 2);
    j(0, 0) = (x[0] > 1 ? 50 : -50) + 10;
    j(0, 1) = (x[1] > 2 ? 50 : -50) + 10;
    return j;
  };
  problem.prior = VectorXd::Zero(2);
  problem.width = VectorXd::Constant(2, 1e3);
  problem.lower = VectorXd::Constant(2, -4);
  problem.upper = VectorXd::Constant(2, 4);
  const Optimum best = minimise(problem, VectorXd::Zero(2));
  CHECK(best.x[0] == doctest::Approx(1).epsilon(0.02));
  CHECK(best.x[1] == doctest::Approx(2).epsilon(0.02));
}
