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
#include "trace/profile/import.hpp"
#include "trace/profile/processes.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

const profile::DeviceMetrics* busiest(const profile::RankDiagnosis& rank) {
  const auto at = std::max_element(rank.devices.begin(), rank.devices.end(), [](const profile::DeviceMetrics& a, const profile::DeviceMetrics& b) {
    return a.whole_window.compute < b.whole_window.compute;
  });
  return at == rank.devices.end() ? nullptr : &*at;
}

/// Marked steps that the times are of: at least one.
double steps_of(const profile::RankDiagnosis& rank, const profile::DeviceMetrics& device) {
  return device.steady.steps > 0 ? static_cast<double>(device.steady.steps) : static_cast<double>(std::max<std::size_t>(1, rank.steps.size()));
}

/// What the simulated step looks like to the same analysis.
profile::RankDiagnosis predicted_rank(const Prediction& prediction) {
  std::ostringstream file;
  trace::write_chrome(prediction.result.trace, file);
  const std::string text = file.str();
  profile::MemorySource source(text);
  return profile::diagnose(std::move(profile::by_process(profile::import_profile(source, "prediction")).front()));
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

}  // namespace

bool is_training(const profile::RankDiagnosis& rank) {
  const profile::DeviceMetrics* device = busiest(rank);
  return device && device->passes[static_cast<std::size_t>(Pass::backward)].kernels > 0;
}

std::optional<TraceScenario> scenario_of(const profile::RankDiagnosis& rank, const std::optional<scenarios::ImportedModel>& given,
                                         std::span<const std::string> sets) {
  auto draft = infer_scenario(rank, given);
  if (!draft) return {};
  TraceScenario result{std::move(*draft), {}, {}, {}};
  result.document = result.draft.document(rank.profile.label);
  try {
    result.scenario = scenarios::read_scenario_text(result.document.dump(), rank.profile.label, sets);
    if (!sets.empty()) result.document = scenarios::to_json(*result.scenario);
  } catch (const InputError& error) {
    if (!sets.empty()) throw;
    result.problem = error.what();
  }
  return result;
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
  const profile::RankDiagnosis predicted = result.outcome == "ok" ? predicted_rank(prediction) : profile::RankDiagnosis{};
  if (!busiest(rank) || !busiest(predicted)) return result;
  const Times a(rank), b(predicted);
  const auto add = [&](const char* name, double traced, double forecast) { result.times.push_back({name, traced, forecast}); };
  if (!is_training(rank)) {  // a step is simulated with its backward: its forward alone can be compared
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
