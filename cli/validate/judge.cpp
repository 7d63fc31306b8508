// See judge.hpp.
#include "cli/validate/judge.hpp"

#include "cli/validate/measured.hpp"
#include "cli/validate/parallel.hpp"
#include "cli/validate/row_scenario.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {
namespace {

using calibration::MemoryQuantity, calibration::Run;

void fill_times(const Report& report, Forecast& f) {
  f.tokens_per_s_per_gpu = report.tokens_per_s_per_gpu;
  f.step_time_s = report.step_time_s;
  f.compute_s = report.compute_s;
  f.comm_s = report.comm_s;
  f.exposed_comm_s = report.exposed_comm_s;
  f.bound = report.bound;
}

void fill_memory(const StepForecast& step, Forecast& f) {
  f.outcome = step.report.outcome;
  f.peak_allocated_bytes = step.report.peak_allocated_bytes;
  f.peak_active_bytes = step.report.peak_active_bytes;
  f.peak_reserved_bytes = step.report.peak_reserved_bytes;
  f.outside_pool_bytes = step.report.out_of_memory.device_bytes > 0 ? step.report.out_of_memory.outside_pool_bytes : 0;
  f.retries_per_step = step.report.retries_per_step.empty() ? 0 : step.report.retries_per_step.back();
}

/// The peak that the source's column means. Out of memory: only the unlimited rerun's allocated and active peaks are peaks of a whole step.
std::optional<double> forecast_memory(const Forecast& f, MemoryQuantity quantity) {
  switch (quantity) {
    case MemoryQuantity::allocated: return static_cast<double>(f.peak_allocated_bytes);
    case MemoryQuantity::active: return static_cast<double>(f.peak_active_bytes);
    case MemoryQuantity::reserved: return static_cast<double>(f.peak_reserved_bytes);
    case MemoryQuantity::device: return static_cast<double>(f.peak_reserved_bytes + f.outside_pool_bytes);
  }
  return std::nullopt;
}

void compare(JudgedRow& row) {
  const Measured& m = row.measured;
  const auto error = [](double forecast, double measured) { return forecast / measured - 1; };
  if (m.tokens_per_s_per_gpu && row.forecast.tokens_per_s_per_gpu > 0) row.error = error(row.forecast.tokens_per_s_per_gpu, *m.tokens_per_s_per_gpu);
  if (m.mfu && row.forecast.mfu > 0) row.mfu_error = error(row.forecast.mfu, *m.mfu);
  if (m.peak_memory_bytes && m.memory_quantity && m.outcome == "ok") {
    if (const auto memory = forecast_memory(row.forecast, *m.memory_quantity)) row.memory_error = error(*memory, *m.peak_memory_bytes);
  }
}

Percentiles speed_interval(StepForecaster& forecaster, const Hardware& hardware, const JudgeOptions& options) {
  std::vector<double> speeds;
  for (std::int64_t member = 0; member < options.interval; ++member) {
    const Report report = forecaster.on(drawn(hardware, options.seed, static_cast<std::uint64_t>(member))).report;
    if (report.outcome == "ok") speeds.push_back(report.tokens_per_s_per_gpu);
  }
  return percentiles(speeds);
}

}  // namespace

StepForecast forecast_step(StepForecaster& forecaster, const Hardware& hardware, bool ran_out_of_memory, JudgedRow& row) {
  StepForecast step = forecaster.on(hardware);
  fill_memory(step, row.forecast);
  if (step.report.outcome == "deadlock") throw NotExpressible("the simulated program deadlocks");
  if (step.report.outcome == "out_of_memory" && !ran_out_of_memory) {
    forecaster.remove_memory_limit();
    step = forecaster.on(hardware);
    row.forecast.peak_allocated_bytes = step.report.peak_allocated_bytes;
    row.forecast.peak_active_bytes = step.report.peak_active_bytes;
    row.forecast.peak_reserved_bytes = step.report.peak_reserved_bytes;
    row.notes.emplace_back("does not fit by the forecast: times are those with unlimited memory");
  }
  fill_times(step.report, row.forecast);
  if (step.extended) row.notes.emplace_back("step extended from 6 micro-batches");
  return step;
}

