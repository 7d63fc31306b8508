// See run.hpp.
#include "cli/train/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/build_id.hpp"
#include "cli/inputs.hpp"
#include "cli/report/report.hpp"
#include "cli/report/table.hpp"
#include "cli/report/text.hpp"
#include "cli/train/real_device.hpp"
#include "hw_models/input_error.hpp"
#include "program/build.hpp"

namespace stepcast::cli {
namespace {

/// What the device has, unless the scenario says how much that is.
std::int64_t pool_bytes(const scenarios::Scenario& scenario, const RealDevice& device) {
  return scenario.allocator.device_memory.value_or(device.memory_bytes);
}

real::JobSettings settings_of(const scenarios::Scenario& scenario, const TrainOptions& options, const RealDevice& device) {
  real::JobSettings settings;
  settings.training.source = options.closed_form ? real::Source::closed_form : real::Source::seeded;
  settings.training.seed = static_cast<std::uint64_t>(scenario.run.seed);
  settings.training.vocab = scenario.model.vocab;
  settings.training.seq_len = scenario.batch.seq_len;
  settings.training.micro_batch = scenario.batch.micro_batch;
  settings.training.ranks = scenarios::ranks(scenario);
  settings.memory.pool_bytes = pool_bytes(scenario, device);
  const auto pool = static_cast<double>(settings.memory.pool_bytes);
  settings.memory.allocator = allocator_settings(scenario.allocator, pool, pool);  // nothing lies beside the pool
  settings.deadline_s = options.deadline_s;
  settings.traced_ranks = options.traced_ranks;
  settings.ended_by = options.ended_by;
  const std::string run = scenarios::to_json(scenario).dump() + build_id() + options.device + (options.closed_form ? "closed form" : "");
  settings.identity = std::hash<std::string>{}(run);
  return settings;
}

/// The trace keeps the last steps, as a profiler would.
void keep_active_steps(const scenarios::Scenario& scenario, trace::Trace& trace) {
  const auto first = static_cast<std::uint16_t>(scenario.run.steps - scenario.run.active);
  const SimTime begin = trace.steps[first].host_begin;
  trace.first_recorded_step = first;
  for (trace::RankTrace& rank : trace.ranks) {
    std::erase_if(rank.slices, [&](const trace::Slice& slice) { return slice.step < first; });
    std::erase_if(rank.memory, [&](const trace::MemorySample& sample) { return sample.time < begin; });
  }
}

/// What the run left, in the form of a simulation's result.
sim::Result result_of(const scenarios::Scenario& scenario, const RealDevice& device, real::JobResult& job) {
  sim::Result result;
  if (!job.failures.empty()) {
    result.outcome = sim::Outcome::out_of_memory;
    return result;
  }
  result.trace = std::move(job.trace);
  result.trace.device_name = device.unit;
  result.trace.device_memory_bytes = pool_bytes(scenario, device);
  for (const trace::StepMark& step : result.trace.steps) result.step_end.push_back(step.device_end);
  keep_active_steps(scenario, result.trace);
  result.memory = job.memory.statistics;
  result.peak_allocated = job.memory.allocated;
  result.peak_active = job.memory.active;
  result.peak_reserved = job.memory.reserved;
  result.peak_by_owner = job.memory.by_owner;
  return result;
}

/// Steps differ, so times are means over the traced ones, with percentiles beside them.
void fill_report(const scenarios::Scenario& scenario, const RealDevice& device, Prediction& measured) {
  measured.report = make_report(scenario, measured.program, measured.result, nullptr, true);
  Report& report = measured.report;
  report.scenario.device = "this machine, " + device.unit;
  report.memory_limit_bytes = static_cast<std::int64_t>(scenario.allocator.memory_fraction.value_or(1) * static_cast<double>(pool_bytes(scenario, device)));
}

real::JobResult run_job(const program::Program& program, const real::JobSettings& settings, const real::MakeDriver& make_driver, const TrainProcess* process) {
  return process == nullptr ? real::train(program, settings, make_driver) : real::train(program, settings, make_driver, *process->peers);
}

}  // namespace

Trained train(const scenarios::Scenario& scenario, const TrainOptions& options) {
  if (scenario.fixed_costs) throw InputError(scenario.name, "/fixed_costs", "has no kernels that could be run", "leave it out");
  const auto ranks = static_cast<std::int32_t>(scenarios::ranks(scenario));
  if (options.process != nullptr && options.process->peers->size() != ranks)
    throw InputError(scenario.name, "/cluster", fmt::format("has {} ranks, and {} processes were started", ranks, options.process->peers->size()),
                     "one process for each rank; --ranks N changes the scenario's");
  if (options.traced_ranks > ranks)
    throw InputError("command line", "", fmt::format("--trace-ranks: {} ranks can't be in the trace of a run that has {}", options.traced_ranks, ranks),
                     "fewer");
  const RealDevice device = real_device(options.device, ranks, options.process);
  if (scenario.allocator.expandable_segments && !device.expandable_segments)
    throw InputError(scenario.name, "/allocator/expandable_segments", "can't be had on --device " + device.name, "it takes whole segments, by cudaMalloc");
  Trained trained;
  trained.machine = device.machine;
  trained.measured.scenario = scenario;
  trained.measured.program = program::build_program(scenarios::step_spec(scenario), scenario.run.steps);
  real::JobResult job = run_job(trained.measured.program, settings_of(scenario, options, device), device.make_driver, options.process);
  if (options.process != nullptr && options.process->peers->rank() > 0) return trained;
  trained.failures = job.failures;
  trained.steps = job.steps;
  trained.parameters = job.parameters;
  trained.measured.result = result_of(scenario, device, job);
  if (trained.failures.empty()) fill_report(scenario, device, trained.measured);
  else trained.measured.report.outcome = job.out_of_memory ? "out_of_memory" : "failed";
  return trained;
}

namespace {

/// Times are there for runs that went well.
std::string step_text(const Trained& trained, std::size_t i) {
  const real::StepMetrics& step = trained.steps[i];
  const std::string norm = std::isnan(step.grad_norm) ? "" : fmt::format("  gradient norm {:.12g}", step.grad_norm);
  const std::string time = trained.failures.empty() ? "  " + time_text(trained.measured.report.step_times_s[i]) : "";
  return fmt::format("step {}  loss {:.12g}{}{}\n", i, step.loss, norm, time);
}

nlohmann::ordered_json step_json(const Trained& trained, std::size_t i) {
  const real::StepMetrics& step = trained.steps[i];
  nlohmann::ordered_json row = {{"step", i}, {"loss", step.loss}, {"grad_norm", nullptr}};
  if (!std::isnan(step.grad_norm)) row["grad_norm"] = step.grad_norm;
  if (trained.failures.empty()) row["step_time_s"] = trained.measured.report.step_times_s[i];
  return row;
}

/// What a run that failed had done.
nlohmann::ordered_json failed_json(const Trained& trained) {
  return {{"outcome", trained.measured.report.outcome}, {"failures", trained.failures}, {"resolved_scenario", scenarios::to_json(trained.measured.scenario)}};
}

}  // namespace

std::string to_text(const Trained& trained) {
  std::string text;
  for (std::size_t i = 0; i < trained.steps.size(); ++i) text += step_text(trained, i);
  return trained.failures.empty() ? text + "\n" + to_text(trained.measured.report) : text;
}

nlohmann::ordered_json to_json(const Trained& trained) {
  nlohmann::ordered_json json = trained.failures.empty() ? json_of(trained.measured) : failed_json(trained);
  json["schema"] = kTrainSchema;
  json["machine"] = trained.machine;
  json["training"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < trained.steps.size(); ++i) json["training"].push_back(step_json(trained, i));
  json["final_parameters"] = nlohmann::ordered_json::object();
  for (const real::ParameterSummary& p : trained.parameters) json["final_parameters"][p.name] = {{"sum", p.sum}, {"norm", p.norm}};
  return json;
}

}  // namespace stepcast::cli
