// See fit.hpp. The order of work: split rows, find the constants that they depend on, fit from the priors, judge the noise by the residuals, fit from all starts.
#include "calibration/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibration/covariance.hpp"
#include "calibration/describe.hpp"
#include "calibration/draws.hpp"
#include "calibration/errors.hpp"
#include "calibration/least_squares.hpp"
#include "calibration/predictor.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::calibration {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows = std::vector<const Measurement*>;

constexpr double kStep = 1e-4;  // of a logarithm, for central differences
constexpr double kUsualNoiseRows = 5, kLeastNoise = 0.005;
constexpr double kStartSpread = 1.5;  // draws of starts, in widths of the prior

VectorXd priors(const std::vector<Parameter>& parameters) {
  VectorXd logs(static_cast<Index>(parameters.size()));
  for (std::size_t p = 0; p < parameters.size(); ++p) logs[static_cast<Index>(p)] = std::log(parameters[p].prior);
  return logs;
}

/// Log of the predicted time of some rows.
void predict(const Machine& machine, const Rows& rows, const std::vector<Index>& which, VectorXd& logs) {
  Predictor predictor(machine);
  for (const Index i : which) logs[i] = std::log(predictor.time(*rows[static_cast<std::size_t>(i)]).si());
}

std::vector<Index> all(const Rows& rows) {
  std::vector<Index> which(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) which[i] = static_cast<Index>(i);
  return which;
}

/// The fit's view of the rows: which constants they depend on, and which rows depend on each. Rows of one group are asked together, since another value of a
/// constant may make the other term of a formula the larger one.
class Dependence {
 public:
  Dependence(const Machine& machine, const Rows& rows) {
    std::map<std::string, std::vector<Index>> groups;
    for (std::size_t i = 0; i < rows.size(); ++i) groups[group_of(*rows[i])].push_back(static_cast<Index>(i));
    const std::vector<Parameter> possible = candidates(machine);
    VectorXd base(static_cast<Index>(rows.size())), moved = base;
    predict(machine, rows, all(rows), base);
    for (const Parameter& parameter : possible) {
      std::set<Index> moving;
      for (const double factor : {0.5, 0.99, 1.01, 2.0}) {
        const VectorXd value = VectorXd::Constant(1, std::log(std::clamp(parameter.prior * factor, parameter.min, parameter.max)));
        predict(with_values(machine, {parameter}, value), rows, all(rows), moved);
        for (const auto& [name, members] : groups) {
          if (std::any_of(members.begin(), members.end(), [&](Index i) { return moved[i] != base[i]; })) moving.insert(members.begin(), members.end());
        }
      }
      if (moving.empty()) continue;
      parameters_.push_back(parameter);
      rows_of_.emplace_back(moving.begin(), moving.end());
    }
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Index>& rows_of(std::size_t parameter) const { return rows_of_[parameter]; }

 private:
  std::vector<Parameter> parameters_;
  std::vector<std::vector<Index>> rows_of_;
};

MatrixXd differences(const Machine& machine, const Rows& rows, const std::vector<Parameter>& parameters, const VectorXd& logs,
                     const std::function<const std::vector<Index>&(std::size_t)>& rows_of) {
  MatrixXd result = MatrixXd::Zero(static_cast<Index>(rows.size()), logs.size());
  VectorXd up = VectorXd::Zero(result.rows()), down = up;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::vector<Index>& which = rows_of(p);
    VectorXd shifted = logs;
    shifted[static_cast<Index>(p)] += kStep;
    predict(with_values(machine, parameters, shifted), rows, which, up);
    shifted[static_cast<Index>(p)] -= 2 * kStep;
    predict(with_values(machine, parameters, shifted), rows, which, down);
    for (const Index i : which) result(i, static_cast<Index>(p)) = (up[i] - down[i]) / (2 * kStep);
  }
  return result;
}

/// Scatter of a group's log errors: 1.48 times their median size (the standard deviation, were they normal), drawn to the usual noise where there are few.
std::map<std::string, double> noise_of(const Rows& rows, const VectorXd& errors) {
  std::map<std::string, std::vector<double>> sizes;
  for (std::size_t i = 0; i < rows.size(); ++i) sizes[group_of(*rows[i])].push_back(std::abs(errors[static_cast<Index>(i)]));
  std::map<std::string, double> noise;
  for (const auto& [group, values] : sizes) {
    const double own = 1.4826 * percentile(values, 0.5), n = static_cast<double>(values.size());
    noise[group] = std::max(kLeastNoise, std::sqrt((n * own * own + kUsualNoiseRows * kUsualNoise * kUsualNoise) / (n + kUsualNoiseRows)));
  }
  return noise;
}

VectorXd noise_by_row(const Rows& rows, const std::map<std::string, double>& noise) {
  VectorXd result(static_cast<Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) result[static_cast<Index>(i)] = noise.at(group_of(*rows[i]));
  return result;
}

