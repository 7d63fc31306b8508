// Turns a scenario into the inputs of the simulator, runs it, and adds warnings. docs/report.md; test: tests/golden/cli_test.cpp.
#include "cli/predict.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/inputs.hpp"
#include "cli/report/table.hpp"
#include "program/build.hpp"

namespace stepcast::cli {
namespace {

/// Context, NCCL and workspaces take 2 to 4 GiB of a device by library version: this much nearer to the limit, a forecast that a run fits is not sharp.
constexpr double kNarrowHeadroom = 0.05;

void warn(const sim::Options& options, Prediction& prediction) {
  Report& report = prediction.report;
  const auto& retries = report.retries_per_step;
  const bool ok = report.outcome == "ok";
  if (ok && !retries.empty() && retries.back() > 0) {
    report.warnings.push_back("the allocator gives its cache back and takes it again in every step (" + std::to_string(retries.back()) +
                              " retries in the last one): the step runs at the limit of the device's memory");
  }
  if (prediction.scenario.run.steps == 1) report.warnings.push_back("one step only: the step time includes the start-up of the first step");
  const double limit = static_cast<double>(report.memory_limit_bytes), headroom = limit - static_cast<double>(report.peak_reserved_bytes);
  if (ok && options.memory_limit && headroom < kNarrowHeadroom * limit) {
    report.warnings.push_back("the peak of reserved memory is within 5 % of the limit (" + size_text(headroom) +
                              " left): retries may appear, and a longer sequence or another library version may run out of memory");
  }
}

/// What the pool may reserve, and for an out-of-memory how the device's memory is divided.
void set_memory_limit(const sim::Options& options, const hw::CostModel* model, Prediction& prediction) {
  const double fraction = options.allocator.memory_fraction.value_or(1);
  Report& report = prediction.report;
  report.memory_limit_bytes = static_cast<std::int64_t>(fraction * static_cast<double>(options.pool_bytes));
  if (!model) return;
  report.out_of_memory.outside_pool_bytes = static_cast<std::int64_t>(model->memory_outside_pool().in(byte));
  report.out_of_memory.device_bytes = options.pool_bytes + report.out_of_memory.outside_pool_bytes;
  report.out_of_memory.fraction = options.allocator.memory_fraction.has_value();
}

/// Simulates and fills result and report of a prediction that has its scenario, whose program this is.
void run(const program::Program& program, const Inputs& inputs, Prediction& prediction) {
  const hw::CostModel* model = inputs.model ? &*inputs.model : nullptr;
  prediction.result = sim::simulate(program, inputs.prices, inputs.options);
  prediction.result.trace.device_name = model ? model->gpu().name : "fixed costs";
  prediction.result.trace.device_memory_bytes = model ? static_cast<std::int64_t>(model->device_memory().in(byte)) : 0;
  Report report = make_report(prediction.scenario, program, prediction.result, model);
  report.warnings = std::move(prediction.report.warnings);
  prediction.report = std::move(report);
  set_memory_limit(inputs.options, model, prediction);
  warn(inputs.options, prediction);
}

/// Nobody sees the trace: one rank is recorded, and of steps that are alike the last.
void record_little(const scenarios::Scenario& scenario, sim::Options& options) {
  options.recorded_ranks = 1;
  if (!scenarios::steps_vary(scenario) && scenario.run.ranks == scenarios::Ranks::folded) options.record_from_step = scenario.run.steps - 1;
}

}  // namespace

program::Program program_of(const scenarios::Scenario& scenario) { return program::build_program(scenarios::step_spec(scenario), scenario.run.steps); }

Prediction predict(const scenarios::Scenario& scenario, std::vector<std::string> warnings) {
  Prediction prediction{scenario, program_of(scenario), {}, {}};
  prediction.report.warnings = std::move(warnings);
  run(prediction.program, inputs_of(scenario, prediction.program), prediction);
  return prediction;
}

Prediction predict_last_step(const scenarios::Scenario& scenario, std::vector<std::string> warnings) {
  Prediction prediction{scenario, program_of(scenario), {}, {}};
  prediction.report.warnings = std::move(warnings);
  Inputs inputs = inputs_of(scenario, prediction.program);
  record_little(scenario, inputs.options);
  run(prediction.program, inputs, prediction);
  return prediction;
}

Report forecast(const scenarios::Scenario& scenario, const program::Program& program, const Hardware* hardware) {
  Prediction prediction{scenario, {}, {}, {}};
  Inputs inputs = inputs_of(scenario, program, hardware);
  record_little(scenario, inputs.options);
  inputs.options.record_host = false;
  run(program, inputs, prediction);
  return std::move(prediction.report);
}

nlohmann::ordered_json json_of(const Prediction& prediction) {
  nlohmann::ordered_json json = to_json(prediction.report);
  json["resolved_scenario"] = scenarios::to_json(prediction.scenario);
  return json;
}

}  // namespace stepcast::cli
