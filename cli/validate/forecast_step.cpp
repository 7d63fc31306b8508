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
/// More than any device has: the run of a forecast that does not fit.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 46;

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

StepForecaster::StepForecaster(const scenarios::Scenario& scenario) : scenario_(scenario) {
  if (scenario.batch.grad_accum <= kWhole) return;
  for (std::int64_t i = 0; i < 3; ++i) {
    scenarios::Scenario shortened = scenario;
    shortened.batch.grad_accum = kShort - 2 + i;
    shortened_.push_back({shortened, program_of(shortened)});
  }
}

void StepForecaster::remove_memory_limit() {
  scenario_.allocator.device_memory = kUnlimited;
  for (Simulated& each : shortened_) each.scenario.allocator.device_memory = kUnlimited;
}

StepForecast StepForecaster::whole(const Hardware& hardware) {
  if (!whole_) whole_ = {scenario_, program_of(scenario_)};
  return {forecast(scenario_, whole_->program, &hardware), false};
}

StepForecast StepForecaster::on(const Hardware& hardware) {
  if (shortened_.empty()) return whole(hardware);
  double step_s[3] = {};
  StepForecast last;
  for (std::size_t i = 0; i < 3; ++i) {
    last = {forecast(shortened_[i].scenario, shortened_[i].program, &hardware), false};
    if (last.report.outcome != "ok") return last;  // memory does not depend on further micro-batches
    step_s[i] = last.report.step_time_s;
  }
  const double each = step_s[2] - step_s[1];
  if (std::abs(each - (step_s[1] - step_s[0])) > kAgreement * each) return whole(hardware);
  extend(last.report, kShort, scenario_.batch.grad_accum, each);
  last.extended = true;
  return last;
}

}  // namespace stepcast::cli
