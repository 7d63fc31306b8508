// The forecast of one row's step. See judge.hpp.
#include <cmath>

#include "cli/predict.hpp"
#include "cli/validate/judge.hpp"

namespace stepcast::cli {
namespace {

/// Up to so many micro-batches a step is simulated whole.
constexpr std::int64_t kWhole = 24;
/// Micro-batches of the three short runs whose differences must agree.
constexpr std::int64_t kShort = 6;
constexpr double kAgreement = 1e-4;  // relative

StepForecast simulate_whole(const scenarios::Scenario& scenario) { return {predict(scenario).report, false}; }

/// The same step with more micro-batches, each of `each_s`.
void extend(Report& report, std::int64_t from, std::int64_t to, double each_s) {
  const double factor = static_cast<double>(to) / static_cast<double>(from), before = report.step_time_s;
  report.step_time_s += static_cast<double>(to - from) * each_s;
  report.tokens_per_step_per_gpu *= factor;
  report.tokens_per_s_per_gpu = report.tokens_per_step_per_gpu / report.step_time_s;
  report.mfu *= factor * before / report.step_time_s;
  report.scenario.grad_accum = to;
}

}  // namespace

StepForecast forecast_step(scenarios::Scenario scenario) {
  const std::int64_t wanted = scenario.batch.grad_accum;
  if (wanted <= kWhole) return simulate_whole(scenario);
  double step_s[3] = {};
  StepForecast last;
  for (std::int64_t i = 0; i < 3; ++i) {
    scenario.batch.grad_accum = kShort - 2 + i;
    last = simulate_whole(scenario);
    if (last.report.outcome != "ok") return last;  // memory does not depend on further micro-batches
    step_s[i] = last.report.step_time_s;
  }
  const double each = step_s[2] - step_s[1];
  if (std::abs(each - (step_s[1] - step_s[0])) > kAgreement * each) {
    scenario.batch.grad_accum = wanted;
    return simulate_whole(scenario);
  }
  extend(last.report, kShort, wanted, each);
  last.extended = true;
  return last;
}

}  // namespace stepcast::cli
