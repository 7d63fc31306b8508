// See recalibrate.hpp. The fit is the robust least squares of `calibrate`, on whole runs: e = log(forecast / measured) of a row, x = logarithms of the four factors.
#include "cli/validate/recalibrate.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/draws.hpp"
#include "calibration/least_squares.hpp"
#include "cli/validate/parallel.hpp"

namespace stepcast::cli {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Clocks of one type of card differ by 10 %, networks by half, latencies and hosts by a factor of two to three (docs/calibration.md, "Priors").
constexpr std::array<double, 4> kFactorWidths{0.1, 0.4, 1.0, 0.7};
constexpr double kNoise = 0.03;  // of a row, at least: repeated runs agree within 2.6 %, and the formulas miss about as much
constexpr double kStep = 0.02;   // of a logarithm: a simulated step is a sum of maxima, so no smaller
constexpr double kReach = 3;     // in widths, the limits
constexpr std::size_t kLeastJudged = 2;

MachineFactors factors_of(const VectorXd& x) { return {std::exp(x[0]), std::exp(x[1]), std::exp(x[2]), std::exp(x[3])}; }

VectorXd log_errors(const Errors& errors, const VectorXd& x) {
  const std::vector<double> values = errors(factors_of(x));
  VectorXd result(static_cast<Index>(values.size()));
  for (Index i = 0; i < result.size(); ++i) result[i] = std::log1p(values[static_cast<std::size_t>(i)]);
  return result;
}

MatrixXd differences(const Errors& errors, const VectorXd& x) {
  MatrixXd result;
  for (Index p = 0; p < x.size(); ++p) {
    VectorXd up = x, down = x;
    up[p] += kStep, down[p] -= kStep;
    const VectorXd slope = (log_errors(errors, up) - log_errors(errors, down)) / (2 * kStep);
    if (p == 0) result.resize(slope.size(), x.size());
    result.col(p) = slope;
  }
  return result;
}

calibration::LeastSquares problem_of(const Errors& errors, double noise) {
  calibration::LeastSquares problem;
  problem.prior = VectorXd::Zero(4);
  problem.width = Eigen::Map<const VectorXd>(kFactorWidths.data(), 4);
  problem.lower = -kReach * problem.width;
  problem.upper = kReach * problem.width;
  problem.residuals = [&errors, noise](const VectorXd& x) { return VectorXd(log_errors(errors, x) / noise); };
  problem.jacobian = [&errors, noise](const VectorXd& x) { return MatrixXd(differences(errors, x) / noise); };
  return problem;
}

/// What the factors can't explain: 1.48 times the median size of the errors that are left.
double noise_of(const VectorXd& left) {
  std::vector<double> sizes(static_cast<std::size_t>(left.size()));
  for (Index i = 0; i < left.size(); ++i) sizes[static_cast<std::size_t>(i)] = std::abs(left[i]);
  return std::max(kNoise, 1.4826 * calibration::percentile(sizes, 0.5));
}

std::vector<std::size_t> chosen(const std::vector<std::size_t>& rows, const Judgement& judgement, const Choice& choice) {
  std::vector<std::size_t> order = rows;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return calibration::uniform(choice.seed, judgement.rows[a].id, 0) < calibration::uniform(choice.seed, judgement.rows[b].id, 0);
  });
  const std::size_t count = choice.count > 0 ? static_cast<std::size_t>(choice.count) : rows.size() / 2;
  if (count == 0 || count + kLeastJudged > rows.size()) return {};
  order.resize(count);
  return order;
}

calibration::ErrorSummary summary(const std::vector<JudgedRow>& rows) {
  std::vector<double> errors;
  for (const JudgedRow& row : rows) {
    if (row.error) errors.push_back(*row.error);
  }
  return calibration::summarize(errors);
}

/// The rows again, on the machine with these factors.
std::vector<JudgedRow> judged(const std::vector<calibration::Run>& runs, const std::vector<std::size_t>& which, const calibration::Sources& sources,
                              const MachineFactors& factors, unsigned threads) {
  JudgeOptions options;
  options.factors = factors;
  std::vector<JudgedRow> rows(which.size());
  for_each_index(which.size(), threads, [&](std::size_t i) { rows[i] = judge_row(runs[which[i]], sources, options); });
  return rows;
}

}  // namespace

std::array<FittedFactor, 4> fit_factors(const Errors& errors) {
  const calibration::LeastSquares first = problem_of(errors, kNoise);
  const VectorXd rough = calibration::minimise(first, first.prior).x;
  const calibration::LeastSquares problem = problem_of(errors, noise_of(log_errors(errors, rough)));
  const VectorXd x = calibration::minimise(problem, rough).x;
  const MatrixXd j = problem.jacobian(x);
  const VectorXd weights = calibration::weights(problem.residuals(x));
  const MatrixXd precision = MatrixXd(problem.width.array().square().inverse().matrix().asDiagonal()) + j.transpose() * weights.asDiagonal() * j;
  const MatrixXd covariance = precision.inverse();
  std::array<FittedFactor, 4> result;
  for (Index p = 0; p < 4; ++p) {
    const double variance = covariance(p, p), prior = problem.width[p] * problem.width[p];
    result[static_cast<std::size_t>(p)] = {std::exp(x[p]), std::sqrt(variance), variance / prior};
  }
  return result;
}

namespace {

/// One source: its fitted rows (by number), and all of them.
struct SourceRows {
  std::vector<std::size_t> fitted, others;
};

SourceRows divided(const std::vector<std::size_t>& rows, const Judgement& judgement, const Choice& choice) {
  SourceRows result{chosen(rows, judgement, choice), {}};
  for (const std::size_t i : rows) {
    if (std::find(result.fitted.begin(), result.fitted.end(), i) == result.fitted.end()) result.others.push_back(i);
  }
  return result;
}

}  // namespace

Recalibration recalibrate(const std::vector<calibration::Run>& runs, const Judgement& judgement, const calibration::Sources& sources, const Choice& choice,
                          unsigned threads) {
  std::map<std::string, std::vector<std::size_t>> by_source;
  for (std::size_t i = 0; i < judgement.rows.size(); ++i) {
    if (judgement.rows[i].error) by_source[judgement.rows[i].group].push_back(i);
  }
  Recalibration result;
  std::vector<JudgedRow> shipped;
  for (const auto& [source, numbers] : by_source) {
    const SourceRows rows = divided(numbers, judgement, choice);
    if (rows.fitted.empty()) {
      result.too_few.push_back(source);
      continue;
    }
    SourceFit fit;
    fit.source = source;
    fit.factors = fit_factors([&](const MachineFactors& factors) {
      std::vector<double> errors;
      for (const JudgedRow& row : judged(runs, rows.fitted, sources, factors, threads)) errors.push_back(row.error.value_or(0));
      return errors;
    });
    const auto& f = fit.factors;
    const std::vector<JudgedRow> after = judged(runs, rows.others, sources, {f[0].value, f[1].value, f[2].value, f[3].value}, threads);
    std::vector<JudgedRow> before;
    for (const std::size_t i : rows.others) before.push_back(judgement.rows[i]);
    for (const std::size_t i : rows.fitted) fit.fitted.push_back(judgement.rows[i].id);
    fit.before = summary(before);
    fit.after = summary(after);
    shipped.insert(shipped.end(), before.begin(), before.end());
    result.rows.insert(result.rows.end(), after.begin(), after.end());
    result.sources.push_back(std::move(fit));
  }
  result.before = summary(shipped);
  result.after = summary(result.rows);
  return result;
}

}  // namespace stepcast::cli