namespace {

void forecast_and_compare(const Run& run, const calibration::SourceFacts& facts, const JudgeOptions& options, JudgedRow& row) {
  const scenarios::Scenario scenario = scenario_of_row(run, facts, row.notes);
  const Hardware hardware = scaled(hardware_of(scenario), options.factors);
  StepForecaster forecaster(scenario);
  const StepForecast step = forecast_step(forecaster, hardware, ran_out_of_memory(run), row);
  const double flops = source_flops_per_token(run, facts.mfu, scenario);
  const double peak = facts.mfu && facts.mfu->peak.si() > 0 ? facts.mfu->peak.si() : step.report.peak_flops;
  row.forecast.mfu = peak > 0 ? flops * row.forecast.tokens_per_s_per_gpu / peak : 0;
  row.measured = measured(run, facts, scenario, flops, peak);
  compare(row);
  if (options.interval > 0 && row.error) row.interval = speed_interval(forecaster, hardware, options);
}

/// Share of the rows with an interval that hold what was measured.
std::optional<double> coverage_of(const std::vector<const JudgedRow*>& rows) {
  double held = 0, all = 0;
  for (const JudgedRow* row : rows) {
    if (!row->interval) continue;
    const double measured = *row->measured.tokens_per_s_per_gpu;
    all += 1;
    held += measured >= row->interval->p10 && measured <= row->interval->p90 ? 1 : 0;
  }
  return all > 0 ? std::optional(held / all) : std::nullopt;
}

Group group_of(const std::vector<const JudgedRow*>& rows) {
  std::vector<double> errors, memory, forecasts, measurements;
  for (const JudgedRow* row : rows) {
    if (row->memory_error) memory.push_back(*row->memory_error);
    if (!row->error) continue;
    errors.push_back(*row->error);
    forecasts.push_back(row->forecast.tokens_per_s_per_gpu);
    measurements.push_back(*row->measured.tokens_per_s_per_gpu);
  }
  return {calibration::summarize(errors), calibration::summarize(memory), calibration::rank_correlation(forecasts, measurements), coverage_of(rows)};
}

std::string gpu_family(const std::string& gpu) { return gpu.empty() ? "not said" : lower(gpu.substr(0, gpu.find('-'))); }

}  // namespace

namespace {

/// The machine's own profiles as a fact that overrides the others. Throws NotExpressible where the run is of another GPU.
calibration::Fact machine_of(const JudgeOptions& options, const calibration::SourceFacts& facts) {
  std::string gpu;
  for (const calibration::Fact* fact : facts.facts) {
    for (const auto& [pointer, value] : fact->settings) gpu = pointer == "/cluster/gpu" ? value.get<std::string>() : gpu;
  }
  if (!gpu.empty() && base_name(hw::gpu_profile(gpu).name) != base_name(hw::gpu_profile(options.gpu).name)) throw NotExpressible("of another GPU: " + gpu);
  calibration::Fact machine;
  machine.settings = {{"/cluster/gpu", options.gpu}, {"/cluster/node", options.node}};
  return machine;
}

}  // namespace

JudgedRow judge_row(const Run& raw, const calibration::Sources& sources, const JudgeOptions& options) {
  const Run run = calibration::completed(raw, sources.of(raw));
  calibration::SourceFacts facts = sources.of(run);  // a fact may depend on a cell that another one fills
  JudgedRow row;
  row.id = run.id;
  row.group = facts.name.empty() ? "not said" : facts.name;
  row.known_source = facts.known;
  row.tier = run.text("tier").empty() ? "not said" : run.text("tier");
  row.gpu = run.text("gpu");
  row.model = run.text("model");
  row.n_gpus = run.count("n_gpus").value_or(0);
  row.notes = run.notes;
  calibration::Fact machine;
  try {
    if (!options.gpu.empty()) machine = machine_of(options, facts), facts.facts.push_back(&machine);
    forecast_and_compare(run, facts, options, row);
  } catch (const NotExpressible& reason) { row.skipped = reason.what(); } catch (const InputError& refused) {
    row.skipped = refused.what();
  }
  return row;
}

Judgement summarize(std::vector<JudgedRow> rows) {
  Judgement judgement;
  judgement.rows = std::move(rows);
  std::vector<const JudgedRow*> all;
  std::map<std::string, std::vector<const JudgedRow*>> by_source, by_tier, by_gpu;
  for (const JudgedRow& row : judgement.rows) {
    if (!row.skipped.empty()) continue;
    all.push_back(&row);
    by_source[row.group].push_back(&row);
    by_tier[row.tier].push_back(&row);
    by_gpu[gpu_family(row.gpu)].push_back(&row);
  }
  const auto groups = [](const auto& parts, std::map<std::string, Group>& into) {
    for (const auto& [name, part] : parts) into.emplace(name, group_of(part));
  };
  judgement.all = group_of(all);
  groups(by_source, judgement.by_source);
  groups(by_tier, judgement.by_tier);
  groups(by_gpu, judgement.by_gpu);
  return judgement;
}

Judgement judge(const std::vector<Run>& runs, const calibration::Sources& sources, unsigned threads, const JudgeOptions& options,
                const std::function<void(std::size_t)>& done) {
  std::vector<JudgedRow> rows(runs.size());
  for_each_index(
      runs.size(), threads, [&](std::size_t i) { rows[i] = judge_row(runs[i], sources, options); }, done);
  return summarize(std::move(rows));
}

}  // namespace stepcast::cli
