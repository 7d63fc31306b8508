// See covariance.hpp. Sandwich with clusters: Liang and Zeger, Biometrika 73, 1986. What a formula misses is alike in rows of like shape, so that a thousand such rows
// know little more than one; a cell counts as one.
#include "calibration/covariance.hpp"

#include <Eigen/Cholesky>
#include <map>
#include <string>

#include "calibration/describe.hpp"

namespace stepcast::calibration {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Covariance covariance_of(const LeastSquares& problem, const VectorXd& x, const std::vector<const Measurement*>& rows) {
  const VectorXd r = problem.residuals(x), w = weights(r);
  const MatrixXd j = problem.jacobian(x);
  const VectorXd precision = problem.width.array().square().inverse();
  MatrixXd curvature = j.transpose() * w.array().cube().matrix().asDiagonal() * j;  // the second derivative of soft L1 is w^3
  curvature.diagonal() += precision;
  Covariance result;
  result.plain = curvature.ldlt().solve(MatrixXd::Identity(x.size(), x.size()));

  std::map<std::string, VectorXd> scores;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<Index>(i);
    auto& score = scores.emplace(cell_of(*rows[i]), VectorXd::Zero(x.size())).first->second;
    score += j.row(row).transpose() * (w[row] * r[row]);
  }
  MatrixXd meat = precision.asDiagonal();
  for (const auto& [cell, score] : scores) meat += score * score.transpose();
  const MatrixXd sandwich = result.plain * meat * result.plain;
  result.spread = result.plain.diagonal().cwiseMax(sandwich.diagonal()).cwiseSqrt();
  return result;
}

}  // namespace stepcast::calibration