LeastSquares problem_of(const Machine& machine, const Rows& rows, const Dependence& dependence, const VectorXd& noise) {
  const std::vector<Parameter>& parameters = dependence.parameters();
  LeastSquares problem;
  problem.prior = priors(parameters);
  problem.width = problem.lower = problem.upper = problem.prior;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto i = static_cast<Index>(p);
    problem.width[i] = parameters[p].width;
    problem.lower[i] = std::log(parameters[p].min);
    problem.upper[i] = std::log(parameters[p].max);
  }
  problem.residuals = [&machine, &rows, &parameters, noise](const VectorXd& x) {
    return VectorXd(log_errors(with_values(machine, parameters, x), rows).array() / noise.array());
  };
  problem.jacobian = [&machine, &rows, &dependence, noise](const VectorXd& x) {
    const MatrixXd j = differences(
        machine, rows, dependence.parameters(), x, [&](std::size_t p) -> const auto& { return dependence.rows_of(p); });
    return MatrixXd(noise.cwiseInverse().asDiagonal() * j);
  };
  return problem;
}

/// The priors, then draws around them. Draws that rounding leaves beside the prior are put on it: a start is either the prior or clearly another point.
VectorXd start(const LeastSquares& problem, const std::vector<Parameter>& parameters, std::uint64_t seed, int number) {
  VectorXd x = problem.prior;
  for (Index p = 0; p < x.size() && number > 0; ++p) {
    const double draw = normal(seed, parameters[static_cast<std::size_t>(p)].name, static_cast<std::uint64_t>(number));
    x[p] = std::clamp(x[p] + kStartSpread * problem.width[p] * draw, problem.lower[p], problem.upper[p]);
  }
  return x;
}

void split(const std::vector<Measurement>& rows, const FitOptions& options, Rows& fitted, Rows& held_out) {
  for (const Measurement& row : rows) (uniform(options.seed, describe(row), 0) < options.hold_out ? held_out : fitted).push_back(&row);
}

/// Five digits: what a profile is worth writing with.
double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

void fill_parameters(Fit& result, const LeastSquares& problem, const std::vector<Parameter>& parameters, const Optimum& best,
                     const std::vector<Optimum>& ends) {
  const Covariance covariance = covariance_of(problem, best.x, result.fitted);
  result.covariance = covariance.plain;
  VectorXd logs = best.x;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto i = static_cast<Index>(p);
    FittedParameter parameter{parameters[p]};
    parameter.value = rounded(std::exp(best.x[i]));
    parameter.spread = covariance.spread[i];
    parameter.undetermined = std::min(1.0, covariance.plain(i, i) / (problem.width[i] * problem.width[i]));
    parameter.at_limit = std::min(best.x[i] - problem.lower[i], problem.upper[i] - best.x[i]) < 1e-3;
    for (const Optimum& end : ends) parameter.starts_agreed += std::abs(end.x[i] - best.x[i]) <= std::max(0.01, parameter.spread) ? 1 : 0;
    logs[i] = std::log(parameter.value);
    result.parameters.push_back(parameter);
  }
  result.machine = with_values(result.machine, parameters, logs);
}

}  // namespace

VectorXd log_errors(const Machine& machine, const Rows& rows) {
  VectorXd errors(static_cast<Index>(rows.size()));
  predict(machine, rows, all(rows), errors);
  for (std::size_t i = 0; i < rows.size(); ++i) errors[static_cast<Index>(i)] -= std::log(rows[i]->time.si());
  return errors;
}

MatrixXd sensitivities(const Machine& machine, const std::vector<Parameter>& parameters, const VectorXd& logs, const Rows& rows) {
  const std::vector<Index> which = all(rows);
  return differences(
      machine, rows, parameters, logs, [&](std::size_t) -> const auto& { return which; });
}

Fit fit(const Machine& machine, const std::vector<Measurement>& rows, const FitOptions& options) {
  Fit result{machine, {}, {}, {}, {}, {}, options.starts, false};
  split(rows, options, result.fitted, result.held_out);
  if (result.fitted.empty()) throw InputError("calibrate", "", "no measurement is left to fit");
  const Dependence dependence(machine, result.fitted);
  const std::vector<Parameter>& parameters = dependence.parameters();
  if (parameters.empty()) throw InputError("calibrate", "", "the measurements depend on no constant that can be fitted");

  const VectorXd usual = VectorXd::Constant(static_cast<Index>(result.fitted.size()), kUsualNoise);
  Optimum best = minimise(problem_of(machine, result.fitted, dependence, usual), priors(parameters));
  result.noise = noise_of(result.fitted, log_errors(with_values(machine, parameters, best.x), result.fitted));
  const LeastSquares problem = problem_of(machine, result.fitted, dependence, noise_by_row(result.fitted, result.noise));
  std::vector<Optimum> ends;
  for (int number = 0; number < options.starts; ++number) ends.push_back(minimise(problem, start(problem, parameters, options.seed, number)));
  best = *std::min_element(ends.begin(), ends.end(), [](const Optimum& a, const Optimum& b) { return a.cost < b.cost; });
  result.converged = best.converged;
  fill_parameters(result, problem, parameters, best, ends);
  return result;
}

}  // namespace stepcast::calibration
