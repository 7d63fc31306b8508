// Test: tests/model/inference_grid_test.cpp.
#include "cli/diagnose/trace_scenario.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/predict.hpp"
#include "hw_models/cost_model.hpp"
#include "hw_models/input_error.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "scenarios/flops_convention.hpp"
#include "trace/chrome_writer.hpp"
#include "trace/profile/host_work.hpp"
#include "trace/profile/import.hpp"
#include "trace/profile/processes.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

/// Marked steps that the times are of: at least one.
double steps_of(const profile::RankDiagnosis& rank, const profile::DeviceMetrics& device) {
  return device.steady.steps > 0 ? static_cast<double>(device.steady.steps) : static_cast<double>(std::max<std::size_t>(1, rank.steps.size()));
}

class Times {
 public:
  explicit Times(const profile::RankDiagnosis& rank) : device_(*busiest(rank)), steps_(steps_of(rank, device_)) {}
  [[nodiscard]] double of(profile::Time time) const { return profile::microseconds(time) / steps_; }
  [[nodiscard]] double pass(Pass pass) const { return of(device_.steady.passes[static_cast<std::size_t>(pass)].compute); }
  [[nodiscard]] const profile::DeviceTimes& times() const { return device_.steady.times; }

 private:
  const profile::DeviceMetrics& device_;
  double steps_;
};

/// From the first kernel of a forward to the end of the last, on average.
double forward_us(const profile::RankDiagnosis& rank) {
  const auto forwards = profile::forwards_of(rank.profile, busiest(rank)->device, profile::Passes(rank.profile));
  double sum = 0;
  for (const profile::ForwardRun& run : forwards) sum += profile::microseconds(run.device.end - run.device.begin);
  return forwards.empty() ? 0 : sum / static_cast<double>(forwards.size());
}

}  // namespace

const profile::DeviceMetrics* busiest(const profile::RankDiagnosis& rank) {
  const auto at = std::max_element(rank.devices.begin(), rank.devices.end(), [](const profile::DeviceMetrics& a, const profile::DeviceMetrics& b) {
    return a.whole_window.compute < b.whole_window.compute;
  });
  return at == rank.devices.end() ? nullptr : &*at;
}

profile::RankDiagnosis as_traced(const Prediction& prediction) {
  std::ostringstream file;
  trace::write_chrome(prediction.result.trace, file);
  const std::string text = file.str();
  profile::MemorySource source(text);
  return profile::diagnose(std::move(profile::by_process(profile::import_profile(source, "prediction")).front()));
}

bool is_training(const profile::RankDiagnosis& rank) {
  const profile::DeviceMetrics* device = busiest(rank);
  return device && device->passes[static_cast<std::size_t>(Pass::backward)].kernels > 0;
}

std::optional<TraceScenario> scenario_of(const profile::RankDiagnosis& rank, const std::optional<scenarios::ImportedModel>& given,
                                         std::span<const std::string> sets) {
  auto draft = infer_scenario(rank, given);
  if (!draft) return {};
  TraceScenario result{std::move(*draft), {}, {}, {}};
  read_draft(rank.profile.label, sets, result);
  return result;
}

void read_draft(const std::string& label, std::span<const std::string> sets, TraceScenario& scenario) {
  scenario.document = scenario.draft.document(label);
  try {
    scenario.scenario = scenarios::read_scenario_text(scenario.document.dump(), label, sets);
    if (!sets.empty()) scenario.document = scenarios::to_json(*scenario.scenario);
  } catch (const InputError& error) {
    if (!sets.empty()) throw;
    scenario.problem = error.what();
  }
}

std::optional<Utilisation> utilisation_of(const profile::RankDiagnosis& rank, const scenarios::Scenario& scenario) {
  const profile::DeviceMetrics* device = busiest(rank);
  if (!device || scenario.fixed_costs || !is_training(rank)) return {};
  const Hardware hardware = hardware_of(scenario);
  const hw::CostModel model(hardware.gpu, hardware.cluster);
  Utilisation u;
  u.step_s = profile::microseconds(device->steady.times.span) / steps_of(rank, *device) * 1e-6;
  if (u.step_s <= 0) return {};
  const auto tokens = static_cast<double>(program::tokens(scenario.batch) * scenario.batch.grad_accum);
  const std::int64_t parameters = program::active_parameters(scenario.model);
  u.tokens_per_s_per_gpu = tokens / u.step_s;
  u.model_flops_per_step =
      (tokens * program::model_flops_per_token(scenario.model, parameters, scenario.batch.seq_len, scenarios::flops_convention(scenario.run))).in(flop);
  u.peak_flops = model.peak(peak_type(scenario.precision)).si();
  return u;
}

SideBySide side_by_side(const profile::RankDiagnosis& rank, const scenarios::Scenario& scenario) {
  const Prediction prediction = predict(scenario);
  SideBySide result{prediction.report.outcome, {}};
  const profile::RankDiagnosis predicted = result.outcome == "ok" ? as_traced(prediction) : profile::RankDiagnosis{};
  if (!busiest(rank) || !busiest(predicted)) return result;
  const Times a(rank), b(predicted);
  const auto add = [&](const char* name, double traced, double forecast) { result.times.push_back({name, traced, forecast}); };
  if (!is_training(rank)) {  // a step is simulated with its backward: its forward alone can be compared
    add("forward", forward_us(rank), forward_us(predicted));
    add("forward kernels", a.pass(Pass::forward), b.pass(Pass::forward));
    return result;
  }
  add("step", a.of(a.times().span), b.of(b.times().span));
  add("compute", a.of(a.times().compute), b.of(b.times().compute));
  for (const Pass pass : {Pass::forward, Pass::recomputation, Pass::backward, Pass::optimizer})
    add((std::string(name(pass)) + " kernels").c_str(), a.pass(pass), b.pass(pass));
  add("communication", a.of(a.times().comm), b.of(b.times().comm));
  add("exposed communication", a.of(a.times().exposed_comm), b.of(b.times().exposed_comm));
  add("idle", a.of(a.times().idle), b.of(b.times().idle));
  return result;
}

}  // namespace stepcast::cli
