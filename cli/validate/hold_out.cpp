// See hold_out.hpp.
#include "cli/validate/hold_out.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "calibration/draws.hpp"
#include "cli/validate/parallel.hpp"

namespace stepcast::cli {
namespace {

constexpr double kProbe = 0.05;  // of a logarithm: the size of factors that fits to whole tables find

using Slopes = std::array<double, 4>;  // d log(forecast / measured) / d log(factor)

std::array<double*, 4> members(MachineFactors& f) { return {&f.clock, &f.network, &f.latency, &f.host}; }

std::vector<std::size_t> forecast_rows(const Judgement& judgement) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < judgement.rows.size(); ++i) {
    if (judgement.rows[i].error) rows.push_back(i);
  }
  return rows;
}

/// log(forecast / measured) of a row on a machine with these factors.
double log_error(const calibration::Run& run, const calibration::Sources& sources, const MachineFactors& factors) {
  JudgeOptions options;
  options.factors = factors;
  return std::log1p(judge_row(run, sources, options).error.value_or(0));
}

/// By row of the table; rows without a forecast have none.
std::vector<Slopes> slopes_of(const std::vector<calibration::Run>& runs, const Judgement& judgement, const calibration::Sources& sources, unsigned threads) {
  std::vector<Slopes> slopes(runs.size());
  const std::vector<std::size_t> rows = forecast_rows(judgement);
  for_each_index(rows.size(), threads, [&](std::size_t n) {
    for (std::size_t p = 0; p < slopes[rows[n]].size(); ++p) {
      MachineFactors up, down;
      *members(up)[p] = std::exp(kProbe), *members(down)[p] = std::exp(-kProbe);
      slopes[rows[n]][p] = (log_error(runs[rows[n]], sources, up) - log_error(runs[rows[n]], sources, down)) / (2 * kProbe);
    }
  });
  return slopes;
}

std::array<FittedFactor, 4> fitted(const std::vector<std::size_t>& rows, const Judgement& judgement, const std::vector<Slopes>& slopes) {
  return fit_factors([&](const MachineFactors& factors) {
    MachineFactors of = factors;
    std::vector<double> errors;
    for (const std::size_t i : rows) {
      double log_error = std::log1p(*judgement.rows[i].error);
      for (std::size_t p = 0; p < 4; ++p) log_error += slopes[i][p] * std::log(*members(of)[p]);
      errors.push_back(std::expm1(log_error));
    }
    return errors;
  });
}

}  // namespace

std::vector<Fold> folds_by_source(const Judgement& judgement) {
  const std::vector<std::size_t> rows = forecast_rows(judgement);
  std::map<std::string, Fold> folds;
  for (const std::size_t i : rows) folds[judgement.rows[i].group].judged.push_back(i);
  std::vector<Fold> result;
  for (auto& [source, fold] : folds) {
    for (const std::size_t i : rows) {
      if (judgement.rows[i].group != source) fold.fitted.push_back(i);
    }
    fold.name = source;
    result.push_back(std::move(fold));
  }
  return result;
}

Fold half(const Judgement& judgement, std::uint64_t seed) {
  std::vector<std::size_t> order = forecast_rows(judgement);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return calibration::uniform(seed, judgement.rows[a].id, 0) < calibration::uniform(seed, judgement.rows[b].id, 0);
  });
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  return {"half " + std::to_string(seed), {order.begin(), middle}, {middle, order.end()}};
}

HoldOut hold_out(const std::vector<calibration::Run>& runs, const Judgement& judgement, const calibration::Sources& sources, std::vector<Fold> folds,
                 unsigned threads) {
  const std::vector<Slopes> slopes = slopes_of(runs, judgement, sources, threads);
  HoldOut result;
  std::vector<double> all_before, all_after;
  for (Fold& fold : folds) {
    const auto f = fitted(fold.fitted, judgement, slopes);
    std::vector<double> before, after(fold.judged.size());
    for (const std::size_t i : fold.judged) before.push_back(*judgement.rows[i].error);
    for_each_index(after.size(), threads, [&](std::size_t n) {
      after[n] = std::expm1(log_error(runs[fold.judged[n]], sources, {f[0].value, f[1].value, f[2].value, f[3].value}));
    });
    all_before.insert(all_before.end(), before.begin(), before.end());
    all_after.insert(all_after.end(), after.begin(), after.end());
    result.folds.push_back({std::move(fold), f, calibration::summarize(before), calibration::summarize(after)});
  }
  result.before = calibration::summarize(all_before);
  result.after = calibration::summarize(all_after);
  return result;
}

}  // namespace stepcast::cli
