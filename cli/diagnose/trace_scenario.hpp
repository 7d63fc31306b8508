// The scenario behind a trace, its simulation beside the trace, and what changes of it would gain. docs/diagnose.md, "From a trace to a scenario".
// Tests: tests/model/inference_grid_test.cpp, tests/golden/diagnose_scenario_test.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/diagnose/infer.hpp"
#include "scenarios/scenario.hpp"
#include "trace/profile/findings.hpp"

namespace stepcast::cli {

struct Prediction;

struct TraceScenario {
  ScenarioDraft draft;
  nlohmann::ordered_json document;              // what to write; with changes: the whole scenario, resolved
  std::optional<scenarios::Scenario> scenario;  // absent: it can't be read, for this reason
  std::string problem;
};

/// Document and scenario anew from the draft. Throws as scenario_of.
void read_draft(const std::string& label, std::span<const std::string> sets, TraceScenario& scenario);

/// `sets`: changes by the user, which fill in what is missing. Throws InputError on one that can't be applied to a complete scenario. Nothing for a file without device operations.
std::optional<TraceScenario> scenario_of(const trace::profile::RankDiagnosis& rank, const std::optional<scenarios::ImportedModel>& given,
                                         std::span<const std::string> sets);

/// Simulates the scenario and sets its /host/scale: what the host's own work takes in a traced step (without a backward: forward) over what it takes in a simulated one. Nothing where that can't be
/// told, or where `sets` has the key.
void add_host_cost(const trace::profile::RankDiagnosis& rank, std::span<const std::string> sets, TraceScenario& scenario);

/// The device of a rank that computes most; null: it has none.
const trace::profile::DeviceMetrics* busiest(const trace::profile::RankDiagnosis& rank);
/// What the simulated steps look like to the analysis of traces.
trace::profile::RankDiagnosis as_traced(const Prediction& prediction);

/// A backward was recorded.
bool is_training(const trace::profile::RankDiagnosis& rank);

/// Model FLOP of a step over what the device could do in its time. Steps as the device ran them, or the whole window where fewer than two are marked.
struct Utilisation {
  double step_s = 0, model_flops_per_step = 0, peak_flops = 0, tokens_per_s_per_gpu = 0;
  [[nodiscard]] double flops_per_s() const { return model_flops_per_step / step_s; }
  [[nodiscard]] double mfu() const { return flops_per_s() / peak_flops; }
};
/// Nothing where no backward was recorded: model FLOP are those of training.
std::optional<Utilisation> utilisation_of(const trace::profile::RankDiagnosis& rank, const scenarios::Scenario& scenario);

/// Microseconds of a step, traced and predicted. Of a file without a backward only the forward is compared.
struct ComparedTime {
  std::string name;
  double traced_us = 0, predicted_us = 0;
};
struct SideBySide {
  std::string outcome;  // of the simulation: "ok", "out_of_memory", "deadlock"
  std::vector<ComparedTime> times;
};
SideBySide side_by_side(const trace::profile::RankDiagnosis& rank, const scenarios::Scenario& scenario);

/// Simulates the scenario without each finding's cause, where a setting removes it, and notes the gain at findings that no replay has forecast.
void forecast_gains(const scenarios::Scenario& scenario, std::vector<trace::profile::Finding>& findings);

}  // namespace stepcast::cli
