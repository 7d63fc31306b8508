// See least_squares.hpp. Bounds by x = lower + (upper - lower) / (1 + exp(-u)); the damping is relative to the curvature and never to the length of u, so that a
// start that lies on its prior up to rounding moves like any other.
#include "calibration/least_squares.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace stepcast::calibration {
namespace {

using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMaxSteps = 100;
constexpr double kFirstDamping = 1e-3, kLeastDamping = 1e-12, kMostDamping = 1e12;
constexpr double kFullStep = 1;         // damping below which a step is nearly that of Gauss and Newton
constexpr double kLongestStep = 3;      // of u, where the formulas are still near their linear form
constexpr double kGradient = 1e-6;      // remaining step, in units of the spread
constexpr double kSameCost = 1e-6;      // a spread more or less changes the cost by 1
constexpr double kKinkGain = 1e-3;      // worth a move along one constant
constexpr double kFromTheBound = 1e-9;  // of the range

VectorXd x_of(const LeastSquares& problem, const VectorXd& u) {
  const ArrayXd share = 1 / (1 + (-u.array()).exp());
  return (problem.lower.array() + (problem.upper - problem.lower).array() * share).matrix();
}

VectorXd u_of(const LeastSquares& problem, const VectorXd& x) {
  const ArrayXd range = (problem.upper - problem.lower).array();
  const ArrayXd share = ((x - problem.lower).array() / range).max(kFromTheBound).min(1 - kFromTheBound);
  return (share / (1 - share)).log().matrix();
}

VectorXd slope(const LeastSquares& problem, const VectorXd& x) {
  return ((x - problem.lower).array() * (problem.upper - x).array() / (problem.upper - problem.lower).array()).matrix();
}

/// Gradient and curvature of half the cost, by u.
struct Quadratic {
  VectorXd gradient;
  MatrixXd curvature;
};

Quadratic quadratic(const LeastSquares& problem, const VectorXd& x) {
  const VectorXd r = problem.residuals(x), w = weights(r), s = slope(problem, x);
  const MatrixXd j = problem.jacobian(x) * s.asDiagonal();
  const VectorXd precision = problem.width.array().square().inverse();
  Quadratic q;
  q.gradient = j.transpose() * w.cwiseProduct(r) + s.cwiseProduct(precision.cwiseProduct(x - problem.prior));
  q.curvature = j.transpose() * w.asDiagonal() * j;
  q.curvature.diagonal() += s.cwiseProduct(s).cwiseProduct(precision);
  return q;
}

/// How far the optimum still is, at most, in units of the spread of each parameter.
double remaining(const Quadratic& q) { return (q.gradient.array().abs() / q.curvature.diagonal().array().max(1e-300).sqrt()).maxCoeff(); }

VectorXd damped_step(const Quadratic& q, double damping) {
  MatrixXd h = q.curvature;
  h.diagonal() *= 1 + damping;
  VectorXd step = h.ldlt().solve(-q.gradient);
  const double longest = step.cwiseAbs().maxCoeff();
  return longest > kLongestStep ? VectorXd(step * (kLongestStep / longest)) : step;
}

/// Formulas are minima and maxima of terms: at a kink no damped step goes down, though a slope is left. Then single constants are moved, by parts of their spread.
bool move_along_axis(const LeastSquares& problem, const Quadratic& q, VectorXd& u, Optimum& best) {
  for (const double part : {1.0, -1.0, 0.1, -0.1, 0.01, -0.01}) {
    for (Eigen::Index p = 0; p < u.size(); ++p) {
      VectorXd tried = u;
      tried[p] += std::clamp(part / std::sqrt(std::max(q.curvature(p, p), 1e-300)), -kLongestStep, kLongestStep);
      const VectorXd x = x_of(problem, tried);
      const double c = cost(problem, x);
      if (!(c < best.cost - kKinkGain)) continue;
      u = tried;
      best.x = x;
      best.cost = c;
      return true;
    }
  }
  return false;
}

}  // namespace

VectorXd weights(const VectorXd& residuals) { return (1 + residuals.array().square()).rsqrt().matrix(); }

double cost(const LeastSquares& problem, const VectorXd& x) {
  const double rows = (2 * ((1 + problem.residuals(x).array().square()).sqrt() - 1)).sum();
  return rows + ((x - problem.prior).array() / problem.width.array()).square().sum();
}

Optimum minimise(const LeastSquares& problem, const VectorXd& start) {
  VectorXd u = u_of(problem, start);
  Optimum best{x_of(problem, u), 0, 0, false};
  best.cost = cost(problem, best.x);
  double damping = kFirstDamping;
  while (best.steps < kMaxSteps && !best.converged) {
    const Quadratic q = quadratic(problem, best.x);
    if (remaining(q) < kGradient) {
      best.converged = true;
      break;
    }
    bool better = false;
    while (!better && damping < kMostDamping) {
      const VectorXd tried = u + damped_step(q, damping), x = x_of(problem, tried);
      const double c = cost(problem, x);
      better = std::isfinite(c) && c < best.cost;
      if (!better) {
        damping *= 5;
        continue;
      }
      best.converged = damping < kFullStep && best.cost - c < kSameCost;  // a heavily damped step gains little anywhere
      best.x = x;
      best.cost = c;
      u = tried;
      damping = std::max(damping / 5, kLeastDamping);
    }
    if (!better && !move_along_axis(problem, q, u, best)) {
      best.converged = true;  // no step goes down, in any direction that was tried
      break;
    }
    if (!better) damping = kFirstDamping;
    ++best.steps;
  }
  return best;
}

}  // namespace stepcast::calibration
